// The roofline: each kernel's FLOP for a byte of DRAM against its FLOP/s, on logarithmic axes, under the roofs of the
// devices. The kernels that take most time have a circle each, the others are dots of a few paths, so that the number of
// elements is bounded; all of them can be pointed at and chosen.
const kMostCircles = 1000;
const kReach = 24;  // pixels: how near the pointer has to be
const kBounds = [["memory", "bound by memory"], ["compute", "bound by compute"], ["latency", "bound by latency: far below both roofs"],
                 ["above", "above its roof: an error"], ["unknown", "roof not known"]];

const columnOf = (table, key) => table.columns.findIndex((column) => column.key === key);

// Roofs by device: {memory, peaks: [{name, rate}]}.
function readRoofs(table) {
  const [device, roof, rate, bandwidth] = ["device", "roof", "flop_per_s", "byte_per_s"].map((key) => columnOf(table, key));
  const devices = new Map();
  for (const row of table.rows) {
    if (!devices.has(row[device])) devices.set(row[device], { memory: 0, peaks: [] });
    const of = devices.get(row[device]);
    if (isNumber(row[bandwidth])) of.memory = numberOf(row[bandwidth]);
    else of.peaks.push({ name: row[roof], rate: numberOf(row[rate]) });
  }
  return devices;
}

// Kernels whose figures are known and above 0, the longest first.
function readPoints(table) {
  const keys = ["flop_per_byte", "flop_per_s", "gpu_time_ns", "bound_by", "roof_share", "utilization"];
  const [x, y, time, bound, roof, peak] = keys.map((key) => columnOf(table, key));
  const points = [];
  table.rows.forEach((row, index) => {
    const point = { index, row, x: numberOf(row[x]), y: numberOf(row[y]), time: numberOf(row[time]) };
    if (!(point.x > 0 && point.y > 0)) return;
    const above = [roof, peak].some((c) => row[c]?.absent === "above peak");
    const kinds = { memory: "memory", latency: "latency" };
    point.kind = above ? "above" : typeof row[bound] !== "string" ? "unknown" : kinds[row[bound]] ?? "compute";
    points.push(point);
  });
  return points.sort((a, b) => b.time - a.time);
}

class Roofline extends Plot {
  // `onChoose` is called with a row of the table.
  constructor(table, roofs, onChoose) {
    super("roofline: FLOP per byte against FLOP per second; arrow keys go from kernel to kernel");
    this.table = table;
    this.devices = readRoofs(roofs);
    this.points = readPoints(table);
    this.order = [...this.points].sort((a, b) => a.x - b.x || a.y - b.y);
    this.chosen = null;
    this.onChoose = onChoose;
    const roofList = [...this.devices.values()];
    // Some room to the right of where memory and arithmetic take equally long.
    const ridges = roofList.flatMap(({ memory, peaks }) => (memory > 0 ? peaks.map((peak) => (2 * peak.rate) / memory) : []));
    this.xDecades = decades([...ridges, ...this.points.map((point) => point.x)]);
    this.yDecades = decades([...roofList.flatMap(({ peaks }) => peaks.map((peak) => peak.rate)), ...this.points.map((point) => point.y)]);
    this.crumb = el("div", { className: "crumb", role: "status" });
    this.tell(null);
    this.drawing.addEventListener("click", (event) => this.choose(this.nearest(...this.place(event))));
    this.drawing.addEventListener("keydown", (event) => this.key(event));
  }

  legend() {
    const seen = new Set(this.points.map((point) => point.kind));
    return el("span", { className: "legend" }, ...kBounds.filter(([kind]) => seen.has(kind)).map(([kind, label]) =>
      el("span", {}, el("i", { className: `dot bound-${kind}` }), label)));
  }

  x(value) { return this.across((Math.log10(value) - this.xDecades[0]) / (this.xDecades[1] - this.xDecades[0])); }
  y(value) { return this.up((Math.log10(value) - this.yDecades[0]) / (this.yDecades[1] - this.yDecades[0])); }

  draw() {
    this.axes(decadeTicks(this.xDecades, 12).map((value) => [value, value < 1e-4 || value >= 1e6 ? value.toExponential() : String(value)]),
      decadeTicks(this.yDecades, 8).map((value) => [value, value < 1 ? value.toExponential() : tickText(value, "FLOP/s")]),
      (value) => this.x(value), (value) => this.y(value), "FLOP per byte of DRAM", "FLOP/s");
    this.drawRoofs();
    const longest = this.points[0]?.time || 1;
    const dots = {};
    this.points.forEach((point, i) => {
      [point.px, point.py] = [this.x(point.x), this.y(point.y)];
      if (i >= kMostCircles) dots[point.kind] = `${dots[point.kind] ?? ""}M${point.px.toFixed(1)} ${point.py.toFixed(1)}h0`;
    });
    for (const [kind, d] of Object.entries(dots)) this.add("path", { class: `dots bound-${kind}`, d });
    for (const point of this.points.slice(0, kMostCircles).reverse())
      this.add("circle", { class: `point bound-${point.kind}`, "data-row": point.index, cx: point.px, cy: point.py,
                           r: 3 + 8 * Math.sqrt((point.time || 0) / longest) });
    this.ring = this.add("circle", { class: "ring", r: 14 });
    this.drawRing();
  }

  drawRoofs() {
    const [xLow, xHigh] = this.xDecades.map((at) => 10 ** at);
    const [yLow, yHigh] = this.yDecades.map((at) => 10 ** at);
    const corner = (x, y) => `${this.x(x)},${this.y(y)} `;
    const labels = [];
    for (const [device, { memory, peaks }] of this.devices) {
      const of = this.devices.size > 1 ? `${device}: ` : "";
      const left = memory > 0 ? Math.max(xLow, yLow / memory) : xLow;
      for (const peak of peaks) {
        const ridge = memory > 0 ? peak.rate / memory : xLow;
        const start = corner(left, memory > 0 ? memory * left : peak.rate);
        this.add("polyline", { class: "roof", "data-roof": peak.name, points: start + corner(ridge, peak.rate) + corner(xHigh, peak.rate) });
        labels.push([this.y(peak.rate) - 5, `${of}${peak.name} ${withPrefix(peak.rate, "FLOP/s")}`]);
      }
      if (memory > 0) {
        const right = Math.min(xHigh, (peaks.length > 0 ? Math.max(...peaks.map((peak) => peak.rate)) : yHigh) / memory);
        if (peaks.length === 0) this.add("polyline", { class: "roof", "data-roof": "memory", points: corner(left, memory * left) + corner(right, memory * right) });
        const middle = Math.sqrt(left * right);
        this.add("text", { class: "roof-name", x: this.x(middle) + 10, y: this.y(memory * middle) + 12 }, `${of}memory ${withPrefix(memory, "B/s")}`);
      }
    }
    let last = 0;
    for (const [y, text] of labels.sort((a, b) => a[0] - b[0])) {
      last = Math.max(y, last + 13);
      this.add("text", { class: "roof-name", x: this.right, y: last, "text-anchor": "end" }, text);
    }
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
    return this.table.columns.flatMap((column, c) => (c > 0 && point.row[c] !== null ? [`${column.heading} ${human(point.row[c], column.kind)}`] : []));
  }

  point(x, y) {
    const point = this.nearest(x, y);
    if (point === null) this.tip.hidden = true;
    else this.showTip(point.px, point.py, human(point.row[0], "text"), ...this.figures(point));
  }

  // A point, or null for none.
  choose(point) {
    this.chosen = point;
    this.drawRing();
    this.tell(point);
    this.onChoose(point === null ? null : point.index);
  }
  chooseRow(index) {
    const point = this.points.find((one) => one.index === index) ?? null;
    this.chosen = point;
    this.drawRing();
    this.tell(point);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.choose(null);
    if (step === undefined || this.order.length === 0) return;
    event.preventDefault();
    const at = this.order.indexOf(this.chosen);
    const next = at < 0 ? (step > 0 ? 0 : this.order.length - 1) : Math.max(0, Math.min(this.order.length - 1, at + step));
    this.choose(this.order[next]);
  }

  drawRing() {
    if (!this.ring) return;
    this.ring.setAttribute("visibility", this.chosen ? "visible" : "hidden");
    if (!this.chosen) return;
    this.ring.setAttribute("cx", this.chosen.px);
    this.ring.setAttribute("cy", this.chosen.py);
  }

  tell(point) {
    const left = this.table.rows.length - this.points.length;
    if (point !== null) this.crumb.replaceChildren(el("b", {}, name(human(point.row[0], "text"))), `  ${this.figures(point).join(", ")}`);
    else if (left > 0) this.crumb.replaceChildren(`Not drawn: ${grouped(left)} of ${grouped(this.table.rows.length)} kernels, ` +
      "whose FLOP, bytes or time are 0 or not known.");
    else this.crumb.replaceChildren();
  }
}

// Why there is no roofline.
function noRoofline(roofs) {
  return el("section", { className: "card", id: "roofline" }, el("header", {}, el("h2", {}, "Roofline")),
    el("div", { className: "empty" }, ![...readRoofs(roofs).values()].some(({ peaks }) => peaks.length > 0)
      ? "Nothing to draw: no peak is known of a precision that ran. --peak gives one."
      : "Nothing to draw: no kernel's DRAM bytes were measured."));
}
