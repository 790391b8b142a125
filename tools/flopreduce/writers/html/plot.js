// What charts share: a drawing as wide as the page, scales, axes, and a tip beside the place that
// is pointed at.
const kPlotHeight = 340;  // pixels
const kMarginTop = 26, kMarginRight = 20, kMarginBottom = 40;

// Powers of ten around all values above 0, at least one decade.
function decades(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!(value > 0) || value === Infinity) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  return [first, last > first ? last : first + 1];
}

// Every power of ten, or every n-th where they would be too close.
function decadeTicks([first, last], most) {
  const step = Math.max(1, Math.ceil((last - first) / most));
  const ticks = [];
  for (let at = first; at <= last; at += step) ticks.push(10 ** at);
  return ticks;
}

// 0, and multiples of 1, 2 or 5 times a power of ten, up to `most` of them.
function linearTicks(high, most) {
  const rough = high / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const ticks = [];
  for (let i = 0; i * step <= high; ++i) ticks.push(i * step);
  return ticks;
}

// "100 GFLOP/s": a tick has no decimals that say nothing.
const tickText = (value, unit) =>
  withPrefix(value, unit).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
const timeTick = (ns) => time(ns).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");

class Plot {
  constructor(label) {
    this.drawing = svg("svg", { class: "plot", tabindex: "0", role: "group", "aria-label": label });
    this.tip = el("div", { className: "tip" });
    this.tip.hidden = true;
    this.element = el("div", { className: "plot-frame" }, this.drawing, this.tip);
    for (const event of ["pointermove", "pointerdown"])  // a finger only presses
      this.drawing.addEventListener(event, (at) => this.point(...this.place(at)));
    this.drawing.addEventListener("pointerleave", () => (this.tip.hidden = true));
    onResize(this.element, ({ width }) => this.resize(width));
  }

  // Where an event happened, in pixels of the drawing.
  place(event) {
    const box = this.drawing.getBoundingClientRect();
    return [event.clientX - box.x, event.clientY - box.y];
  }

  resize(width) {
    if (width === 0 || matchMedia("print").matches) return;  // paper has the drawing scaled
    this.width = width;
    this.left = 88;
    this.right = this.width - kMarginRight;
    this.bottom = kPlotHeight - kMarginBottom;
    this.tip.hidden = true;
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${kPlotHeight}`);
    this.drawing.replaceChildren();
    this.draw();
  }

  add(tag, options, ...text) {
    return this.drawing.appendChild(svg(tag, options, ...text));
  }

  // From 0..1 to pixels.
  across(part) { return this.left + part * (this.right - this.left); }
  up(part) { return this.bottom - part * (this.bottom - kMarginTop); }
  // How many labels of about so many pixels there is room for.
  room(pixels) { return Math.max(2, Math.floor((this.right - this.left) / pixels)); }

  axes(xTicks, yTicks, x, y, xLabel, yLabel) {
    for (const [value, text] of xTicks) {
      this.add("line", { class: "grid x", "data-value": value, x1: x(value), x2: x(value),
                         y1: kMarginTop, y2: this.bottom });
      this.add("text", { class: "tick", x: x(value), y: this.bottom + 16,
                         "text-anchor": "middle" }, text);
    }
    for (const [value, text] of yTicks) {
      this.add("line", { class: "grid y", "data-value": value, x1: this.left, x2: this.right,
                         y1: y(value), y2: y(value) });
      this.add("text", { class: "tick", x: this.left - 8, y: y(value) + 4,
                         "text-anchor": "end" }, text);
    }
    this.add("text", { class: "axis", x: this.right, y: kPlotHeight - 6, "text-anchor": "end" },
      xLabel);
    this.add("text", { class: "axis", x: 2, y: kMarginTop - 14 }, yLabel);
  }

  // Lines of text beside a place, inside the drawing.
  showTip(x, y, ...lines) {
    this.tip.replaceChildren(...lines.map((line) => el("div", {}, name(line))));
    this.tip.hidden = false;
    const beyond = x + 14 + this.tip.offsetWidth > this.width;
    const left = beyond ? x - 14 - this.tip.offsetWidth : x + 14;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y, kPlotHeight - this.tip.offsetHeight))}px`;
  }
}

// Columns of equal width side by side, each cut by phase: {label, phases: [{name, values}]}. Each
// phase is one path, so that there may be any number of columns.
class PhaseColumns extends Plot {
  constructor(label, count, phases) {
    super(label);
    this.columns = count;
    this.phases = phases;
    this.totals = new Float64Array(count);
    for (const { values } of phases) values.forEach((value, i) => (this.totals[i] += value));
    this.highest = this.totals.reduce((a, b) => Math.max(a, b), 0) || 1;
  }

  legend() { return legend(this.phases.map((phase) => [phaseColor(phase.name), phase.name])); }

  edge(i) { return this.across(i / this.columns); }
  // Between two columns.
  gap() { return 0; }
  y(value) { return this.up(value / this.highest); }

  drawColumns() {
    const below = new Float64Array(this.columns);
    const inset = this.gap() / 2;
    for (const { name: phase, values } of this.phases) {
      let up = "", down = "";
      for (let i = 0; i < this.columns; ++i) {
        const left = (this.edge(i) + inset).toFixed(1);
        const right = (this.edge(i + 1) - inset).toFixed(1);
        const low = this.y(below[i]).toFixed(1), high = this.y(below[i] + values[i]).toFixed(1);
        if (inset > 0) {  // a box of its own
          up += `M${left} ${high}H${right}V${low}H${left}Z`;
        } else {
          up += `${i === 0 ? "M" : "L"}${left} ${high}H${right}`;
          down = `L${right} ${low}H${left}${down}`;
        }
        below[i] += values[i];
      }
      this.add("path", { class: "layer", "data-phase": phase, d: up + down,
                         style: { fill: phaseColor(phase) } });
    }
    this.line = this.add("line", { class: "cursor", y1: kMarginTop, y2: this.bottom,
                                   visibility: "hidden" });
  }

  // A line at a value, with its name above.
  drawLevel(value, roof, text) {
    const y = this.y(value);
    this.add("line", { class: "roof", "data-roof": roof, x1: this.left, x2: this.right, y1: y,
                       y2: y });
    this.add("text", { class: "roof-name", x: this.right, y: y - 5, "text-anchor": "end" }, text);
  }

  // The column at a place, or -1.
  columnAt(x) {
    const at = Math.floor(((x - this.left) / (this.right - this.left)) * this.columns);
    return at >= 0 && at < this.columns ? at : -1;
  }

  point(x, y) {
    const at = this.pointed = this.columnAt(x);
    this.line.setAttribute("visibility", at >= 0 ? "visible" : "hidden");
    if (at < 0) {
      this.tip.hidden = true;
      return;
    }
    const middle = (this.edge(at) + this.edge(at + 1)) / 2;
    this.line.setAttribute("x1", middle);
    this.line.setAttribute("x2", middle);
    this.showTip(middle, y, `${this.columnText(at)}: ${this.valueText(this.totals[at])}`,
      ...this.phases.filter(({ values }) => values[at] > 0).map((phase) =>
        `${phase.name} ${this.valueText(phase.values[at])}`));
  }
}
