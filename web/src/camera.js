// What part of the drawing is in sight: a corner and a zoom.
import { HALF } from "./labels.js";
import { HEAD } from "./sizes.js";

/** Below this zoom nothing can be read with ease, so nothing is shown so small at first. */
export const READABLE = 1;
export const LARGEST = 1.7;
export const MARGIN = 24;
const [FURTHEST, NEAREST] = [0.02, 4];
/** How far a first look moves, so that no box is cut; what it leaves free beside them, and what looks cut if it is that near. */
const [REACH, FREE, NEAR] = [72, 11, 9];

export class Camera {
  constructor(canvas) {
    this.canvas = canvas;
    this.view = { x: 0, y: 0, zoom: 1 };
  }

  get size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /** The zoom at which a whole drawing is in sight. */
  fitting({ width, height }, size = this.size, margin = MARGIN) {
    return Math.min(size.width / (width + 2 * margin), size.height / (height + 2 * margin), LARGEST);
  }

  /** The whole drawing, however small. */
  fit(drawing) {
    const zoom = Math.max(this.fitting(drawing), FURTHEST);
    this.centre(drawing.width / 2, drawing.height / 2, zoom);
  }

  /** A box, and the whole drawing where that can be read; with a part of it that must be seen, and so that few boxes are cut, as far as that can be. */
  lookAt(box, drawing, part = null) {
    if (this.fitting(drawing, this.size, 0) >= READABLE) return this.centre(drawing.width / 2, drawing.height / 2, Math.max(this.fitting(drawing), READABLE));
    const { width, height } = this.size;
    // Not larger, while something is out of sight.
    if (box.open) this._lookInto(box, drawing, READABLE);
    else this._place(box.x + box.width / 2 - width / READABLE / 2, box.y - height / READABLE / 3, READABLE, drawing);
    if (part && !this.holds(part)) this.keepInSight(part, FREE);
    const kept = [part, box, { ...box, height: FREE }];
    this._settle(kept, drawing, "x", "width");
    this._settle(kept, drawing);
  }

  /** Move up or down, or to a side, to where least is cut, and these stay in sight that are. */
  _settle(kept, drawing, at = "y", long = "height") {
    const { size, view } = this;
    const [start, seen] = [view[at], size[long] / view.zoom];
    const words = drawing.bundles.filter(({ label }) => label).map(({ label, room }) => ({ x: label.x - (label.isLeft ? room : 0), y: label.y - HALF, width: room, height: 2 * HALF }));
    const heads = drawing.boxes.map((box) => (box.open ? { ...box, height: HEAD, width: at === "x" ? 0 : box.width } : box));
    const around = { view: { ...view, [at]: start - REACH }, size: { ...size, [long]: size[long] + 2 * REACH * view.zoom } };
    const near = [...heads, ...words].filter((box) => this.sees(box, around));
    const isCut = (box, from) => [from, from + seen].some((edge) => box[at] - NEAR < edge && box[at] + box[long] + NEAR > edge);
    // Rather the head of a frame than a box.
    const cuts = (from) => near.reduce((sum, box) => sum + (isCut(box, from) ? (box.open ? 0.5 : 1) : 0), 0);
    const ends = near.flatMap((box) => [FREE, NEAR].flatMap((by) => [box[at] - by, box[at] + box[long] + by])).flatMap((end) => [end, end - seen]);
    const held = kept.filter((one) => one && this.holds(one));
    const isGood = (from) => Math.abs(from - start) <= REACH && from >= Math.min(start, -REACH) && from + seen <= Math.max(start + seen, drawing[long] + REACH) && held.every((one) => this.holds(one, { ...view, [at]: from }));
    // Rather further than beside the drawing.
    const far = (from) => Math.abs(from - start) + (from < -MARGIN || from + seen > drawing[long] + MARGIN ? REACH : 0);
    const places = ends.filter(isGood).sort((a, b) => far(a) - far(b));
    const best = places.reduce((best, from) => (cuts(from) < cuts(best) ? from : best), start);
    this.view = { ...view, [at]: best };
  }

  /** Whether all of something is in sight, or would be from another place on. */
  holds(box, { x, y, zoom } = this.view) {
    const { width, height } = this.size;
    return box.x >= x && box.x + box.width <= x + width / zoom && box.y >= y && box.y + box.height <= y + height / zoom;
  }

  /** An open group in the middle, or its head where it is too large. */
  _lookInto(box, drawing, zoom) {
    const half = this.size.height / zoom / 2;
    const y = box.height > 2 * half ? box.y - MARGIN : box.y + box.height / 2 - half;
    this._place(box.x + box.width / 2 - this.size.width / zoom / 2, y, zoom, drawing);
  }

  /** A corner, but nothing of what is beside the drawing where that fills the window. */
  _place(x, y, zoom, drawing) {
    const { width, height } = this.size;
    const inside = (start, free) => (free > 2 * MARGIN ? -free / 2 : Math.max(Math.min(start, MARGIN - free), -MARGIN));
    this.view = { zoom, x: inside(x, width / zoom - drawing.width), y: inside(y, height / zoom - drawing.height) };
  }

  centre(x, y, zoom = this.view.zoom) {
    const { width, height } = this.size;
    this.view = { zoom, x: x - width / zoom / 2, y: y - height / zoom / 2 };
  }

  /** What is in the middle. */
  get middle() {
    const { width, height } = this.size;
    const { x, y, zoom } = this.view;
    return { x: x + width / zoom / 2, y: y + height / zoom / 2, zoom };
  }

  keepInSight(box, pixels = 40) {
    const { width, height } = this.size;
    const { x, y, zoom } = this.view;
    const margin = pixels / zoom;
    this.view.x = Math.min(Math.max(x, box.x + box.width + margin - width / zoom), box.x - margin);
    this.view.y = Math.min(Math.max(y, box.y + box.height + margin - height / zoom), box.y - margin);
  }

  /** Zoom while a place of the screen stays where it is. */
  zoomAt(factor, x, y) {
    const zoom = Math.min(Math.max(this.view.zoom * factor, FURTHEST), NEAREST);
    this.view.x += x / this.view.zoom - x / zoom;
    this.view.y += y / this.view.zoom - y / zoom;
    this.view.zoom = zoom;
  }

  /** Move the drawing by pixels of the screen. */
  pan(dx, dy) {
    this.view.x -= dx / this.view.zoom;
    this.view.y -= dy / this.view.zoom;
  }

  /** The place of the drawing under one of the canvas. */
  placeOf({ x, y }) {
    return { x: this.view.x + x / this.view.zoom, y: this.view.y + y / this.view.zoom };
  }

  sees({ x, y, width, height }, { size, view } = this) {
    return x + width >= view.x && x <= view.x + size.width / view.zoom && y + height >= view.y && y <= view.y + size.height / view.zoom;
  }
}
