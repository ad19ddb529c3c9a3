// What is drawn and what part of it is in sight.  Which groups are open, and what is selected, viewer.js decides.
import { Camera } from "./camera.js";
import { extent } from "./curve.js";
import { pause, span } from "./element.js";
import { plural } from "./format.js";
import { Layouts, flatten } from "./layout.js";
import { Model } from "./model.js";
import { Gradients, Overlay } from "./overlay.js";
import { buildPage } from "./page.js";
import { Painter } from "./paint.js";
import { addSheets, onPaper, removeSheets } from "./paper.js";
import { labelOf, sizeOf } from "./sizes.js";
import { screenTheme } from "./theme.js";
import { inShort, ofBar, told } from "./words.js";

/** A canvas may be small or not be there yet; what is open at first does not hang on that. */
const SMALLEST = { width: 700, height: 800 };
/** Milliseconds without moving after which the address is written. */
const SEVERITY = { "✖": "error", "▲": "warning", "△": "information" };
const STILL = 300;

export class Drawing {
  constructor(data) {
    this.model = new Model(data);
    this.layouts = new Layouts(this.model, sizeOf(this.model), labelOf(this.model));
    this.open = new Set([0]);
    this.selected = null;
    this.hovered = null;
    this.bar = null;
    this.path = null;
    this.printing = false;
    this.overlays = data.overlays.map((one) => new Overlay(this.model, one));
    this.shown = this.gradients = new Gradients(this.model);
    Object.assign(this, buildPage(this));
    this.camera = new Camera(this.canvas);
    this.painter = new Painter(this.canvas, this.model);
  }

  /** Whether colours mean the size of gradients, or how far ranks are apart. */
  get isOfGradients() {
    return this.shown === this.gradients;
  }

  get view() {
    return this.camera.view;
  }

  /** The zoom at which the whole drawing, or a group from side to side, is in sight while these are open: who reads on goes down. */
  _zoomOf(open, group) {
    const { width, height } = this.camera.size;
    const size = { width: Math.max(width, SMALLEST.width), height: Math.max(height, SMALLEST.height) };
    const whole = this.layouts.whole(open);
    return this.camera.fitting(group ? { width: this.layouts.placed.get(group).width, height: 0 } : whole, size);
  }

  keyOf(thing) {
    return this.cast.keyOf(this.open, thing);
  }

  /** The box or line that a key names, if it is drawn. */
  thing(key) {
    return (key && (this.boxes.get(key) ?? this.drawing.bundles.find((bundle) => bundle.key === key))) || null;
  }

  // ------------------------------------------------------------------ what is drawn

  _rescale() {
    for (const one of this.overlays) one.forget();
    this.scale = this.gradients.scale;
    this.shownScale = this.isOfGradients ? this.scale : this.shown.scale;
    this.legend.show(this.shownScale);
    this.river.show();
    this.code.show();
    // It is on the rank that is shown first.
    const isItsRank = this.model.rank === (this.model.ranks?.shown ?? null);
    const said = (isItsRank && this.model.data.calls[this.call]?.[5]) || "";
    this.verdict.replaceChildren(...(said.match(/.+\n?/g) ?? []).map((line) => span(SEVERITY[line[0]] ?? "", line)));
    this.showTroubles();
  }

  _arrange() {
    const { templates } = this.model;
    this.cast = templates.cast(this.open);
    this.drawing = flatten(this.layouts.whole(this.open), this.cast, (repeat) => templates.layer(repeat, this.open));
    this.boxes = new Map(this.drawing.boxes.map((box) => [box.key, box]));
    if (this.isSeen) this.outline.show(this.drawing.boxes);
  }

  /** The boxes that are in sight. */
  inSight() {
    return this.drawing.boxes.filter((box) => this.camera.sees(box));
  }

  draw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this._paint();
      this.river.look();
      this.rest ??= this._rest();
    });
  }

  /** The graph is drawn first; what is around it comes when it is seen, each part in a task of its own, so that nobody has to wait for all. */
  async _rest() {
    await new Promise(requestAnimationFrame);
    this.isSeen = true;
    for (const part of [() => this.river.show(), () => this.code.show(), () => this.outline.show(this.drawing.boxes), () => this._show()]) {
      await pause();
      part();
    }
    this.finder.search.prepare();
  }

  _paint() {
    this.painted = String(Object.values(this.camera.size));
    this.painter.paint(this.printing ? onPaper(this) : this.scene());
    this._pointAbove();
  }

  /** Where the gradient comes from, while that is above what is in sight. */
  _pointAbove() {
    const { above, model } = this;
    const root = this.boxes.get(this._rootKey());
    above.hidden = !root || root.y + root.height > this.view.y;
    if (above.hidden) return;
    const many = this.drawing.boxes.filter((box) => !box.open && box.y + box.height <= this.view.y).length;
    above.textContent = `↑ ${plural(many, "box", "boxes")} above`;
    above.title = `${inShort(model, { seed: 0 }).join(" ")}, to output (Home)`;
  }

  scene() {
    const { drawing, shown, shownScale: scale, scale: sizes, view, selected, hovered, bar, path, camera } = this;
    return { drawing, shown, scale, sizes, view, selected, hovered, bar, path, size: camera.size, theme: screenTheme(), ratio: window.devicePixelRatio ?? 1 };
  }

  // At once, because the browser prints what is there when this returns.
  _print(isPrinting) {
    this.printing = isPrinting;
    this._paint();
    if (isPrinting) addSheets(this);
    else removeSheets();
  }

  _recolored() {
    this.river.show();
    this.draw();
  }

  // ------------------------------------------------------------------ what is in sight

  /** Bring a box into sight, and the whole drawing where that can be read; with one that is marked, and what leaves it. */
  _look(key, marked = null) {
    const box = this.boxes.get(key);
    if (!box) return;
    this.camera.lookAt(box, this.drawing, marked && this._withNumbers(marked));
    this.placed = { key, marked, ...this.view };
  }

  /** The place of a box and of the numbers beside the lines that leave it. */
  _withNumbers(key) {
    const { x, y, width, height } = this.boxes.get(key);
    const labels = this.drawing.bundles.filter(({ from, label }) => from === key && label).flatMap(({ label: { x, y, isLeft }, room }) => [{ x, y }, { x: isLeft ? x - room : x + room, y }]);
    return extent([{ x, y }, { x: x + width, y: y + height }, ...labels]);
  }

  /** A frame in another page gets its size late; who has not moved since sees what was meant. */
  _resized() {
    if (this.isAsPlaced) this._lookAgain();
    if (String(Object.values(this.camera.size)) !== this.painted) this.draw();
  }

  _lookAgain() {
    const { key, marked } = this.placed;
    this._look(key, marked);
  }

  /** Whether nobody has moved what was brought into sight. */
  get isAsPlaced() {
    const { placed, view } = this;
    return placed && placed.x === view.x && placed.y === view.y && placed.zoom === view.zoom;
  }

  /** What is under the pointer is marked, and said beside it. */
  hover(thing, event, bar = null) {
    if ((thing?.key ?? null) !== this.hovered || bar?.number !== this.bar?.number || bar?.pass !== this.bar?.pass) {
      this.hovered = thing?.key ?? null;
      this.bar = bar;
      this.draw();
    }
    if (thing) this.tip.show(this._tipOf(thing, bar), event.clientX, event.clientY);
    else this.tip.hide();
  }

  /** What is said beside the pointer of a box or line, or of one bar of a box, with what an overlay says of it. */
  _tipOf(thing, bar) {
    const { model, shown } = this;
    const one = bar === null ? thing : model.barOf(thing, bar.number);
    const words = this.isOfGradients || !one ? "" : told(one.edges ? shown.onLine(one) : shown.of(one));
    return [...(bar === null ? inShort(model, thing) : ofBar(model, thing, bar.number, bar.pass)), words && `${shown.name}: ${words}`].filter(Boolean);
  }

  keepInSight(box) {
    this.camera.keepInSight(box);
    this._moved();
  }

  zoomAt(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    this.camera.zoomAt(factor, x, y);
    this._moved();
  }

  /** Move the drawing by pixels of the screen. */
  pan(dx, dy) {
    this.camera.pan(dx, dy);
    this._moved();
  }

  /** The whole drawing. */
  fit() {
    this.camera.fit(this.drawing);
    this._moved();
  }

  /** Bring a node, or the closed group that it is in, to the middle. */
  centre(node) {
    const box = this.boxes.get(this.keyOf({ node }));
    const { zoom } = this.view;
    this.camera.centre(box.x + box.width / 2, box.y + box.height / 2, zoom);
    this._moved();
  }

  _moved() {
    this.draw();
    this.remember();
  }

  /** Write what is in sight into the address, once nothing moves any more. */
  remember() {
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.trail.note(), STILL);
  }
}
