// Builds the viewer into the python package.  `npm ci && npm run build`; the result is committed.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { dagreParts } from "./dagre_parts.mjs";

const assets = new URL("../gradscope/render/assets/", import.meta.url);

/** What is said so often that a name of its own is shorter; short.mjs has them. */
const SHORT = Object.fromEntries(["Boolean", "Int32Array", "Map", "Number", "Set", "String", "document", "undefined"].map((name) => [name, `$${name}`]));
const HOMES = { Array: ["from"], Math: ["abs", "ceil", "floor", "log10", "max", "min", "round"], Object: ["assign", "entries", "hasOwn", "keys", "values"], Number: ["isFinite", "isNaN"] };
for (const [home, names] of Object.entries(HOMES)) for (const name of names) SHORT[`${home}.${name}`] = `$${name}`;

const result = await build({
  entryPoints: [fileURLToPath(new URL("src/main.js", import.meta.url))],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  // What begins with "_" is called by nobody outside, and these by nobody but dagre.
  mangleProps: /^(_.+|edgeObj|predecessors|successors|setNode|setEdge|hasNode|dummy|dummyChains|setGraph|gravity|nodeEdges|filterEdges|removeEdge|setParent|neighbors|edgeLabel|removeNode|outEdges|inEdges|isDirected|groupRound|stoodGroups|upstreamIn|enteringIn|isSpread|choosePass|findingsAt|isGoing|isOfGradients|flowing|isSum|isThere|across|rootNodes|zoomAt|shownScale|childrenOf|membersOf|chooseOverlay|meetingAt|camera|nextTrouble|pointers|hovered|contents|choices|layouts|fitting|centre|groupOf|members|placed|trail|labelY|nodesep|ranksep|labelRank|showTroubles|isAsPlaced|isFolded|isMeeting|flowingIn|onRanks|chooseCall|isOfRounds|roundIn|marked|births|casts|bases|extent|theme|keyOf|isUp|isEnd|outgoing|incoming|isFull|showBar|cutvalue|isSeen|onSign|reachable|isShown|histogramAt|onEdge|leafOf|crossings|isAsked|childrenAround|edgesep|nodeCount|hasEdge|trouble|initLowLimValues|initCutValues|exchangeEdges|postorder|preorder|templates|passNumber|arriving|scene|outline|toggleFacts|track|faint|border|printing|guilts|lookAt|inGroup|behind|facts|forget|written|tints|prepare|turned|remember|noting|isSecond|isOwn|isLast|clips|nextCall|shutAll|ordinal|paintOn|painted|painter|viewer|isPair|known|repeats|results|element|children|context|align|choice|face|pressed|called|cost|elsewhere|ports|alpha|opens|minlen|isMultigraph)$/,
  define: { "Number.POSITIVE_INFINITY": "Infinity", ...SHORT },
  inject: [fileURLToPath(new URL("short.mjs", import.meta.url))],
  legalComments: "none",
  plugins: [dagreParts],
  write: false,
});
const style = await build({
  entryPoints: [fileURLToPath(new URL("src/viewer.css", import.meta.url))],
  minify: true,
  write: false,
});
/** The colours of the style by a letter each. */
const colors = [...new Set(style.outputFiles[0].text.match(/--\w+(?=: *(#|Canvas))/g))];
const short = (text) => colors.reduce((text, name, i) => text.replaceAll(new RegExp(`${name}(?=\\))|${name}(: )(?=[#CHL])`, "g"), (found) => `--${String.fromCharCode(97 + i)}${found.endsWith(" ") ? ":" : ""}`), text);
await writeFile(new URL("viewer.css", assets), short(style.outputFiles[0].text));

// The script stands inside a page: nothing in it may end its element.  And a page is text, which is looked at in terminals:
// what acts there is written as an escape, as gradscope/escaping.py would, which must not find anything to change.
const script = short(result.outputFiles[0].text)
  .replaceAll("</script", "<\\/script")
  .replace(/[^\P{C}\n]/gu, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
await writeFile(new URL("viewer.js", assets), script);

const licences = await Promise.all(
  ["dagre", "graphlib"].map(async (name) => {
    const text = await readFile(new URL(`node_modules/@dagrejs/${name}/LICENSE`, import.meta.url), "utf8");
    return `@dagrejs/${name}\n\n${text.trim()}\n`;
  }),
);
await writeFile(new URL("LICENSES.txt", assets), licences.join(`\n${"-".repeat(72)}\n\n`));
