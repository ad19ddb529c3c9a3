// Places for the boxes of the open groups, each level arranged on its own, from the inside out.
// A pure function of model, open groups and the sizes of boxes; levels are kept while nothing in them changes.
import { arrange } from "./arrange.js";
import { extent } from "./curve.js";
import { isCarried, isIn, isOut, level, portFrom, withEach } from "./level.js";
import { withLabels } from "./labels.js";
import { HEAD, taller } from "./sizes.js";
import { stretched } from "./stretch.js";

export const PAD = 18;
/** The heading of what is drawn once has a strip of its rounds. */
export const STRIP = 22;

/** No open group is narrower, so that its title has room. */
const NARROWEST = 168;

/** A level with more lines than this shows their gradients in the panel only. */
const MOST_LABELS = 40;
/** So does a wider one that is narrower by a third without them. */
const WIDE = 1200;

/** A level that is wider than a window beside the code says less in its boxes, where it fits then. */
const [ROOM, BESIDE, SHORTENED] = [640, 560, 176];

export class Layouts {
  /**
   * @param {(box) => {width: number, height: number}} sizeOf the size of a box that is not open
   * @param {(bundle) => number} labelOf the width of what stands beside a line
   */
  constructor(model, sizeOf, labelOf) {
    this.model = model;
    this.sizeOf = sizeOf;
    this.labelOf = labelOf;
    this.levels = new Map();
    this.forget();
  }

  /** Place everything anew: what stands beside the lines has changed. */
  forget() {
    this.bases = new Map();
    this.placed = new Map();
  }

  /** The whole drawing with these groups open: the placed level of group 0. */
  whole(open) {
    return this._place(0, open, this.model.templates.cast(open));
  }

  // The depth of this recursion is the depth of nested modules that a person has opened.
  _place(group, open, cast, order = []) {
    const shut = this._base(group, cast, order);
    // There is room for what is open in levels that flow down.
    const base = shut.isFolded && shut.boxes.some((box) => open.has(box.group)) ? this._base(group, cast, order, true) : shut;
    const inner = new Map();
    for (const { key, group: child } of base.boxes) if (child !== undefined && open.has(child)) inner.set(key, this._place(child, open, cast, comingTo(key, base)));
    const signature = [...inner].map(([key, { width, height }]) => `${key} ${width}x${height}`).join();
    let known = this.placed.get(group);
    if (known?.signature !== signature || known.base !== base) {
      known = { signature, base, ...framed(inner.size ? stretched(base, inner) : base, headOf(group, cast)) };
      this.placed.set(group, known);
    }
    return { ...known, boxes: known.boxes.map((box) => ({ ...box, inner: inner.get(box.key) ?? null })) };
  }

  /** Do what takes longest for a group that will be opened. */
  prepare(group, open) {
    this._base(group, this.model.templates.cast(open));
  }

  /** The level while all in it is closed, with ports above in an order. */
  _base(group, cast, order = [], isFlat = false) {
    // What is in a group hangs on the repeats around it that are drawn once.
    const name = [group, isFlat, ...order, "", ...cast.repeats(group), "", ...cast.childrenOf(group).filter((child) => cast.at.has(child))].join();
    if (!this.bases.has(name)) {
      if (!this.levels.has(name)) this.levels.set(name, level(cast, group));
      const { boxes, bundles } = this.levels.get(name);
      const sized = boxes.map((box) => ({ ...box, ...this.sizeOf(box) }));
      const placed = (bundles, most = Infinity) => arrange(sized.map((box) => ({ ...box, width: Math.min(box.width, Math.max(most, box.least || 0)) })), bundles, order, isFlat);
      const labelled = this._labelled(bundles);
      const whole = placed(labelled);
      const room = Math.max(ROOM, innerWidth - BESIDE);
      const mayFit = across(whole) > room && across(whole) < 1.5 * room && sized.some(({ width }) => width > SHORTENED);
      const narrow = mayFit ? placed(labelled, SHORTENED) : whole;
      const base = across(narrow) <= room ? narrow : whole;
      const plain = labelled !== bundles && across(base) > WIDE ? placed(bundles) : base;
      this.bases.set(name, across(plain) * 1.5 < across(base) ? plain : base);
    }
    return this.bases.get(name);
  }

  /** Lines with room for their gradients, where there are few enough to be read. */
  _labelled(bundles) {
    if (bundles.length > MOST_LABELS) return bundles;
    // Where all that comes in there goes to one place, the line outside has said it.
    const isSaid = ({ from }) => isIn(from) && bundles.filter((one) => one.from === from).length === 1;
    return bundles.map((bundle) => (bundle.wall !== undefined || (isSaid(bundle) && !isCarried(bundle)) ? bundle : { ...bundle, room: this.labelOf(bundle) }));
  }
}

/** The ports of what comes to a box, from left to right. */
const comingTo = (key, { bundles }) => bundles.filter(({ to }) => to === key).sort((a, b) => a.points.at(-1).x - b.points.at(-1).x).map(({ from }) => portFrom(from));

/** What is above the boxes of a group: its heading, and the strip of its rounds where it is drawn once. */
const headOf = (group, cast) => (group === 0 ? PAD : HEAD + PAD / 2 + (cast.at.has(group) ? STRIP + taller(cast.model, 16) : 0));

/** The level with its borders: places from its top left corner, and its size. */
function framed({ boxes, bundles, ports }, above) {
  const { top, bottom } = bounds({ boxes, bundles });
  const [from, to] = [top - above, bottom + PAD];
  const placed = { boxes, bundles: withLabels(bundles.map((bundle) => toBorder(bundle, ports, from, to)), boxes, from, to) };
  const { left, right } = bounds(placed);
  const width = Math.max(right - left + 2 * PAD, NARROWEST);
  const shift = { x: (width - (right - left)) / 2 - left, y: -from };
  const move = (point) => ({ ...point, x: point.x + shift.x, y: point.y + shift.y });
  return {
    width,
    height: to - from,
    ports: new Map([...ports].map(([key, x]) => [key, x + shift.x])),
    boxes: placed.boxes.map(move),
    bundles: placed.bundles.map((bundle) => ({ ...bundle, label: bundle.label && move(bundle.label), points: bundle.points.map(move) })),
  };
}

/** What crosses the border of a group does so at a port of its own, so that each line goes on as itself. */
function toBorder(bundle, ports, top, bottom) {
  const points = [...bundle.points];
  if (isIn(bundle.from)) points[0] = { x: ports.get(bundle.from), y: top };
  if (isOut(bundle.to)) points[points.length - 1] = { x: ports.get(bundle.to), y: bottom };
  return { ...bundle, points };
}

const across = (placed, { left, right } = bounds(placed)) => right - left;

function bounds({ boxes, bundles }) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  const include = (x, y, width = 0, height = 0) => {
    left = Math.min(left, x);
    right = Math.max(right, x + width);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y + height);
  };
  for (const { x, y, width, height } of boxes) include(x, y, width, height);
  for (const { points, label, room } of bundles) {
    for (const { x, y } of points) include(x, y);
    if (label) include(label.isLeft ? label.x - room : label.x, label.y, room);
  }
  return left > right ? { left: 0, right: 0, top: 0, bottom: 0 } : { left, right, top, bottom };
}

/** Every box and bundle with absolute places, parents before what is in them. */
export function flatten(whole, cast, layerOf) {
  const boxes = [];
  const bundles = [];
  const waiting = [{ placed: whole, x: 0, y: 0, depth: 0, around: null }];
  for (const { placed, x, y, depth, around } of waiting) {
    for (const each of placed.boxes) {
      const box = withEach(each, cast, layerOf);
      const here = { ...box, x: box.x + x, y: box.y + y, depth, around, open: box.inner !== null };
      boxes.push(here);
      if (box.inner) waiting.push({ placed: box.inner, x: here.x, y: here.y, depth: depth + 1, around: here.key });
    }
    for (const each of placed.bundles) {
      const bundle = withEach(each, cast, layerOf);
      // No line of this round.
      if (bundle.each?.length === 0) continue;
      const move = (p) => ({ ...p, x: p.x + x, y: p.y + y });
      const points = bundle.points.map(move);
      bundles.push({ ...bundle, around, key: `e${around ?? ""}>${bundle.from}>${bundle.to}`, label: bundle.label && move(bundle.label), points, extent: extent(points) });
    }
  }
  return { boxes, bundles, width: whole.width, height: whole.height };
}
