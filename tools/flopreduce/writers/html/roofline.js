// The roofline: each kernel's FLOP for a byte of DRAM against its FLOP/s, on logarithmic axes,
// under the roofs of the devices, in the colour of its phase. The kernels that take most time have
// a circle each and the first of them their names; the others are dots of a few paths, so that the
// number of elements is bounded. All of them can be pointed at and chosen.
const kMostCircles = 1000;
const kRow = 14;  // pixels of a line of names
const kMostNames = 12;
const kReach = 24;  // pixels: how near the pointer has to be
const kNameLength = 30;

// Kernels whose figures are known and above 0, the longest first.
function readPoints(table, phases) {
  const keys = ["flop_per_byte", "flop_per_s", "gpu_time_ns", "roof_share", "utilization"];
  const [x, y, time, roof, peak] = keys.map((key) => columnOf(table, key));
  const points = [];
  table.rows.forEach((row, index) => {
    const point = { index, row, name: row[0], x: numberOf(row[x]), y: numberOf(row[y]),
                    time: numberOf(row[time]), phase: phases.get(row[0]) ?? "" };
    if (!(point.x > 0 && point.y > 0)) return;
    point.above = [roof, peak].some((c) => row[c]?.absent === "above peak");
    points.push(point);
  });
  return points.sort((a, b) => b.time - a.time);
}

const shortened = (text) => (text.length <= kNameLength ? text
  : `${text.slice(0, kNameLength / 2)}\u2026${text.slice(1 - kNameLength / 2)}`);

// Pixels.
const widthOf = (text) => text.length * 7.1;
const textBox = (left, y, width) => ({ left, right: left + width, top: y - 11, bottom: y + 3 });

class Roofline extends Plot {
  // `phases`: of each kernel. `links`: what to put behind a chosen kernel's figures.
  constructor(table, roofs, phases, links) {
    super("roofline: FLOP per byte against FLOP per second; " +
      "arrow keys go from kernel to kernel");
    this.table = table;
    // A precision that did not run has no roof here.
    this.roofs = roofs.map((roof) => ({ ...roof, peaks: roof.peaks.filter(({ used }) => used) }));
    this.points = readPoints(table, phases);
    this.order = [...this.points].sort((a, b) => a.x - b.x || a.y - b.y);
    this.chosen = null;
    this.links = links;
    // Some room to the right of where memory and arithmetic take equally long.
    const ridges = this.roofs.flatMap(({ memory, peaks }) =>
      (memory > 0 ? peaks.map((peak) => (2 * peak.rate) / memory) : []));
    this.xDecades = decades([...ridges, ...this.points.map((point) => point.x)]);
    this.yDecades = decades([...this.roofs.flatMap(({ peaks }) => peaks.map(({ rate }) => rate)),
                             ...this.points.map((point) => point.y)]);
    this.crumb = el("div", { className: "crumb", role: "status" });
    this.tell();
    this.drawing.addEventListener("click", (event) =>
      this.choose(this.nearest(...this.place(event))));
    this.drawing.addEventListener("keydown", (event) => this.key(event));
    kernelChoice.listen((kernel) => this.show(kernel));
  }

  legend() {
    const phases = sortedPhases(this.points.map((point) => point.phase));
    const entries = phases.map((phase) => [phaseColor(phase), phaseLabel(phase)]);
    if (this.points.some((point) => point.above))
      entries.push(["var(--bad)", "above its roof: an error"]);
    return legend(entries);
  }

  x(value) {
    const [low, high] = this.xDecades;
    return this.across((Math.log10(value) - low) / (high - low));
  }
  y(value) {
    const [low, high] = this.yDecades;
    return this.up((Math.log10(value) - low) / (high - low));
  }

  draw() {
    const plain = (value) => (value < 1e-4 || value >= 1e6 ? value.toExponential() : String(value));
    this.axes(decadeTicks(this.xDecades, this.room(50)).map((value) => [value, plain(value)]),
      decadeTicks(this.yDecades, 8).map((value) =>
        [value, value < 1 ? value.toExponential() : tickText(value, "FLOP/s")]),
      (value) => this.x(value), (value) => this.y(value), "FLOP per byte of DRAM", "FLOP/s");
    this.boxes = [];  // where text is
    this.roofLines = [];
    const longest = this.points[0]?.time || 1;
    for (const point of this.points) {
      [point.px, point.py] = [this.x(point.x), this.y(point.y)];
      point.r = 3 + 8 * Math.sqrt((point.time || 0) / longest);
      point.color = point.above ? "var(--bad)" : phaseColor(point.phase);
    }
    this.drawRoofs();
    const dots = new Map();
    this.points.forEach((point, i) => {
      if (i < kMostCircles) return;
      const d = `M${point.px.toFixed(1)} ${point.py.toFixed(1)}h0`;
      dots.set(point.color, (dots.get(point.color) ?? "") + d);
    });
    for (const [color, d] of dots)
      this.add("path", { class: "dots", d, style: { "--own": color } });
    for (const { above, index, px, py, r, color } of this.points.slice(0, kMostCircles).reverse())
      this.add("circle", { class: `point${above ? " above" : ""}`, "data-row": index, cx: px,
                           cy: py, r, style: { "--own": color } });
    this.drawNames();
    this.ring = this.add("circle", { class: "ring", r: 14 });
    this.drawRing();
  }

  // Beside their points, where there is room: off all circles if they can be, and never where a
  // roof would strike them through.
  drawNames() {
    for (const point of this.points.slice(0, kMostNames)) {
      const text = shortened(brief(point.name));
      const width = widthOf(text);
      const gap = point.r + 4;
      const above = -gap - 3, below = gap + 10;
      const places = [[gap, 4], [-gap - width, 4], [-width / 2, above], [-width / 2, below],
                      [0, above], [-width, above], [0, below], [-width, below],
                      ...[-kRow, kRow].flatMap((dy) => [[gap, 4 + dy], [-gap - width, 4 + dy]]),
                      ...[above - kRow, below + kRow].flatMap((dy) => [[0, dy], [-width, dy]])];
      const free = places.map(([dx, dy]) => textBox(point.px + dx, point.py + dy, width))
        .filter((box) => this.isFree(box));
      const box = free.find((one) => !this.hasCircle(one) && !this.hasRoof(one)) ??
        free.find((one) => !this.hasRoof(one));
      if (box === undefined) continue;
      this.boxes.push(box);
      this.add("text", { class: "point-name", x: box.left, y: box.bottom - 3 }, text);
    }
  }
  hasCircle({ left, right, top, bottom }) {
    return this.points.slice(0, kMostCircles).some(({ px, py, r }) =>
      px + r > left && px - r < right && py + r > top && py - r < bottom);
  }
  // Whether a roof strikes it through.
  hasRoof({ left, right, top, bottom }) {
    return this.roofLines.some((points) => points.slice(1).some(([x2, y2], i) => {
      const [x1, y1] = points[i];
      for (let x = Math.max(left, x1); x <= Math.min(right, x2); x += 3) {
        const y = x2 > x1 ? y1 + ((y2 - y1) * (x - x1)) / (x2 - x1) : y1;
        if (y > top && y < bottom) return true;
      }
      return false;
    }));
  }
  isFree(box) {
    if (box.left < this.left || box.right > this.right) return false;
    if (box.top < 0 || box.bottom > this.bottom) return false;
    return !this.boxes.some((other) => box.left < other.right && other.left < box.right &&
      box.top < other.bottom && other.top < box.bottom);
  }

  drawRoofs() {
    const labels = [];
    for (const { device, memory, peaks } of this.roofs) {
      const of = this.roofs.length > 1 ? `${device}: ` : "";
      for (const peak of peaks) this.drawPeak(peak, memory, of, labels);
      if (memory > 0) this.drawMemory(memory, peaks, of);
    }
    let last = 0;
    for (const { at, text } of labels.sort((a, b) => a.at - b.at)) {
      last = Math.max(at, last + 13);
      this.labelPeak(last, text);
    }
  }
  // As far to the right as no circle is in the way, above its line or below it.
  labelPeak(y, text) {
    const width = widthOf(text), sides = [y, y + 18];
    for (let right = this.right; right - width > this.left; right -= 4) {
      const side = sides.find((at) => !this.hasCircle(textBox(right - width, at, width)));
      if (side !== undefined) return this.label("roof-name", right, side, "end", text);
    }
    this.label("roof-name", this.right, y, "end", text);
  }
  // Text that names of points keep clear of.
  label(className, x, y, anchor, text) {
    const width = widthOf(text);
    this.boxes.push(textBox(anchor === "end" ? x - width : x, y, width));
    this.add("text", { class: className, x, y, "text-anchor": anchor }, text);
  }

  drawPeak(peak, memory, of, labels) {
    const [xLow, xHigh] = this.xDecades.map((at) => 10 ** at);
    const yLow = 10 ** this.yDecades[0];
    const ridge = memory > 0 ? Math.min(xHigh, Math.max(xLow, peak.rate / memory)) : xLow;
    const left = memory > 0 ? Math.max(xLow, yLow / memory) : xLow;
    const start = [left, memory > 0 ? memory * left : peak.rate];
    this.drawRoof(peak.name, [start, [ridge, peak.rate], [xHigh, peak.rate]]);
    labels.push({ at: this.y(peak.rate) - 5,
                  text: `${of}${peak.name} ${withPrefix(peak.rate, "FLOP/s")}` });
  }
  drawRoof(roof, corners) {
    const points = corners.map(([x, y]) => [this.x(x), this.y(y)]);
    this.roofLines.push(points);
    this.add("polyline", { class: "roof", "data-roof": roof,
                           points: points.map((point) => point.join()).join(" ") });
  }

  drawMemory(memory, peaks, of) {
    const [xLow, xHigh] = this.xDecades.map((at) => 10 ** at);
    const [yLow, yHigh] = this.yDecades.map((at) => 10 ** at);
    const left = Math.max(xLow, yLow / memory);
    const highest = peaks.length > 0 ? Math.max(...peaks.map((peak) => peak.rate)) : yHigh;
    const right = Math.min(xHigh, highest / memory);
    if (peaks.length === 0)
      this.drawRoof("memory", [[left, memory * left], [right, memory * right]]);
    // Under the slope, as near to its middle as no circle is in the way.
    const text = `${of}memory ${withPrefix(memory, "B/s")}`;
    const places = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].map((share) => {
      const at = left * (right / left) ** share;
      return [this.x(at) + 10, this.y(memory * at) + 12];
    });
    const [x, y] = places.find((place) => !this.hasCircle(textBox(...place, widthOf(text))))
      ?? places[0];
    this.label("roof-name", x, y, "start", text);
  }

  nearest(x, y) {
    let best = null, least = kReach * kReach;
    for (const point of this.points) {
      const distance = (point.px - x) ** 2 + (point.py - y) ** 2;
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  }

  figures(point) {
    return this.table.columns.flatMap((column, c) => (c > 0 && point.row[c] !== null
      ? [`${column.heading} ${human(point.row[c], column.kind)}`] : []));
  }

  point(x, y) {
    const point = this.nearest(x, y);
    if (point === null) this.tip.hidden = true;
    else this.showTip(point.px, point.py, brief(point.name), ...this.figures(point));
  }

  // A point, or null for none.
  choose(point) { kernelChoice.choose(point?.name ?? null); }
  show(kernel) {
    this.chosen = this.points.find((point) => point.name === kernel) ?? null;
    this.drawRing();
    this.tell();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.choose(null);
    if (step === undefined || this.order.length === 0) return;
    event.preventDefault();
    const at = this.order.indexOf(this.chosen);
    const last = this.order.length - 1;
    const next = at < 0 ? (step > 0 ? 0 : last) : Math.max(0, Math.min(last, at + step));
    this.choose(this.order[next]);
  }

  drawRing() {
    if (!this.ring) return;
    this.ring.setAttribute("visibility", this.chosen ? "visible" : "hidden");
    if (!this.chosen) return;
    this.ring.setAttribute("cx", this.chosen.px);
    this.ring.setAttribute("cy", this.chosen.py);
  }

  tell() {
    const left = this.table.rows.length - this.points.length;
    if (this.chosen !== null)
      this.crumb.replaceChildren(el("b", {}, name(brief(this.chosen.name))),
        `  ${this.figures(this.chosen).join(", ")}`, ...this.links(this.chosen.name));
    else this.crumb.replaceChildren(left > 0 ? `Not drawn: ${grouped(left)} of ` +
      `${grouped(this.table.rows.length)} kernels, whose FLOP, bytes or time are 0 or not known.`
      : "");
  }
}

// Why there is no roofline.
const noRoofline = (roofs) => (!roofs.some(({ peaks }) => peaks.some(({ used }) => used))
  ? "Nothing to draw: no peak is known of a precision that ran. --peak gives one."
  : "Nothing to draw: no kernel's DRAM bytes were measured.");
