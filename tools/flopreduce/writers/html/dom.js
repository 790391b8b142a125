// Elements. Text only ever becomes a text node: nothing here or elsewhere parses markup.
function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  const { className, on, ...attributes } = options;
  if (className) node.className = className;
  for (const [event, handler] of Object.entries(on ?? {})) node.addEventListener(event, handler);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// A name from the traced program: its direction cannot spill into what is beside it.
function name(text) {
  const node = document.createElement("bdi");
  node.textContent = text;
  return node;
}

// A coloured square and what it means.
function legendEntry(color, label) {
  const dot = el("i", { className: "dot" });
  dot.style.background = color;
  return el("span", {}, dot, name(label));
}
const legend = (entries) =>
  el("span", { className: "legend" }, ...entries.map((entry) => legendEntry(...entry)));
