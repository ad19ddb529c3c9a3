// How large boxes must be for what they say.
import { shorten, visible } from "./format.js";
import { font, widthOf } from "./text.js";
import { flowWords, inRound, seedWords } from "./words.js";

/** Pixels of an open group's heading, and of the bars in the box of a node that stands for several. */
export const HEAD = 26;
const BARS = 14;

const CLOSED = { width: 176, height: 44 };
/** A closed repeat shows the norm of every round. */
const REPEAT = { width: 232, height: 66 };
const WIDEST = 300;

/** A module of so many parts is told by a strip of them, as a repeat is. */
const MANY_PARTS = 10;
/** And so is one of so many parts of one class. */
const FEW_EQUAL = 3;

/** Whether a closed group shows its rounds: a repeat, a part of a long one, or a module of many parts, or of parts of one class. */
export function hasRounds(model, group) {
  if (["repeat", "part"].includes(model.group(group).kind)) return true;
  const rounds = model.rounds(group);
  if (rounds[0]?.group === undefined) return false;
  const types = new Set(rounds.map((round) => model.group(round.group).type));
  return rounds.length >= MANY_PARTS || (rounds.length >= FEW_EQUAL && types.size === 1 && !types.has(""));
}

/** Where a box has its strip, from its corner; null where it has none. */
export function stripOf(model, box) {
  const width = box.width - 20;
  if (box.open) return box.bars ? { x: 10, y: HEAD - 3, width, height: 16 } : null;
  if (box.group !== undefined) return hasStrip(model, box) ? { x: 10, y: 25, width, height: 20 } : null;
  return box.bars ? { x: 14, y: box.height - BARS - 4, width: box.width - 28, height: BARS } : null;
}

export const hasStrip = (model, box) => Boolean(box.bars) || hasRounds(model, box.group);

export const TITLE = font(12, 600);
export const LABEL = font(11);
export const SMALL = font(10);

/** The lines of a node's box: its name, the user's words, its size. */
export function linesOf(model, { node, bars }) {
  return {
    title: shorten(visible(bars ? inRound(model, node) : model.title(node)), 40, model.isLeaf(node)),
    label: shorten(visible(model.label(node)), 60),
    shape: model.shape(node).replace(/ float32$/, ""),
  };
}

export const sizeOf = (model) => (box) => {
  if (box.seed !== undefined) return { width: Math.ceil(widthOf(seedWords(model, box.seed), LABEL)) + 12, height: 18 };
  if (box.group !== undefined) return hasStrip(model, box) ? REPEAT : CLOSED;
  const { title, label, shape } = linesOf(model, box);
  const size = model.isSpread || box.bars ? "‖g‖ 0.0001234 … 0.0001234" : "‖g‖ 0.0001234";
  const width = Math.max(widthOf(title, TITLE), widthOf(label, LABEL), widthOf(`${shape}   ${size}`, SMALL));
  return { width: Math.ceil(Math.min(width, WIDEST)) + 24, height: (label ? 52 : 38) + (box.bars ? BARS + 6 : 0) };
};

/** The width of what stands beside a line. */
export const labelOf = (model) => (bundle) => Math.ceil(widthOf(bundle.bars ? RANGE : flowWords(model, bundle), SMALL)) + 8;
/** Room for what is said of several layers, which is found when it is seen. */
const RANGE = "0.0001234–0.0001234";
