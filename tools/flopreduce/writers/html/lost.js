// Where the peak went: bars from 100 % down to MFU, each from where the last one ended. A bar opens
// what its line is made of, by phase.
const kLostColors = {
  idle: "var(--neutral)", communication: "var(--c3)", uncounted: "var(--mixed)",
  integer: "var(--c4)", other: "var(--c1)", matrix: "var(--c1)", profiler: "var(--neutral)",
  recompute: "var(--c0)", padding: "var(--c0)", other_flop: "var(--c0)", model: "var(--c2)",
};

// Phases against the parts of a line, in time.
function lostParts(line) {
  const head = el("tr", {}, el("th", { scope: "col" }, "phase"),
    ...line.parts.map((part) => el("th", { scope: "col" }, part)));
  const rows = line.phases.map(([phase, ...ns]) => el("tr", {}, el("th", { scope: "row" },
    name(phase)), ...ns.map((one) => el("td", {}, one > 0 ? time(one) : "-"))));
  return el("table", { className: "fall-parts" }, el("thead", {}, head), el("tbody", {}, ...rows));
}

// `table` has the lines' shares, as they add up when they are rounded, and a note on some.
function waterfall({ lines, hfu, mfu }, table) {
  const among = columnOf(table, "by_process"), note = columnOf(table, "note");
  const shares = new Map(table.rows.map((row) => [row[0], [row[1], row[note], row[among]]]));
  const percent = (share) => `${100 * share}%`;
  const mark = (share) => share === null ? "-2px" : percent(1 - share);  // not known: out of sight
  const rows = lines.map((line, number) => {
    const { key, words, begin, end, bound } = line;
    const [share, said, byProcess] = shares.get(words);
    const parts = el("div", { id: `lost-${key}`, hidden: "" });
    const bar = el("i", { className: bound ? "bound" : "",
                          style: { left: percent(1 - begin), width: percent(begin - end),
                                   "--own": kLostColors[key] } });
    const row = button("", () => {
      parts.hidden = !parts.hidden;
      row.setAttribute("aria-expanded", String(!parts.hidden));
      if (!parts.hidden && !parts.firstChild)
        parts.append(lostParts(line),
          ...(byProcess ? [el("p", {}, `${byProcess} % by process`)] : []));
    }, { className: "fall", "aria-expanded": "false", "aria-controls": parts.id,
         style: { "--hfu": mark(hfu), "--mfu": mark(mfu) } });
    // Beside the bar, where there is more room.
    const after = 1 - end < 0.55;
    const beside = el("span", { className: "fall-note", style: after
      ? { left: percent(1 - end), "max-width": percent(end) }
      : { right: percent(begin), "max-width": percent(1 - begin) } }, said ?? "");
    row.append(el("span", {}, words), el("span", { className: "fall-track" }, bar, beside),
      el("span", { className: "fall-value" }, share));
    if (number === lines.length - 1) row.classList.add("last");
    return [row, parts];
  });
  return el("div", { className: "falls" }, ...rows.flat());
}
