// Numbers as gradscope writes them everywhere, and text that cannot act.

let asked = null;

/** From now on numbers have so many significant digits; null is as many as by default. */
export const precise = (digits) => (asked = digits);

/** Four significant digits, or as many as were asked for, as render/words/numbers.py writes them. */
export const number = (value) => written(Number(value), asked ?? 4);

/** The same of an element of a tensor, with one digit more where that is all of it. */
export function entry(value) {
  const x = Number(value);
  return written(x, asked ?? (Number(x.toPrecision(5)) === Number(x.toPrecision(7)) ? 5 : 4));
}

function written(x, digits) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x);
  if (size >= 1e-4 && size < 1e6) return size >= 10 ** digits ? x.toFixed(0) : String(Number(x.toPrecision(digits)));
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  return `${Number(mantissa)}e${Number(exponent)}`;
}

/** A program by its name; where it lies on a machine says nothing to others. */
export const targetName = (target) => visible(/^(\/|\w:\\)/.test(target) ? target.split(/[\\/]/).at(-1) : target);

/** What a table holds under a name; a name such as "constructor" is none of the table's. */
export const lookup = (table, name) => (Object.hasOwn(table, name) ? table[name] : null);

/** `1,234`.  Not by the browser's means, whose first number costs more than a small graph. */
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** `1 op`, `2 ops`, `2 leaves`. */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const leavesOf = (n) => plural(n, "leaf", "leaves");

/** Nested brackets of a flat list by its shape, `[0.1, 1, 0.0001]`; complex numbers as real, imaginary. */
export function tensor(values, shape) {
  let rows = values.map(entry);
  // A gradient that was not reduced to its tensor's shape yet is shown flat.
  if (shape.reduce((product, size) => product * size, 1) !== rows.length) shape = [rows.length];
  for (const size of [...shape].reverse()) {
    if (!size) return "[]";
    const next = [];
    for (let i = 0; i < rows.length; i += size) next.push(`[${rows.slice(i, i + size).join(", ")}]`);
    rows = next;
  }
  return rows[0] ?? "[]";
}

/** `[2,3] float32` → [2, 3]. */
export function shapeOf(text) {
  const inside = /^\[([\d,]*)\]/.exec(text);
  return inside && inside[1] ? inside[1].split(",").map(Number) : [];
}

/** Text whose signs that turn or hide text are written as escapes: what a name may hold must not change how the rest reads. */
export const harmless = (text) => text.replace(/[^\P{C}\t\n]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);

/** The same in one line. */
export const visible = (text) => harmless(text.replace(/\s+/gu, " ")).trim();

/** What there is of these, as one line. */
export const dotted = (...words) => words.filter(Boolean).join(" · ");

/** At most `most` characters, with the end kept where names differ at their ends. */
export function shorten(text, most, keepEnd = false) {
  const signs = [...text];
  if (signs.length <= most) return text;
  return keepEnd ? `…${signs.slice(signs.length - most + 1).join("")}` : `${signs.slice(0, most - 1).join("")}…`;
}
