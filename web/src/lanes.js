// Lanes of one level beside each other, where the graph says so: what skips join row by row faces each other, as the two sides
// of a U, and a long chain goes on in the next column, as in a newspaper.
import { isIn, isOut, isPort } from "./level.js";
import { portsOf } from "./stretch.js";

/** So many skips inside one another make two sides, and so many lines lead to what stands below both. */
const [FEWEST, MANY] = [2, 4];
/** Pixels between two lanes at least, around what stands beside a line between them, and between lines that go round a lane. */
const [BETWEEN, AROUND, ASIDE] = [64, 40, 18];
/** Pixels from the middle of a line up to that of what stands on it, and of the edge of a card. */
const [ABOVE, CARD] = [14, 3];

/** A window that columns are made for, and pixels below one and above the next in which the line between them turns. */
const [WINDOW, TURNING] = [{ width: 700, height: 680 }, 34];
/** Each is at least this part of the highest. */
const EVEN = 0.6;

const [LEFT, RIGHT, UP] = [{ x: -1, y: 0 }, { x: 1, y: 0 }, { x: 0, y: -1 }];

/**
 * A level whose longest way is folded where most skips are around it: down on the right, and up again on the left; below it
 * what most of both sides lead to, such as the time in a diffusion model.
 * @param rank how many lines lead to each box at most
 * @param {(boxes, bundles) => object} inLayers what arranges one lane
 * @returns null where skips do not lie inside one another, or other lines cross from side to side
 */
export function folded(boxes, bundles, rank, inLayers) {
  const below = new Set(boxes.map(({ key }) => key).filter((key) => bundles.filter(({ to }) => to === key).length >= MANY));
  for (const key of below) for (const { from, to } of bundles) if (from === key && !isPort(to)) below.add(to);
  const isAbove = (key) => !below.has(key);
  const u = sides(boxes.filter(({ key }) => isAbove(key)), bundles.filter(({ from, to }) => isAbove(from) && isAbove(to)), rank, inLayers);
  if (!u || !below.size) return u;
  const lower = inLayers(boxes.filter(({ key }) => !isAbove(key)), bundles.filter(({ from }) => !isAbove(from)));
  const [left, right] = [edge(u, Math.min), edge(u, Math.max)];
  move(lower, (left + right - edge(lower, Math.min) - edge(lower, Math.max)) / 2, lowest(u) + BETWEEN - highest(lower));
  const at = new Map([...u.boxes, ...lower.boxes].map((box) => [box.key, box]));
  // Along the outside of both sides, and in from there.
  const lines = bundles.filter(({ from, to }) => isAbove(from) && !isAbove(to)).map((bundle) => {
    const [to, from = to] = [at.get(bundle.to), at.get(bundle.from)];
    if (from === to) return { ...bundle, labelY: to.y, points: [to.y - TURNING, to.y].map((y) => ({ x: to.x + to.width / 2, y })) };
    const [way, back, border] = from.isUp ? [LEFT, RIGHT, left] : [RIGHT, LEFT, right];
    const side = ({ x, width }) => (from.isUp ? x : x + width);
    const [aside, y, foot] = [border + ASIDE * way.x, middleOf(from), middleOf(to)];
    return { ...bundle, room: 0, labelY: y, points: [{ x: side(from), y, way }, { x: aside, y }, { x: aside, y: foot }, { x: side(to), y: foot, way: back }] };
  });
  const all = [...u.bundles, ...lower.bundles, ...lines];
  return { ...u, boxes: [...at.values()], bundles: all, ports: portsOf(all) };
}

function sides(boxes, bundles, rank, inLayers) {
  const fold = foldOf(boxes, bundles, rank);
  if (!fold) return null;
  const { second, rows } = fold;
  const isSecond = (key) => second.has(key);
  const within = (keep) => bundles.filter(({ from, to }) => keep(from) && keep(to));
  const right = inLayers(boxes.filter(({ key }) => !isSecond(key)), within((key) => !isSecond(key)));
  // What flows up is arranged as if it flowed down.
  const turned = within(isSecond).map((bundle) => ({ ...bundle, from: bundle.to, to: bundle.from }));
  const left = reversed(inLayers(boxes.filter(({ key }) => isSecond(key)), turned.filter(({ from }) => !isPort(from))));
  for (const { from, to } of rows) level(right, from, left, to);
  const crossing = bundles.filter(({ from, to }) => !isSecond(from) && isSecond(to));
  const gap = Math.max(BETWEEN, ...crossing.map(({ room }) => (room ?? 0) + AROUND));
  move(left, edge(right, Math.min) - gap - edge(left, Math.max), 0);
  const at = new Map([...right.boxes, ...left.boxes].map((box) => [box.key, box]));
  const across = crossing.map((bundle) => sideways(bundle, at.get(bundle.from), at.get(bundle.to)));
  const isPassed = (box) => across.some(({ points: [a, b] }) => box.y < a.y && box.y + box.height > a.y && box.x < a.x - 1 && box.x + box.width > b.x);
  if (boxes.some(({ key }) => isPassed(at.get(key)))) return null;
  const outside = edge(left, Math.min) - ASIDE;
  const out = bundles.filter(({ from, to }) => isSecond(from) && isOut(to)).map((bundle, i) => around(bundle, at.get(bundle.from), outside - ASIDE * i, lowest(right)));
  const lines = [...right.bundles, ...left.bundles, ...across, ...out];
  return { boxes: [...at.values()], ports: portsOf(lines), bundles: lines, isFolded: true };
}

/** Where the longest way is folded: what is behind that, and the lines that join rows of both sides. */
function foldOf(boxes, bundles, rank) {
  if (bundles.length <= FEWEST) return null;
  const way = longest(boxes, bundles, rank);
  const at = new Map(way.map((key, i) => [key, i]));
  const skips = bundles.filter(({ from, to }) => at.get(to) - at.get(from) > 1).sort((a, b) => at.get(a.from) - at.get(b.from));
  const over = (i) => skips.filter(({ from, to }) => at.get(from) <= i && at.get(to) > i);
  const most = way.reduce((best, _, i) => (over(i).length > best.length ? over(i) : best), []);
  const isInside = ({ from, to }, i) => !i || (at.get(from) > at.get(most[i - 1].from) && at.get(to) < at.get(most[i - 1].to));
  if (most.length < FEWEST || !most.every(isInside)) return null;
  const last = most.at(-1);
  const middle = Math.ceil((at.get(last.from) + at.get(last.to) - 1) / 2);
  const [here, next] = [way[middle], way[middle + 1]];
  const turn = bundles.find(({ from, to }) => from === here && to === next);
  const second = new Set([next]);
  for (const key of second) for (const { from, to } of bundles) if (from === key && !isPort(to)) second.add(to);
  const crossing = bundles.filter(({ from, to }) => second.has(to) && !second.has(from));
  if (crossing.length !== most.length + 1) return null;
  return { second, rows: next === last.to ? most : [...most, turn] };
}

function longest(boxes, bundles, rank) {
  const deepest = boxes.reduce((a, b) => (rank.get(b.key) > rank.get(a.key) ? b : a));
  const way = [deepest.key];
  const before = () => bundles.find(({ from, to }) => to === way[0] && rank.get(from) === rank.get(to) - 1);
  for (let one = before(); one; one = before()) way.unshift(one.from);
  return way;
}

function reversed({ boxes, bundles }) {
  const back = ({ from, to, points, ...bundle }) => ({ ...bundle, from: to, to: from, points: points.reverse().map((point) => ({ ...point, way: UP })) });
  return { boxes: boxes.map((box) => ({ ...box, isUp: true })), bundles: bundles.map(back) };
}

const middleOf = ({ y, height }) => y + height / 2;

/** Make room in one of two lanes, so that two boxes stand beside each other. */
function level(one, from, other, to) {
  const [a, b] = [[one, from], [other, to]].map(([lane, key]) => lane.boxes.find((box) => box.key === key));
  const by = middleOf(a) - middleOf(b);
  if (by > 0) move(other, 0, by, b.y);
  else move(one, 0, -by, a.y);
}

/** Move what is in a lane from some height on. */
function move({ boxes, bundles }, dx, dy, from = -Infinity) {
  const all = [...boxes, ...bundles.flatMap(({ points }) => points)];
  for (const bundle of bundles) if (bundle.labelY >= from) bundle.labelY += dy;
  for (const one of new Set(all)) {
    one.x += dx;
    if (one.y >= from) one.y += dy;
  }
}

const edge = ({ boxes, bundles }, most) => most(...boxes.flatMap(({ x, width }) => [x, x + width]), ...bundles.flatMap(({ points }) => points.map(({ x }) => x)));

/** From a box straight to the left, and where the way turns up to the lower side of the other. */
function sideways(bundle, from, to) {
  const y = middleOf(from);
  const start = { x: from.x, y, way: LEFT };
  const isLevel = y < to.y + to.height;
  const end = isLevel ? { x: to.x + to.width + CARD, y, way: LEFT } : { x: to.x + to.width / 2, y: to.y + to.height + CARD, way: UP };
  const room = bundle.room ?? 0;
  const label = { x: isLevel ? (start.x + end.x - room) / 2 : start.x - room - ASIDE, y: y - ABOVE, isLeft: false };
  return { ...bundle, labelY: y, label, points: isLevel ? [start, end] : [start, { x: end.x, y }, end] };
}

/** Down again beside all. */
function around(bundle, from, x, bottom) {
  const y = middleOf(from);
  return { ...bundle, labelY: bottom, points: [{ x: from.x, y, way: LEFT }, { x, y }, { x, y: bottom }] };
}

/**
 * A level that is higher than a window, in columns to be read one after the other, where one line leads from each to the next.
 * @param whole the level in one column
 * @returns null where it is none
 */
export function inColumns(boxes, bundles, rank, inLayers, whole) {
  const cuts = cutsOf(bundles, rank, whole);
  if (!cuts.length) return null;
  const columnOf = (key) => (isIn(key) ? 0 : isOut(key) ? cuts.length : cuts.filter((cut) => rank.get(key) > cut).length);
  const columns = [-1, ...cuts].map((_, i) => inLayers(boxes.filter(({ key }) => columnOf(key) === i), bundles.filter(({ from, to }) => columnOf(from) === i && columnOf(to) === i)));
  const heights = columns.map((column) => lowest(column) - highest(column));
  if (Math.min(...heights) < EVEN * Math.max(...heights)) return null;
  const lines = [];
  columns.forEach((column, i) => {
    const joint = bundles.find(({ from, to }) => columnOf(from) < i && columnOf(to) === i);
    const gap = i ? Math.max(BETWEEN, (joint.room ?? 0) + ASIDE) : 0;
    const start = i ? edge(columns[i - 1], Math.max) : 0;
    move(column, start + gap - edge(column, Math.min), -highest(column));
    if (i) lines.push(onward(joint, columns[i - 1], column, start + gap / 2));
  });
  if (edge(columns.at(-1), Math.max) > WINDOW.width) return null;
  const all = [...columns.flatMap((column) => column.bundles), ...lines];
  return { boxes: columns.flatMap((column) => column.boxes), ports: portsOf(all), bundles: all };
}

const highest = ({ boxes }) => Math.min(...boxes.map(({ y }) => y));
const lowest = ({ boxes }) => Math.max(...boxes.map(({ y, height }) => y + height));

/** The ranks after which columns end: as many columns as make the level largest in a window, at lines that nothing passes. */
function cutsOf(bundles, rank, whole) {
  const [width, height] = [edge(whole, Math.max) - edge(whole, Math.min), lowest(whole) - highest(whole)];
  const share = (columns) => Math.max((columns * (width + BETWEEN)) / WINDOW.width, height / columns / WINDOW.height);
  let columns = 1;
  const fits = (columns) => columns * (width + BETWEEN) <= Math.min(WINDOW.width, innerWidth);
  while (height > WINDOW.height && fits(columns + 1) && share(columns + 1) < share(columns)) columns++;
  const at = (key) => (isIn(key) ? -1 : isOut(key) ? Infinity : rank.get(key));
  const ends = whole.boxes.map((box) => ({ cut: rank.get(box.key), y: box.y + box.height - highest(whole) })).filter(({ cut }) => {
    const passing = bundles.filter(({ from, to }) => at(from) <= cut && at(to) > cut);
    return passing.length === 1 && !isPort(passing[0].from) && !isPort(passing[0].to);
  });
  const wanted = Array.from({ length: columns - 1 }, (_, i) => ((i + 1) * height) / columns);
  const near = wanted.map((y) => ends.filter((end) => Math.abs(end.y - y) < height / columns / 3).sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y))[0]?.cut);
  return near.includes(undefined) ? [] : near;
}

/** From the foot of a column to the head of the next. */
function onward(bundle, before, column, gutter) {
  const [from, to] = [[before, bundle.from], [column, bundle.to]].map(([{ boxes }, wanted]) => boxes.find(({ key }) => key === wanted));
  const [start, end] = [from, to].map(({ x, width }) => x + width / 2);
  const foot = from.y + from.height;
  const [above, below] = [highest(column) - TURNING, lowest(before) + TURNING];
  return { ...bundle, labelY: foot + ABOVE, points: [{ x: start, y: foot }, { x: start, y: below }, { x: gutter, y: below }, { x: gutter, y: above }, { x: end, y: above }, { x: end, y: to.y }] };
}
