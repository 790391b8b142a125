// Steps side by side: the time of each, cut by where it went, its FLOP, and what share of the peak
// it reached. From rows [first, steps, FLOP or null, [ns of each line of the ledger, or null]], or
// with the wall time alone where there is no ledger.
const kLostKeys = ["idle", "communication", "uncounted", "integer", "other", "matrix", "profiler",
                   "recompute", "padding", "other_flop", "model"];
const kWork = kLostKeys.indexOf("recompute");  // this line and those after it

class StepStrip extends Plot {
  // `words`: of the lines of the ledger, by key.
  constructor(rows, words) {
    super("time, FLOP and share of peak by training step");
    this.rows = rows;
    this.words = words;
    this.pointed = -1;
    const sum = (list, from = 0) => list.slice(from).reduce((a, b) => a + b, 0);
    this.times = rows.map(([, , , ns]) => sum(ns));
    const known = this.known = rows[0][3].length > 1;
    const shares = (from) =>
      rows.map(([, , , ns], i) => (this.times[i] > 0 ? sum(ns, from) / this.times[i] : 0));
    this.bands = [{ label: known ? "device time" : "wall time", text: time,
                    layers: this.timeLayers(known) }];
    if (rows.some(([, , flop]) => flop !== null))
      this.bands.push({ label: "FLOP", text: (flop) => tickText(flop, "FLOP"),
                        layers: [["var(--mixed)", rows.map(([, , flop]) => flop ?? 0)]] });
    if (known && rows[0][3][kWork] !== null) {
      this.hfu = shares(kWork);
      this.mfu = words.has("model") ? shares(kLostKeys.indexOf("model")) : null;
      const rest = this.mfu ? this.hfu.map((hfu, i) => hfu - this.mfu[i]) : this.hfu;
      this.bands.push({
        label: this.mfu ? "MFU, HFU" : "HFU", text: (share) => human(share, "share"),
        layers: [...(this.mfu ? [["var(--c2)", this.mfu]] : []), ["var(--c0)", rest]] });
    }
    this.drawing.addEventListener("keydown", (event) => this.key(event));
  }

  timeLayers(known) {
    if (!known) return [["var(--neutral)", this.times]];
    const layers = kLostKeys.map((key, line) =>
      [kLostColors[key], this.rows.map(([, , , ns]) => ns[line] ?? 0)]);
    return layers.reverse();  // work at the bottom, as in the waterfall's last bar
  }

  legend() {
    if (!this.hfu)
      return legend([[kLostColors.idle, "no kernel runs"],
                     [kLostColors.communication, "communication"],
                     [kLostColors.uncounted, "kernels"]]);
    return legend([[kLostColors.idle, "no kernel runs"], [kLostColors.other, "below peak"],
                   [kLostColors.padding, this.mfu ? "FLOP beyond the model's" : "FLOP at peak"],
                   ...(this.mfu ? [[kLostColors.model, "the model's FLOP"]] : [])]);
  }

  edge(i) { return this.across(i / this.rows.length); }

  draw() {
    const every = Math.max(1, Math.ceil(this.rows.length / this.room(46)));
    const ticks = [];
    for (let i = 0; i < this.rows.length; i += every) ticks.push([i, String(this.rows[i][0])]);
    this.axes(ticks, [], (i) => (this.edge(i) + this.edge(i + 1)) / 2, () => 0, "step", "");
    const height = (this.bottom - kMarginTop) / this.bands.length;
    const inset = this.edge(1) - this.edge(0) < 4 ? 0 : 1;
    this.bands.forEach(({ label, text, layers }, band) => {
      const bottom = kMarginTop + (band + 1) * height - 6, room = height - 20;
      const below = new Float64Array(this.rows.length);
      const totals = this.rows.map((_, i) => layers.reduce((all, [, of]) => all + of[i], 0));
      const highest = Math.max(...totals) || 1;
      const y = (value) => bottom - (room * value) / highest;
      for (const [at, words] of [[0, "0"], [highest, text(highest)]]) {
        this.add("line", { class: "grid y", x1: this.left, x2: this.right, y1: y(at), y2: y(at) });
        this.add("text", { class: "tick", x: this.left - 8, y: y(at) + 4, "text-anchor": "end" },
          words);
      }
      this.add("text", { class: "axis", x: 2, y: bottom - room / 2 }, label);
      for (const [color, values] of layers) {
        let path = "";
        values.forEach((value, i) => {
          if (!(value > 0)) return;
          const left = (this.edge(i) + inset / 2).toFixed(1);
          const right = (this.edge(i + 1) - inset / 2).toFixed(1);
          path += `M${left} ${y(below[i]).toFixed(1)}V${y(below[i] + value).toFixed(1)}` +
            `H${right}V${y(below[i]).toFixed(1)}Z`;
          below[i] += value;
        });
        this.add("path", { class: "step-layer", "data-band": label, d: path,
                           style: { fill: color } });
      }
    });
    this.line = this.add("line", { class: "cursor", y1: kMarginTop, y2: this.bottom,
                                   visibility: "hidden" });
    this.show(this.pointed, kMarginTop);
  }

  point(x, y) {
    const at = Math.floor(((x - this.left) / (this.right - this.left)) * this.rows.length);
    this.show(at >= 0 && at < this.rows.length ? at : -1, y);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.show(-1, 0);
    if (step === undefined) return;
    event.preventDefault();
    const at = this.pointed < 0 ? (step > 0 ? 0 : this.rows.length - 1) : this.pointed + step;
    this.show(Math.max(0, Math.min(this.rows.length - 1, at)), kMarginTop);
  }

  show(at, y) {
    this.pointed = at;
    this.line.setAttribute("visibility", at >= 0 ? "visible" : "hidden");
    this.tip.hidden = at < 0;
    if (at < 0) return;
    const middle = (this.edge(at) + this.edge(at + 1)) / 2;
    this.line.setAttribute("x1", middle);
    this.line.setAttribute("x2", middle);
    const [first, steps, flop, ns] = this.rows[at];
    const number = steps > 1 ? `steps from ${first}, mean of ${steps}` : `step ${first}`;
    const lost = ns.flatMap((of, line) => (ns.length > 1 && of > 0 && line < kWork
      ? [`${this.words.get(kLostKeys[line]) ?? kLostKeys[line]} ${time(of)}`] : []));
    this.showTip(middle, y, `${number}: ${this.bands[0].label} ${time(this.times[at])}`,
      ...(flop === null ? [] : [human(flop, "flop")]),
      ...(this.hfu ? [`HFU ${human(this.hfu[at], "share")}`] : []),
      ...(this.mfu ? [`MFU ${human(this.mfu[at], "share")}`] : []), ...lost);
  }
}
