// The side panel: everything known of one node, group, or of the whole report.  Text only, never markup.
import { count, number, plural, shapeOf, tensor, visible } from "./format.js";
import { groupWords, told } from "./paint.js";

/** An element with text or children; the one way in which the page makes elements. */
export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  const { text, on, ...attributes } = options;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  for (const [name, listener] of Object.entries(on ?? {})) made.addEventListener(name, listener);
  made.append(...children.filter(Boolean));
  return made;
}

export class Panel {
  /** @param go called with a node that the reader wants to see */
  constructor(root, model, go) {
    this.root = root;
    this.model = model;
    this.go = go;
  }

  whole() {
    const { data } = this.model;
    const { meta, notes, findings } = data;
    this._fill(
      element("h2", { text: visible(meta.target || "graph") }),
      element("p", { class: "faint", text: `${plural(this.model.size, "node")} · torch ${meta.torch}` }),
      ...notes.map((note) => element("p", { text: note })),
      findings.length ? element("h3", { text: plural(findings.length, "finding") }) : null,
      ...findings.map((finding) => this._finding(finding)),
      element("p", { class: "faint", text: "Click a box for its numbers. Double-click or Enter opens and closes it. / searches, N goes to the next finding, arrows follow the graph." }),
    );
  }

  group(g, path) {
    const { model } = this;
    const { kind, type, label, title } = model.group(g);
    const entering = model.entering(g);
    const leaves = model.inside(g).filter((node) => model.isLeaf(node));
    this._fill(
      element("h2", { text: groupWords(model, g).title }),
      element("p", { class: "faint", text: [kind, visible(type), plural(model.ops[g], "op"), plural(leaves.length, "leaf").replace("leafs", "leaves")].filter(Boolean).join(" · ") }),
      kind === "repeat" && label && title !== label ? element("p", { class: "code", text: visible(label) }) : null,
      entering ? this._facts("gradient entering", this._numbers(entering)) : null,
      ...this._findings(model.inside(g)),
      this._leaves(leaves),
      this._path(path),
    );
  }

  node(node, path) {
    const { model } = this;
    const names = model.names(node).map(visible);
    const origin = model.origin(node);
    const shape = model.shape(node);
    this._fill(
      element("h2", { text: visible(model.isLeaf(node) ? names[0] ?? "leaf" : model.label(node) || model.title(node)) }),
      element("p", { class: "faint", text: [model.op(node), `#${node}`, model.kind(node) === "op" ? "" : model.kind(node)].filter(Boolean).map(visible).join(" · ") }),
      names.length > 1 ? element("p", { class: "faint", text: `also ${names.slice(1).join(", ")}` }) : null,
      this._facts("", [["shape", shape], ["module", visible(model.module(node))], ["source", origin ? visible(`${origin.file}:${origin.line}`) : ""], ["function", origin ? visible(origin.function) : ""]]),
      origin ? this._source(origin) : null,
      ...this._findings([node]),
      ...this._upstream(node),
      this._contributions(node),
      this._downstream(node),
      this._accumulated(node),
      this._path(path),
    );
  }

  _fill(...children) {
    this.root.replaceChildren(...children.filter(Boolean));
    this.root.scrollTop = 0;
  }

  _facts(head, rows) {
    const told = rows.filter(([, value]) => value !== "" && value !== null && value !== undefined);
    if (!told.length) return null;
    const list = element("dl", {}, ...told.flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]));
    return element("section", {}, head ? element("h3", { text: head }) : null, list);
  }

  _numbers(info, shapeText = "") {
    const shape = shapeText ? shapeOf(shapeText) : null;
    return [
      ["state", info.state],
      ["values", info.values ? tensor(info.values, shape ?? [info.values.length]) : ""],
      ["‖g‖", info.norm === null ? "" : number(info.norm)],
      ["largest |g|", info.absmax === null ? "" : number(info.absmax)],
      ["NaN", info.nan ? count(info.nan) : ""],
      ["Inf", info.inf ? count(info.inf) : ""],
      ["dtype", info.dtype],
    ];
  }

  _source({ file, line }) {
    const lines = this.model.data.sources[file];
    if (!lines) return null;
    const near = Object.entries(lines).filter(([at]) => Math.abs(at - line) <= 2);
    const rows = near.map(([at, text]) =>
      element("div", { class: Number(at) === line ? "here" : "" }, element("span", { class: "at", text: at }), element("code", { text })),
    );
    return element("div", { class: "source", role: "group", "aria-label": "source" }, ...rows);
  }

  _finding(finding) {
    const { model } = this;
    const place = finding.location ? `${visible(finding.location.file)}:${finding.location.line}` : "";
    return element(
      "article",
      { class: `finding ${finding.severity}` },
      element("h4", { text: `${finding.severity} ${finding.rule} ${finding.name}` }),
      element("p", { text: visible(finding.message) }),
      place ? element("p", { class: "faint", text: place }) : null,
      finding.remedy ? element("p", { text: `→ ${visible(finding.remedy)}` }) : null,
      finding.node && finding.node.id < model.size ? this._link(finding.node.id, "show in the graph") : null,
    );
  }

  _findings(nodes) {
    const { model } = this;
    const known = new Set(nodes.flatMap((node) => model.findingsAt.get(node) ?? []));
    return [...known].map((i) => this._finding(model.data.findings[i]));
  }

  _upstream(node) {
    const { model } = this;
    if (!model.pass) return [];
    return model.pass.upstream[node].map((_, output) =>
      this._facts(output ? `upstream gradient of output ${output}` : "upstream gradient", this._numbers(model.upstream(node, output), model.shape(node, output))),
    );
  }

  /** Every incoming contribution, and that they add up. */
  _contributions(node) {
    const { model } = this;
    if (!model.pass) return null;
    const rows = model.incoming(node).map((edge) => this._flow(model.onEdge(edge), model.source[edge], "from", model.shape(node, model.output[edge])));
    model.data.roots.forEach((root, i) => {
      if (root.node === node) rows.push(element("li", {}, element("span", { class: "value", text: told(model.gradient(model.pass.seeds[i]), shapeOf(model.shape(node, root.output))) }), document.createTextNode(" given as gradient")));
    });
    if (!rows.length) return null;
    const shown = rows.slice(0, 200);
    return element(
      "section", { class: "flows" },
      element("h3", { text: rows.length > 1 ? `sum of ${rows.length} contributions` : "arrives" }),
      element("ul", {}, ...shown, rows.length > shown.length ? element("li", { text: `… ${count(rows.length - shown.length)} more` }) : null),
    );
  }

  _downstream(node) {
    const { model } = this;
    const edges = model.outgoing(node);
    if (!edges.length) return null;
    const rows = edges.slice(0, 200).map((edge) => this._flow(model.onEdge(edge), model.target[edge], "to", model.shape(model.target[edge], model.output[edge])));
    return element("section", { class: "flows" }, element("h3", { text: "passes on" }), element("ul", {}, ...rows));
  }

  _flow(info, node, word, shape) {
    const value = info ? told(info, shapeOf(shape)) : "";
    return element("li", {}, element("span", { class: "value", text: value }), document.createTextNode(` ${word} `), this._link(node, this._name(node)));
  }

  _name(node) {
    const { model } = this;
    return visible(model.label(node) || model.title(node));
  }

  _link(node, text) {
    return element("button", { class: "link", text, on: { click: () => this.go(node) } });
  }

  _accumulated(node) {
    const { model } = this;
    const position = model.leafOf.get(node);
    if (position === undefined || !model.pass) return null;
    const [now, before, after] = model.pass.accumulations[position];
    if (after === null) return null;
    const shape = shapeOf(model.shape(node));
    const say = (entry) => (entry === null ? "None" : told(model.gradient(entry), shape));
    return this._facts(".grad", [["before", say(before)], ["new", say(now)], ["after", say(after)]]);
  }

  _leaves(leaves) {
    const { model } = this;
    if (!leaves.length || !model.pass) return null;
    const size = (node) => Number(model.upstream(node).norm ?? 0);
    const sorted = [...leaves].sort((a, b) => size(b) - size(a)).slice(0, 100);
    const rows = sorted.map((node) => element("li", {}, element("span", { class: "value", text: told(model.upstream(node), shapeOf(model.shape(node))) }), document.createTextNode(" "), this._link(node, this._name(node))));
    return element("section", { class: "flows" }, element("h3", { text: "leaves inside, largest first" }), element("ul", {}, ...rows));
  }

  _path(path) {
    if (!path?.length) return null;
    return element("p", { class: "faint", text: `Marked: the way from the root along which the gradient stays strongest (${plural(path.length, "edge")}).` });
  }
}
