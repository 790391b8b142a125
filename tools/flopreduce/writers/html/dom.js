// Elements. Text only ever becomes a text node: nothing here or elsewhere parses markup.
function fill(node, { className, on, style, ...attributes }, children) {
  if (className) node.setAttribute("class", className);
  for (const [event, handler] of Object.entries(on ?? {})) node.addEventListener(event, handler);
  for (const [key, value] of Object.entries(style ?? {})) node.style.setProperty(key, value);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const el = (tag, options = {}, ...children) =>
  fill(document.createElement(tag), options, children);
const svg = (tag, options = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), options, children);

// A name from the traced program: its direction cannot spill into what is beside it.
const name = (text) => el("bdi", {}, text);

// The same, cut in the middle where there is no room: what tells names apart is often at their end.
const kTail = 14, kWorthCutting = 24;
const cutName = (text) => (text.length < kWorthCutting ? name(text)
  : el("bdi", { className: "cut" }, el("span", {}, text.slice(0, -kTail)),
    el("span", {}, text.slice(-kTail))));

// Calls action(box) when the element has another size, and once at first. It does so in the next
// frame: what is drawn may change sizes again, which browsers report as an error where it is done
// at once.
const onResize = (element, action) =>
  new ResizeObserver(([entry]) =>
    requestAnimationFrame(() => action(entry.contentRect))).observe(element);

const button = (label, action, options = { className: "button" }) =>
  el("button", { type: "button", on: { click: action }, ...options }, label);

// A box to search in.
const searchBox = (placeholder, label, action) =>
  el("input", { className: "filter", type: "search", placeholder, "aria-label": label,
                on: { input: (event) => action(event.target.value) } });

// A coloured square, and what colours mean.
const dot = (color) => el("i", { className: "dot", style: { background: color } });
const legend = (entries) => el("span", { className: "legend" },
  ...entries.map(([color, label]) => el("span", {}, dot(color), name(label))));
