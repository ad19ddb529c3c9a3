// Places for the boxes of the open groups, each level laid out on its own, from the inside out.
// A pure function of model, open groups and the sizes of boxes; levels are kept while nothing in them changes.
import dagre from "@dagrejs/dagre";
import { crossing, extent } from "./curve.js";
import { IN, OUT, level } from "./level.js";

export const PAD = 18;
export const HEAD = 26;
const GAP = { nodesep: 22, ranksep: 34 };

/** Above this many boxes dagre takes seconds; then ranks are filled without looking for few crossings. */
const MANY = 300;

/** A level with more lines than this shows their gradients in the panel only. */
const MOST_LABELS = 40;
const LABEL_HEIGHT = 12;
const LABEL_GAP = 7;

/** No open group is narrower, so that its title has room. */
const NARROWEST = 168;

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
    this.placed = new Map();
  }

  /** The whole drawing with these groups open: the placed level of group 0. */
  whole(open) {
    return this._place(0, open);
  }

  /** Place everything anew: what stands beside the lines has changed. */
  forget() {
    this.placed.clear();
  }

  _level(group) {
    if (!this.levels.has(group)) this.levels.set(group, level(this.model, group));
    return this.levels.get(group);
  }

  // The depth of this recursion is the depth of nested modules that a person has opened.
  _place(group, open) {
    const { boxes, bundles } = this._level(group);
    const inner = new Map();
    for (const box of boxes) if (box.group !== undefined && open.has(box.group)) inner.set(box.key, this._place(box.group, open));
    const opened = [...inner.keys()].join();
    const sizes = [...inner.values()].map((one) => `${one.width}x${one.height}`).join();
    const known = this.placed.get(group);
    if (known && known.signature === `${opened}|${sizes}`) return { ...known, boxes: known.boxes.map((box) => withInner(box, inner)) };
    const sized = boxes.map((box) => ({ ...box, ...this._size(box, inner.get(box.key)), open: inner.has(box.key) }));
    const made = { group, signature: `${opened}|${sizes}`, ...arrange(sized, this._labelled(bundles), group === 0) };
    this.placed.set(group, made);
    return { ...made, boxes: made.boxes.map((box) => withInner(box, inner)) };
  }

  /** Lines with room for their gradients, where there are few enough to be read. */
  _labelled(bundles) {
    if (bundles.length > MOST_LABELS) return bundles;
    // Where all that comes in goes to one place, the line outside has said it.
    const isSaid = bundles.filter(({ from }) => from === IN).length === 1;
    return bundles.map((bundle) => (bundle.from === IN && isSaid ? bundle : { ...bundle, room: this.labelOf(bundle) }));
  }

  _size(box, inner) {
    return inner ? { width: inner.width, height: inner.height } : this.sizeOf(box);
  }
}

const withInner = (box, inner) => ({ ...box, inner: inner.get(box.key) ?? null });

/** Boxes with x, y (their top left corner in the level), bundles with points, and the level's size. */
function arrange(boxes, bundles, isWhole) {
  const placed = boxes.length > MANY ? fast(boxes, bundles) : careful(boxes, bundles);
  const top = isWhole ? PAD : HEAD + PAD / 2;
  let [left, right, above, below] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const box of placed.boxes) {
    left = Math.min(left, box.x);
    right = Math.max(right, box.x + box.width);
    above = Math.min(above, box.y);
    below = Math.max(below, box.y + box.height);
  }
  for (const bundle of placed.bundles) {
    for (const point of bundle.points) {
      left = Math.min(left, point.x);
      right = Math.max(right, point.x);
      above = Math.min(above, point.y);
      below = Math.max(below, point.y);
    }
    if (bundle.label) right = Math.max(right, bundle.label.x + bundle.room);
  }
  if (left > right) [left, right, above, below] = [0, 0, 0, 0];
  const width = Math.max(right - left + 2 * PAD, NARROWEST);
  const height = below - above + top + PAD;
  const shift = { x: (width - (right - left)) / 2 - left, y: top - above };
  const move = (point) => ({ ...point, x: point.x + shift.x, y: point.y + shift.y });
  return {
    width,
    height,
    boxes: placed.boxes.map(move),
    bundles: placed.bundles.map((bundle) => ({
      ...bundle,
      label: bundle.label && move(bundle.label),
      points: border(bundle, bundle.points.map(move), width, height),
    })),
  };
}

// What crosses the border of a group does so in the middle of its edge, so that lines are bundled there.
function border(bundle, points, width, height) {
  if (bundle.from === IN) return [{ x: width / 2, y: 0 }, ...points.slice(1)];
  if (bundle.to === OUT) return [...points.slice(0, -1), { x: width / 2, y: height }];
  return points;
}

function careful(boxes, bundles) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", ...GAP });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) graph.setNode(box.key, { width: box.width, height: box.height });
  const crosses = (end) => bundles.some((bundle) => bundle.from === end || bundle.to === end);
  for (const end of [IN, OUT]) if (crosses(end)) graph.setNode(end, { width: 2, height: 2 });
  bundles.forEach((bundle, i) => {
    const room = bundle.room ? { width: bundle.room, height: LABEL_HEIGHT, labelpos: "r", labeloffset: LABEL_GAP } : {};
    graph.setEdge(bundle.from, bundle.to, { weight: bundle.from === IN || bundle.to === OUT ? 1 : 2, ...room }, String(i));
  });
  dagre.layout(graph);
  const placed = boxes.map((box) => {
    const { x, y } = graph.node(box.key);
    return { ...box, x: x - box.width / 2, y: y - box.height / 2 };
  });
  const at = new Map(placed.map((box) => [box.key, box]));
  return {
    boxes: placed,
    bundles: bundles.map((bundle, i) => {
      const { points, y } = graph.edge(bundle.from, bundle.to, String(i));
      const line = fastened(points, at.get(bundle.from), at.get(bundle.to));
      const label = bundle.room ? { x: crossing(line, y) + LABEL_GAP, y } : null;
      return { ...bundle, label, points: line };
    }),
  };
}

/** Lines to and from open groups go on inside them in the middle, so they meet the border there. */
function fastened(points, from, to) {
  const line = points.map(({ x, y }) => ({ x, y }));
  if (from?.open) line[0] = bottom(from);
  if (to?.open) line[line.length - 1] = top(to);
  return line;
}

const top = (box) => ({ x: box.x + box.width / 2, y: box.y });
const bottom = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height });

/** Ranks by longest path, in rows of bounded width, in the order of the nodes. */
function fast(boxes, bundles) {
  const rank = new Map(boxes.map((box) => [box.key, 0]));
  const after = new Map();
  const waiting = new Map(boxes.map((box) => [box.key, 0]));
  for (const { from, to } of bundles) {
    if (!rank.has(from) || !rank.has(to)) continue;
    append(after, from, to);
    waiting.set(to, waiting.get(to) + 1);
  }
  const ready = [...rank.keys()].filter((key) => !waiting.get(key));
  for (const key of ready) {
    for (const next of after.get(key) ?? []) {
      rank.set(next, Math.max(rank.get(next), rank.get(key) + 1));
      waiting.set(next, waiting.get(next) - 1);
      if (!waiting.get(next)) ready.push(next);
    }
  }
  const rows = new Map();
  for (const box of boxes) append(rows, rank.get(box.key), box);
  const placed = [];
  let y = 0;
  for (const r of [...rows.keys()].sort((a, b) => a - b)) {
    const row = rows.get(r);
    const wide = Math.max(12, Math.ceil(Math.sqrt(row.length)));
    for (let start = 0; start < row.length; start += wide) {
      let x = 0;
      let tallest = 0;
      for (const box of row.slice(start, start + wide)) {
        placed.push({ ...box, x, y });
        x += box.width + GAP.nodesep;
        tallest = Math.max(tallest, box.height);
      }
      y += tallest + GAP.ranksep;
    }
  }
  const at = new Map(placed.map((box) => [box.key, box]));
  const end = (key, side) => side(at.get(key));
  return {
    boxes: placed,
    bundles: bundles.map((bundle) => ({
      ...bundle,
      points: [bundle.from === IN ? end(bundle.to, top) : end(bundle.from, bottom), bundle.to === OUT ? end(bundle.from, bottom) : end(bundle.to, top)],
    })),
  };
}

function append(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Every box and bundle with absolute places, parents before what is in them. */
export function flatten(whole) {
  const boxes = [];
  const bundles = [];
  const waiting = [{ placed: whole, x: 0, y: 0, depth: 0, around: null }];
  for (const { placed, x, y, depth, around } of waiting) {
    for (const box of placed.boxes) {
      const here = { ...box, x: box.x + x, y: box.y + y, depth, around, open: box.inner !== null };
      boxes.push(here);
      if (box.inner) waiting.push({ placed: box.inner, x: here.x, y: here.y, depth: depth + 1, around: here.key });
    }
    for (const bundle of placed.bundles) {
      const move = (p) => ({ x: p.x + x, y: p.y + y });
      const points = bundle.points.map(move);
      bundles.push({ ...bundle, label: bundle.label && move(bundle.label), points, extent: extent(points) });
    }
  }
  return { boxes, bundles, width: whole.width, height: whole.height };
}
