// FLOP, time or launches by range path and kernel: each frame as wide as its share, the outermost range on top. A click
// zooms in, a click on a frame above or Escape zooms out. Frames too narrow to see are drawn as one, so the number of
// elements is bounded by the width of the page.
const kFrameHeight = 23;
const kLeastWidth = 3;  // pixels
const kWeights = [
  { key: "flop", label: "FLOP", kind: "flop" },
  { key: "time", label: "GPU time", kind: "ns" },
  { key: "launches", label: "launches", kind: "count" },
];

// Rows [depth, name index, 1 for a kernel, FLOP, time in ns, launches] in preorder become nodes with children.
function readTree(tree) {
  const root = { name: "all launches", depth: 0, leaf: false, children: [], parent: null, weight: [0, 0, 0] };
  const open = [root];
  for (const [depth, nameIndex, leaf, ...weight] of tree.nodes) {
    open.length = Math.min(open.length, depth);
    const parent = open[open.length - 1];
    const node = { name: tree.names[nameIndex], depth: open.length, leaf: leaf === 1, children: [], parent, weight };
    parent.children.push(node);
    open.push(node);
  }
  for (const child of root.children) child.weight.forEach((value, i) => (root.weight[i] += value));
  return root;
}

class FlameView {
  constructor(tree) {
    this.root = this.focus = readTree(tree);
    this.weight = this.root.weight[0] > 0 ? 0 : this.root.weight[1] > 0 ? 1 : 2;
    this.rows = el("div", { className: "flame-rows" });
    this.element = el("div", { className: "flame", role: "group", "aria-label": "FLOP by range and kernel" }, this.rows);
    this.crumb = el("div", { className: "crumb", role: "status" });
    this.choices = el("div", { className: "choices", role: "group", "aria-label": "width of frames" },
      ...kWeights.map((weight, i) =>
        el("button", { type: "button", "data-weight": weight.key, on: { click: () => this.choose(i) } }, weight.label)));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.focus.parent) this.zoom(this.focus.parent);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  choose(weight) {
    this.weight = weight;
    if (this.focus.weight[weight] === 0) this.focus = this.root;
    this.draw();
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    this.rows.querySelector("[aria-current]")?.focus();
  }

  value(node) { return node.weight[this.weight]; }

  describe(node) {
    const share = this.value(this.root) > 0 ? ` (${human(this.value(node) / this.value(this.root), "share")})` : "";
    return `${human(this.value(node), kWeights[this.weight].kind)}${share}`;
  }

  draw() {
    const width = this.element.clientWidth;
    if (width === 0) return;
    [...this.choices.children].forEach((button, i) => button.setAttribute("aria-pressed", i === this.weight));
    const frames = [];
    const above = [];
    for (let node = this.focus.parent; node; node = node.parent) above.unshift(node);
    for (const node of above) frames.push(this.frame(node, 0, width, "above"));
    this.deepest = this.focus.depth;
    this.place(this.focus, 0, width, frames);
    this.rows.style.height = `${(this.deepest + 1) * kFrameHeight}px`;
    this.rows.replaceChildren(...frames);
    this.tell(this.focus);
  }

  // Children side by side, the widest first; those that cannot be seen share one frame.
  place(top, left, width, frames) {
    const work = [[top, left, width]];
    while (work.length > 0) {
      const [node, x, w] = work.pop();
      frames.push(this.frame(node, x, w, ""));
      this.deepest = Math.max(this.deepest, node.depth);
      const total = this.value(node);
      const children = node.children.filter((child) => this.value(child) > 0).sort((a, b) => this.value(b) - this.value(a));
      let at = x;
      for (let i = 0; i < children.length; ++i) {
        const wide = (w * this.value(children[i])) / total;
        if (wide < kLeastWidth) {
          const rest = children.slice(i);
          const sum = rest.reduce((all, child) => all + this.value(child), 0);
          frames.push(this.rest(rest.length, sum, node.depth + 1, at, (w * sum) / total));
          this.deepest = Math.max(this.deepest, node.depth + 1);
          break;
        }
        work.push([children[i], at, wide]);
        at += wide;
      }
    }
  }

  position(element, depth, x, width) {
    element.style.left = `${x.toFixed(2)}px`;
    element.style.top = `${depth * kFrameHeight}px`;
    element.style.width = `${Math.max(1, width - 1).toFixed(2)}px`;
    return element;
  }

  frame(node, x, width, extra) {
    let shade = 0;
    for (let i = 0; i < node.name.length; ++i) shade = (shade * 31 + node.name.charCodeAt(i)) >>> 0;
    const button = el("button", {
      type: "button",
      className: `frame ${node.leaf ? "leaf " : ""}shade${shade % 3} ${extra}`,
      title: `${node.name}\n${this.describe(node)}`,
      on: { click: () => this.zoom(node), mouseenter: () => this.tell(node), focus: () => this.tell(node) },
    });
    if (node === this.focus) button.setAttribute("aria-current", "true");
    if (width > 24) button.append(name(node.name));
    else button.setAttribute("aria-label", node.name);
    return this.position(button, node.depth, x, width);
  }

  rest(count, sum, depth, x, width) {
    const text = `${grouped(count)} narrower: ${human(sum, kWeights[this.weight].kind)}`;
    return this.position(el("div", { className: "frame rest", title: text }), depth, x, width);
  }

  tell(node) {
    const path = [];
    for (let at = node; at.parent; at = at.parent) path.unshift(at.name);
    this.crumb.replaceChildren(el("b", {}, this.describe(node)), "  ", name(path.length > 0 ? path.join(" \u203a ") : this.root.name));
  }
}
