// How large boxes must be for what they say.
import { shorten, visible } from "./format.js";
import { font, widthOf } from "./text.js";
import { flowWords, seedWords } from "./words.js";

const CLOSED = { width: 176, height: 44 };
/** A closed repeat shows the norm of every round. */
const REPEAT = { width: 232, height: 66 };
const WIDEST = 300;

/** A module of so many parts is told by a strip of them, as a repeat is. */
const MANY_PARTS = 10;

/** Whether a closed group shows its rounds: a repeat, a part of a long one, or a module of many parts. */
export function hasRounds(model, group) {
  if (["repeat", "part"].includes(model.group(group).kind)) return true;
  const rounds = model.rounds(group);
  return rounds.length >= MANY_PARTS && rounds[0].group !== undefined;
}

export const TITLE = font(12, 600);
export const LABEL = font(11);
export const SMALL = font(10);

/** The lines of a node's box: its name, the user's words, its size. */
export function linesOf(model, node) {
  return {
    title: shorten(visible(model.title(node)), 40, model.isLeaf(node)),
    label: shorten(visible(model.label(node)), 60),
    shape: model.shape(node).replace(/ float32$/, ""),
  };
}

export const sizeOf = (model) => (box) => {
  if (box.seed !== undefined) return { width: Math.ceil(widthOf(seedWords(model, box.seed), LABEL)) + 12, height: 18 };
  if (box.group !== undefined) return hasRounds(model, box.group) ? REPEAT : CLOSED;
  const { title, label, shape } = linesOf(model, box.node);
  const size = model.isSpread ? "‖g‖ 0.0001234 … 0.0001234" : "‖g‖ 0.0001234";
  const width = Math.max(widthOf(title, TITLE), widthOf(label, LABEL), widthOf(`${shape}   ${size}`, SMALL));
  return { width: Math.ceil(Math.min(width, WIDEST)) + 24, height: label ? 52 : 38 };
};

/** The width of what stands beside a line. */
export const labelOf = (model) => (bundle) => Math.ceil(widthOf(flowWords(model, bundle), SMALL)) + 8;
