// What charts share: a drawing as wide as the page, scales, axes, and a tip beside what is pointed at.
const kMargin = { left: 88, right: 20, top: 26, bottom: 40 };  // pixels
const kPlotHeight = 340;

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

// Every power of ten, or every n-th where they would stand too close.
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
const tickText = (value, unit) => withPrefix(value, unit).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");

class Plot {
  constructor(label) {
    this.drawing = svg("svg", { class: "plot", tabindex: "0", role: "group", "aria-label": label });
    this.tip = el("div", { className: "tip" });
    this.tip.hidden = true;
    this.element = el("div", { className: "plot-frame" }, this.drawing, this.tip);
    this.drawing.addEventListener("pointermove", (event) => this.point(...this.place(event)));
    this.drawing.addEventListener("pointerleave", () => (this.tip.hidden = true));
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  // Where an event happened, in pixels of the drawing.
  place(event) {
    const box = this.drawing.getBoundingClientRect();
    return [event.clientX - box.x, event.clientY - box.y];
  }

  resize() {
    this.width = this.element.clientWidth;
    if (this.width === 0) return;
    this.right = this.width - kMargin.right;
    this.bottom = kPlotHeight - kMargin.bottom;
    this.tip.hidden = true;
    this.drawing.replaceChildren();
    this.draw();
  }

  add(tag, attributes, text) {
    const node = svg(tag, attributes, text);
    this.drawing.append(node);
    return node;
  }

  // From 0..1 to pixels.
  across(part) { return kMargin.left + part * (this.right - kMargin.left); }
  up(part) { return this.bottom - part * (this.bottom - kMargin.top); }

  axes(xTicks, yTicks, x, y, xLabel, yLabel) {
    for (const [value, text] of xTicks) {
      this.add("line", { class: "grid x", "data-value": value, x1: x(value), x2: x(value), y1: kMargin.top, y2: this.bottom });
      this.add("text", { x: x(value), y: this.bottom + 16, "text-anchor": "middle" }, text);
    }
    for (const [value, text] of yTicks) {
      this.add("line", { class: "grid y", "data-value": value, x1: kMargin.left, x2: this.right, y1: y(value), y2: y(value) });
      this.add("text", { x: kMargin.left - 8, y: y(value) + 4, "text-anchor": "end" }, text);
    }
    this.add("text", { class: "axis", x: this.right, y: kPlotHeight - 6, "text-anchor": "end" }, xLabel);
    this.add("text", { class: "axis", x: 2, y: kMargin.top - 14 }, yLabel);
  }

  // Lines of text beside a place, inside the drawing.
  showTip(x, y, ...lines) {
    this.tip.replaceChildren(...lines.map((line) => el("div", {}, name(line))));
    this.tip.hidden = false;
    const left = x + 14 + this.tip.offsetWidth > this.width ? x - 14 - this.tip.offsetWidth : x + 14;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y, kPlotHeight - this.tip.offsetHeight))}px`;
  }
}
