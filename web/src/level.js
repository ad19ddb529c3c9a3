// What is inside one open group: its boxes, and the bundles of edges between them and across its border.
// Pure: model in, plain objects out.  Knows nothing of places on the screen.

/**
 * @typedef {{key: string, node?: number, group?: number, seed?: number, wall?: number, isEnd?: boolean}} Box  a node, a group, or an end: what is given for a root, or where history was cut
 * @typedef {{from: string, to: string, edges: number[], seeds: number[]}} Bundle  ends are keys of boxes, or ports
 */
/** Walls that are drawn; of more the page would be full. */
const MOST_WALLS = 12;
/** A port is where lines cross the border of a group: one for each box outside, of which it has the key, and one for other rounds. */
const [IN, OUT] = ["<", ">"];
export const ROUNDS = "rounds";
export const isIn = (key) => key.startsWith(IN);
export const isOut = (key) => key.startsWith(OUT);
export const isPort = (key) => isIn(key) || isOut(key);
/** The port of an open box to which a line goes on that comes from there, or leads there. */
export const portFrom = (key) => (isIn(key) ? key : IN + key);
export const portTo = (key) => (isOut(key) ? key : OUT + key);
export const isCarried = ({ from, to }) => from === IN + ROUNDS || to === OUT + ROUNDS;

export const nodeKey = (node) => `n${node}`;
export const groupKey = (group) => `g${group}`;
const seedKey = (root) => `s${root}`;
export const wallKey = (wall) => `w${wall}`;

/**
 * What stands for several rounds has `bars`, what it stands for by their numbers; its bundles have their edges by rounds.
 * @param {Cast} cast how the graph is drawn
 * @returns {{boxes: Box[], bundles: Bundle[]}}
 */
export function level(cast, group) {
  const { model } = cast;
  const repeats = cast.repeats(group);
  const { boxes, boxOf } = boxesOf(cast, group, repeats);
  const bundles = new Map();
  // Most lines stay inside: numbers for these pairs are faster than texts.
  const between = (from, to, pair = `${from} ${to}`) => {
    if (!bundles.has(pair)) bundles.set(pair, { from, to, edges: [], seeds: [] });
    return bundles.get(pair);
  };
  const around = new Set(cast.around(group));
  const end = (node, port) => boxes[boxOf[node]]?.key ?? port + cast.keyBeside(around, node);
  // All edges are gone through, also those elsewhere: numbers side by side are faster than a list of each node's.
  for (let edge = 0; edge < model.source.length; edge++) {
    const source = model.source[edge];
    const target = model.target[edge];
    const from = boxOf[source];
    const to = boxOf[target];
    if (from < 0 && to < 0) continue;
    // From one round to the next it leaves what is drawn once below, and comes in again above.
    if (repeats.length && cast.isCarried(repeats, edge)) {
      if (from >= 0) between(boxes[from].key, OUT + ROUNDS, -1 - 2 * from).edges.push(edge);
      if (to >= 0) between(IN + ROUNDS, boxes[to].key, -2 - 2 * to).edges.push(edge);
    } else if (from !== to) {
      const isInside = from >= 0 && to >= 0;
      const bundle = isInside ? between(boxes[from].key, boxes[to].key, from * boxes.length + to) : between(end(source, IN), end(target, OUT));
      bundle.edges.push(edge);
    }
  }
  const seeds = [];
  model.data.roots.forEach((root, i) => {
    const here = boxOf[root.node];
    if (here < 0) return;
    // What is given for a root has a place in the whole drawing, and comes in from there elsewhere.
    if (group === 0) seeds.push({ key: seedKey(i), seed: i, isEnd: true });
    between(group === 0 ? seedKey(i) : IN + seedKey(i), boxes[here].key).seeds.push(i);
  });
  const all = inOrder(model, [IN, OUT].reduce(united, [...bundles.values()]));
  if (repeats.length) for (const bundle of all) Object.assign(bundle, barsOf(repeats, byRounds(cast, repeats, bundle)));
  // So has what history was cut by, to which lines lead out of all else; of very many the boxes say it, and the code.
  const walls = (model.walls.length > MOST_WALLS ? [] : model.walls).map(({ nodes }, wall) => ({ key: wallKey(wall), wall, isEnd: true, nodes }));
  for (const { key, wall, nodes } of walls) {
    const from = new Set(nodes.map((node) => boxes[boxOf[node]]?.key));
    for (const one of from) if (one) all.push({ from: one, to: group === 0 ? key : OUT + key, edges: [], seeds: [], wall });
  }
  return { boxes: [...seeds, ...boxes, ...(group === 0 ? walls : [])], bundles: all };
}

/** The lines of a node by its operands, whichever round uses them, and those of a group as a walk along these comes by. */
function inOrder(model, bundles) {
  const place = new Map(bundles.map(({ from }, i) => [from, i]).reverse());
  const at = ({ from, edges: [edge] }) => (from[0] === "n" ? model.slot[edge] : from[0] === "g" ? model.met[model.source[edge]] : 0);
  return bundles.sort((a, b) => place.get(a.from) - place.get(b.from) || at(a) - at(b));
}

/** Lines from round to round share the port of lines from outside that lead to the same boxes: there they look like nothing that is not so. */
function united(bundles, side) {
  const [port, end] = side === IN ? ["from", "to"] : ["to", "from"];
  const at = (key) => bundles.filter((one) => one[port] === key);
  const ends = (key) => at(key).map((one) => one[end]).sort().join();
  const rounds = side + ROUNDS;
  const shared = bundles.map((one) => one[port]).find((key) => key.startsWith(side) && key !== rounds && ends(key) === ends(rounds));
  if (!shared) return bundles;
  for (const one of at(rounds)) {
    const other = at(shared).find((other) => other[end] === one[end]);
    Object.assign(other, { edges: [...other.edges, ...one.edges].sort((a, b) => a - b), isOfRounds: true });
  }
  return bundles.filter((one) => one[port] !== rounds);
}

/** What a box or bundle says of the rounds that it stands for; `isFull` where it is in all of them. */
const barsOf = (repeats, bars) => ({ repeats, bars, isFull: !bars.includes(undefined) });

/** The edges and seeds of a bundle by the rounds that they are in. */
function byRounds(cast, repeats, { from, edges, seeds }) {
  const { source, target, data } = cast.model;
  const found = [];
  const of = (node) => (found[cast.ordinal(repeats, node) ?? 0] ??= { edges: [], seeds: [] });
  for (const edge of edges) of(isIn(from) ? target[edge] : source[edge]).edges.push(edge);
  for (const root of seeds) of(data.roots[root].node).seeds.push(root);
  return found;
}

/** The boxes, and for every node of the graph the position of the box that it is in, or -1. */
function boxesOf(cast, group, repeats) {
  const { model } = cast;
  const boxes = [];
  const ofChild = new Int32Array(model.parent.length).fill(-1);
  const add = (thing) => {
    const box = thing.node === undefined ? { key: groupKey(thing.group), group: thing.group } : { key: nodeKey(thing.node), node: thing.node };
    const within = box.group === undefined || !cast.at.has(box.group) ? repeats : [...repeats, box.group];
    const bars = within.length ? cast.standing(within, thing) : [];
    boxes.push(bars.length > 1 ? { ...box, ...barsOf(within, bars) } : box);
    return boxes.length - 1;
  };
  for (const child of cast.childrenOf(group)) ofChild[child] = add(cast.lone(child));
  const of = cast.childrenAround(group).map((child) => (child < 0 ? -1 : ofChild[child]));
  const boxOf = cast.owner.map((owner) => of[owner]);
  const place = new Map(cast.membersOf(group).map((node) => [node, add({ node })]));
  for (const [node, at] of place) for (const one of cast.stood?.(node) ?? [node]) boxOf[one] = at;
  return { boxes, boxOf };
}

/**
 * A box or bundle that stands for several rounds as it is drawn while some of its repeats show one round.
 * `each` are those of its `bars` that are shown, `picked` the number of the only one, else null.
 */
export function withEach(thing, cast = null, layerOf = () => null) {
  if (!thing.bars) return thing;
  const layers = thing.repeats.map(layerOf);
  // The same list as long as all are shown: what is found of its many gradients is kept with it.
  if (thing.isFull && layers.every((layer) => layer === null)) return { ...thing, each: thing.bars, picked: null };
  const isShown = (number) => {
    for (let i = layers.length - 1; i >= 0; i--) {
      const { length } = cast.at.get(thing.repeats[i]).rounds;
      if (layers[i] !== null && layers[i] !== number % length) return false;
      number = Math.floor(number / length);
    }
    return true;
  };
  const numbers = [...thing.bars.keys()].filter((number) => thing.bars[number] && (!cast || isShown(number)));
  const each = numbers.map((number) => thing.bars[number]);
  const picked = numbers.length === 1 && layers.some((layer) => layer !== null) ? numbers[0] : null;
  if (thing.edges) return { ...thing, each, edges: each.flatMap(({ edges }) => edges), seeds: each.flatMap(({ seeds }) => seeds) };
  return { ...thing, ...(each.length === 1 ? each[0] : {}), each, picked };
}
