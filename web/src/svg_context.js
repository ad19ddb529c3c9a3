// What the painter asks of a canvas, written down as SVG instead.  Knows as much of a canvas as paint.js uses.
import { font } from "./text.js";

/** As in the SVG of render/formats/svg.py. */
const NIGHT = "@media (prefers-color-scheme: dark) { svg:root { filter: invert(0.93) hue-rotate(180deg); } }";
const NUMBER = 100;
const digits = (x) => String(Math.round(x * NUMBER) / NUMBER);
// Spaces that follow one another would become one.
const escaped = (text) => text.replace(/ (?= )/g, "\u00a0").replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const ANCHORS = { left: "start", center: "middle", right: "end" };
/** How far below the middle of small letters text stands, of its size: not every program knows dominant-baseline. */
const DROP = 0.35;

export class SvgContext {
  /** @param widthOf the width of text in a font */
  constructor(width, height, widthOf) {
    this.widthOf = widthOf;
    this.head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`;
    this.parts = [];
    this.clips = 0;
    this.groups = 0;
    this.dash = [];
    Object.assign(this, { globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: font(11), textAlign: "left" });
    this.beginPath();
  }

  /** The file. */
  text(title) {
    return `${this.head}<title>${escaped(title)}</title><style>${NIGHT}</style>${this.parts.join("\n")}${"</g>".repeat(this.groups)}</svg>\n`;
  }

  setTransform(...matrix) {
    this.parts.push(`${"</g>".repeat(this.groups)}<g transform="matrix(${matrix.map(digits).join(" ")})">`);
    this.groups = 1;
  }

  // ------------------------------------------------------------------ paths

  beginPath() {
    this.path = "";
  }

  closePath() {
    this.path += "Z";
  }

  moveTo(...to) {
    this.path += `M${to.map(digits).join(" ")}`;
  }

  lineTo(...to) {
    this.path += `L${to.map(digits).join(" ")}`;
  }

  quadraticCurveTo(...to) {
    this.path += `Q${to.map(digits).join(" ")}`;
  }

  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2);
    const arc = (dx, dy) => (r ? `a${digits(r)} ${digits(r)} 0 0 1 ${digits(dx)} ${digits(dy)}` : "");
    this.path += `M${digits(x + r)} ${digits(y)}H${digits(x + width - r)}${arc(r, r)}V${digits(y + height - r)}${arc(-r, r)}H${digits(x + r)}${arc(-r, -r)}V${digits(y + r)}${arc(r, -r)}Z`;
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  fill() {
    this._write(`<path d="${this.path}" fill="${this.fillStyle}"`);
  }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this._write(`<path d="${this.path}" ${this._line}${dash}`);
  }

  fillRect(x, y, width, height) {
    this._write(`<rect x="${digits(x)}" y="${digits(y)}" width="${digits(width)}" height="${digits(height)}" fill="${this.fillStyle}"`);
  }

  strokeRect(x, y, width, height) {
    this._write(`<rect x="${digits(x)}" y="${digits(y)}" width="${digits(width)}" height="${digits(height)}" ${this._line}`);
  }

  save() {
    this.saved = this.path;
  }

  clip() {
    this.clips += 1;
    this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path}"/></clipPath><g clip-path="url(#clip${this.clips})">`);
  }

  restore() {
    this.parts.push("</g>");
    this.path = this.saved;
  }

  /** How a line looks. */
  get _line() {
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${digits(this.lineWidth)}"`;
  }

  get _opacity() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }

  _write(start) {
    this.parts.push(`${start}${this._opacity}/>`);
  }

  // ------------------------------------------------------------------ text

  fillText(text, x, y) {
    this._words(text, x, y, `fill="${this.fillStyle}"`);
  }

  strokeText(text, x, y) {
    this._words(text, x, y, `${this._line} stroke-linejoin="round"`);
  }

  /** The length is said, so that a reader without this font sees the text where it was. */
  _words(text, x, y, paint) {
    if (!text) return;
    const [, weight, size, family] = /^(\d+) (\d+)px (.*)$/.exec(this.font);
    this.parts.push(
      `<text x="${digits(x)}" y="${digits(y + DROP * size)}" font-family="${family}" font-size="${size}" font-weight="${weight}" text-anchor="${ANCHORS[this.textAlign]}" ` +
        `textLength="${digits(this.widthOf(text, this.font))}" lengthAdjust="spacingAndGlyphs" ${paint}${this._opacity}>${escaped(text)}</text>`,
    );
  }
}
