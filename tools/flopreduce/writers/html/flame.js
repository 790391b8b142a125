// Time, FLOP or launches by range path and kernel: each frame as wide as its share, the outermost
// range on top, in the colour of its phase. A click zooms in; a click on a frame above, Escape or
// the button zooms out; arrow keys go from frame to frame. Frames too narrow to see are drawn as
// one, so the number of elements is bounded by the width of the page.
const kFrameHeight = 23;
const kLeastWidth = 3;  // pixels
const kWeights = [
  { key: "time", label: "GPU time", kind: "ns", of: 1 },
  { key: "flop", label: "FLOP", kind: "flop", of: 0 },
  { key: "launches", label: "launches", kind: "count", of: 2 },
];

class FlameView {
  constructor(root) {
    this.root = this.focus = root;
    const asked = kWeights.findIndex((weight) => weight.key === state.get("flame.weight"));
    this.weight = asked >= 0 ? asked : kWeights.findIndex(({ of }) => root.weight[of] > 0);
    this.rows = el("div", { className: "flame-rows" });
    this.element = el("div", { className: "flame", role: "group",
                               "aria-label": "work by range and kernel" }, this.rows);
    this.crumb = el("div", { className: "crumb", role: "status" });
    this.choices = el("div", { className: "choices", role: "group",
                               "aria-label": "width of frames" },
      ...kWeights.map(({ key, label }, i) =>
        button(label, () => this.choose(i), { "data-weight": key })));
    this.back = button("Reset zoom", () => this.zoom(this.root), { className: "button reset" });
    this.box = searchBox("search names", "search in the flame view", (text) => this.search(text));
    this.found = el("span", { className: "count", role: "status" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.width = 0;
    onResize(this.element, ({ width }) => {
      if (matchMedia("print").matches) return;
      this.width = width;
      this.draw();
    });
    this.focus = this.nodeAt(state.get("flame.zoom")) ?? root;
    this.back.hidden = this.focus === root;
    this.search(state.get("flame.search") ?? "", true);
    this.box.value = this.wanted;
  }

  tools() { return [this.found, this.box, this.back, this.choices]; }

  // The frames from below the root to this one.
  above(node) {
    const frames = [];
    for (let at = node; at.parent; at = at.parent) frames.unshift(at);
    return frames;
  }
  // A frame's place in the address, and back.
  pathOf(node) { return this.above(node).map((at) => encodeURIComponent(at.name)).join("/"); }
  nodeAt(path) {
    let node = path ? this.root : null;
    for (const part of path ? path.split("/") : [])
      node = node?.children.find((child) => encodeURIComponent(child.name) === part);
    return node ?? null;
  }

  choose(weight) {
    this.weight = weight;
    if (this.value(this.focus) === 0) this.focus = this.root;
    state.set("flame.weight", kWeights[weight].key);
    this.draw();
  }

  zoom(node) {
    this.focus = node;
    state.set("flame.zoom", this.pathOf(node));
    this.draw();
    this.rows.querySelector("[aria-current]")?.focus();
  }

  search(wanted, restored = false) {
    this.wanted = wanted.toLowerCase();
    this.matches = new Set();
    if (this.wanted !== "")
      for (const node of nodesBelow(this.root))
        if (node.parent && this.fits(node)) this.matches.add(node);
    this.holds = new Set();  // frames that have a match, or are one
    for (const node of this.matches)
      for (let at = node; at && !this.holds.has(at); at = at.parent) this.holds.add(at);
    if (!restored) state.set("flame.search", wanted);
    if (this.box.value !== wanted) this.box.value = wanted;
    this.draw();
  }
  fits(node) {
    return node.name.toLowerCase().includes(this.wanted) ||
      brief(node.name).toLowerCase().includes(this.wanted);
  }

  // Arrow keys: to the frame above, the widest below, and the neighbours.
  key(event) {
    const node = event.target.node;
    if (event.key === "Escape" && this.focus.parent) return this.zoom(this.focus.parent);
    if (!node) return;
    const drawn = (one) => [...this.rows.children].find((frame) => frame.node === one);
    const level = [...this.rows.children].filter((frame) => frame.node?.depth === node.depth);
    const at = level.findIndex((frame) => frame.node === node);
    const below = [...this.rows.children].filter((frame) => frame.node?.parent === node);
    const next = { ArrowUp: node.parent && drawn(node.parent), ArrowDown: below[0],
                   ArrowLeft: level[at - 1], ArrowRight: level[at + 1] }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  value(node) { return node.weight[kWeights[this.weight].of]; }

  describe(node) {
    const all = this.value(this.root);
    const share = all > 0 ? ` (${human(this.value(node) / all, "share")})` : "";
    return `${human(this.value(node), kWeights[this.weight].kind)}${share}`;
  }

  draw() {
    const { width } = this;
    if (width === 0) return;
    [...this.choices.children].forEach((button, i) =>
      button.setAttribute("aria-pressed", i === this.weight));
    this.back.hidden = this.focus === this.root;
    const frames = (this.focus === this.root ? [] : [this.root, ...this.above(this.focus.parent)])
      .map((node) => this.frame(node, 0, width, "above"));
    this.deepest = this.focus.depth;
    this.place(this.focus, 0, width, frames);
    frames.sort((a, b) => a.depth - b.depth || a.x - b.x);
    this.rows.style.height = `${(this.deepest + 1) * kFrameHeight}px`;
    this.rows.replaceChildren(...frames);
    this.tell(this.focus);
    this.tellMatches();
  }

  // Children side by side, the widest first; those that cannot be seen share one frame.
  place(top, left, width, frames) {
    const work = [[top, left, width]];
    while (work.length > 0) {
      const [node, x, w] = work.pop();
      frames.push(this.frame(node, x, w, ""));
      this.deepest = Math.max(this.deepest, node.depth);
      const total = this.value(node);
      const children = node.children.filter((child) => this.value(child) > 0)
        .sort((a, b) => this.value(b) - this.value(a));
      let at = x;
      for (let i = 0; i < children.length; ++i) {
        const wide = (w * this.value(children[i])) / total;
        if (wide < kLeastWidth) {
          const rest = children.slice(i);
          const sum = rest.reduce((all, child) => all + this.value(child), 0);
          frames.push(this.rest(rest, sum, node.depth + 1, at, (w * sum) / total));
          this.deepest = Math.max(this.deepest, node.depth + 1);
          break;
        }
        work.push([children[i], at, wide]);
        at += wide;
      }
    }
  }

  // In per cent of the width, so that paper of another width has the same picture.
  position(element, depth, x, width) {
    element.depth = depth;
    element.x = x;
    Object.assign(element.style, {
      left: `${((100 * x) / this.width).toFixed(3)}%`,
      top: `${depth * kFrameHeight}px`,
      width: `${((100 * Math.max(1, width - 1)) / this.width).toFixed(3)}%`,
    });
    return element;
  }

  look(...nodes) {
    if (this.wanted === "") return "";
    return nodes.some((node) => this.matches.has(node)) ? "match"
      : nodes.some((node) => this.holds.has(node)) ? "" : "faint";
  }

  frame(node, x, width, extra) {
    const tell = () => this.tell(node);
    const frame = el("button", {
      type: "button",
      className: `frame ${node.leaf ? "leaf " : ""}${extra} ${this.look(node)}`,
      tabindex: node === this.focus ? "0" : "-1",
      title: `${node.name}\n${this.describe(node)}`,
      style: { "--own": phaseColor(node.phase ?? "") },
      on: { click: () => this.zoom(node), mouseenter: tell, focus: tell },
      ...(node === this.focus ? { "aria-current": "true" } : {}),
      ...(width > 24 ? {} : { "aria-label": node.name }),
    }, ...(width > 24 ? [(width > 130 ? cutName : name)(brief(node.name))] : []));
    frame.node = node;
    return this.position(frame, node.depth, x, width);
  }

  rest(nodes, sum, depth, x, width) {
    const text = `${grouped(nodes.length)} narrower: ${human(sum, kWeights[this.weight].kind)}`;
    const className = `frame rest ${this.look(...nodes)}`;
    return this.position(el("div", { className, title: text }), depth, x, width);
  }

  tell(node) {
    const path = this.above(node).map((at) => at.name).join(" \u203a ");
    this.crumb.replaceChildren(el("b", {}, this.describe(node)), "  ",
      name(path || this.root.name));
  }

  // Of all launches: matches inside of matches count once.
  tellMatches() {
    if (this.wanted === "") return this.found.replaceChildren();
    let sum = 0;
    const work = [this.root];
    while (work.length > 0) {
      const node = work.pop();
      if (this.matches.has(node)) sum += this.value(node);
      else for (const child of node.children) work.push(child);
    }
    const all = this.value(this.root);
    this.found.textContent = this.matches.size === 0 ? "no match"
      : `${grouped(this.matches.size)} match${this.matches.size === 1 ? "" : "es"}` +
        (all > 0 ? `, ${human(sum / all, "share")} of ${kWeights[this.weight].label}` : "");
  }
}
