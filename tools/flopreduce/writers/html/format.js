// Cells, and numbers as people read them: the same words as on a terminal.
//
// A cell is null (nothing; shown "-"), {absent: "not measured"}, a text, a number, or {n, m}: n a
// number or, beyond 2^53, a decimal string, and m the marks ">=", ">", "<=", "~". Of a share that
// is known to lie between two numbers n is the lower one, and `most` the other.

const isNumber = (cell) =>
  typeof cell === "number" || (cell !== null && typeof cell === "object" && "n" in cell);
const raw = (cell) => (typeof cell === "object" ? cell.n : cell);
const numberOf = (cell) => (isNumber(cell) ? Number(raw(cell)) : NaN);

// As printf's %.*f: a value halfway between two texts gets the one with an even last digit, where
// toFixed() takes the larger one.
function fixed(value, digits) {
  const text = value.toFixed(digits);
  const scale = 10 ** digits, twice = value * 2 * scale;
  const halfway = twice % 2 === 1 && twice % 5 ** digits === 0 && twice / scale / 2 === value;
  return halfway && "13579".includes(text.at(-1)) ? ((twice - 1) / 2 / scale).toFixed(digits)
                                                  : text;
}

function fourDigits(value) {
  return fixed(value, value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3);
}

// Amounts are whole, as in cell_text.cpp: half a FLOP or a nanosecond is rounded up.
function withPrefix(amount, unit) {
  let value = Math.floor(amount + 0.5);
  if (value < 1000) return `${value} ${unit}`;
  const prefixes = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
  let at = 0;
  for (; value >= 999.95 && at + 1 < prefixes.length; ++at) value /= 1000;
  return `${fourDigits(value)} ${prefixes[at]}${unit}`;
}

function time(amount) {
  if (amount <= -0.5) return `-${time(-amount)}`;
  const ns = Math.floor(amount + 0.5);
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 999.95e3) return `${fourDigits(ns / 1e3)} us`;
  if (ns < 999.95e6) return `${fourDigits(ns / 1e6)} ms`;
  return `${fourDigits(ns / 1e9)} s`;
}

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

// As percent_text() in sections/parts/cells.cpp.
function shareText(percent) {
  if (!(percent > 0)) return "0 %";
  if (percent < 0.001) return "<0.001 %";
  if (percent >= 99.95 && percent < 100) return ">99.9 %";
  const digits = percent < 1 ? percent.toPrecision(2).split(".")[1].length : 1;
  return `${fixed(percent, digits)} %`;
}

// As ratio_text() in support/wide.cpp.
function ratioText(value) {
  if (value < 0) return `-${ratioText(-value)}`;
  if (value >= 999.95) return grouped(Math.floor(value + 0.5));
  if (value >= 0.1) return fourDigits(value);
  return value > 0 ? fixed(value, Math.min(6, 2 - Math.floor(Math.log10(value)))) : "0";
}

const kHuman = {
  flop: (v) => withPrefix(Number(v), "FLOP"),
  op: (v) => withPrefix(Number(v), "OP"),
  bytes: (v) => withPrefix(Number(v), "B"),
  rate: (v) => withPrefix(Number(v), "FLOP/s"),
  bandwidth: (v) => withPrefix(Number(v), "B/s"),
  ns: (v) => time(Number(v)),
  ratio: (v) => ratioText(Number(v)),
  share: (v) => shareText(Number(v) * 100),
};

// As range_text() in sections/parts/cells.cpp.
function rangeText(cell) {
  const least = shareText(cell.n * 100), most = shareText(cell.most * 100);
  const about = cell.m.includes("~") ? "~ " : "";
  return about + (least === most ? least : `${least.split(" ")[0]}-${most}`);
}

function human(cell, kind) {
  if (typeof cell === "string") return cell;
  if (!isNumber(cell)) return cell?.absent ?? "-";
  if (kind === "share" && cell.most !== undefined) return rangeText(cell);
  const marks = cell.m ? `${cell.m} ` : "";
  return marks + (kHuman[kind] ?? grouped)(raw(cell));
}

// Everything that the cell holds, for a tool tip.
function whole(cell, kind) {
  if (typeof cell === "string") return cell;
  if (!isNumber(cell)) return human(cell, kind);
  const units =
    { flop: " FLOP", op: " OP", bytes: " B", rate: " FLOP/s", bandwidth: " B/s", ns: " ns" };
  const value = raw(cell);
  return (cell.m ? `${cell.m} ` : "") +
    (Number.isInteger(Number(value)) ? grouped(value) : value) + (units[kind] ?? "");
}

// Below 0, 0 or above: numbers by value, also beyond 2^53; texts by code unit.
function compareCells(a, b) {
  if (typeof a === "string" || typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  const x = raw(a), y = raw(b);
  const difference = Number(x) - Number(y);
  if (difference !== 0 || (typeof x === "number" && typeof y === "number")) return difference;
  return BigInt(x) < BigInt(y) ? -1 : BigInt(x) > BigInt(y) ? 1 : 0;
}
