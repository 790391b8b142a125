// What a word means, beside it while it is pointed at or has the focus; Escape hides it.
const tipBox = el("div", { className: "meaning", role: "tooltip", id: "meaning" });
tipBox.hidden = true;

function showMeaning(node, text) {
  tipBox.textContent = text;
  tipBox.hidden = false;
  const box = node.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - tipBox.offsetWidth - 8);
  const below = box.bottom + 6 + tipBox.offsetHeight < window.innerHeight;
  tipBox.style.left = `${Math.max(8, left)}px`;
  tipBox.style.top = `${below ? box.bottom + 6 : box.top - tipBox.offsetHeight - 6}px`;
}
const hideMeaning = () => (tipBox.hidden = true);

// `node` takes the focus, or is inside of what does.
function explain(node, text) {
  if (!text) return node;
  node.setAttribute("aria-description", text);
  node.addEventListener("pointerenter", () => showMeaning(node, text));
  node.addEventListener("focusin", () => node.matches(":focus-visible") && showMeaning(node, text));
  for (const event of ["pointerleave", "focusout", "click"])
    node.addEventListener(event, hideMeaning);
  return node;
}
document.addEventListener("keydown", (event) => event.key === "Escape" && hideMeaning());
document.addEventListener("scroll", hideMeaning, true);
