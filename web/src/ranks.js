// The gradients of several ranks on one graph, and how far they are apart.  Knows nothing of the screen.
import { number } from "./format.js";
import { isBad } from "./gradients.js";

/** Instead of the number of a rank: all of them at once. */
export const SPREAD = "spread";

const SILENT = new Set(["none", "not reached"]);

export class Ranks {
  /** @param {object} data what `pack` of render/drawing/pack.py made, of a report that has ranks */
  constructor({ ranks, passes }) {
    this.size = ranks.size;
    this.shown = ranks.shown;
    this.without = ranks.without;
    this.parameters = ranks.parameters;
    const all = [{ rank: this.shown, passes }, ...ranks.others];
    this.known = all.map((one, i) => ({ ...one, start: i * passes.length })).sort((a, b) => a.rank - b.rank);
  }

  of(rank) {
    return this.known.find((one) => one.rank === rank) ?? null;
  }

  /** What can be chosen: each rank whose gradients are here, and all at once. */
  get choices() {
    const ranks = this.known.map((one) => one.rank);
    return ranks.length > 1 ? [...ranks, SPREAD] : ranks;
  }

  /** What comes after a choice, round and round. */
  after(choice) {
    const { choices } = this;
    return choices[(choices.indexOf(choice) + 1) % choices.length];
  }
}

/**
 * One gradient on several ranks as one: its `norm` is the largest through the smallest norm, Infinity where it is
 * missing or zero on some rank only, and null where nothing can be compared.
 * @param each pairs of a rank and what the gradient is there
 */
export function apart(each) {
  if (!each.every(([, info]) => info)) return null;
  const infos = each.map(([, info]) => info);
  const bad = infos.some(isBad);
  const sized = each.filter(([, { state, norm }]) => norm !== null && (state === "finite" || state === "zero"));
  sized.sort(([, a], [, b]) => Number(a.norm) - Number(b.norm));
  const silent = each.filter(([, info]) => SILENT.has(info.state));
  const [least, most] = [silent[0] ?? sized[0], sized.at(-1) ?? silent[0]];
  const state = bad ? "non-finite" : (["finite", "zero"].find((one) => infos.some((info) => info.state === one)) ?? infos[0].state);
  const sum = (key) => infos.reduce((total, info) => total + info[key], 0);
  return { state, norm: bad || !sized.length ? null : ratio(least[1], most[1]), absmax: null, nan: sum("nan"), inf: sum("inf"), dtype: infos[0].dtype, values: null, each, least, most };
}

function ratio(least, most) {
  if (!Number(most.norm)) return SILENT.has(least.state) && most.state === "zero" ? Infinity : null;
  return Number(least.norm) ? Number(most.norm) / Number(least.norm) : Infinity;
}

/** `1.2 … 8.4`; one number where they are the same as far as is told. */
export function toldApart({ state, each, least, most }, told) {
  if (state === "non-finite") {
    const bad = each.filter(([, info]) => isBad(info)).map(([rank]) => rank);
    return `✖ not finite${bad.length === each.length ? "" : ` on ${namedRanks(bad)}`}`;
  }
  const ends = [least ?? each[0], most ?? each[0]].map(([, info]) => (info.state === "finite" && info.norm !== null ? number(info.norm) : told(info)));
  return ends[0] === ends[1] ? ends[0] : ends.join(" … ");
}

/** `rank 1`, `ranks 1, 2`. */
const namedRanks = (ranks) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;

