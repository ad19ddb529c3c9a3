// What part of the drawing is in sight: a corner and a zoom.
/** Below this zoom nothing can be read with ease, so nothing is shown so small at first. */
export const READABLE = 1;
export const LARGEST = 1.7;
export const MARGIN = 24;
/** How much more than an open group is shown of its height. */
const AROUND = 1.5;
const [FURTHEST, NEAREST] = [0.02, 4];

export class Camera {
  constructor(canvas) {
    this.canvas = canvas;
    this.view = { x: 0, y: 0, zoom: 1 };
  }

  get size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /** The zoom at which a whole drawing is in sight. */
  fitting({ width, height }, size = this.size) {
    return Math.min(size.width / (width + 2 * MARGIN), size.height / (height + 2 * MARGIN), LARGEST);
  }

  /** The whole drawing, however small. */
  fit(drawing) {
    const zoom = Math.max(this.fitting(drawing), FURTHEST);
    this.centre(drawing.width / 2, drawing.height / 2, zoom);
  }

  /** A box, and the whole drawing where that can be read. */
  lookAt(box, drawing) {
    if (this.fitting(drawing) >= READABLE) return this.fit(drawing);
    const { width, height } = this.size;
    // An open group with something of what is around it.
    const inside = this.fitting({ width: box.width, height: box.height * AROUND });
    if (box.open) return this._lookInto(box, drawing, Math.max(Math.min(inside, LARGEST), READABLE));
    const zoom = Math.max(Math.min(this.view.zoom, LARGEST), READABLE);
    this._place(box.x + box.width / 2 - width / zoom / 2, box.y - height / zoom / 3, zoom, drawing);
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

  keepInSight(box) {
    const { width, height } = this.size;
    const { x, y, zoom } = this.view;
    const margin = 40 / zoom;
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

  sees({ x, y, width, height }) {
    const { size, view } = this;
    return x + width >= view.x && x <= view.x + size.width / view.zoom && y + height >= view.y && y <= view.y + size.height / view.zoom;
  }
}
