// Cards that fold, and the list of them beside the page. A card's inside is made when it is opened
// for the first time.
class Card {
  // `fill(body, tools)` makes the inside; `tools` are in the card's first line.
  constructor(key, title, fill, isOpen) {
    this.key = key;
    this.title = title;
    this.fill = fill;
    this.usuallyOpen = isOpen;
    this.body = el("div", { className: "body" });
    this.element = el("details", { className: "card", id: key },
      el("summary", {}, el("h2", {}, name(title))), this.body);
    const click = (event) => {
      event.preventDefault();
      this.go();
    };
    this.link = el("a", { href: `#${key}`, on: { click } },
      name(title.split(", of ")[0]));
    const asked = state.list("open").includes(key) || state.get("at") === key;
    this.open(asked || (isOpen && !state.list("closed").includes(key)));
    this.element.addEventListener("toggle", () => this.toggled());
  }

  open(wanted = true) {
    if (wanted) this.make();
    this.element.open = wanted;
  }

  make() {
    if (!this.fill) return;
    const tools = el("div", { className: "tools" });
    const { fill } = this;
    this.fill = null;
    fill(this.body, tools);
    if (tools.childElementCount > 0) this.body.prepend(tools);
  }

  toggled() {
    const { open } = this.element;
    if (open) this.make();
    state.mark("open", this.key, open && !this.usuallyOpen);
    state.mark("closed", this.key, !open && this.usuallyOpen);
  }

  go() {
    this.open();
    this.element.scrollIntoView({ block: "start" });
    this.element.querySelector("summary").focus({ preventScroll: true });
    state.set("at", this.key);
  }
}

// On a narrow page the list is folded. Cards that are folded at first are folded in the list, too,
// where they are many.
const kFewFolded = 3;
function contentsList(cards) {
  const all = (open) => () => cards.forEach((card) => card.open(open));
  const linksTo = (some) => el("ol", {}, ...some.map((card) => el("li", {}, card.link)));
  const rest = cards.filter((card) => !card.usuallyOpen);
  const apart = rest.length > kFewFolded;
  const more = apart ? [el("details", { className: "contents-more" },
    el("summary", {}, `${rest.length} more`), linksTo(rest))] : [];
  const list = el("details", { className: "contents-list" }, el("summary", {}, "Contents"),
    linksTo(apart ? cards.filter((card) => card.usuallyOpen) : cards), ...more,
    el("div", { className: "folding" }, button("Open all", all(true)),
      button("Fold all", all(false))));
  list.open = matchMedia("(min-width: 1180px)").matches;
  follow(cards);
  return el("nav", { className: "contents", "aria-label": "contents" }, list);
}

// Marks the card that is read.
function follow(cards) {
  const inView = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries)
      inView[isIntersecting ? "add" : "delete"](target);
    let marked = false;
    for (const { element, link } of cards) {
      const reads = !marked && inView.has(element);
      marked ||= reads;
      if (reads) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "0px 0px -60% 0px" });
  for (const { element } of cards) watch.observe(element);
}
