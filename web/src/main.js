// The page: what is open, selected and in sight, and what every key and click does.
import { number, plural, visible } from "./format.js";
import { Layouts, flatten } from "./layout.js";
import { groupKey, lone, nodeKey } from "./level.js";
import { Model, unpack } from "./model.js";
import { DARK, LIGHT, Painter, groupWords, labelOf, sizeOf, told } from "./paint.js";
import { Panel, element } from "./panel.js";
import { Scale } from "./scale.js";
import { Search } from "./search.js";

/** Boxes that are opened by themselves at most. */
const FIRST = 70;
/** Below this zoom nothing can be read, so nothing is shown so small at first. */
const READABLE = 0.62;
const OUTLINE = 400;

class Viewer {
  constructor(data) {
    this.model = new Model(data);
    this.layouts = new Layouts(this.model, sizeOf(this.model), labelOf(this.model));
    this.search = new Search(this.model);
    this.open = firstOpen(this.model);
    this.selected = null;
    this.path = null;
    this.view = { x: 0, y: 0, zoom: 1 };
    this._build();
    this.panel = new Panel(this.aside, this.model, (node) => this.reveal({ node }));
    this.painter = new Painter(this.canvas, this.model);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this._rescale();
    this._arrange();
    this._listen();
    this._start();
  }

  // ------------------------------------------------------------------ the page

  _build() {
    const { model } = this;
    const { meta } = model.data;
    this.input = element("input", { type: "search", placeholder: "Search op, name, module, line…  /", "aria-label": "Search", role: "combobox", "aria-expanded": "false", "aria-controls": "results" });
    this.results = element("ul", { class: "results", id: "results", role: "listbox", hidden: "" });
    this.alarm = element("span", { class: "alarm" });
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys follow it, Enter opens and closes, slash searches." });
    this.outline = element("ul", { class: "outline", role: "tree", "aria-label": "What is drawn" });
    this.said = element("div", { class: "outline", "aria-live": "polite" });
    this.aside = element("aside", { "aria-label": "Details" });
    this.legend = element("footer", {});
    const about = `${visible(meta.target)} · ${plural(model.size, "node")} · gradients flow down`;
    document.body.append(
      element("header", {}, element("h1", { text: "gradscope" }), element("span", { class: "about faint", text: about }), this.alarm, this._steps(),
        element("button", { text: "Close all", on: { click: () => this.closeAll() } }),
        element("div", { class: "search" }, this.input, this.results)),
      element("main", {}, this.canvas, this.outline, this.said),
      this.aside,
      this.legend,
    );
    const troubles = model.troubles.length;
    if (troubles) this.alarm.textContent = `⚠ ${plural(troubles, "place")} (N)`;
  }

  /** A switch between the backward passes of the report. */
  _steps() {
    const { passes } = this.model.data;
    if (passes.length < 2) return null;
    const options = passes.map((pass, i) => element("option", { value: i, text: pass.number ? `backward call ${pass.number}` : "gradscope's own pass" }));
    const change = (event) => {
      this.model.choose(Number(event.target.value));
      this._rescale();
      this._show();
      this.draw();
    };
    return element("select", { "aria-label": "Backward pass", on: { change } }, ...options);
  }

  _rescale() {
    const { pass } = this.model;
    this.scale = new Scale(pass ? [...new Set(pass.edges)].map((entry) => pass.norm[entry]) : []);
    this._drawLegend();
  }

  _drawLegend() {
    const { scale } = this;
    const steps = element("span", { class: "steps", title: "drag to move the range" }, ...Scale.steps.map((color) => {
      const step = element("i", {});
      step.style.background = color;
      return step;
    }));
    steps.addEventListener("pointerdown", (event) => this._dragLegend(event, steps));
    const ends = [scale.from, scale.to].map((x) => element("span", { text: number(Number((10 ** x).toPrecision(2))) }));
    this.legend.replaceChildren(
      scale.known ? element("span", { class: "scale" }, element("b", { text: "‖gradient‖" }), ends[0], steps, ends[1], element("span", { class: "faint", text: "smaller – typical – larger in this file" })) : element("span", { text: "no gradients in this report" }),
      element("span", { class: "faint", text: "□ output   ◯ leaf   ▸ closed   ▾ open   dashed: no gradient   ⚠ not finite" }),
    );
  }

  _dragLegend(down, steps) {
    const { from, to } = this.scale;
    const width = steps.clientWidth;
    // Near an end that end moves, in the middle both do.
    const place = down.offsetX / width;
    const move = (event) => {
      const shift = ((event.clientX - down.clientX) / width) * (to - from);
      if (place < 0.67) this.scale.from = Math.min(from - shift, this.scale.to - 0.5);
      if (place > 0.33) this.scale.to = Math.max(to - shift, this.scale.from + 0.5);
      this.draw();
    };
    const up = () => {
      removeEventListener("pointermove", move);
      this._drawLegend();
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up, { once: true });
  }

  // ------------------------------------------------------------------ what is drawn

  _arrange() {
    this.drawing = flatten(this.layouts.whole(this.open));
    this.boxes = new Map(this.drawing.boxes.map((box) => [box.key, box]));
    this._outline();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.painter.paint(this._scene());
    });
  }

  _scene() {
    const { drawing, scale, view, selected, path } = this;
    const size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
    return { drawing, scale, view, selected, path, size, theme: this.dark.matches ? DARK : LIGHT };
  }

  /** The same for those who do not see the canvas: what is drawn, as a list. */
  _outline() {
    const { model } = this;
    const items = this.drawing.boxes.slice(0, OUTLINE).map((box) => {
      const words = box.group === undefined
        ? `${visible(model.label(box.node) || model.title(box.node))}, ${model.isLeaf(box.node) ? "leaf" : "operation"}, gradient ${told(model.upstream(box.node))}`
        : `${groupWords(model, box.group).title}, ${groupWords(model, box.group).count}, gradient ${told(model.entering(box.group))}`;
      const attributes = { role: "treeitem", "aria-level": box.depth + 1, tabindex: "-1" };
      if (box.group !== undefined) attributes["aria-expanded"] = String(box.open);
      return element("li", { ...attributes, text: words, on: { click: () => this.select(box.key), dblclick: () => this.toggle(box.key) } });
    });
    this.outline.replaceChildren(...items);
  }

  // ------------------------------------------------------------------ moving and choosing

  _start() {
    const [worst] = this.model.troubles;
    if (location.hash && this._restore()) return;
    if (worst !== undefined) this.reveal({ node: worst });
    else this._look(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    this._show();
    this.draw();
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

  /** Open everything around a node or group, select it and bring it into the middle. */
  reveal(thing) {
    const { model } = this;
    const inner = thing.node === undefined ? model.parent[thing.group] : model.owner[thing.node];
    for (const g of model.around(inner)) this.open.add(g);
    this._arrange();
    const key = this._keyOf(thing);
    this._look(key);
    this.select(key);
  }

  _look(key) {
    const box = this.boxes.get(key);
    if (!box) return;
    const { clientWidth, clientHeight } = this.canvas;
    const fit = Math.min(clientWidth / (this.drawing.width + 40), clientHeight / (this.drawing.height + 40), 1.4);
    if (fit >= READABLE) {
      // All of it can be seen at once and still be read.
      this.view = { zoom: fit, x: (this.drawing.width - clientWidth / fit) / 2, y: (this.drawing.height - clientHeight / fit) / 2 };
      return;
    }
    const zoom = Math.max(Math.min(this.view.zoom, 1.4), READABLE);
    this.view = { zoom, x: box.x + box.width / 2 - clientWidth / zoom / 2, y: box.y + box.height / 2 - clientHeight / zoom / 3 };
  }

  select(key) {
    this.selected = key;
    const box = key && this.boxes.get(key);
    const edges = box && box.node !== undefined ? this.model.strongestPath(box.node) : [];
    this.path = box && box.node !== undefined && this.model.isLeaf(box.node) ? this._marked(edges) : null;
    this._show();
    this._remember();
    this.draw();
  }

  _marked(edges) {
    const ends = edges.flatMap((edge) => [this.model.source[edge], this.model.target[edge]]);
    return { edges: new Set(edges), boxes: new Set(ends.map((node) => this._keyOf({ node }))), list: edges };
  }

  _show() {
    const box = this.selected && this.boxes.get(this.selected);
    if (!box) this.panel.whole();
    else if (box.node === undefined) this.panel.group(box.group);
    else this.panel.node(box.node, this.path?.list);
    this.said.textContent = box ? this.aside.querySelector("h2").textContent : "";
  }

  /** Open or close a group; its box stays where it is on the screen. */
  toggle(key) {
    const before = this.boxes.get(key);
    if (!before || before.group === undefined) return;
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
    this.selected = null;
    this._look(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    this.select(null);
  }

  /** To the next place with a finding or a gradient that is not finite. */
  nextTrouble(step) {
    const { troubles } = this.model;
    if (!troubles.length) return;
    this.trouble = ((this.trouble ?? (step > 0 ? -1 : 0)) + step + troubles.length) % troubles.length;
    this.reveal({ node: troubles[this.trouble] });
  }

  /** To the neighbour of the selected box in a direction. */
  _follow(direction) {
    const box = this.boxes.get(this.selected);
    if (!box) return this.select(this._keyOf({ node: this.model.data.roots[0]?.node ?? 0 }));
    const middle = (one) => ({ x: one.x + one.width / 2, y: one.y + one.height / 2 });
    const here = middle(box);
    const along = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[direction];
    const linked = along[1] ? this._linked(box.key, along[1] > 0) : null;
    let best = null;
    for (const other of this.drawing.boxes) {
      if (other.open || other.key === box.key || (linked?.size && !linked.has(other.key))) continue;
      const there = middle(other);
      const ahead = (there.x - here.x) * along[0] + (there.y - here.y) * along[1];
      const aside = Math.abs((there.x - here.x) * along[1]) + Math.abs((there.y - here.y) * along[0]);
      if (ahead <= 0 && !linked?.size) continue;
      const cost = Math.abs(ahead) + 3 * aside;
      if (!best || cost < best.cost) best = { cost, other };
    }
    if (best) {
      this.select(best.other.key);
      this._keepInSight(best.other);
    }
  }

  /** The boxes that edges lead to from a box, or come from. */
  _linked(key, forward) {
    const { model } = this;
    const box = this.boxes.get(key);
    const nodes = box.node === undefined ? model.inside(box.group) : [box.node];
    const found = new Set();
    for (const node of nodes) {
      for (const edge of forward ? model.outgoing(node) : model.incoming(node)) {
        found.add(this._keyOf({ node: forward ? model.target[edge] : model.source[edge] }));
      }
    }
    found.delete(key);
    return found;
  }

  _keepInSight(box) {
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
    history.replaceState(null, "", `#${state}`);
  }

  _restore() {
    const key = new URLSearchParams(location.hash.slice(1)).get("at");
    const match = /^([ng])(\d+)$/.exec(key ?? "");
    if (!match) return false;
    const [, sort, digits] = match;
    const id = Number(digits);
    if (id >= (sort === "n" ? this.model.size : this.model.parent.length)) return false;
    this.reveal(sort === "n" ? { node: id } : { group: id });
    return true;
  }

  // ------------------------------------------------------------------ events

  _listen() {
    const { canvas } = this;
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.dark.addEventListener("change", () => this.draw());
    canvas.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this._press(event));
    canvas.addEventListener("dblclick", (event) => this.toggle(this._at(event)?.key));
    addEventListener("keydown", (event) => this._key(event));
    this.input.addEventListener("input", () => this._find());
    this.input.addEventListener("keydown", (event) => this._searchKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => this._hideResults(), 150));
    addEventListener("beforeprint", () => this._print());
    addEventListener("afterprint", () => this.draw());
  }

  _wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX) && event.deltaMode === 0 && !Number.isInteger(event.deltaY)) {
      this.zoomAt(Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
      return;
    }
    this.zoomAt(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }

  _press(down) {
    const { canvas } = this;
    const from = { ...this.view };
    let moved = false;
    const move = (event) => {
      const [dx, dy] = [event.clientX - down.clientX, event.clientY - down.clientY];
      moved ||= Math.hypot(dx, dy) > 4;
      if (!moved) return;
      canvas.classList.add("moving");
      this.view.x = from.x - dx / from.zoom;
      this.view.y = from.y - dy / from.zoom;
      this.draw();
    };
    const up = () => {
      removeEventListener("pointermove", move);
      canvas.classList.remove("moving");
      if (!moved) this.select(this._at(down)?.key ?? null);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up, { once: true });
  }

  /** The innermost box under the pointer. */
  _at({ offsetX, offsetY }) {
    const x = this.view.x + offsetX / this.view.zoom;
    const y = this.view.y + offsetY / this.view.zoom;
    return this.drawing.boxes.findLast((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  }

  _key(event) {
    if (event.target === this.input || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("select, button, aside") && ["Enter", " "].includes(event.key)) return;
    const actions = {
      "/": () => this.input.focus(),
      Escape: () => this.select(null),
      Enter: () => this.toggle(this.selected),
      " ": () => this.toggle(this.selected),
      n: () => this.nextTrouble(1),
      N: () => this.nextTrouble(1),
      p: () => this.nextTrouble(-1),
      P: () => this.nextTrouble(-1),
      "+": () => this.zoomAt(1.25, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2),
      "-": () => this.zoomAt(0.8, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2),
    };
    const action = event.key.startsWith("Arrow") ? () => this._follow(event.key) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  _find() {
    const { found, total } = this.search.find(this.input.value);
    this.found = found;
    this.chosen = 0;
    const rows = found.map((entry, i) => element("li", { role: "option", "aria-selected": String(i === 0), on: { mousedown: () => this._take(entry) } }, element("span", { text: entry.shown }), element("span", { class: "kind", text: entry.kind })));
    if (total > found.length) rows.push(element("li", { class: "faint", text: `${plural(total, "match").replace("matchs", "matches")}, the first ${found.length} shown` }));
    if (!total && this.input.value.trim()) rows.push(element("li", { class: "faint", text: "nothing found" }));
    this.results.replaceChildren(...rows);
    this.results.hidden = !rows.length;
    this.input.setAttribute("aria-expanded", String(rows.length > 0));
  }

  _searchKey(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this._find();
      this.canvas.focus();
    } else if (event.key === "Enter" && this.found?.[this.chosen]) {
      this._take(this.found[this.chosen]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const options = [...this.results.querySelectorAll("[role=option]")];
      if (!options.length) return;
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : -1) + options.length) % options.length;
      options.forEach((option, i) => option.setAttribute("aria-selected", String(i === this.chosen)));
      options[this.chosen].scrollIntoView({ block: "nearest" });
    }
  }

  _take(entry) {
    this._hideResults();
    this.canvas.focus();
    this.reveal(entry);
  }

  _hideResults() {
    this.results.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  /** On paper the whole drawing, as large as the page allows, on white. */
  _print() {
    const { clientWidth, clientHeight } = this.canvas;
    const zoom = Math.min(clientWidth / this.drawing.width, clientHeight / this.drawing.height);
    this.painter.paint({ ...this._scene(), view: { x: 0, y: 0, zoom }, theme: LIGHT, ratio: 3 });
  }
}

/** Level by level, as long as the boxes that are then drawn can be taken in; loops stay closed, for their rounds are alike. */
function firstOpen(model) {
  const open = new Set([0]);
  let drawn = model.children[0].length + model.members[0].length;
  let frontier = model.children[0];
  const held = (g) => model.children[g].length + model.members[g].length;
  const growth = (groups) => groups.reduce((sum, g) => sum + held(g), 0);
  while (frontier.length) {
    const ready = frontier.filter((g) => model.group(g).kind !== "repeat" || model.group(g).type);
    // Repeats first: their rounds belong on the same level as what stands beside the repeat.
    const repeats = ready.filter((g) => model.group(g).kind === "repeat");
    const others = ready.filter((g) => model.group(g).kind !== "repeat");
    const chosen = [repeats, others].find((groups) => groups.length && drawn + growth(groups) <= FIRST);
    if (!chosen) break;
    for (const g of chosen) open.add(g);
    drawn += growth(chosen);
    frontier = [...ready.filter((g) => !open.has(g)), ...chosen.flatMap((g) => model.children[g])];
  }
  return open;
}

unpack(document.getElementById("report").textContent).then((data) => {
  window.gradscope = new Viewer(data);
});
