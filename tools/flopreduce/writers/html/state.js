// What the reader has chosen, kept in the page's address behind "#", so that a link to the page
// shows the same: "#at=kernels&kernels.sort=-flop&flame.search=conv". A name of a section without
// "=" is the section: "#kernels".
class PageState {
  constructor() {
    const text = location.hash.slice(1);
    const at = text === "" || text.includes("=") ? "" : "at=";
    this.values = new Map(new URLSearchParams(at + text));
    this.timer = null;
    window.addEventListener("hashchange", () => location.reload());
  }

  get(key) { return this.values.get(key) ?? null; }

  // null or "" forgets.
  set(key, value) {
    if (value === null || value === "") this.values.delete(key);
    else this.values.set(key, value);
    // Browsers take no more than a few changes of an address in a second.
    this.timer ??= setTimeout(() => this.write(), 200);
  }

  write() {
    this.timer = null;
    const text = new URLSearchParams([...this.values]).toString();
    history.replaceState(null, "", text === "" ? location.pathname : `#${text}`);
  }

  list(key) { return (this.get(key) ?? "").split(",").filter((word) => word !== ""); }
  // Puts a word into a list, or takes it out.
  mark(key, word, there) {
    const words = this.list(key).filter((one) => one !== word);
    this.set(key, (there ? [...words, word] : words).join(","));
  }
}
const state = new PageState();

// The kernel that the reader has chosen: tables and charts mark it together.
const kernelChoice = {
  name: null,
  listeners: [],
  listen(listener) { this.listeners.push(listener); },
  choose(kernel) {
    this.name = kernel;
    state.set("kernel", kernel);
    for (const listener of this.listeners) listener(kernel);
  },
};
