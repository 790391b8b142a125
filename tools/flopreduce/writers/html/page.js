// Builds the page from the data in it. Every section of a report is a card of lines and a table;
// some have a picture, and the views of kernels point at each other.
const kOpen = ["lost", "steps", "ranks", "layers", "phases", "roofline", "flame", "kernels"];

const data = readData(document.getElementById("data").textContent);
const isReport = data.tree !== undefined;  // other answers' cards are all open
const sectionOf = new Map(data.sections.map((section) => [section.key, section]));
const tree = readTree(data.tree ?? []);
const phaseOfKernel = mainPhases(tree);

function lines(list) {
  const part = ([text, tone], i) =>
    el("span", { className: `tone-${tone}` }, name(i === 0 ? text.trimStart() : text));
  return el("div", { className: "lines" }, ...list.map((line) => el("div", {}, ...line.map(part))));
}

// What a row has in a column; 0 where it is not known.
function amountIn(table, key) {
  const c = columnOf(table, key);
  return (row) => Math.max(0, numberOf(row[c]) || 0);
}

// One bar cut by what rows have, in their colours. It is as long as `length` of the room; what is
// too short for its name has none.
function shareBar(rows, label, amount, color, length = 1) {
  const values = rows.map(amount);
  const sum = values.reduce((a, b) => a + b, 0);
  const bar = el("div", { className: "bar", role: "img", "aria-label": `shares of ${label}` });
  rows.forEach((row, r) => {
    if (values[r] === 0) return;
    const share = human(values[r] / sum, "share");
    bar.append(el("i", { title: `${row[0]}: ${share} of ${label}`,
                         style: { "flex-grow": values[r], background: color(row) } },
      ...((length * values[r]) / sum > 0.12 ? [name(`${row[0]} ${share}`)] : [])));
  });
  if (length < 1) bar.style.flex = `0 1 calc((100% - var(--bar-label)) * ${length})`;
  return sum > 0 ? [el("div", { className: "bar-row" }, el("span", {}, label), bar)] : [];
}

// GPU time and FLOP of both sides by phase, each to one scale.
function compareBars(table) {
  const rows = table.rows.filter((row) => row[0] !== "total");
  const product = (one, other) => (row) => amountIn(table, one)(row) * amountIn(table, other)(row);
  const amounts = [
    ["time", (side) => amountIn(table, `gpu_time_${side}_ns`)],
    ["FLOP", (side) => product(`launches_${side}`, `flop_per_launch_${side}`)],
  ];
  return amounts.flatMap(([label, of]) => {
    const sums = ["a", "b"].map((side) => rows.reduce((sum, row) => sum + of(side)(row), 0));
    return ["a", "b"].flatMap((side, i) =>
      shareBar(rows, `${label} ${side.toUpperCase()}`, of(side), (row) => phaseColor(row[0]),
        sums[i] / Math.max(...sums)));
  });
}

// Where the peak went, of both sides beside each other.
function fillSides(body) {
  body.append(el("div", { className: "sides" }, ...data.sides.map(({ name: side, lost, section }) =>
    el("div", {}, el("h3", {}, `${side}: ${section.title}`),
      waterfall(lost, section.table, `lost-${side.toLowerCase()}`)))));
}

// What takes more time in B, or less: [name, time of A, of B], the largest changes first. Of
// figures that are divided before they are compared, B's are as many as A's. `mayAppear`: what one
// side does not have took no time there.
const kMostChanges = 12;
function changeBars(table, a, b, ratio, mayAppear) {
  const [ofA, ofB, ofRatio] = [a, b, ratio].map((key) => columnOf(table, key));
  const known = ofRatio < 0 ? undefined : table.rows.find((row) =>
    numberOf(row[ofRatio]) > 0 && numberOf(row[ofA]) > 0 && numberOf(row[ofB]) > 0);
  const scale = known === undefined ? 1
    : (numberOf(known[ofRatio]) * numberOf(known[ofA])) / numberOf(known[ofB]);
  const amount = (cell) => numberOf(cell) || 0;
  const compared = (row) => !["total", "a step"].includes(row[0]) &&
    (mayAppear || (isNumber(row[ofA]) && isNumber(row[ofB])));
  const changes = table.rows.filter(compared)
    .map((row) => [row[0], scale * amount(row[ofB]) - amount(row[ofA])])
    .sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  const most = Math.abs(changes[0]?.[1] ?? 0);
  const shown = changes.slice(0, kMostChanges).filter(([, by]) => Math.abs(by) > most / 200);
  if (shown.length === 0) return [];
  return [el("div", { className: "changes" },
    el("div", { className: "change change-head" }, el("span"),
      el("span", {}, "less time in B  |  more"), el("span")),
    ...shown.map(([what, by]) => el("div", { className: "change", "data-by": by },
      el("span", { className: "change-name", title: what }, cutName(brief(what))),
      el("span", { className: "change-track" }, el("i", {
        className: by < 0 ? "less" : "more",
        style: { width: `${(50 * Math.abs(by)) / most}%` } })),
      el("span", { className: "change-value" }, `${by > 0 ? "+" : ""}${time(by)}`))))];
}

// The colour of a table's rows: a phase's, of a phase or of a kernel that runs in it.
function dotsOf(table) {
  if (table.key === "phases" || table.key === "compared_phases")
    return (row) => (row[0] === "total" ? null : phaseColor(row[0]));
  if (table.key === "precisions") {
    const place = new Map(table.rows.map((row, r) => [row, r]));
    return (row) => `var(--p${place.get(row) % 6})`;
  }
  const c = table.columns.findIndex((column) => column.key === "kernel");
  if (c !== 0 || phaseOfKernel.size === 0) return null;
  return (row) => (phaseOfKernel.has(row[0]) ? phaseColor(phaseOfKernel.get(row[0])) : null);
}

// A section's table, with a box that filters it where it is long.
const kFewRows = 8;
function tableView(section, tools) {
  const view = new ReportTable(section.table, dotsOf(section.table));
  tools.append(view.more);
  if (section.table.long_list && section.table.rows.length > kFewRows) {
    const box = searchBox("filter", `filter ${section.title}`, (wanted) => {
      view.filter(wanted);
      state.set(`${section.table.key}.filter`, wanted);
    });
    box.value = view.wanted ?? "";
    tools.append(view.count, box);
  }
  return view;
}

// Rows of a table of kernels are chosen together with the other views of kernels.
function chooseKernels(view) {
  const rows = view.table.rows;
  view.onChoose = (row) => kernelChoice.choose(rows[row][0]);
  kernelChoice.listen((kernel) => {
    const row = kernel === null ? -1 : rows.findIndex((one) => one[0] === kernel);
    if (view.chosen !== (row < 0 ? null : row)) view.choose(row < 0 ? null : row);
  });
}

// In the order in which they are looked for; others follow as they are.
const kFirstColumns = {
  kernels: ["kernel", "gpu_time_ns", "gpu_time_share", "bound_by", "roof_share", "utilization",
            "flop", "flop_share", "launches", "flop_per_s", "flop_per_byte", "byte_per_s"],
  ranges: ["range", "gpu_time_ns"],
  phases: ["phase", "gpu_time_ns"],
};
function sortColumns(table) {
  const wanted = kFirstColumns[table.key];
  if (!wanted) return;
  const place = (c) => {
    const at = wanted.indexOf(table.columns[c].key);
    return at < 0 ? wanted.length : at;
  };
  const order = [...table.columns.keys()].sort((a, b) => place(a) - place(b) || a - b);
  for (const list of [table.columns, ...table.rows]) {
    const before = [...list];
    order.forEach((from, to) => (list[to] = before[from]));
  }
}

// What the table of the roofline has beside the table of kernels, into the latter: a kernel is in
// one table.
function joinRoofline(kernels, roofline) {
  const nameOf = (table) => {
    const time = columnOf(table, "gpu_time_ns");
    return (row) => `${row[0]} ${numberOf(row[time])}`;
  };
  const more = [...roofline.columns.keys()].filter((c) =>
    columnOf(kernels, roofline.columns[c].key) < 0);
  const rows = new Map(roofline.rows.map((row) => [nameOf(roofline)(row), row]));
  const of = kernels.rows.map((row) => rows.get(nameOf(kernels)(row)));
  kernels.columns.push(...more.map((c) => roofline.columns[c]));
  kernels.rows.forEach((row, r) => row.push(...more.map((c) => of[r]?.[c] ?? null)));
}

// What is above a section's table.
const kPictures = {
  lost(body, tools, { table }) {
    body.append(waterfall(data.lost, table));
  },
  steps(body, tools) {
    if (!data.steps) return;
    const lines = data.lost?.lines ?? [];
    const strip = new StepStrip(data.steps, new Map(lines.map(({ key, words }) => [key, words])));
    if (strip.known) tools.append(strip.legend());
    body.append(strip.element);
  },
  layers(body, tools, { table }) {
    tools.prepend(legend(["forward", "backward"].map((pass) => [phaseColor(pass), pass])));
    body.append(layerBars(table));
  },
  phases(body, tools, { table }) {
    body.append(...[["GPU time", "gpu_time_ns"], ["FLOP", "flop_share"]].flatMap(([label, key]) =>
      shareBar(table.rows, label, amountIn(table, key), (row) => phaseColor(row[0]))));
  },
  compared_phases(body, tools, { table }) {
    body.append(...compareBars(table));
  },
  compared_kernels(body, tools, { table }) {
    body.append(...changeBars(table, "gpu_time_a_ns", "gpu_time_b_ns", "gpu_time_ratio", true));
  },
  compared_lost(body, tools, { table }) {
    body.append(...changeBars(table, "step_a_ns", "step_b_ns", "", false));
  },
  precisions(body, tools, { table }) {
    body.append(...shareBar(table.rows, "FLOP", amountIn(table, "flop_share"), dotsOf(table)));
  },
  kernels(body, tools, section, view) {
    chooseKernels(view);
    if (!state.get("kernels.sort") && columnOf(section.table, "gpu_time_ns") >= 0)
      view.sort(columnOf(section.table, "gpu_time_ns"), true);
  },
  roofline(body, tools, { table }) {
    const plot = new Roofline(table, data.roofs, phaseOfKernel, kernelLinks);
    tools.prepend(plot.legend());
    body.append(plot.element, plot.crumb);
  },
  ranks(body, tools, { table }, view) {
    if (data.ranks.length !== table.rows.length) return;
    view.onChoose = () => {};
    const plot = new RankColumns(data.ranks, table.rows.map((row) => row[0]),
      (row) => view.choose(row));
    tools.prepend(plot.legend());
    body.append(plot.element);
  },
};

function fillSection(section) {
  return (body, tools) => {
    if (section.above.length > 0) body.append(lines(section.above));
    const { table } = section;
    if (table && section.key === "roofline") {
      kPictures.roofline(body, tools, section);
    } else if (table && table.rows.length > 0) {
      const view = tableView(section, tools);
      kPictures[section.key]?.(body, tools, section, view);
      body.append(section.key === "lost" ? folded("The same as a table", view.more, view.frame)
        : view.frame);
    } else if (table) {
      body.append(el("div", { className: "empty" }, table.when_empty));
    }
    if (section.below.length > 0) body.append(lines(section.below));
  };
}

const folded = (title, ...inside) =>
  el("details", { className: "fold" }, el("summary", {}, title), ...inside);

let flame = null;
function fillFlame(body, tools) {
  flame = new FlameView(tree);
  const phases = sortedPhases([...nodesBelow(tree)].map((node) => node.phase ?? ""));
  tools.append(legend(phases.map((phase) => [phaseColor(phase), phaseLabel(phase)])),
    ...flame.tools());
  body.append(flame.element, flame.crumb);
}

// From a kernel on the roofline to where else it is.
function kernelLinks(kernel) {
  const places = {
    kernels: ["Row in the table of kernels", () => kernelChoice.choose(kernel)],
    flame: ["Find in the flame view", () => flame.search(brief(kernel))],
  };
  return Object.entries(places).filter(([key]) => cardOf.has(key)).map(([key, [label, find]]) =>
    button(label, () => {
      cardOf.get(key).go();
      find();
    }));
}

// Every word of the page that has a meaning, once, for paper and for phones.
function fillTerms(body) {
  const terms = new Map();
  const add = (word, meaning) => meaning && !terms.has(word) && terms.set(word, meaning);
  for (const { name: figure, meaning } of data.figures ?? []) add(figure, meaning);
  for (const { table } of data.sections)
    for (const { heading, meaning } of table?.columns ?? []) add(heading, meaning);
  body.append(el("dl", { className: "terms" }, ...[...terms].flatMap(([word, meaning]) =>
    [el("dt", {}, word), el("dd", {}, meaning)])));
}

function figures(list) {
  const long = list.some(({ value }) => value.trimEnd().length > 18);
  return el("dl", { className: "figures" }, ...list.map((figure) => {
    const { note, warn, meaning } = figure, value = figure.value.trimEnd();
    const notes = note ? [el("div", { className: "note" }, name(note))] : [];
    return explain(el("div", { className: "figure", tabindex: "0" }, el("dt", {}, figure.name),
      el("dd", { className: `${warn ? "tone-warn" : ""}${long ? " long" : ""}` },
        name(value), ...notes)), meaning);
  }));
}

const cardOf = new Map();
const addCard = (key, ...what) => cardOf.set(key, new Card(key, ...what));

function addReportCards() {
  const rest = new Map(sectionOf);
  if (rest.has("roofline")) joinRoofline(rest.get("kernels").table, rest.get("roofline").table);
  for (const { table } of data.sections) if (table) sortColumns(table);
  const add = (key) => {
    const section = rest.get(key);
    if (!section || !rest.delete(key)) return;
    addCard(key, section.title || "Totals", fillSection(section),
      !isReport || kOpen.includes(key));
  };
  if (data.sides) {
    addCard("sides", "Where the peak went, side by side", fillSides, true);
    add("compared_lost");
  }
  for (const key of ["lost", "steps", "ranks", "layers", "phases"]) add(key);
  if (rest.has("roofline")) {
    add("roofline");
  } else if (data.roofs && sectionOf.get("kernels")?.table.rows.length > 0)
    addCard("roofline", "Roofline", (body) =>
      body.append(el("div", { className: "empty" }, noRoofline(data.roofs))), true);
  if (data.tree?.length > 0) addCard("flame", "Flame view: ranges and kernels", fillFlame, true);
  add("kernels");
  if (data.flop_over_time)
    addCard("flop-over-time", "FLOP/s over time", (body, tools) =>
      rateBody(body, tools, data.flop_over_time, data.roofs), false);
  for (const key of ["precisions", "utilization", "ratio"]) add(key);
  for (const key of [...rest.keys()]) add(key);
  addCard("terms", "What the words mean", fillTerms, false);
}

function build() {
  const banner = (line) => el("div", {
    className: line.some(([, tone]) => tone === "bad") ? "banner bad" : "banner", role: "note",
  }, name(line.map(([text]) => text).join("").trim()));
  addReportCards();
  const cards = [...cardOf.values()];
  document.title = data.title;
  const page = document.getElementById("page");
  page.append(el("header", { className: "head" },
    el("div", { className: "kicker" }, isReport ? "flopinj: FLOP report" : "flopinj"),
    el("h1", {}, name(data.title)), ...(data.program ? [lines(data.program)] : []),
    ...(data.warnings ?? []).map(banner)));
  // The answer: HFU, MFU, and the waterfall between 100 % and the two.
  const answers = data.lost ? 2 : 0;
  if (answers > 0)
    page.append(el("section", { className: "answer" }, figures(data.figures.slice(0, answers)),
      cardOf.get("lost").element));
  if (data.figures) page.append(figures(data.figures.slice(answers)));
  page.append(contentsList(cards),
    el("div", { className: "cards" }, ...cards.map((card) => card.element)
      .filter((element) => !element.isConnected)),
    el("footer", {}, name(data.about)));
  document.body.append(tipBox);
  if (state.get("kernel")) kernelChoice.choose(state.get("kernel"));
  if (cardOf.has(state.get("at"))) cardOf.get(state.get("at")).go();
}

build();
// Drawn: sizes come in the first frame, and what they are for in the next.
const afterFrames = (frames, action) =>
  frames === 0 ? action() : requestAnimationFrame(() => afterFrames(frames - 1, action));
afterFrames(3, () => (document.documentElement.dataset.ready = "true"));
