// Places for what stands beside the lines of one level: on no line, on no box, and on no other of them.
import { FOOT, across } from "./curve.js";

/** Pixels between the middle of a line and what stands beside it, around all else, for lines are up to 11 wide, and between words, if that can be. */
const [GAP, AWAY, APART] = [9, 5, 6];
/** Half of its height. */
export const HALF = 6;
/** How far above or below the place that was kept free it may stand. */
const SHIFTS = [0, 6, -6, 12, -12, 18, -18, 24, -24, 36, -36, 48, -48, 72, -72, 96, -96];

/** Bundles that have room for something at a height, each with the place of that between the borders, or null where there is none. */
export function withLabels(bundles, boxes, from, to) {
  const taken = boxes.map(({ x, y, width, height }) => ({ left: x, right: x + width, top: y - FOOT, bottom: y + height }));
  taken.push(...[[-Infinity, from], [to, Infinity]].map(([top, bottom]) => ({ left: -Infinity, right: Infinity, top, bottom })));
  const words = [];
  const closed = new Set(boxes.filter((box) => !box.open).map(({ key }) => key));
  const lines = bundles.map(({ to, points }) => across(points, HALF + AWAY, closed.has(to) ? FOOT : 0));
  return bundles.map((bundle, i) => {
    if (!bundle.room || bundle.label) return bundle;
    const place = [APART, 0].map((apart) => placeOf(bundle, lines[i], lines, [...taken, ...words.map((one) => grown(one, apart))])).find(Boolean);
    if (place) words.push(place);
    return { ...bundle, label: place ? { x: place.isLeft ? place.right : place.left, y: place.top + HALF, isLeft: place.isLeft } : null };
  });
}

function placeOf({ labelY, room }, line, lines, taken) {
  for (const shift of SHIFTS) {
    const y = labelY + shift;
    const own = line(y);
    if (!own) continue;
    let others;
    for (const isLeft of [false, true]) {
      const left = isLeft ? own.left - GAP - room : own.right + GAP;
      const place = { left, right: left + room, top: y - HALF, bottom: y + HALF, isLeft };
      if (taken.some((one) => meet(one, place))) continue;
      others ??= lines.map((one) => (one === line ? null : one(y)));
      if (!others.some((one) => isOn(one, place))) return place;
    }
  }
  return null;
}

const grown = ({ left, right, top, bottom }, by) => ({ left: left - by, right: right + by, top: top - by, bottom: bottom + by });

const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;

const isOn = (line, { left, right }) => line !== null && line.left - AWAY < right && line.right + AWAY > left;
