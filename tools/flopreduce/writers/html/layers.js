// Layers with the most work: FLOP of forward and backward, and beside it the time of both.
const kMostLayers = 24;

function layerBars(table) {
  const column = (key) => columnOf(table, key);
  const columns = ["flop", "gpu_time_ns"].map((what) =>
    ["forward", "backward"].map((pass) => column(`${pass}_${what}`)));
  const value = (row, c) => Math.max(0, numberOf(row[c]) || 0);
  const sum = (row, pair) => value(row, pair[0]) + value(row, pair[1]);
  const rows = table.rows.filter((row) => sum(row, columns[0]) + sum(row, columns[1]) > 0);
  const most = columns.map((pair) => Math.max(...rows.map((row) => sum(row, pair)), 1));
  const bars = (row, pair, which) => el("span", { className: "layer-bar" },
    ...["forward", "backward"].map((pass, i) => el("i", {
      title: `${row[0]}, ${pass}: ${human(row[pair[i]], which === 0 ? "flop" : "ns")}`,
      style: { width: `${(100 * value(row, pair[i])) / most[which]}%`,
               background: phaseColor(pass) },
    })));
  const text = (row, pair, kind) => el("span", { className: "layer-value" },
    human(sum(row, pair), kind));
  const shown = rows.slice(0, kMostLayers);
  const rest = rows.length - shown.length;
  return el("div", { className: "layer-bars" },
    el("div", { className: "layer-row layer-head" }, el("span", {}, ""), el("span", {}, "FLOP"),
      el("span", {}, "GPU time")),
    ...shown.map((row) => el("div", { className: "layer-row" },
      el("span", { className: "layer-name", title: row[0] }, cutName(row[0])),
      ...columns.map((pair, which) => el("span", { className: "layer-cell" },
        bars(row, pair, which), text(row, pair, which === 0 ? "flop" : "ns"))))),
    ...(rest > 0 ? [el("div", { className: "empty" }, `and ${grouped(rest)} more in the table`)]
      : []));
}
