// What is open, selected and in sight.  The parts of the page around it only call its methods.
import { strongestPath } from "./gradients.js";
import { Layouts, flatten } from "./layout.js";
import { Legend } from "./legend.js";
import { groupKey, lone, nodeKey } from "./level.js";
import { Model } from "./model.js";
import { nextBox } from "./neighbours.js";
import { firstOpen } from "./opening.js";
import { Outline } from "./outline.js";
import { buildPage } from "./page.js";
import { Painter } from "./paint.js";
import { Panel } from "./panel.js";
import { listenToKeys } from "./keys.js";
import { listenToPointer } from "./pointer.js";
import { Scale, SpreadScale } from "./scale.js";
import { labelOf, sizeOf } from "./sizes.js";
import { DARK, LIGHT, PAPER } from "./theme.js";
import { described } from "./words.js";

/** Below this zoom nothing can be read with ease, so nothing is shown so small at first. */
const READABLE = 0.8;
const LARGEST = 1.4;
const MARGIN = 24;
/** A drawing that would be smaller on paper cannot be read there; then what is in sight is printed. */
const SMALLEST_PRINT = 0.3;

export class Viewer {
  /** @param histograms a function that promises them, for each gradient of each pass */
  constructor(data, histograms) {
    this.model = new Model(data);
    this.layouts = new Layouts(this.model, sizeOf(this.model), labelOf(this.model));
    this.open = firstOpen(this.model);
    this.selected = null;
    this.path = null;
    this.trouble = -1;
    this.printing = false;
    this.view = { x: 0, y: 0, zoom: 1 };
    Object.assign(this, buildPage(this));
    this.panel = new Panel(this.aside, this, histograms);
    this.outline = new Outline(this.list, this);
    this.legend = new Legend(this.footer, () => this.draw());
    this.painter = new Painter(this.canvas, this.model);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this._rescale();
    this._arrange();
    this._listen();
    this._start();
  }

  // ------------------------------------------------------------------ what is drawn

  _rescale() {
    const { model } = this;
    if (model.isSpread) this.scale = new SpreadScale([...model.source.keys()].map((edge) => model.onEdge(edge).norm));
    else this.scale = new Scale(model.pass ? [...new Set(model.pass.edges)].map((entry) => model.pass.norm[entry]) : []);
    this.legend.show(this.scale);
    this.showTroubles();
  }

  _arrange() {
    this.drawing = flatten(this.layouts.whole(this.open));
    this.boxes = new Map(this.drawing.boxes.map((box) => [box.key, box]));
    this.outline.show(this.drawing.boxes);
  }

  draw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.painter.paint(this.printing ? this._onPaper() : this._scene());
    });
  }

  _scene() {
    const { drawing, scale, view, selected, path, canvas } = this;
    const size = { width: canvas.clientWidth, height: canvas.clientHeight };
    return { drawing, scale, view, selected, path, size, theme: this.dark.matches ? DARK : LIGHT, ratio: window.devicePixelRatio ?? 1 };
  }

  /** On white paper: the whole drawing, or what is in sight where the whole could not be read. */
  _onPaper() {
    const scene = this._scene();
    const { width, height } = this.drawing;
    const zoom = Math.min(scene.size.width / width, scene.size.height / height, LARGEST);
    const whole = { x: (width - scene.size.width / zoom) / 2, y: 0, zoom };
    return { ...scene, view: zoom < SMALLEST_PRINT ? scene.view : whole, theme: PAPER, ratio: 3 };
  }

  // At once, because the browser prints what is there when this returns.
  _print(isPrinting) {
    this.printing = isPrinting;
    this.painter.paint(isPrinting ? this._onPaper() : this._scene());
  }

  // ------------------------------------------------------------------ going somewhere

  _start() {
    const address = location.hash;
    this.goHome();
    if (!this._restore(address) && this.model.troubles.places.length) this.nextTrouble(1);
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
  }

  /** Bring a box into sight, and the whole drawing where that can be read. */
  _look(key) {
    const box = this.boxes.get(key);
    if (!box) return;
    this.view = this._viewOf(box);
    this.placed = { key, ...this.view };
  }

  _viewOf(box) {
    const { clientWidth, clientHeight } = this.canvas;
    const { width, height } = this.drawing;
    const fit = Math.min(clientWidth / (width + 2 * MARGIN), clientHeight / (height + 2 * MARGIN), LARGEST);
    if (fit >= READABLE) {
      // All of it can be seen at once and still be read.
      return { zoom: fit, x: (width - clientWidth / fit) / 2, y: (height - clientHeight / fit) / 2 };
    }
    const zoom = Math.max(Math.min(this.view.zoom, LARGEST), READABLE);
    const above = Math.max(box.y - clientHeight / zoom / 3, -MARGIN);
    return { zoom, x: box.x + box.width / 2 - clientWidth / zoom / 2, y: above };
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
    this._show();
    this._remember();
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

  _show() {
    const box = this.selected && this.boxes.get(this.selected);
    this.panel.show(box, this.path?.list ?? null);
    this.outline.mark(this.selected);
    this.said.textContent = box ? described(this.model, box) : "";
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
  }

  closeAll() {
    this.open = firstOpen(this.model);
    this._arrange();
    this.goHome();
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
    this._rescale();
    this._arrange();
    this.select(this.boxes.has(this.selected) ? this.selected : null);
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
    const { clientWidth, clientHeight } = this.canvas;
    const { zoom } = this.view;
    const margin = 40 / zoom;
    const [wide, tall] = [clientWidth / zoom, clientHeight / zoom];
    this.view.x = Math.min(Math.max(this.view.x, box.x + box.width + margin - wide), box.x - margin);
    this.view.y = Math.min(Math.max(this.view.y, box.y + box.height + margin - tall), box.y - margin);
    this.draw();
  }

  zoomAt(factor, x, y) {
    const zoom = Math.min(Math.max(this.view.zoom * factor, 0.02), 4);
    this.view.x += x / this.view.zoom - x / zoom;
    this.view.y += y / this.view.zoom - y / zoom;
    this.view.zoom = zoom;
    this.draw();
  }

  // ------------------------------------------------------------------ the address

  _remember() {
    const state = new URLSearchParams();
    if (this.selected) state.set("at", this.selected);
    if (this.model.passNumber) state.set("pass", String(this.model.passNumber));
    if (this.ranks && this.model.rank !== this.model.ranks.first) state.set("rank", String(this.model.rank));
    try {
      history.replaceState(null, "", `#${state}`);
    } catch {
      // Inside another page, as in a notebook, the address is not this page's own.
    }
  }

  _restore(address) {
    const state = new URLSearchParams(address.slice(1));
    const pass = Number(state.get("pass") ?? 0);
    const rank = this.model.ranks?.choices.find((choice) => String(choice) === state.get("rank"));
    if (this.model.data.passes[pass] && (pass > 0 || rank !== undefined)) this.choosePass(pass, rank);
    const match = /^([ng])(\d+)$/.exec(state.get("at") ?? "");
    if (!match) return false;
    const [, sort, digits] = match;
    const id = Number(digits);
    if (id >= (sort === "n" ? this.model.size : this.model.parent.length)) return false;
    this.reveal(sort === "n" ? { node: id } : { group: id });
    return true;
  }

  // ------------------------------------------------------------------ events

  _listen() {
    new ResizeObserver(() => this._resized()).observe(this.canvas);
    this.dark.addEventListener("change", () => this.draw());
    listenToPointer(this);
    listenToKeys(this);
    addEventListener("beforeprint", () => this._print(true));
    addEventListener("afterprint", () => this._print(false));
  }
}
