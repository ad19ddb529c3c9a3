// What is open, selected and in sight.  The parts of the page around it only call its methods.
import { read, written } from "./address.js";
import { Camera, READABLE } from "./camera.js";
import { plural } from "./format.js";
import { strongestPath } from "./gradients.js";
import { Layouts, flatten } from "./layout.js";
import { Legend } from "./legend.js";
import { groupKey, lone, nodeKey } from "./level.js";
import { Model } from "./model.js";
import { nextBox } from "./neighbours.js";
import { MOST_BOXES, everything, firstOpen } from "./opening.js";
import { Outline } from "./outline.js";
import { buildPage } from "./page.js";
import { Painter } from "./paint.js";
import { Panel } from "./panel.js";
import { listenToKeys } from "./keys.js";
import { listenToPointer } from "./pointer.js";
import { copied } from "./saving.js";
import { Scale, SpreadScale } from "./scale.js";
import { labelOf, sizeOf } from "./sizes.js";
import { PAPER, screenTheme } from "./theme.js";
import { Trail } from "./trail.js";
import { described, inShort } from "./words.js";

/** A canvas may be small or not be there yet; what is open at first does not hang on that. */
const SMALLEST = { width: 700, height: 800 };
/** Milliseconds without moving after which the address is written. */
const STILL = 300;

const pause = () => new Promise((done) => setTimeout(done));

export class Viewer {
  /** @param histograms a function that promises them, for each gradient of each pass */
  constructor(data, histograms) {
    this.model = new Model(data);
    this.layouts = new Layouts(this.model, sizeOf(this.model), labelOf(this.model));
    this.selected = null;
    this.hovered = null;
    this.path = null;
    this.trouble = -1;
    this.printing = false;
    Object.assign(this, buildPage(this));
    this.camera = new Camera(this.canvas);
    this.panel = new Panel(this.aside, this, histograms);
    this.outline = new Outline(this.list, this);
    this.legend = new Legend(this.footer, () => this._recolored());
    this.painter = new Painter(this.canvas, this.model);
    this.first = firstOpen(this.model, (open) => this._fits(open));
    this.open = new Set(this.first);
    this.trail = new Trail(() => this._written(), (address) => this._restore(address));
    this._arrange();
    this._rescale();
    this._listen();
    this._start();
    (window.requestIdleCallback ?? setTimeout)(() => this.finder.search.prepare());
  }

  get view() {
    return this.camera.view;
  }

  /** Whether the drawing with these groups open can be read as a whole. */
  _fits(open) {
    const { width, height } = this.camera.size;
    const size = { width: Math.max(width, SMALLEST.width), height: Math.max(height, SMALLEST.height) };
    return this.camera.fitting(this.layouts.whole(open), size) >= READABLE;
  }

  // ------------------------------------------------------------------ what is drawn

  _rescale() {
    const { model } = this;
    if (model.isSpread) this.scale = new SpreadScale([...model.source.keys()].map((edge) => model.onEdge(edge).norm));
    else this.scale = new Scale(model.pass ? [...new Set(model.pass.edges)].map((entry) => model.pass.norm[entry]) : []);
    this.legend.show(this.scale);
    this.river.show();
    this.showTroubles();
  }

  _arrange() {
    this.drawing = flatten(this.layouts.whole(this.open));
    this.boxes = new Map(this.drawing.boxes.map((box) => [box.key, box]));
    this.outline.show(this.drawing.boxes);
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
    });
  }

  _paint() {
    this.painter.paint(this.printing ? this._onPaper() : this.scene());
  }

  scene() {
    const { drawing, scale, view, selected, hovered, path, camera } = this;
    return { drawing, scale, view, selected, hovered, path, size: camera.size, theme: screenTheme(), ratio: window.devicePixelRatio ?? 1 };
  }

  _onPaper() {
    return { ...this.scene(), hovered: null, view: this.camera.onPaper(this.drawing), theme: PAPER, ratio: 3 };
  }

  // At once, because the browser prints what is there when this returns.
  _print(isPrinting) {
    this.printing = isPrinting;
    this._paint();
  }

  _recolored() {
    this.river.show();
    this.draw();
  }

  // ------------------------------------------------------------------ going somewhere

  _start() {
    if (!this._restore(location.hash) && this.model.troubles.places.length) this.nextTrouble(1);
    this.trail.push();
  }

  /** To the output. */
  goHome() {
    this._look(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    this.select(null);
  }

  /** The key of the box in which a node or group is drawn now. */
  _keyOf({ node, group }) {
    const { model } = this;
    const chain = model.around(node === undefined ? group : model.owner[node]).reverse();
    for (const g of chain.slice(1)) {
      if (!this.open.has(g)) {
        const shown = lone(model, g);
        return shown.node === undefined ? groupKey(shown.group) : nodeKey(shown.node);
      }
    }
    return node === undefined ? groupKey(group) : nodeKey(node);
  }

  /** Open everything around a node or group, select it and bring it into sight. */
  reveal(thing) {
    const { model } = this;
    const inner = thing.node === undefined ? model.parent[thing.group] : model.owner[thing.node];
    for (const g of model.around(inner)) this.open.add(g);
    this._arrange();
    const key = this._keyOf(thing);
    this._look(key);
    this.select(key);
    this.trail.push();
  }

  /** Bring a box into sight, and the whole drawing where that can be read. */
  _look(key) {
    const box = this.boxes.get(key);
    if (!box) return;
    this.camera.lookAt(box, this.drawing);
    this.placed = { key, ...this.view };
  }

  /** A frame in another page gets its size late; who has not moved since sees what was meant. */
  _resized() {
    const { placed, view } = this;
    if (placed && placed.x === view.x && placed.y === view.y && placed.zoom === view.zoom) this._look(placed.key);
    this.draw();
  }

  select(key) {
    this.selected = key;
    const box = key && this.boxes.get(key);
    this.path = box?.node !== undefined && this.model.isLeaf(box.node) ? this._marked(box.node) : null;
    const node = box && (box.node ?? (box.group === undefined ? undefined : this.model.first[box.group]));
    if (node !== undefined && node !== null) this.river.mark(node);
    this._show();
    this.trail.note();
    this.draw();
  }

  /** Mark the strongest way from the root to a node. */
  markPath(node) {
    this.path = this._marked(node);
    this._show();
    this.draw();
  }

  _marked(node) {
    const list = strongestPath(this.model, node);
    const ends = list.flatMap((edge) => [this.model.source[edge], this.model.target[edge]]);
    return { edges: new Set(list), boxes: new Set(ends.map((end) => this._keyOf({ node: end }))), list };
  }

  /** The box or line that a key names, if it is drawn. */
  thing(key) {
    return (key && (this.boxes.get(key) ?? this.drawing.bundles.find((bundle) => bundle.key === key))) || null;
  }

  _show() {
    const thing = this.thing(this.selected);
    this.panel.show(thing, this.path?.list ?? null);
    this.outline.mark(this.selected);
    this.crumbs.show(thing);
    this.said.textContent = thing ? described(this.model, thing) : "";
  }

  /** What is under the pointer is marked, and said beside it. */
  hover(thing, event) {
    if ((thing?.key ?? null) !== this.hovered) {
      this.hovered = thing?.key ?? null;
      this.draw();
    }
    if (thing) this.tip.show(inShort(this.model, thing), event.clientX, event.clientY);
    else this.tip.hide();
  }

  // ------------------------------------------------------------------ opening and closing

  /** Open or close a group; its box stays where it is on the screen. */
  toggle(key) {
    const before = this.boxes.get(key);
    if (before?.group === undefined) return;
    if (this.open.has(before.group)) this.open.delete(before.group);
    else this.open.add(before.group);
    this._arrange();
    const after = this.boxes.get(key);
    this.view.x += after.x + after.width / 2 - before.x - before.width / 2;
    this.view.y += after.y - before.y;
    this.select(key);
    this.trail.push();
  }

  /** Open everything in the selected group, or everything there is, as far as there is room. */
  async openAll() {
    const { group = 0 } = this.boxes.get(this.selected) ?? {};
    const { open, left } = await everything(this.model, this.open, group, (g) => this.layouts.prepare(g), pause);
    this._openedTo(open);
    if (left) this.status.say(`${plural(left, "group")} stay closed, for at most ${MOST_BOXES} boxes are opened at once. Select one and press E to open what is in it.`);
  }

  /** Close everything in the selected group, or everything there is. */
  shutAll() {
    const { group = 0 } = this.boxes.get(this.selected) ?? {};
    const { before, behind } = this.model;
    this._openedTo(new Set([...this.open].filter((g) => g === 0 || before[g] < before[group] || before[g] >= behind[group])));
  }

  /** Back to what was open at first, at the output. */
  closeAll() {
    this.open = new Set(this.first);
    this._arrange();
    this.goHome();
    this.trail.push();
  }

  _openedTo(open) {
    const { selected } = this;
    this.open = open;
    this._arrange();
    if (this.boxes.has(selected)) this._look(selected);
    else this._look(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    this.select(this.boxes.has(selected) ? selected : null);
    this.trail.push();
  }

  undo() {
    if (!this.trail.step(-1)) this.status.say("There is nothing to undo.");
  }

  redo() {
    if (!this.trail.step(1)) this.status.say("There is nothing to do again.");
  }

  // ------------------------------------------------------------------ moving

  /** To the next place with a finding or a gradient that is not finite. */
  nextTrouble(step) {
    const { places } = this.model.troubles;
    if (!places.length) return;
    this.trouble = (Math.max(this.trouble, step > 0 ? -1 : 0) + step + places.length) % places.length;
    this.reveal({ node: places[this.trouble] });
    this.showTroubles();
  }

  /** To another of the report's backward passes, or to another rank's. */
  choosePass(number, rank = this.model.rank) {
    const { passes } = this.model.data;
    this.model.choose((number + passes.length) % passes.length, rank);
    this.trouble = -1;
    this.layouts.forget();
    this._arrange();
    this._rescale();
    this.select(this.thing(this.selected) ? this.selected : null);
    if (this.passes) this.passes.value = String(this.model.passNumber);
    if (this.ranks) this.ranks.value = String(rank);
  }

  /** To the neighbour of the selected box in a direction. */
  follow(direction) {
    const box = this.boxes.get(this.selected);
    if (!box) return this.select(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    const next = nextBox(box, direction, this.drawing.boxes, (forward) => this._linked(box, forward));
    if (!next) return;
    this.select(next.key);
    this.keepInSight(next);
  }

  /** The boxes that edges lead to from a box, or come from. */
  _linked(box, forward) {
    const { model } = this;
    if (box.seed !== undefined) return new Set([this._keyOf({ node: model.data.roots[box.seed].node })]);
    const nodes = box.node === undefined ? model.inside(box.group) : [box.node];
    const found = new Set();
    for (const node of nodes) {
      for (const edge of forward ? model.outgoing(node) : model.incoming(node)) {
        found.add(this._keyOf({ node: forward ? model.target[edge] : model.source[edge] }));
      }
    }
    found.delete(box.key);
    return found;
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
    const box = this.boxes.get(this._keyOf({ node }));
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

  // ------------------------------------------------------------------ the address

  /** The page with what is seen now. */
  link() {
    return `${location.href.split("#")[0]}#${this._written()}`;
  }

  async copy(text, done) {
    this.status.say((await copied(text)) ? done : "The browser does not allow this page to copy.");
  }

  _written() {
    const { model, selected, open, first, placed, view } = this;
    const isAsPlaced = placed && placed.x === view.x && placed.y === view.y && placed.zoom === view.zoom;
    const isFirst = open.size === first.size && [...open].every((g) => first.has(g));
    return written({
      at: selected,
      open: isFirst ? null : open,
      pass: model.passNumber,
      rank: this.ranks && model.rank !== model.ranks.first ? String(model.rank) : "",
      // What was brought into sight because it is selected, is so again on a screen of another size.
      middle: isAsPlaced ? null : this.camera.middle,
    });
  }

  /** See what an address says; returns whether it says where. */
  _restore(address) {
    const { model } = this;
    const { at, open, pass, rank, middle } = read(address, model.parent.length);
    const named = this.ranks && rank === null ? model.ranks.first : model.ranks?.choices.find((choice) => String(choice) === rank);
    const isPass = Boolean(model.data.passes[pass]);
    if (isPass && (pass !== model.passNumber || (named !== undefined && named !== model.rank))) this.choosePass(pass, named);
    this.open = new Set(open ?? this.first);
    this._arrange();
    const isSaid = this._goTo(at);
    if (!isSaid) this.goHome();
    if (middle) this.camera.centre(middle.x, middle.y, middle.zoom);
    this.draw();
    return isSaid || middle !== null || open !== null;
  }

  /** Select what a key names, and open what is around it. */
  _goTo(key) {
    const { model } = this;
    const [, sort, digits] = /^([ng])(\d+)$/.exec(key ?? "") ?? [];
    const id = Number(digits);
    if (sort && id < (sort === "n" ? model.size : model.parent.length)) {
      const around = model.around(sort === "n" ? model.owner[id] : model.parent[id]);
      if (around.some((g) => !this.open.has(g))) {
        for (const g of around) this.open.add(g);
        this._arrange();
      }
      key = this._keyOf(sort === "n" ? { node: id } : { group: id });
    }
    if (!this.thing(key)) return false;
    this._look(key);
    this.select(key);
    return true;
  }

  // ------------------------------------------------------------------ events

  _listen() {
    new ResizeObserver(() => this._resized()).observe(this.canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => this._recolored());
    listenToPointer(this);
    listenToKeys(this);
    addEventListener("beforeprint", () => this._print(true));
    addEventListener("afterprint", () => this._print(false));
  }
}
