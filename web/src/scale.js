// Colour and bar of a gradient's size: nine steps over log10 of the norm, relative to this file.
import { count, number } from "./format.js";

/** The colours of the steps, which render/drawing/scale.py knows. */
let STEPS = [];
export const colored = (steps) => (STEPS = steps);

/** Decades that the scale spans at least: norms of 1 and 2 shall not look like opposites. */
const NARROWEST = 4;

export class Scale {
  steps = STEPS;
  title = "‖gradient‖";
  meaning = "smaller – typical – larger";
  tell = number;

  /**
   * Between the norms on the edges that 1 in 32 are below and 1 in 100 above, as in render/drawing/scale.py.  What lies below a wide
   * gap is zero but for rounding, as are biases before a batch norm: it shall not push all else to one end.
   * @param onlyGrows of numbers that only grow: in the warm half of the steps
   */
  constructor(norms, onlyGrows = false, narrowest = onlyGrows ? 1 : NARROWEST) {
    if (onlyGrows) this.steps = STEPS.slice(4);
    const every = Float64Array.from(norms).filter((x) => x > 0 && x < Infinity).sort().map(Math.log10);
    const first = firstOfBulk(every);
    const sizes = every.subarray(first);
    if (first) this.meaning += `, ${count(first)} far below all others`;
    this.known = sizes.length > 0;
    const [from, to] = this.known ? [sizes[Math.floor(sizes.length / 32)], sizes.at(-1 - Math.floor(sizes.length / 100))] : [0, 0];
    const missing = Math.max(narrowest - (to - from), 0) / 2;
    [this.from, this.to] = [from - missing, to + missing];
  }

  /** One of its ends, `from` or `to`, as a number. */
  end(name) {
    return this.tell(Number((10 ** this[name]).toPrecision(1)));
  }

  /** What colours mean, in words. */
  get words() {
    return this.known && this.title ? [this.title, this.steps && `${this.end("from")} to ${this.end("to")}, ${this.meaning}`].filter(Boolean).join(": ") : "";
  }

  /** 0 for the smallest to 1 for the largest; null where there is no number.  Below 0 is a class. */
  share(norm) {
    const x = Number(norm);
    // What only one side of a comparison has is as much of it as can be.
    if (x < 0) return this.steps ? 1 : -x / this.classes.length;
    if (norm === null || !(x > 0) || !Number.isFinite(x)) return null;
    return Math.min(Math.max((Math.log10(x) - this.from) / (this.to - this.from), 0), 1);
  }

  color(norm) {
    if (norm < 0) return this.classes[-norm - 1][1];
    const share = this.share(norm);
    return share === null ? null : this.steps[Math.round(share * (this.steps.length - 1))];
  }
}

/** The first, of logarithms in their order, above the last gap of three decades in their lower third. */
function firstOfBulk(logs) {
  for (let place = Math.floor(logs.length / 3); place > 0; place--) if (logs[place] - logs[place - 1] >= 3) return place;
  return 0;
}

/** How many times the largest gradient over ranks is the smallest: from the same upwards, in the warm half of the steps. */
export class SpreadScale extends Scale {
  static title = "largest ÷ smallest ‖gradient‖ over ranks";
  title = SpreadScale.title;
  meaning = "the same – apart";
  tell = times;

  constructor(ratios) {
    super(ratios, true);
    [this.from, this.to] = [0, Math.max(this.to, 0.5)];
    this.known ||= ratios.some((one) => one === Infinity);
  }

  share(ratio) {
    return ratio === Infinity ? 1 : super.share(ratio);
  }
}

const times = (x) => `${number(x)}×`;

/** Words and colours instead of numbers, those that matter most last; or how many times one gradient is another, the same in the middle. */
export class ClassScale extends Scale {
  meaning = "smaller – the same – larger";
  tell = times;

  constructor(title, classes, ratios) {
    super(ratios ?? [], false, 1);
    this.to = Math.max(Math.abs(this.from), Math.abs(this.to), 0.3);
    Object.assign(this, { title, classes, from: -this.to, known: true, steps: ratios && STEPS });
  }
}

/** A colour weakened towards the ground, because solid dark boxes are too heavy. */
export function tint(color, ground, share = 0.55) {
  const [a, b] = [color, ground].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return `rgb(${a.map((x, i) => Math.round(x * share + b[i] * (1 - share))).join(" ")})`;
}
