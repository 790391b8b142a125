// GPU time of every process of a job side by side, cut by phase: which one is slow, and in what.
class RankColumns extends PhaseColumns {
  // `processes`: a list of [phase, ns] for each; `names` likewise; `onChoose` gets a place.
  constructor(processes, names, onChoose) {
    const phases = sortedPhases(processes.flatMap((list) => list.map(([phase]) => phase)));
    super("GPU time by process and phase", processes.length, phases.map((phase) => ({
      name: phase,
      values: processes.map((list) => list.find(([one]) => one === phase)?.[1] ?? 0),
    })));
    this.names = names;
    const known = [...this.totals].filter((ns) => ns > 0).sort((a, b) => a - b);
    const middle = [known[(known.length - 1) >> 1], known[known.length >> 1]];
    this.median = known.length > 0 ? (middle[0] + middle[1]) / 2 : 0;
    this.drawing.addEventListener("click", () => this.pointed >= 0 && onChoose(this.pointed));
  }

  draw() {
    const every = Math.max(1, Math.ceil(this.columns / this.room(46)));
    const ticks = [];
    for (let i = 0; i < this.columns; i += every) ticks.push([i, String(i)]);
    this.axes(ticks, linearTicks(this.highest, 5).map((ns) => [ns, timeTick(ns)]),
      (i) => (this.edge(i) + this.edge(i + 1)) / 2, (ns) => this.y(ns), "process", "GPU time");
    this.drawColumns();
    if (this.median > 0) this.drawLevel(this.median, "median", `median ${time(this.median)}`);
  }

  gap() {
    const width = this.edge(1) - this.edge(0);
    return width < 6 ? 0 : Math.max(1, width - 48, width * 0.15);
  }

  columnText(at) { return this.names[at]; }
  valueText(ns) { return time(ns); }
}
