// The page's data. A text is in it once and has a number everywhere else: in columns of texts, in
// {t: number} in other columns, in the flame view's tree and in charts.

// What people see of a kernel's name: without what says nothing, as long as no other kernel is
// left with the same.
const briefNames = new Map();
const brief = (text) => briefNames.get(text) ?? text;

function readTexts(texts) {
  const count = new Map();
  const whole = texts.map((text) => {
    if (typeof text === "string") return text;
    const short = text.length === 3 ? text[0].slice(text[1], text[2]) : text[1];
    briefNames.set(text[0], short);
    count.set(short, (count.get(short) ?? 0) + 1);
    return text[0];
  });
  for (const [full, short] of briefNames) if (count.get(short) > 1) briefNames.delete(full);
  return whole;
}

function readTable(table, texts) {
  const isText = table.columns.map((column) => column.kind === "text");
  for (const column of table.columns) column.meaning = plainMeaning(column.meaning);
  for (const row of table.rows)
    row.forEach((cell, c) => {
      if (isText[c] && typeof cell === "number") row[c] = texts[cell];
      else if (cell !== null && typeof cell === "object" && "t" in cell) row[c] = texts[cell.t];
    });
}

function readData(json) {
  const data = JSON.parse(json);
  const texts = readTexts(data.texts);
  for (const { table } of data.sections) if (table) readTable(table, texts);
  for (const { section } of data.sides ?? []) if (section.table) readTable(section.table, texts);
  for (const node of data.tree ?? []) {
    node[1] = texts[node[1]];
    if (node[2] !== null) node[2] = texts[node[2]];
  }
  for (const device of data.flop_over_time ?? []) {
    device.label = texts[device.label];
    for (const series of device.phases) series.phase = texts[series.phase];
  }
  for (const phases of data.ranks ?? []) for (const phase of phases) phase[0] = texts[phase[0]];
  return data;
}

// What a column means, for people: an unknown figure is "-" here and null in files.
const plainMeaning = (text) =>
  text?.replaceAll(/\bnull\b/g, "-").replace(/ \([a-z]+(_[a-z]+)+\)| ?: [a-z_]+\.[a-z_]+$/g, "");

const columnOf = (table, key) => table.columns.findIndex((column) => column.key === key);

// One colour for each phase, on all charts and pages alike; phases of the user's own rules get one
// by their name.
const kPhaseColors = {
  forward: "--c0", backward: "--c1", optimizer: "--c2", loss: "--c3", recompute: "--c4",
  communication: "--c5", data: "--c6", other: "--neutral",
};
const kFreeColors = ["--c7", "--c8", "--c9"];
function phaseColor(phase) {
  if (phase === "") return "var(--mixed)";
  if (Object.hasOwn(kPhaseColors, phase)) return `var(${kPhaseColors[phase]})`;
  let sum = 0;
  for (let i = 0; i < phase.length; ++i) sum = (sum * 31 + phase.charCodeAt(i)) >>> 0;
  return `var(${kFreeColors[sum % kFreeColors.length]})`;
}
const phaseLabel = (phase) => (phase === "" ? "several phases" : phase);
// In the order of a training step.
const kPhaseOrder = Object.keys(kPhaseColors);
function sortedPhases(phases) {
  const place = (phase) =>
    phase === "" ? 99 : kPhaseOrder.includes(phase) ? kPhaseOrder.indexOf(phase) : 50;
  return [...new Set(phases)].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}
