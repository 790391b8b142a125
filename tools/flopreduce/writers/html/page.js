// Builds the page from the data in it: {figures, sections, more, tree, roofs, flop_over_time, about}. Every subject is a
// section of lines and a table; some tables, known by their keys, get a picture.
const kColors = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

function lines(list) {
  return el("div", { className: "lines" }, ...list.map((line) => el("div", {}, ...line.map(([text, tone], i) =>
    el("span", tone === "plain" ? {} : { className: `tone-${tone}` }, name(i === 0 ? text.trimStart() : text))))));
}

// One bar cut by the table's shares, in the colours of the table's dots.
function shareBar(table, colors) {
  const c = table.columns.findIndex((column) => column.kind === "share");
  const bar = el("div", { className: "bar", role: "img", "aria-label": `shares by ${table.columns[0].heading}` });
  table.rows.forEach((row, r) => {
    const share = numberOf(row[c]);
    if (!(share > 0)) return;
    const part = el("i", { title: `${human(row[0], "text")}: ${human(row[c], "share")}` });
    part.style.flexGrow = share;
    part.style.background = colors[r];
    bar.append(part);
  });
  return bar;
}

function sectionCard(section, roofs) {
  const { table } = section;
  const header = el("header", {}, el("h2", {}, name(section.title)));
  const card = el("section", { className: "card" }, header);
  if (section.above.length > 0) card.append(lines(section.above));
  if (table && table.rows.length === 0) card.append(el("div", { className: "empty" }, table.when_empty));
  if (table && table.rows.length > 0) {
    const barred = table.key === "phases" || table.key === "precisions";
    const colors = barred ? table.rows.map((_, r) => `var(${kColors[r % kColors.length]})`) : null;
    if (barred) {
      card.classList.add("half");
      card.append(shareBar(table, colors));
    }
    const view = new ReportTable(table, colors);
    if (table.key === "roofline") {
      const plot = new Roofline(table, roofs, (row) => view.choose(row));
      view.onChoose = (row) => plot.chooseRow(row);
      card.id = "roofline";
      header.append(plot.legend());
      card.append(plot.element, plot.crumb);
    }
    if (table.long_list) {
      const box = el("input", { className: "filter", type: "search", placeholder: "filter", "aria-label": `filter ${section.title}` });
      box.addEventListener("input", () => view.filter(box.value));
      header.append(view.count, box);
    }
    card.append(view.scroller);
  }
  if (section.below.length > 0) card.append(lines(section.below));
  return card;
}

function flameCard(tree) {
  const view = new FlameView(tree);
  const legend = el("span", { className: "legend" });
  for (const [label, color] of [["range", "--range-b"], ["kernel", "--leaf-b"]]) {
    const dot = el("i", { className: "dot" });
    dot.style.background = `var(${color})`;
    legend.append(el("span", {}, dot, label));
  }
  return el("section", { className: "card", id: "flame" },
    el("header", {}, el("h2", {}, "By range and kernel"), legend, view.choices), view.element, view.crumb);
}

function figures(list) {
  return el("dl", { className: "figures" }, ...list.map(({ label, cell, kind, exact }) => {
    const value = el("dd", {}, human(cell, kind));
    if (exact) value.append(el("div", { className: "exact" }, exact));
    return el("div", { className: "figure", title: whole(cell, kind) }, el("dt", {}, label), value);
  }));
}

function build(data) {
  const page = document.getElementById("page");
  const cards = el("div", { className: "cards" });
  page.append(el("div", { className: "kicker" }, "flopinj"), el("h1", {}, "FLOP report"));
  const notes = [];
  for (const section of data.sections) {
    if (section.title === "") {  // the report's head: warnings as banners, the totals stand in the figures
      for (const line of section.above) {
        const tones = line.map(([, tone]) => tone);
        if (tones.includes("bad") || tones.includes("warn"))
          page.append(el("div", { className: tones.includes("bad") ? "banner bad" : "banner" },
            name(line.map(([text]) => text).join("").trim())));
        else if (!tones.includes("title") && line.some(([text]) => text.trim() !== "")) notes.push(line);
      }
      continue;
    }
    if (section.table?.key === "kernels" && data.tree.nodes.length > 0) cards.append(flameCard(data.tree));
    cards.append(sectionCard(section, data.roofs));
    if (section.table?.key === "kernels" && section.table.rows.length > 0) {
      if (!data.sections.some(({ table }) => table?.key === "roofline")) cards.append(noRoofline(data.roofs));
      cards.append(rateCard(data.flop_over_time));
    }
  }
  const said = lines(notes);
  said.classList.add("notes");
  page.append(figures(data.figures), said, cards);
  for (const table of data.more)
    if (table.rows.length > 0) cards.append(sectionCard({ title: table.title, above: [], table, below: [] }));
  page.append(el("footer", {}, name(data.about)));
}

build(JSON.parse(document.getElementById("data").textContent));
document.documentElement.dataset.ready = "true";
