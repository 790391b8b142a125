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

// The lines of HFU and MFU have their names and values above the bars: HFU's to the left of its
// line and MFU's to the right, as far as there is room, and in one where both would overlap.
const kHeadWidth = 0.3;  // of the bars' width, on a phone
function lineHeads(hfu, mfu) {
  const head = (text, share, before) => el("span", {
    className: `fall-head ${before ? "before" : "after"}`,
    style: before ? { right: `${100 * share}%` } : { left: `${100 * (1 - share)}%` } }, text);
  const hfuBefore = hfu.share < 1 - kHeadWidth, mfuBefore = mfu.share < kHeadWidth;
  const joined = hfuBefore === mfuBefore && hfu.share - mfu.share < kHeadWidth;
  const text = [hfu.text, ...(joined && mfu.text ? [mfu.text] : [])].join(", ");
  return el("div", { className: "fall-heads" }, el("span"),
    el("span", { className: "fall-track" },
      ...(hfu.text ? [head(text, hfu.share, hfuBefore)] : []),
      ...(mfu.text && !joined ? [head(mfu.text, mfu.share, mfuBefore)] : [])), el("span"));
}

// `table` has the lines' shares, as they add up when they are rounded, and a note on some. That of
// a total is "= HFU 54.4 %" and, after a comma, more. `id`: of two waterfalls, what tells their
// lines apart.
function waterfall({ lines, hfu, mfu }, table, id = "lost") {
  const among = columnOf(table, "by_process"), note = columnOf(table, "note");
  const total = (of) => table.rows.map((row) => row[note] ?? "")
    .find((text) => text.startsWith(`= ${of}`))?.slice(2).split(",")[0];
  const shares = new Map(table.rows.map((row) => [row[0], [row[1], row[note], row[among]]]));
  const percent = (share) => `${100 * share}%`;
  const mark = (share) => share === null ? "-2px" : percent(1 - share);  // not known: out of sight
  const rows = lines.map((line, number) => {
    const { key, words, begin, end, bound } = line;
    const [share, whole, byProcess] = shares.get(words);
    const said = whole?.startsWith("= ") ? whole.split(", ").slice(1).join(", ") : whole;
    const parts = el("div", { id: `${id}-${key}`, hidden: "" });
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
  const heads = lineHeads({ text: total("HFU"), share: hfu }, { text: total("MFU"), share: mfu });
  return el("div", { className: "falls" }, heads, ...rows.flat());
}
