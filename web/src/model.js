// The report in memory: columns decoded, groups linked, and every number that is drawn.
// Knows nothing of layout or of the screen.  The other side of this form is render/_pack.py.

export const STATES = ["not reached", "none", "zero", "finite", "non-finite"];
const LOUDEST = ["non-finite", "finite", "zero", "none", "not reached"];
export const KINDS = ["op", "leaf", "custom", "opaque"];

/** The report inside a page: base64 of gzipped JSON. */
export async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export class Model {
  /** @param {object} data what `pack` of render/_pack.py made */
  constructor(data) {
    this.data = data;
    this.strings = data.strings;
    this.size = data.nodes.op.length;
    this.owner = Int32Array.from(data.nodes.group);
    this.parent = Int32Array.from(data.groups.parent);
    this._link(data.edges);
    this._nest();
    this.leafOf = new Map(data.leaves.node.map((node, position) => [node, position]));
    this.rootNodes = new Set(data.roots.map((root) => root.node));
    this.findingsAt = this._findings(data.findings);
    this.choose(0);
  }

  _link(edges) {
    const total = edges.slot.length;
    this.source = new Int32Array(total);
    this.target = new Int32Array(total);
    this.slot = edges.slot;
    this.output = edges.output;
    let source = 0;
    for (let i = 0; i < total; i++) {
      source += edges.source[i];
      this.source[i] = source;
      this.target[i] = source + edges.ahead[i];
    }
    this.outgoing = bucket(this.source, this.size);
    this.incoming = bucket(this.target, this.size);
  }

  _nest() {
    const groups = this.parent.length;
    this.children = Array.from({ length: groups }, () => []);
    for (let g = 1; g < groups; g++) this.children[this.parent[g]].push(g);
    this.members = Array.from({ length: groups }, () => []);
    for (let n = 0; n < this.size; n++) this.members[this.owner[n]].push(n);
    this.ops = new Int32Array(groups);
    for (let n = 0; n < this.size; n++) if (!this.isLeaf(n)) this.ops[this.owner[n]] += 1;
    for (let g = groups - 1; g > 0; g--) this.ops[this.parent[g]] += this.ops[g];
  }

  _findings(findings) {
    const found = new Map();
    findings.forEach((finding, i) => {
      if (finding.node) found.set(finding.node.id, [...(found.get(finding.node.id) ?? []), i]);
    });
    return found;
  }

  /** Look at one of the report's backward passes; nothing where it has none. */
  choose(number) {
    this.pass = this.data.passes[number] ?? null;
    this.passNumber = number;
    this._entering = new Map();
    this._bad = null;
  }

  // ---------------------------------------------------------------- nodes

  isLeaf(node) {
    return this.data.nodes.kind[node] === 1;
  }

  kind(node) {
    return KINDS[this.data.nodes.kind[node]];
  }

  names(node) {
    const position = this.leafOf.get(node);
    return position === undefined ? [] : this.data.leaves.names[position].map((i) => this.strings[i]);
  }

  /** What a node is called: a leaf's name, else its operation. */
  title(node) {
    if (this.isLeaf(node)) return this.names(node)[0] ?? `#${node}`;
    return this.strings[this.data.nodes.short[node]];
  }

  op(node) {
    return this.strings[this.data.nodes.op[node]];
  }

  module(node) {
    return this.strings[this.data.nodes.module[node]];
  }

  variable(node) {
    return this.strings[this.data.nodes.variable[node]];
  }

  /** `[2,3] float32` of an output. */
  shape(node, output = 0) {
    return this.strings[this.data.nodes.shape[node][output] ?? 0];
  }

  origin(node) {
    const at = this.data.nodes.origin[node];
    if (at < 0) return null;
    const origins = this.data.origins;
    return {
      file: this.strings[origins.file[at]],
      line: origins.line[at],
      expression: this.strings[origins.expression[at]],
      function: this.strings[origins.function[at]],
    };
  }

  /** The user's words for what a node computed. */
  label(node) {
    if (this.isLeaf(node)) return "";
    const expression = this.origin(node)?.expression ?? "";
    const variable = this.variable(node);
    return variable && expression ? `${variable} = ${expression}` : variable || expression;
  }

  // ---------------------------------------------------------------- groups

  group(g) {
    const { kind, title, type, label, count } = this.data.groups;
    const at = (column) => this.strings[column[g]];
    return { kind: at(kind), title: at(title), type: at(type), label: at(label), count: count[g] };
  }

  /** The groups around a node or group, innermost first, the whole graph last. */
  around(group) {
    const found = [];
    for (let g = group; g >= 0; g = this.parent[g]) found.push(g);
    return found;
  }

  /** All nodes in a group at any depth. */
  inside(group) {
    const found = [];
    const waiting = [group];
    for (const g of waiting) {
      for (const node of this.members[g]) found.push(node);
      for (const child of this.children[g]) waiting.push(child);
    }
    return found;
  }

  /** For every group the child of `group` that it lies in, -1 elsewhere. */
  childrenAround(group) {
    const found = new Int32Array(this.parent.length).fill(-1);
    // Parents come before their children.
    for (let g = 1; g < found.length; g++) {
      found[g] = this.parent[g] === group ? g : found[this.parent[g]];
    }
    return found;
  }

  // ---------------------------------------------------------------- gradients

  /** One gradient of the pass's table. */
  gradient(entry) {
    const pass = this.pass;
    return {
      state: STATES[pass.state[entry]],
      norm: pass.norm[entry],
      absmax: pass.absmax[entry] ?? null,
      nan: pass.bad[entry]?.[0] ?? 0,
      inf: pass.bad[entry]?.[1] ?? 0,
      dtype: this.strings[pass.dtype[entry]],
      values: pass.values[entry] ?? null,
    };
  }

  onEdge(edge) {
    return this.pass && this.gradient(this.pass.edges[edge]);
  }

  upstream(node, output = 0) {
    return this.pass && this.gradient(this.pass.upstream[node][output]);
  }

  /** What enters a group: the upstream gradients at all places where edges or seeds lead in, as one long vector. */
  entering(group) {
    if (!this.pass) return null;
    if (!this._entering.has(group)) {
      const inside = new Set(this.inside(group));
      const places = new Map();
      const note = (node, output) => places.set(`${node}.${output}`, this.upstream(node, output));
      for (const node of inside) {
        for (const edge of this.incoming(node)) if (!inside.has(this.source[edge])) note(node, this.output[edge]);
      }
      for (const root of this.data.roots) if (inside.has(root.node)) note(root.node, root.output);
      this._entering.set(group, combine([...places.values()]));
    }
    return this._entering.get(group);
  }

  /** The gradients of a bundle of edges as one. */
  flowing(edges) {
    return this.pass && combine(edges.map((edge) => this.onEdge(edge)));
  }

  /** Nodes that receive or make a gradient that is not finite, in backward order, and nodes with a finding. */
  get troubles() {
    if (this._bad) return this._bad;
    const found = new Set(this.findingsAt.keys());
    if (this.pass && !found.size) {
      const bad = (entry) => this.pass.state[entry] === 4;
      for (let n = 0; n < this.size; n++) {
        if (this.pass.upstream[n].some(bad) || this.outgoing(n).some((e) => bad(this.pass.edges[e]))) found.add(n);
      }
    }
    this._bad = [...found].sort((a, b) => a - b);
    return this._bad;
  }

  /** The worst severity of the findings about nodes in a group or node; "" for none. */
  severity(nodes) {
    const known = new Set();
    for (const node of nodes) {
      for (const i of this.findingsAt.get(node) ?? []) known.add(this.data.findings[i].severity);
    }
    return ["error", "warning", "information"].find((level) => known.has(level)) ?? "";
  }

  /**
   * The way from a root to a node along which the gradient is strongest: the one whose weakest edge is largest.
   * One pass over the nodes, whose ids are in the order of backward.  Returns edges, the first at the root.
   */
  strongestPath(goal) {
    const strength = new Float64Array(this.size).fill(-1);
    const by = new Int32Array(this.size).fill(-1);
    for (const root of this.data.roots) strength[root.node] = Infinity;
    for (let n = 0; n < goal; n++) {
      if (strength[n] < 0) continue;
      for (const edge of this.outgoing(n)) {
        const norm = this.pass ? Number(this.onEdge(edge).norm ?? 0) : 1;
        const through = Math.min(strength[n], Number.isNaN(norm) ? Infinity : norm);
        if (through > strength[this.target[edge]]) {
          strength[this.target[edge]] = through;
          by[this.target[edge]] = edge;
        }
      }
    }
    const path = [];
    for (let n = goal; by[n] >= 0 && !this._isStart(n, path); n = this.source[by[n]]) path.push(by[n]);
    return path.reverse();
  }

  _isStart(node, path) {
    return path.length > 0 && this.rootNodes.has(node);
  }
}

/** Several gradients as one long vector, as reading.py does it. */
export function combine(parts) {
  if (parts.length === 1) return parts[0];
  const state = LOUDEST.find((one) => parts.some((part) => part.state === one)) ?? "not reached";
  const silent = state === "none" || state === "not reached";
  const norms = parts.filter((part) => part.norm !== null).map((part) => Number(part.norm));
  return {
    state,
    norm: silent || !norms.length ? null : hypot(norms),
    absmax: null,
    nan: parts.reduce((sum, part) => sum + part.nan, 0),
    inf: parts.reduce((sum, part) => sum + part.inf, 0),
    dtype: parts[0]?.dtype ?? "float32",
    values: null,
  };
}

// Math.hypot(...many) would put every number on the stack.
function hypot(norms) {
  const largest = norms.reduce((most, x) => (Number.isNaN(x) || x > most ? x : most), 0);
  if (!(largest > 0) || !Number.isFinite(largest)) return largest;
  return largest * Math.sqrt(norms.reduce((sum, x) => sum + (x / largest) ** 2, 0));
}

/** Indices by their key, as a function from key to a list; two flat arrays instead of a list each. */
function bucket(keys, size) {
  const start = new Int32Array(size + 1);
  for (const key of keys) start[key + 1] += 1;
  for (let i = 0; i < size; i++) start[i + 1] += start[i];
  const place = start.slice();
  const order = new Int32Array(keys.length);
  keys.forEach((key, i) => (order[place[key]++] = i));
  return (key) => Array.from(order.subarray(start[key], start[key + 1]));
}
