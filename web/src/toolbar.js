// What moves the drawing: zoom, a menu, where the selected thing is, and what was just done.
import { element, faint, hear, link } from "./element.js";
import { savePng, saveSvg } from "./saving.js";
import { boxWords } from "./words.js";

/** Milliseconds that a message stays. */
const READ = 8000;

export function toolbar(viewer, above) {
  const button = (text, name, click) => element("button", { text, "aria-label": name, title: name, on: { click } });
  return element(
    "div", { class: "tools", role: "toolbar", "aria-label": "View" },
    above,
    button("−", "zoom out (-)", () => viewer.zoomAt(0.8)),
    button("+", "zoom in (+)", () => viewer.zoomAt(1.25)),
    button("Fit", "Fit all that is drawn (F)", () => viewer.fit()),
    menu(viewer),
    // On a narrow screen the facts are below, and either they or the graph have most of the room.
    element("button", { class: "narrow", text: "Facts", "aria-pressed": "false", title: "more room for the facts", on: { click: ({ currentTarget }) => (currentTarget.ariaPressed = document.body.classList.toggle("facts")) } }),
  );
}

function menu(viewer) {
  const actions = [
    ["Open all", "E", () => viewer.openAll()],
    ["Close all", "C", () => viewer.shutAll()],
    ["Undo", "Ctrl+Z", () => viewer.undo()],
    ["Save this view as SVG", "", () => saveSvg(viewer)],
    ["Save this view as PNG", "", () => savePng(viewer)],
    ["Copy a link to this view", "", () => viewer.copy(viewer.link(), "The link to this view is copied.")],
  ];
  const details = element("details", { class: "menu", on: { keydown: (event) => event.key === "Escape" && shut(event), focusout: (event) => event.relatedTarget && shutBut(event.relatedTarget) } });
  const shutBut = (where) => details.contains(where) || (details.open = false);
  hear(window, "pointerdown", (event) => shutBut(event.target));
  const shut = (event) => {
    event.stopPropagation();
    details.open = false;
    details.firstChild.focus();
  };
  const items = actions.map(([text, key, act]) =>
    element("button", { on: { click: () => { details.open = false; act(); } } }, element("span", { text }), key ? element("kbd", { text: key }) : null),
  );
  details.append(element("summary", { "aria-label": "More: open and close all, undo, save", title: "open and close all, undo, save", text: "More" }), element("div", {}, ...items));
  return details;
}

/** The groups around what is selected, the outermost first; each can be gone to. */
export class Crumbs {
  constructor(viewer) {
    this.viewer = viewer;
    this.element = element("nav", { class: "crumbs", "aria-label": "Groups around the selection", hidden: "" });
  }

  show(thing) {
    const { model, cast, boxes } = this.viewer;
    const around = groupAround(cast, thing);
    const chain = around === null ? [] : cast.around(around).reverse().slice(1);
    const name = (group) => boxWords(model, boxes.get(`g${group}`) ?? { group }).name;
    this.element.replaceChildren(...chain.flatMap((group, i) => [i ? faint("span", "›") : null, link(name(group), () => this.viewer.goTo(`g${group}`))]).filter(Boolean));
    this.element.hidden = !chain.length;
  }
}

function groupAround(cast, thing) {
  if (!thing || thing.isEnd) return null;
  if (thing.edges) return thing.around ? Number(thing.around.slice(1)) : null;
  const id = Number(thing.key.slice(1));
  return thing.node === undefined ? cast.parent[id] : cast.owner[id];
}

/** A line that says what was done, or why not, for a while. */
export class Status {
  constructor() {
    this.element = element("p", { class: "status", role: "status" });
  }

  say(text) {
    clearTimeout(this.timer);
    this.element.textContent = text;
    this.timer = setTimeout(() => (this.element.textContent = ""), READ);
  }
}
