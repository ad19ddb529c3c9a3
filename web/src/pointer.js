// Mouse, wheel, pen and touch on the canvas: one pointer drags, two zoom.
import { distanceTo } from "./curve.js";
import { wallKey } from "./level.js";
import { HEAD, stripOf } from "./sizes.js";
import { cellAt } from "./strip.js";

/** Pixels that a pointer may move and still be a click; a finger is less steady. */
const STILL = { mouse: 4, pen: 6, touch: 10 };
/** Pixels of a wheel's line. */
const LINE = 16;
/** Milliseconds and pixels between two taps or clicks that are one gesture. */
export const [SOON, NEAR] = [500, 24];
/** Pixels around a line in which it is meant. */
const LINE_REACH = { mouse: 6, pen: 8, touch: 14 };
/** The sign at the head of a group that opens and closes it. */
const SIGN = 24;

export function listenToPointer(viewer) {
  const hand = new Hand(viewer);
  const { canvas } = viewer;
  const listen = (kind, action, options) => canvas.addEventListener(kind, action, options);
  listen("wheel", (event) => wheel(viewer, event), { passive: false });
  listen("pointerdown", (event) => hand.down(event));
  listen("pointermove", (event) => hand.move(event));
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) listen(kind, (event) => hand.up(event));
  listen("pointerleave", () => hand.leave());
  listen("dblclick", (event) => hand.double(event));
}

function wheel(viewer, event) {
  event.preventDefault();
  viewer.tip.hide();
  const unit = event.deltaMode === 1 ? LINE : 1;
  // With the shift key a wheel goes sideways, and so does a touchpad.
  const [dx, dy] = event.shiftKey && !event.deltaX ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
  if (Math.abs(dx) > Math.abs(dy)) return viewer.pan(-dx * unit, 0);
  // A pinch on a touchpad comes as a wheel with small steps and the control key.
  const speed = event.ctrlKey ? 100 : 400;
  viewer.zoomAt(Math.exp((-dy * unit) / speed), event.offsetX, event.offsetY);
}

class Hand {
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = viewer.canvas;
    /** Pointers that are down, by their id, each at its last place. */
    this.pointers = new Map();
    this.last = { at: -Infinity, x: 0, y: 0 };
  }

  down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.pointers.set(event.pointerId, placeOf(event));
    this.canvas.setPointerCapture(event.pointerId);
    this.viewer.tip.hide();
    // A second finger makes of a click a pinch, also when it is lifted first.
    if (this.pointers.size > 1) this.moved = true;
    else Object.assign(this, { moved: false, from: placeOf(event) });
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this._hover(event);
    const here = placeOf(event);
    this.moved ||= distance(here, this.from) > STILL[event.pointerType || "mouse"];
    if (!this.moved) return;
    this.canvas.classList.add("moving");
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, here);
    if (!others.length) return this.viewer.pan(here.x - before.x, here.y - before.y);
    this._pinch(others[0], before, here);
  }

  /** The places under both fingers stay under them. */
  _pinch(other, before, here) {
    const [was, is] = [middle(other, before), middle(other, here)];
    this.viewer.pan(is.x - was.x, is.y - was.y);
    const apart = distance(other, before);
    if (apart > 1) this.viewer.zoomAt(distance(other, here) / apart, is.x, is.y);
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.pointers.size) return;
    this.canvas.classList.remove("moving");
    if (event.type === "pointerup" && !this.moved) this._tap(event);
    else this.viewer.remember();
  }

  _tap(event) {
    const { last } = this;
    const isSecond = !last.isSecond && this._isAgain(event);
    // The first of two may have moved the heading that is meant.
    const found = isSecond && last.found.opens && !last.found.onSign ? last.found : thingAt(this.viewer, event);
    const isTouch = event.pointerType === "touch";
    this.last = { ...placeOf(event), found, isTouch, isSecond, at: event.timeStamp };
    if (found.bar) this.viewer.showBar(found.thing, found.bar.number, found.bar.pass);
    else if (found.onSign || (isSecond && isTouch && found.opens)) this.viewer.toggle(found.thing.key);
    else this.viewer.select(found.thing?.key ?? null);
  }

  /** Whether something is done where the last tap was, soon after it. */
  _isAgain(event) {
    return event.timeStamp - this.last.at < SOON && distance(placeOf(event), this.last) < NEAR;
  }

  double(event) {
    const { last } = this;
    if (last.isTouch) return; // told by two taps
    // A click that moved was no tap: what was tapped before is not meant.
    const found = this._isAgain(event) ? last.found : thingAt(this.viewer, event);
    if (found.opens && !found.onSign) this.viewer.toggle(found.thing.key);
  }

  _hover(event) {
    if (event.pointerType === "touch") return;
    const { thing, opens, onSign, bar = null } = thingAt(this.viewer, event);
    this.canvas.classList.toggle("on", Boolean(thing && (!thing.open || opens || onSign || bar !== null)));
    this.viewer.hover(thing?.open && !opens && bar === null ? null : thing, event, bar);
  }

  leave() {
    this.viewer.hover(null);
  }
}

const placeOf = ({ offsetX, offsetY }) => ({ x: offsetX, y: offsetY });
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** The number of the bar of a box's strip at a place and the pass that it is of, where a bar can be opened; else null. */
function barAt({ model, view, shown }, box, x, y) {
  if (!box.bars && !model.once.has(box.group)) return null;
  const strip = !box.isEnd && stripOf(model, box);
  if (!strip || y < box.y + strip.y - 2 || y > box.y + strip.y + strip.height + 2) return null;
  const [across, down] = [(x - box.x - strip.x) / strip.width, (y - box.y - strip.y) / strip.height];
  if (across < 0 || across > 1) return null;
  const grid = shown.grid(box);
  const found = cellAt(grid, [across, Math.min(Math.max(down, 0), 1)], strip, view.zoom * (window.devicePixelRatio ?? 1), model.isPair);
  return found && { number: found.number, pass: grid[1] ? found.pass : model.passNumber };
}

/**
 * The box or line under a pointer: the innermost closed box, else a line, else the open group around.
 * `opens` says whether a double-click there opens or closes it: in an open group only its heading does.
 */
function thingAt(viewer, event) {
  const { x, y } = viewer.camera.placeOf(placeOf(event));
  const { boxes, bundles } = viewer.drawing;
  const box = boxes.findLast((one) => x >= one.x && x <= one.x + one.width && y >= one.y && y <= one.y + one.height);
  const bar = box ? barAt(viewer, box, x, y) : null;
  if (bar !== null) return { thing: box, opens: false, onSign: false, bar };
  if (box && box.group === undefined) return { thing: box, opens: false, onSign: false };
  const below = box ? y - box.y : Infinity;
  const heads = box && (!box.open || below <= HEAD);
  if (heads) return { thing: box, opens: true, onSign: x - box.x <= SIGN && below <= HEAD };
  const reach = LINE_REACH[event.pointerType || "mouse"] / viewer.view.zoom;
  const near = bundles.filter(({ extent }) => x >= extent.x - reach && x <= extent.x + extent.width + reach && y >= extent.y - reach && y <= extent.y + extent.height + reach);
  const lines = near.map((bundle) => ({ bundle, far: distanceTo(bundle.points, x, y) })).filter(({ far }) => far <= reach);
  lines.sort((a, b) => a.far - b.far);
  const line = lines[0]?.bundle;
  return { thing: (line?.wall === undefined ? line : viewer.boxes.get(wallKey(line.wall))) ?? box, opens: false, onSign: false };
}
