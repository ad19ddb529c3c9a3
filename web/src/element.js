// The one way in which the page makes elements: text is text, never markup, and nothing in it acts.
import { harmless } from "./format.js";

/** An element with text or children; attributes that are null are left out. */
export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  const { text, on, ...attributes } = options;
  if (text !== undefined) made.textContent = harmless(String(text));
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  for (const [name, listener] of Object.entries(on ?? {})) made.addEventListener(name, listener);
  made.append(...children.filter(Boolean));
  return made;
}

/** Words, by a class what they are. */
export const span = (name, text, ...children) => element("span", { class: name, text }, ...children);

/** Words that lead somewhere. */
export const link = (text, click, ...children) => element("button", { class: "link", text, on: { click } }, ...children);

/** An event that means nothing to anybody else. */
export function taken(event) {
  event.preventDefault();
  event.stopPropagation();
}

/** Words beside what matters more. */
export const faint = (tag, text) => element(tag, { class: "faint", text });

/** A path, which breaks where its parts end, and not before the number of a line. */
export const inParts = (text) => harmless(text).split(/(?<=[.:/])(?!(?:\w+:)?\d+$)/).flatMap((part) => [part, element("wbr")]);

/** Another task: meanwhile the page answers. */
export const pause = () => new Promise((done) => setTimeout(done));

let life = new AbortController();

/** Hear of events of the window and the like, for as long as one graph is shown. */
export const hear = (target, name, listener) => target.addEventListener(name, listener, { signal: life.signal });

/** Another graph is shown from now on. */
export function forgetListeners() {
  life.abort();
  life = new AbortController();
}

/** An element of a drawing. */
export function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}
