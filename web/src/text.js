// How wide text is, and how it is cut to a width.  Never squeezed: what does not fit ends in an ellipsis.
import { shorten } from "./format.js";

const FAMILY = "system-ui, sans-serif";

export const font = (size, weight = 400) => `${weight} ${size}px ${FAMILY}`;

const measuring = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** Kept, because a frame measures the same words again and again. */
export function widthOf(text, face) {
  const key = `${face}|${text}`;
  if (!widths.has(key)) {
    if (widths.size > 20000) widths.clear();
    measuring.font = face;
    widths.set(key, measuring.measureText(text).width);
  }
  return widths.get(key);
}

/** The text, cut to a width in pixels. */
export function fitted(text, face, most, keepEnd = false) {
  if (widthOf(text, face) <= most) return text;
  let [short, long] = [1, [...text].length];
  while (long - short > 1) {
    const middle = (short + long) >> 1;
    if (widthOf(shorten(text, middle, keepEnd), face) <= most) short = middle;
    else long = middle;
  }
  return shorten(text, short, keepEnd);
}
