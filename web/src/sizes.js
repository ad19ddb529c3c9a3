// How large boxes must be for what they say.
import { dotted, shorten, visible } from "./format.js";
import { withEach } from "./level.js";
import { font, widthOf } from "./text.js";
import { apartWords, boxWords, flowWords, hasRounds, inRound, markWords, moreWords, roundName, seedWords, wallWords } from "./words.js";

/** Pixels of an open group's heading, and of the bars in the box of a node that stands for several. */
export const HEAD = 26;
const BARS = 14;
/** What is said of gradients that meet in a box has a line of its own, and a strip where it stands for several. */
const WORDS = 14;
const SHARES = 9;
/** Pixels of each of several calls in a strip, and of all of them. */
const [CALL, MOST_TALL] = [5, 40];

const CLOSED = { width: 176, height: 44 };
/** A closed repeat shows the norm of every round. */
const REPEAT = { width: 232, height: 66 };
const WIDEST = 300;
/** A loop of so many rounds is a timeline. */
const LONG = 48;
const TIMELINE = { width: 440, height: 106 };

/** Whether a closed group is drawn as a timeline of its rounds. */
export const isLong = (model, { group, bars }) => !bars && model.group(group).kind === "repeat" && model.group(group).count > LONG;

/** By how much strips are taller that tell of several calls. */
export const taller = (model, height) => Math.max(model.isPair ? 0 : Math.min(CALL * model.data.passes.length, MOST_TALL) - height, 0);

/** What stands at both ends of the strip of an open repeat, its first and its last round; nothing where they have no names of their own, or no room. */
export function endsOf(model, { bars, width }) {
  const names = [bars[0], bars.at(-1)].map((one) => one && roundName(model, one));
  return names.every((name) => name && widthOf(name, LABEL) < width / 6) && names[0] !== names[1] ? names : ["", ""];
}

/** Where a box has its strip, from its corner; null where it has none. */
export function stripOf(model, box) {
  const at = (x, y, height) => ({ x, y, width: box.width - 2 * x, height: height + taller(model, height) });
  if (box.open) return box.bars ? at(10 + Math.max(...endsOf(model, box).map((name) => widthOf(name, LABEL) + 5)), HEAD - 3, 16) : null;
  if (box.group !== undefined) return hasStrip(model, box) ? at(10, 25 + callOf(model, box).height, (isLong(model, box) ? TIMELINE : REPEAT).height - 46) : null;
  return box.bars ? at(14, box.height - BARS - taller(model, BARS) - 4, BARS) : null;
}

/** Whether a box has a line on what meets there, in any pass. */
export const hasMeeting = (model, box) => model.isMeeting(box.bars ?? [box]) || apartWords(model, box) !== "";

export const hasStrip = (model, box) => Boolean(box.bars) || hasRounds(model, box.group);

export const TITLE = font(12, 600);
export const LABEL = font(11);

/** What stands behind the name of a closed group that the verdict is about. */
export function groupMark(model, box) {
  const mark = markWords(model, box);
  return mark && ` · ${mark}`;
}

/** The line of a closed module that calls it, where nothing else tells which it is, and its height. */
export function callOf(model, box) {
  const { called } = boxWords(model, box.each ? box : withEach(box));
  return { called, height: called ? WORDS : 0 };
}

/** The lines of a node's box: its name, the user's words, its size. */
export function linesOf(model, box) {
  const { node, bars } = box;
  const mark = markWords(model, box);
  return {
    title: shorten(visible(bars ? inRound(model, node) : model.title(node)), 40, model.isLeaf(node)) + (mark && ` · ${mark}`),
    label: shorten(visible(model.label(node)), 60),
    shape: model.shape(node).replace(/ float32$/, ""),
  };
}

export const sizeOf = (model) => (box) => {
  if (box.wall !== undefined) return { width: Math.ceil(widthOf(wallWords(model, box.wall), LABEL)) + 20, height: 24 };
  if (box.seed !== undefined) return { width: Math.ceil(widthOf(seedWords(model, box.seed), LABEL)) + 12, height: 18 };
  const meets = hasMeeting(model, box);
  if (box.group !== undefined) {
    const isTall = hasStrip(model, box);
    const { width: least, height } = isLong(model, box) ? TIMELINE : isTall ? REPEAT : CLOSED;
    const { name, type, called, times, size } = boxWords(model, withEach(box));
    const marked = Math.ceil(widthOf(groupMark(model, box), TITLE));
    const title = Math.ceil(widthOf(name + times, TITLE)) + 48 + marked;
    const width = Math.min(Math.max(least, title + Math.ceil(widthOf(`${type} ${isTall ? "" : size}`, LABEL)), Math.ceil(widthOf(called, LABEL)) + 34), Math.max(least, WIDEST + marked));
    return { width, least: marked && title, height: height + (called ? WORDS : 0) + (meets ? WORDS : 0) + (height > CLOSED.height ? taller(model, 20) : 0) };
  }
  const { title, label, shape } = linesOf(model, box);
  const size = model.isSpread || box.bars ? "‖g‖ 0.0001234 … 0.0001234" : model.isPair ? "A 0.0001234 · B 0.1234  ≥12.3%" : "‖g‖ 0.0001234";
  const width = Math.max(widthOf(title, TITLE), widthOf(label, LABEL), widthOf(`${shape}   ${size}`, LABEL), meets ? widthOf(MEETING, LABEL) : 0);
  return { width: Math.ceil(Math.min(width, WIDEST)) + 24, height: (label ? 52 : 38) + (meets ? WORDS + (box.bars ? SHARES : 0) : 0) + (box.bars ? BARS + taller(model, BARS) + 6 : 0) };
};

/** The width of what stands beside a line. */
export const labelOf = (model) => (bundle) => Math.ceil(widthOf(bundle.bars ? dotted(RANGE, ...moreWords(model, withEach(bundle))) : flowWords(model, bundle), LABEL)) + 8;
const MEETING = "2 gradients cancel 99.99 %";
/** Room for what is said of several layers, which is found when it is seen. */
const RANGE = "0.0001234–0.0001234";
