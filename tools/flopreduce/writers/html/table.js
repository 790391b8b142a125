// A table that sorts by any column and can be filtered. Only the rows in view are in the document:
// it stays quick with as many rows as a trace has names. Columns that there is no room for are
// behind a button, the last ones first. On a phone, or where all are asked for, the name stays in
// view while the others scroll, and a sign at the edge says that there are more.
const kRowHeight = 28;
const kRowsBeyondView = 5;
const kMostOnPaper = 100;
const kPhone = 700;  // pixels

// Tables whose sign is to be looked at: all are measured before any is changed, so that the browser
// lays the page out once.
const unsigned = new Set();
function signSoon(table) {
  if (unsigned.size === 0)
    requestAnimationFrame(() => {
      const found = [...unsigned].map((one) => [one, one.hidden()]);
      unsigned.clear();
      for (const [one, hidden] of found) one.sign(hidden);
    });
  unsigned.add(table);
}

class ReportTable {
  // `dots`: a row's colour, or null.
  constructor(table, dots = null) {
    this.table = table;
    this.dots = dots;
    this.order = table.rows.map((_, i) => i);
    this.shown = this.order;
    this.sorted = null;  // {column, descending}
    this.chosen = null;  // a row, which is marked
    this.onChoose = null;  // where rows can be chosen: what to tell
    this.count = el("span", { className: "count", role: "status" });
    this.body = el("tbody");
    this.headers = table.columns.map((column, c) => this.header(column, c));
    this.widths = this.columnWidths();
    this.group = el("colgroup");
    this.head = el("tr");
    this.element = el("table", { "aria-rowcount": table.rows.length + 1, "data-key": table.key },
      this.group, el("thead", {}, this.head), this.body);
    this.more = button("", () => {
      this.all = !this.all;
      this.fit();
      this.draw();
    });
    this.more.hidden = true;
    this.all = false;  // whether all columns are asked for
    this.show(table.columns.length);
    this.scroller = el("div", { className: "scroll", tabindex: "0", role: "region",
                                "aria-label": `table ${table.key}`,
                                on: { scroll: () => this.scrolled() } }, this.element);
    this.frame = el("div", { className: "scroll-frame" }, this.scroller,
      el("span", { className: "more-columns", "aria-hidden": "true" }, "\u203a"));
    this.top = 0;  // as last scrolled; to ask the browser would make it lay out the page
    this.height = 560;
    this.width = 0;  // not known yet
    onResize(this.scroller, ({ height, width }) => {
      this.height = height || this.height;
      this.width = width || this.width;
      this.fit();
      matchMedia("print").matches ? this.print(true) : this.draw();
    });
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    this.restore();
  }

  header(column, c) {
    const text = column.kind === "text" ? { className: "text" } : {};
    return explain(el("th", { scope: "col", "aria-sort": "none", ...text },
      button(column.heading, () => this.sortBy(c), {})), column.meaning);
  }

  // Numbers and words get the room that they need, the name gets what is left, and so much at the
  // least. In em: a character of a number has about 0.58, of a word 0.66, of a heading 0.62, and
  // what is beside it 2.
  columnWidths() {
    const { columns, rows } = this.table;
    const step = Math.max(1, Math.floor(rows.length / 300));
    return columns.map((column, c) => {
      let longest = 0;
      for (let r = 0; r < rows.length; r += step)
        longest = Math.max(longest, human(rows[r][c], column.kind).length);
      const [body, head] = column.kind === "text" && c > 0 ? [0.66, 0.7] : [0.58, 0.62];
      const width = Math.max(Math.min(longest, 36) * body, column.heading.length * head) + 2;
      return c > 0 ? width : Math.min(width + (this.dots ? 1.4 : 0), 13);
    });
  }

  // As many columns as there is room for.
  fit() {
    const { columns } = this.table;
    let last = columns.length;
    if (!this.all && this.width > 0 && window.innerWidth >= kPhone) {
      const em = parseFloat(getComputedStyle(this.element).fontSize);
      let room = this.width / em;
      last = this.widths.findIndex((width) => (room -= width) < 0);
      if (last < 0) last = columns.length;
      last = Math.max(2, last);
    }
    const hidden = columns.length - last;
    this.more.textContent = hidden > 0 ? `${hidden} more column${hidden === 1 ? "" : "s"}`
      : "Fewer columns";
    this.more.hidden = hidden <= 0 && !this.all;
    this.show(last);
  }
  show(last) {
    if (this.last === last) return;
    this.last = last;
    this.head.replaceChildren(...this.headers.slice(0, last));
    this.group.replaceChildren(...this.widths.slice(0, last).map((width, c) =>
      el("col", c > 0 ? { style: { width: `${width}em` } } : {})));
    this.element.style.minWidth =
      `${this.widths.slice(0, last).reduce((sum, width) => sum + width, 0)}em`;
  }

  // The first click on numbers puts the largest on top. What is not known stays at the end.
  sortBy(c) {
    const first = this.table.columns[c].kind !== "text";
    this.sort(c, this.sorted?.column === c ? !this.sorted.descending : first);
    state.set(`${this.table.key}.sort`,
      (this.sorted.descending ? "-" : "") + this.table.columns[c].key);
  }

  sort(c, descending) {
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

  // As the address says.
  restore() {
    const order = state.get(`${this.table.key}.sort`);
    const c = order === null ? -1 : columnOf(this.table, order.replace(/^-/, ""));
    if (c >= 0) this.sort(c, order.startsWith("-"));
    const wanted = state.get(`${this.table.key}.filter`);
    if (wanted !== null) this.filter(wanted);
  }

  filter(wanted) {
    this.wanted = wanted;
    const word = wanted.toLowerCase();
    const texts = this.table.columns.flatMap((column, c) => (column.kind === "text" ? [c] : []));
    const fits = (i) =>
      texts.some((c) => human(this.table.rows[i][c], "text").toLowerCase().includes(word));
    this.shown = word === "" ? this.order : this.order.filter(fits);
    this.scroller.scrollTop = this.top = 0;
    this.draw();
  }

  scrolled() {
    const { scrollTop } = this.scroller;
    if (scrollTop === this.top) return signSoon(this);
    this.top = scrollTop;
    this.draw();
  }

  // Are there columns to the right, or to the left?
  hidden() {
    const { scrollLeft, clientWidth, scrollWidth } = this.scroller;
    return { right: scrollLeft + clientWidth < scrollWidth - 2, left: scrollLeft > 2 };
  }
  sign({ right, left }) {
    this.frame.classList.toggle("more-right", right);
    this.frame.classList.toggle("more-left", left);
  }

  draw() {
    const total = this.shown.length;
    const first = Math.max(0, Math.floor(this.top / kRowHeight) - kRowsBeyondView);
    const inView = Math.ceil(this.height / kRowHeight);
    const last = Math.min(total, first + inView + 2 * kRowsBeyondView);
    this.body.replaceChildren(this.space(first), ...this.rows(first, last),
      this.space(total - last));
    const all = grouped(this.table.rows.length);
    this.count.textContent =
      total === this.table.rows.length ? `${all} rows` : `${grouped(total)} of ${all} rows`;
    signSoon(this);
  }

  // Paper does not scroll: the first rows, and how many there are more.
  print(begins) {
    if (!begins) {
      this.fit();
      return this.draw();
    }
    this.show(this.table.columns.length);
    const last = Math.min(this.shown.length, kMostOnPaper);
    const rest = this.shown.length - last;
    const note = el("td", { colspan: this.table.columns.length, className: "text missing" },
      `and ${grouped(rest)} more rows`);
    this.body.replaceChildren(...this.rows(0, last), ...(rest > 0 ? [el("tr", {}, note)] : []));
  }

  rows(first, last) {
    return this.shown.slice(first, last).map((index, i) => this.row(index, first + i));
  }

  // Marks a row, or none for null, and brings it into view.
  choose(index) {
    this.chosen = index;
    const at = this.shown.indexOf(index);
    if (at >= 0) {
      this.scroller.scrollTop = (at - 2) * kRowHeight;
      this.top = this.scroller.scrollTop;  // less where the table ends before
    }
    this.draw();
  }

  space(rows) {
    const row = el("tr", { className: "space", "aria-hidden": "true",
                           style: { "--space": `${rows * kRowHeight}px` } },
      el("td", { colspan: this.last }));
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
    this.table.columns.slice(0, this.last).forEach((column, c) =>
      row.append(this.cell(this.table.rows[index][c], column, c, index)));
    return row;
  }

  cell(value, column, c, index) {
    const td = el("td", { title: whole(value, column.kind) });
    if (column.kind === "text") td.className = "text";
    if (value === null || value?.absent) td.className += " missing";
    const color = c === 0 && this.dots ? this.dots(this.table.rows[index]) : null;
    if (color) td.append(dot(color));
    if (column.kind === "share" && isNumber(value)) {
      td.className += " meter";
      td.style.setProperty("--part", Math.min(1, numberOf(value)));
    }
    td.append((column.kind === "text" ? cutName : name)(brief(human(value, column.kind))));
    return td;
  }
}
