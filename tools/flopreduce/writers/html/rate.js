// FLOP/s over time, one layer for each phase, of one device at a time.

// A device's phases may have bins of other lengths: all are powers of two and begin at multiples of
// themselves, so that the longest holds all others exactly.
function readSeries({ label, phases, steps }) {
  let bin = 0, first = Infinity, last = -Infinity;
  for (const series of phases) bin = Math.max(bin, series.bin_ns);
  const place = (series, i) => Math.floor((series.begin_ns + i * series.bin_ns) / bin);
  for (const series of phases) {
    first = Math.min(first, place(series, 0));
    last = Math.max(last, place(series, series.flop.length - 1));
  }
  const columns = steps ? stepColumns(steps, first * bin, (last + 1) * bin) : null;
  const layers = sortedPhases(phases.map(({ phase }) => phase)).map((phase) => {
    const values = new Float64Array(last - first + 1);
    for (const series of phases)
      if (series.phase === phase)
        series.flop.forEach((flop, i) => (values[place(series, i) - first] += (flop * 1e9) / bin));
    return { name: phase, values: columns ? spread(values, first * bin, bin, columns) : values };
  });
  return columns ? { label, layers, bin: columns.width, bins: columns.count, steps: columns.steps }
    : { label, bin, bins: last - first + 1, layers };
}

// Columns of one step each, or of as many as there is room for: bins of another length would cut
// the steps at other places each, and steps that are alike would look unlike. Fewer steps are worth
// a look inside.
const kLeastSteps = 10, kMostColumns = 512;
function stepColumns({ begin_ns, step_ns, count }, from, to) {
  if (count < kLeastSteps) return null;
  const steps = Math.ceil((to - from) / step_ns / kMostColumns);
  const width = steps * step_ns;
  const begin = begin_ns - Math.ceil(Math.max(0, begin_ns - from) / width) * width;
  return { begin, width, steps, count: Math.ceil((to - begin) / width) };
}
// Rates in bins from `from` on, as rates in these columns: each bin evenly over its time.
function spread(rates, from, bin, { begin, width, count }) {
  const values = new Float64Array(count);
  rates.forEach((rate, i) => {
    const left = from + i * bin - begin, right = left + bin;
    const last = Math.min(count - 1, Math.floor(right / width));
    for (let at = Math.floor(left / width); at <= last; ++at)
      values[at] += rate * Math.max(0, Math.min(right, (at + 1) * width) -
        Math.max(left, at * width)) / width;
  });
  return values;
}

class RateOverTime extends PhaseColumns {
  // `peaks`: of the device, where it is known which it is.
  constructor(device, peaks) {
    super(`FLOP per second over time, ${device.label}`, device.bins, device.layers);
    this.bin = device.bin;
    this.steps = device.steps;  // of a column; undefined: columns are not of steps
    this.peaks = peaks;
    this.reached = this.highest;
    // A peak that is not far above is in view; the others are in words.
    for (const { rate } of peaks)
      if (this.reached > 0.25 * rate) this.highest = Math.max(this.highest, 1.08 * rate);
  }

  note() {
    const share = (peak) => shareText((100 * this.reached) / peak.rate);
    return [...(this.steps ? [this.steps === 1 ? "one step a column"
      : `${grouped(this.steps)} steps a column`] : []),
    ...this.peaks.filter(({ rate }) => rate > this.highest).map((peak) =>
      `highest: ${share(peak)} of the ${peak.name} peak`)].join("; ");
  }

  draw() {
    const end = this.columns * this.bin;
    this.axes(linearTicks(end, Math.min(8, this.room(80))).map((ns) => [ns, timeTick(ns)]),
      linearTicks(this.highest, 5).map((rate) => [rate, tickText(rate, "FLOP/s")]),
      (ns) => this.across(ns / end), (rate) => this.y(rate), "since the first of these launches",
      "FLOP/s");
    this.drawColumns();
    for (const { name: peak, rate } of this.peaks)
      if (rate <= this.highest)
        this.drawLevel(rate, peak, `${peak} peak ${withPrefix(rate, "FLOP/s")}`);
  }

  columnText(at) { return `${time(at * this.bin)} to ${time((at + 1) * this.bin)}`; }
  valueText(rate) { return withPrefix(rate, "FLOP/s"); }
}

function rateBody(body, tools, list, roofs) {
  const peaks = roofs.length === 1 ? roofs[0].peaks.filter(({ used }) => used) : [];
  const place = el("div");
  const words = el("span", { className: "legend-place" });
  const show = (at) => {
    const plot = new RateOverTime(readSeries(list[at]), peaks);
    words.replaceChildren(plot.legend());
    place.replaceChildren(plot.element, el("div", { className: "crumb" }, plot.note()));
  };
  tools.append(words);
  if (list.length > 1) {
    const choice = el("select", { "aria-label": "device" },
      ...list.map(({ label }, i) => el("option", { value: i }, label)));
    choice.addEventListener("change", () => {
      show(choice.value);
      state.set("device", choice.value === "0" ? null : choice.value);
    });
    if (list[state.get("device")]) choice.value = state.get("device");
    tools.append(choice);
  }
  if (list.length > 0) show(list[state.get("device")] ? state.get("device") : 0);
  body.append(list.length > 0 ? place : el("div", { className: "empty" },
    "Nothing to draw: no launch with a FLOP count has a start and an end."));
}
