// What is open and selected, and what changes that.  The parts of the page around it only call its methods.
import { read, stateOf, written } from "./address.js";
import { MARGIN, READABLE } from "./camera.js";
import { Drawing } from "./drawing.js";
import { forgetListeners, hear, pause } from "./element.js";
import { plural } from "./format.js";
import { strongestPath } from "./gradients.js";
import { listenToKeys } from "./keys.js";
import { nextBox } from "./neighbours.js";
import { MOST_BOXES, everything, firstOpen, mainGroup } from "./opening.js";
import { Outline } from "./outline.js";
import { Panel } from "./panel.js";
import { SOON, listenToPointer } from "./pointer.js";
import { SPREAD } from "./ranks.js";
import { copied } from "./saving.js";
import { SpreadScale } from "./scale.js";
import { Trail } from "./trail.js";
import { linked } from "./whereabouts.js";
import { described } from "./words.js";

/** Pixels in which a program can still be read, and can be read well. */
const [LEAST_CODE, WELL] = [300, 560];

/** The group that a box opens and closes, 0 for what is none: of a round that is shown what stands for it. */
const groupOf = (box) => (box?.group === undefined ? 0 : Number(box.key.slice(1)));

export class Viewer extends Drawing {
  /**
   * @param histograms a function that promises them, for each gradient of each pass
   * @param {{trail: Trail|null, address: string, isStep: boolean, elsewhere: Function}} way of the page: the steps so far, where
   *   to go, whether that is a step, and how to show another of the page's graphs
   */
  constructor(data, histograms, way) {
    super(data);
    this.way = way;
    this.trouble = -1;
    this.panel = new Panel(this.aside, this, histograms);
    this.outline = new Outline(this.list, this);
    this.first = firstOpen(this.model, (open, group) => this._zoomOf(open, group));
    this.open = new Set(this.first);
    this.trail = way.trail ?? new Trail();
    Object.assign(this.trail, { written: () => this._written(), go: (address) => this._restore(address) });
    this._arrange();
    this._makeRoom();
    this._rescale();
    this._listen();
    this._start();
  }

  // ------------------------------------------------------------------ going somewhere

  _start() {
    const { trail, way: { address, isStep } } = this;
    const { isGoing } = trail;
    trail.isGoing = true; // nothing of this belongs to the step before
    if (!this._restore(address)) {
      const { isRatio, marks = {} } = this.shown.data ?? {};
      const [first] = Object.keys(marks);
      if (this.model.troubles.places.length) this.nextTrouble(1);
      // What only one side of a comparison has; keys that are numbers are in order.
      else if (isRatio && first) {
        const thing = this._wholeOf(Number(first), marks);
        this._openTo(thing);
        // Of blocks drawn once all are meant.
        for (const repeat of this.open) if (this.model.once.has(repeat)) this.model.templates.single(this.open, repeat, null);
        this._arrange();
        this._makeRoom();
        this.view.zoom = READABLE;
        this._look(this.keyOf(thing));
        this.select(null); // for the panel tells of the whole comparison
      }
    }
    trail.isGoing = isGoing;
    if (isStep) trail.push();
    if (this.passes) this.passes.value = String(this.call);
  }

  /** The largest group around a node of which every node is marked, or the node. */
  _wholeOf(node, marks) {
    const isMarked = (g) => g > 0 && this.model.inside(g).every((one) => one in marks);
    const groups = this.model.around(this.model.owner[node]);
    const end = groups.findIndex((g) => !isMarked(g));
    return end > 0 ? { group: groups[end - 1] } : { node };
  }

  /** Make room for another graph; returns whether the switch between calls has the focus. */
  leave() {
    const isSwitch = document.activeElement === this.passes;
    clearTimeout(this.noting);
    forgetListeners();
    for (const part of this.parts) part.remove();
    return isSwitch;
  }

  /** To the output. */
  goHome() {
    this._look(this._rootKey());
    this.select(null);
  }

  /**
   * The facts give what the first look at the graph beside the code needs, unless they say more than the leaves; then the code
   * does, where it can: for the whole, all of its room if need be, or else for what is most of it.
   */
  _makeRoom() {
    const { drawing, canvas, code, model: { data, troubles } } = this;
    this._fold(false);
    const most = this.boxes.get(`g${mainGroup(this.model, this.open)}`);
    const [whole, main] = [drawing, most ?? drawing].map((one) => one.width + 2 * MARGIN);
    const beside = (pixels) => canvas.clientWidth + code.element.clientWidth - pixels;
    const wanted = () => [whole, main].find((one) => one <= beside(LEAST_CODE));
    this._fold(code.isShown && whole > beside(WELL) && !data.answer && !troubles.places.length);
    const width = wanted();
    const isSeen = whole <= beside(0) && drawing.height + 2 * MARGIN <= canvas.clientHeight;
    // A line that makes NaN says more than the whole graph.
    const isTooWide = !width && !troubles.places.length;
    if (code.isShown && (isTooWide || (width !== whole && isSeen))) return code.toggle();
    if (width) canvas.parentNode.style.flexBasis = `${width}px`;
  }

  /** Whether the facts are there only of what is selected, over the graph. */
  get isFolded() {
    return document.body.classList.contains("folded");
  }

  _fold(isFolded) {
    document.body.classList.toggle("folded", isFolded);
    this.facts.ariaPressed = !isFolded;
  }

  toggleFacts() {
    this._fold(!this.isFolded);
  }

  /** What is selected comes out from below its facts, and a second click on the same place is for what is there. */
  _showFacts(box) {
    const { classList } = document.body;
    const isNew = box && !classList.contains("chosen");
    classList.toggle("chosen", Boolean(box));
    if (isNew) {
      classList.add("fresh");
      setTimeout(() => classList.remove("fresh"), SOON);
    }
    if (!this.isFolded || !box || box.open || box.edges) return;
    const over = (box.x + box.width - this.view.x) * this.view.zoom - (this.canvas.clientWidth - this.aside.clientWidth - MARGIN);
    if (over > 0) this.pan(-over, 0);
  }

  /** What is most of the whole, or else where it begins, with the worst that the verdict is about. */
  _home() {
    const group = mainGroup(this.model, this.open);
    // Of a round that is meant the heading says it.
    const marks = this.model.troubles.marks.filter(([node]) => node >= 0);
    const [node] = marks.find(([, , , , isRound]) => !isRound) ?? marks[0] ?? [];
    this._look(this.boxes.get(`g${group}`)?.open ? `g${group}` : this._rootKey(), node === undefined ? null : this.keyOf({ node }));
    this._choose(null);
    this.code.begin(this.model.templates.contents(group).members);
  }

  _rootKey() {
    return this.keyOf({ node: this.model.data.roots[0]?.node ?? 0 });
  }

  /** Open everything around a node or group, select it and bring it into sight. */
  reveal(thing) {
    this._openTo(thing);
    const key = this.keyOf(thing);
    this._look(key);
    this._choose(key);
    this.trail.push();
  }

  /** To a box that is drawn. */
  goTo(key) {
    this._look(key);
    this.select(key);
  }

  /** Open what is around a node or group; of a repeat that is drawn once the round that has it is shown. */
  _openTo({ node, group }) {
    const { parent, owner, templates } = this.model;
    this.open = templates.opened(this.open, node === undefined ? parent[group] : owner[node]);
    const isRound = group !== undefined && this.cast.roundIn(group, this.cast.groupOf(group)) !== null;
    if (isRound) this.open = templates.opened(this.open, group);
    this._arrange();
  }

  select(key) {
    this._choose(key);
    this.trail.note();
  }

  _choose(key) {
    this.selected = key;
    const box = key && this.boxes.get(key);
    this.path = box?.node !== undefined && this.model.isLeaf(box.node) && !(box.each?.length > 1) ? this._marked(box.node) : null;
    this._show();
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
    return { edges: new Set(list), boxes: new Set(ends.map((end) => this.keyOf({ node: end }))), list };
  }

  _show() {
    if (!this.isSeen) return;
    const thing = this.thing(this.selected);
    this._showFacts(thing);
    const node = thing?.node ?? this.model.first[thing?.group];
    if (node !== undefined) this.river.mark(node);
    this.panel.show(thing, this.path?.list ?? null);
    this.outline.mark(this.selected);
    this.code.mark(thing);
    this.crumbs.show(thing);
    this.said.textContent = thing ? described(this, thing) : "";
  }

  // ------------------------------------------------------------------ opening and closing

  /** Open or close a group; its box stays where it is on the screen. */
  toggle(key) {
    const before = this.boxes.get(key);
    if (before?.group === undefined) return;
    const group = groupOf(before);
    if (this.open.has(group)) this.open.delete(group);
    else this.open.add(group);
    this._arrange();
    const after = this.boxes.get(key);
    this.view.x += after.x + after.width / 2 - before.x - before.width / 2;
    this.view.y += after.y - before.y;
    this._choose(key);
    this.trail.push();
  }

  // ------------------------------------------------------------------ one of several layers

  /** Show the round that a bar stands for, in the pass that it is of, or all again where it is shown alone. */
  showBar(box, number, pass = this.model.passNumber) {
    const isOther = pass !== this.model.passNumber;
    if (isOther) this.choosePass(pass);
    this._showRound(box.repeats ?? [box.group], box.picked === number && !isOther ? null : number);
    this._choose(box.key);
    this.trail.push();
  }

  /** @param repeats that are drawn once @param number of the round in them, null for all */
  _showRound(repeats, number) {
    const { templates } = this.model;
    for (const repeat of [...repeats].reverse()) {
      const { length } = templates.of(repeat).rounds;
      this.open.add(repeat);
      templates.single(this.open, repeat, number === null ? null : number % length);
      number = number === null ? null : Math.floor(number / length);
    }
    this._arrange();
  }

  /** To the next round of what is selected, or of the first that is drawn once; after the last come all. */
  nextLayer(step) {
    const { templates } = this.model;
    const { repeats } = this.thing(this.selected) ?? {};
    const repeat = repeats?.at(-1) ?? [...this.cast.at.keys()][0];
    if (repeat === undefined) return;
    const { length } = templates.of(repeat).rounds;
    const now = templates.layer(repeat, this.open) ?? -1;
    const next = ((now + 1 + step + length + 1) % (length + 1)) - 1;
    this._showRound([repeat], next < 0 ? null : next);
    this._choose(this.thing(this.selected) ? this.selected : `g${repeat}`);
    this.trail.push();
  }

  /** Open everything in the selected group, or everything there is, as far as there is room. */
  async openAll() {
    const group = groupOf(this.boxes.get(this.selected));
    const { open, left } = await everything(this.model, this.open, group, (g, found) => this.layouts.prepare(g, found), pause);
    this._openedTo(open);
    if (left) this.status.say(`${plural(left, "group")} stay closed: at most ${MOST_BOXES} boxes open at once. Select one and press E to open it.`);
  }

  /** Close everything in the selected group, or everything there is. */
  shutAll() {
    const group = groupOf(this.boxes.get(this.selected));
    const { before, behind } = this.model;
    this._openedTo(new Set([...this.open].filter((g) => g === 0 || before[g] < before[group] || before[g] >= behind[group])));
  }

  /** Back to what was open at first, at the output. */
  closeAll() {
    this.open = new Set(this.first);
    this._arrange();
    this._home();
    this.trail.push();
  }

  _openedTo(open) {
    const { selected } = this;
    this.open = open;
    this._arrange();
    if (this.boxes.has(selected)) {
      this._look(selected);
      this._choose(selected);
    } else this._home();
    this.trail.push();
  }

  undo() {
    if (!this.trail.step(-1)) this.status.say("Nothing to undo.");
  }

  redo() {
    if (!this.trail.step(1)) this.status.say("Nothing to redo.");
  }

  // ------------------------------------------------------------------ from place to place

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
    const { isAsPlaced } = this;
    this.model.choose((number + passes.length) % passes.length, rank);
    if (this.model.isSpread) this.shown = this.gradients;
    this.trouble = -1;
    this.layouts.forget();
    this._arrange();
    this._rescale();
    if (isAsPlaced) this._lookAgain();
    this.select(this.thing(this.selected) ? this.selected : null);
    if (this.passes) this.passes.value = String(this.call);
    if (this.ranks) this.ranks.value = String(rank);
  }

  /** To another of the run's backward calls, which may have walked another graph. */
  chooseCall(i) {
    const { calls, graph } = this.model.data;
    const [, to, pass] = calls[(i + calls.length) % calls.length];
    if (to === graph) this.choosePass(pass);
    else this.way.elsewhere(`graph=${to}&pass=${pass}&show=${this.choice - 1}`, true);
  }

  /** Which of all calls is looked at. */
  get call() {
    const { calls, graph } = this.model.data;
    return calls.findIndex(([, of, pass]) => of === graph && pass === this.model.passNumber);
  }

  nextCall(step) {
    if (this.passes) this.chooseCall(this.call + step);
  }

  // ------------------------------------------------------------------ what is shown

  /** What colours may mean: gradients, each overlay, and how far ranks are apart. */
  get choices() {
    const { ranks } = this.model;
    return [this.gradients, ...this.overlays].map((one) => one.name).concat(ranks?.choices.includes(SPREAD) ? [SpreadScale.title] : []);
  }

  /** Whether a key has something to do on this page. */
  hasKey(key) {
    const needs = { R: this.ranks, "[  ]": this.passes, O: this.choices[1] };
    return !(key in needs) || Boolean(needs[key]);
  }

  get choice() {
    return this.model.isSpread ? this.choices.length - 1 : this.overlays.indexOf(this.shown) + 1;
  }

  chooseOverlay(choice) {
    const { model, choices } = this;
    const isSpread = choice > this.overlays.length;
    this.shown = this.overlays[choice - 1] ?? this.gradients;
    if (isSpread || model.isSpread) return this.choosePass(model.passNumber, isSpread ? SPREAD : model.ranks.shown);
    this._rescale();
    this._show();
    this.outline.show(this.drawing.boxes);
    this.draw();
    this.trail.note();
  }

  nextOverlay() {
    this.chooseOverlay((this.choice + 1) % this.choices.length);
    this.status.say(`Colours mean: ${this.choices[this.choice]}`);
  }

  /** To the neighbour of the selected box in a direction. */
  follow(direction) {
    const box = this.boxes.get(this.selected);
    if (!box) return this.select(this._rootKey());
    const next = nextBox(box, direction, this.drawing.boxes, (forward) => linked(this.model, (node) => this.keyOf({ node }), box, forward !== Boolean(box.isUp)));
    if (!next) return;
    this.select(next.key);
    this.keepInSight(next);
  }

  // ------------------------------------------------------------------ the address

  /** The page with what is seen now. */
  link() {
    return `${location.href.split("#")[0]}#${this._written()}`;
  }

  async copy(text, done) {
    this.status.say((await copied(text)) ? done : "This browser lets no page copy.");
  }

  _written() {
    return written(stateOf(this));
  }

  /** See what an address says; returns whether it says where. */
  _restore(address) {
    const { model } = this;
    const { at, open, graph, overlay, pass, rank, middle } = read(address, model.parent.length);
    if (graph !== model.data.graph && this.way.elsewhere(address, false)) return true;
    const shown = this.overlays[overlay] ?? this.gradients;
    if (shown !== this.shown) {
      this.shown = shown;
      this._rescale();
    }
    const named = this.ranks && rank === null ? model.ranks.shown : model.ranks?.choices.find((choice) => String(choice) === rank);
    const isPass = Boolean(model.data.passes[pass]);
    if (isPass && (pass !== model.passNumber || (named !== undefined && named !== model.rank))) this.choosePass(pass, named);
    this.open = new Set(open ?? this.first);
    this._arrange();
    const isSaid = this._goTo(at);
    if (!isSaid) this._home();
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
      const thing = sort === "n" ? { node: id } : { group: id };
      if (!this.boxes.has(key)) this._openTo(thing);
      key = this.keyOf(thing);
    }
    if (!this.thing(key)) return false;
    this._look(key);
    this.select(key);
    return true;
  }

  // ------------------------------------------------------------------ events

  _listen() {
    new ResizeObserver(() => this._resized()).observe(this.canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) hear(matchMedia(query), "change", () => this._recolored());
    listenToPointer(this);
    listenToKeys(this);
    hear(window, "beforeprint", () => this._print(true));
    hear(window, "afterprint", () => this._print(false));
  }
}
