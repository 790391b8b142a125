// FLOP/s over time, one layer for each phase, of one device at a time.

// Devices of a table flop_over_time, which has the names of processes beside its rows: {label, bin, begin, phases: [{name, rates}]}. A device's phases may have bins of other
// lengths: all are powers of two and begin at multiples of themselves, so that the longest holds all others exactly.
function readSeries(table) {
  const [trace, ordinal, phase, begin, bin, flop] =
    ["trace", "ordinal", "phase", "begin_ns", "bin_ns", "flop"].map((key) => columnOf(table, key));
  const devices = new Map();
  for (const row of table.rows) {
    const label = `${table.processes[numberOf(row[trace])]}, device ${human(row[ordinal], "count")}`;
    if (!devices.has(label)) devices.set(label, []);
    devices.get(label).push({ phase: row[phase], begin: numberOf(row[begin]), bin: numberOf(row[bin]), flop: numberOf(row[flop]) });
  }
  return [...devices].map(([label, list]) => {
    let bin = 0, first = Infinity, last = -Infinity;
    for (const one of list) bin = Math.max(bin, one.bin);
    for (const one of list) {
      one.at = Math.floor(one.begin / bin);
      first = Math.min(first, one.at);
      last = Math.max(last, one.at);
    }
    const phases = new Map();
    for (const one of list) {
      if (!phases.has(one.phase)) phases.set(one.phase, new Float64Array(last - first + 1));
      phases.get(one.phase)[one.at - first] += (one.flop * 1e9) / bin;
    }
    return { label, bin, bins: last - first + 1, phases: [...phases].map(([phaseName, rates]) => ({ name: phaseName, rates })) };
  });
}

class RateOverTime extends Plot {
  constructor(device) {
    super(`FLOP per second over time, ${device.label}`);
    this.device = device;
    this.totals = new Float64Array(device.bins);
    for (const { rates } of device.phases) rates.forEach((rate, i) => (this.totals[i] += rate));
    this.highest = this.totals.reduce((a, b) => Math.max(a, b), 0) || 1;
    this.end = device.bins * device.bin;
  }

  legend() {
    return el("span", { className: "legend" }, ...this.device.phases.map((phase, i) => {
      const dot = el("i", { className: "dot" });
      dot.style.background = `var(${kColors[i % kColors.length]})`;
      return el("span", {}, dot, name(phase.name));
    }));
  }

  x(ns) { return this.across(ns / this.end); }
  y(rate) { return this.up(rate / this.highest); }

  draw() {
    this.axes(linearTicks(this.end, 8).map((value) => [value, time(value).replace(/\.0+ /, " ")]),
      linearTicks(this.highest, 5).map((value) => [value, tickText(value, "FLOP/s")]),
      (value) => this.x(value), (value) => this.y(value), "since the first of these launches", "FLOP/s");
    const below = new Float64Array(this.device.bins);
    this.device.phases.forEach(({ name: phaseName, rates }, p) => {
      let up = "", down = "";
      for (let i = 0; i < rates.length; ++i) {  // steps: a bin's rate is its mean
        const [left, right] = [this.x(i * this.device.bin).toFixed(1), this.x((i + 1) * this.device.bin).toFixed(1)];
        const [low, high] = [this.y(below[i]).toFixed(1), this.y(below[i] + rates[i]).toFixed(1)];
        up += `${i === 0 ? "M" : "L"}${left} ${high}H${right}`;
        down = `L${right} ${low}H${left}${down}`;
        below[i] += rates[i];
      }
      const layer = this.add("path", { class: "layer", "data-phase": phaseName, d: `${up}${down}Z` });
      layer.style.fill = `var(${kColors[p % kColors.length]})`;
    });
    this.line = this.add("line", { class: "cursor", y1: kMargin.top, y2: this.bottom, visibility: "hidden" });
  }

  point(x, y) {
    const bin = Math.floor(((x - kMargin.left) / (this.right - kMargin.left)) * this.device.bins);
    const inside = bin >= 0 && bin < this.device.bins;
    this.line.setAttribute("visibility", inside ? "visible" : "hidden");
    if (!inside) {
      this.tip.hidden = true;
      return;
    }
    const middle = this.x((bin + 0.5) * this.device.bin);
    this.line.setAttribute("x1", middle);
    this.line.setAttribute("x2", middle);
    this.showTip(middle, y, `${time(bin * this.device.bin)} to ${time((bin + 1) * this.device.bin)}: ${withPrefix(this.totals[bin], "FLOP/s")}`,
      ...this.device.phases.filter(({ rates }) => rates[bin] > 0).map((phase) => `${phase.name} ${withPrefix(phase.rates[bin], "FLOP/s")}`));
  }
}

function rateCard(table) {
  const devices = readSeries(table);
  const header = el("header", {}, el("h2", {}, "FLOP/s over time"));
  const card = el("section", { className: "card", id: "flop-over-time" }, header);
  const show = (device) => {
    const plot = new RateOverTime(device);
    header.querySelector(".legend")?.remove();
    header.append(plot.legend());
    card.querySelector(".plot-frame")?.remove();
    card.append(plot.element);
  };
  if (devices.length > 1) {
    const choice = el("select", { "aria-label": "device" }, ...devices.map(({ label }, i) => el("option", { value: i }, label)));
    choice.addEventListener("change", () => show(devices[choice.value]));
    header.append(choice);
  }
  if (devices.length > 0) show(devices[0]);
  else card.append(el("div", { className: "empty" }, "Nothing to draw: no launch with a FLOP count has a start and an end."));
  return card;
}
