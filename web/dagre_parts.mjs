// dagre is published as one bundle of everything it can do, which is more than half not needed here.  Its sources are in that
// bundle's source map: `dagre/…` is one of them, so that only what is imported gets into the page.
import { readFile } from "node:fs/promises";

const BUNDLE = new URL("node_modules/@dagrejs/dagre/dist/dagre.esm.js.map", import.meta.url);
const GRAPHLIB = "node_modules/@dagrejs/graphlib/lib";

/** What dagre takes of graphlib, which else has every algorithm. */
const TAKEN = `
  import { preorder } from "dagre/${GRAPHLIB}/alg/preorder";
  import { postorder } from "dagre/${GRAPHLIB}/alg/postorder";
  export { Graph } from "dagre/${GRAPHLIB}/graph";
  export const alg = { preorder, postorder };
`;

/** Methods of its graphs that nothing calls which gets into the page. */
const UNUSED = /^    (isCompound|sinks|setNodes|isLeaf|filterNodes|setDefaultEdgeLabel|edgeCount|setPath|edgeAsObj|setDefaultNodeLabel|setParent|parent)\([^]*?^    }$/gm;

export const dagreParts = {
  name: "dagre-parts",
  async setup(build) {
    const { sources, sourcesContent } = JSON.parse(await readFile(BUNDLE, "utf8"));
    const texts = new Map(sources.map((path, i) => [path.replace("../", "dagre/"), sourcesContent[i]]));
    texts.set("dagre/lib/graph-lib.ts", TAKEN);
    const graph = `dagre/${GRAPHLIB}/graph.ts`;
    texts.set(graph, texts.get(graph).replace(UNUSED, ""));
    const found = (path) => [`${path}.ts`, `${path}/index.ts`].find((file) => texts.has(file));
    build.onResolve({ filter: /^dagre\// }, ({ path }) => ({ path: found(path), namespace: "dagre" }));
    build.onResolve({ filter: /^\./, namespace: "dagre" }, ({ path, importer }) => ({
      path: found(new URL(path, `file:///${importer}`).pathname.slice(1)),
      namespace: "dagre",
      sideEffects: false,
    }));
    build.onLoad({ filter: /./, namespace: "dagre" }, ({ path }) => ({ contents: texts.get(path), loader: "ts" }));
  },
};
