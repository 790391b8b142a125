// A table that sorts by any column and can be filtered. Only the rows in view are in the document: it stays quick with
// as many rows as a trace has names.
const kRowHeight = 28;
const kRowsBeyondView = 12;

class ReportTable {
  constructor(table, colors) {
    this.table = table;
    this.colors = colors;
    this.order = table.rows.map((_, i) => i);
    this.shown = this.order;
    this.sorted = null;  // {column, descending}
    this.chosen = null;  // a row, which is marked
    this.onChoose = null;  // where rows can be chosen: what to tell
    this.count = el("span", { className: "count", role: "status" });
    this.body = el("tbody");
    this.headers = table.columns.map((column, c) => this.header(column, c));
    this.element = el("table", { "aria-rowcount": table.rows.length + 1, "data-key": table.key }, this.columnWidths(),
      el("thead", {}, el("tr", {}, ...this.headers)), this.body);
    this.element.style.minWidth = `${this.leastWidth}em`;
    this.scroller = el("div", { className: "scroll", tabindex: "0", on: { scroll: () => this.draw() } }, this.element);
    this.draw();
  }

  header(column, c) {
    const button = el("button", { type: "button", title: column.heading, on: { click: () => this.sortBy(c) } }, column.heading);
    return el("th", { scope: "col", "aria-sort": "none", ...(column.kind === "text" ? { className: "text" } : {}) }, button);
  }

  // Numbers get the room that they need, the name gets what is left; where that is too little, the table scrolls.
  columnWidths() {
    const { columns, rows } = this.table;
    const group = el("colgroup");
    this.leastWidth = 0;  // em
    const step = Math.max(1, Math.floor(rows.length / 300));
    columns.forEach((column, c) => {
      let longest = column.heading.length + 2;
      for (let r = 0; r < rows.length; r += step) longest = Math.max(longest, human(rows[r][c], column.kind).length);
      const col = el("col");
      const width = Math.min(longest, 36) * 0.57 + 2.6;
      if (c > 0) col.style.width = `${width}em`;
      this.leastWidth += c > 0 ? width : Math.min(width, 16);
      group.append(col);
    });
    return group;
  }

  // The first click on numbers puts the largest on top. What is not known stays at the end.
  sortBy(c) {
    const first = this.table.columns[c].kind !== "text";
    const descending = this.sorted?.column === c ? !this.sorted.descending : first;
    this.sorted = { column: c, descending };
    const { rows } = this.table;
    const known = (i) => typeof rows[i][c] === "string" || isNumber(rows[i][c]);
    const sign = descending ? -1 : 1;
    this.order = this.table.rows.map((_, i) => i).sort((a, b) => {
      if (!known(a) || !known(b)) return known(b) - known(a) || a - b;
      return sign * compareCells(rows[a][c], rows[b][c]) || a - b;
    });
    this.headers.forEach((th, i) =>
      th.setAttribute("aria-sort", i !== c ? "none" : descending ? "descending" : "ascending"));
    this.filter(this.wanted ?? "");
  }

  filter(wanted) {
    this.wanted = wanted;
    const word = wanted.toLowerCase();
    const texts = this.table.columns.flatMap((column, c) => (column.kind === "text" ? [c] : []));
    const fits = (i) => texts.some((c) => human(this.table.rows[i][c], "text").toLowerCase().includes(word));
    this.shown = word === "" ? this.order : this.order.filter(fits);
    this.scroller.scrollTop = 0;
    this.draw();
  }

  draw() {
    const total = this.shown.length;
    const height = this.scroller.clientHeight || 560;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / kRowHeight) - kRowsBeyondView);
    const last = Math.min(total, first + Math.ceil(height / kRowHeight) + 2 * kRowsBeyondView);
    const rows = [];
    for (let at = first; at < last; ++at) rows.push(this.row(this.shown[at], at));
    this.body.replaceChildren(this.space(first), ...rows, this.space(total - last));
    const all = grouped(this.table.rows.length);
    this.count.textContent = total === this.table.rows.length ? `${all} rows` : `${grouped(total)} of ${all} rows`;
  }

  // Marks a row, or none for null, and brings it into view.
  choose(index) {
    this.chosen = index;
    const at = this.shown.indexOf(index);
    if (at >= 0) this.scroller.scrollTop = Math.max(0, (at - 2) * kRowHeight);
    this.draw();
  }

  space(rows) {
    const cell = el("td", { colspan: this.table.columns.length });
    const row = el("tr", { className: "space", "aria-hidden": "true" }, cell);
    row.style.setProperty("--space", `${rows * kRowHeight}px`);
    row.hidden = rows === 0;
    return row;
  }

  row(index, at) {
    const row = el("tr", { "aria-rowindex": at + 2 });
    if (this.onChoose) {
      row.setAttribute("aria-selected", index === this.chosen);
      row.addEventListener("click", () => {
        this.chosen = index;
        this.draw();
        this.onChoose(index);
      });
    }
    this.table.columns.forEach((column, c) => row.append(this.cell(this.table.rows[index][c], column, c, index)));
    return row;
  }

  cell(value, column, c, index) {
    const td = el("td", { title: whole(value, column.kind) });
    if (column.kind === "text") td.className = "text";
    if (value === null || value?.absent) td.className += " missing";
    if (c === 0 && this.colors) {
      const dot = el("i", { className: "dot" });
      dot.style.background = this.colors[index];
      td.append(dot);
    }
    if (column.kind === "share" && isNumber(value)) {
      td.className += " meter";
      td.style.setProperty("--part", Math.min(1, numberOf(value)));
    }
    td.append(name(human(value, column.kind)));
    return td;
  }
}
