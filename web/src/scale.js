// Colour and bar of a gradient's size: nine steps over log10 of the norm, relative to this file.  Neighbouring steps
// differ by more than 10 (CIE76) also to people who lack one kind of cones; bars and numbers say the same.

const STEPS = ["#0b4a8f", "#4b94d1", "#7db8dd", "#c3dff0", "#eef1f3", "#fbe3c4", "#f6b26b", "#e07b1f", "#a84b00"];

export class Scale {
  steps = STEPS;
  title = "‖gradient‖";
  meaning = "smaller – typical – larger in this file";
  unit = "";

  /** From the 1st to the 99th percentile of the norms on the edges. */
  constructor(norms) {
    const sizes = norms.map(Number).filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10).sort((a, b) => a - b);
    const at = (share) => sizes[Math.min(Math.floor(share * sizes.length), sizes.length - 1)];
    this.known = sizes.length > 0;
    this.from = this.known ? at(0.01) : -1;
    this.to = this.known ? at(0.99) : 1;
    if (this.to - this.from < 1) {
      const middle = (this.from + this.to) / 2;
      [this.from, this.to] = [middle - 0.5, middle + 0.5];
    }
  }

  /** 0 for the smallest to 1 for the largest; null where there is no number. */
  share(norm) {
    const x = Number(norm);
    if (norm === null || !(x > 0) || !Number.isFinite(x)) return null;
    return Math.min(Math.max((Math.log10(x) - this.from) / (this.to - this.from), 0), 1);
  }

  color(norm) {
    const share = this.share(norm);
    return share === null ? null : this.steps[Math.min(Math.floor(share * this.steps.length), this.steps.length - 1)];
  }
}

/** How many times the largest gradient over ranks is the smallest: from the same upwards, in the warm half of the steps. */
export class SpreadScale extends Scale {
  steps = STEPS.slice(4);
  title = "largest ÷ smallest ‖gradient‖ over ranks";
  meaning = "the same – apart";
  unit = "×";

  constructor(ratios) {
    super(ratios);
    [this.from, this.to] = [0, Math.max(this.to, 0.5)];
    this.known ||= ratios.some((one) => one === Infinity);
  }

  share(ratio) {
    return ratio === Infinity ? 1 : super.share(ratio);
  }
}

/** A colour weakened towards the ground, because solid dark boxes are too heavy. */
export function tint(color, ground, share = 0.55) {
  const [a, b] = [color, ground].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return `rgb(${a.map((x, i) => Math.round(x * share + b[i] * (1 - share))).join(" ")})`;
}
