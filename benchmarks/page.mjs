// How long a page takes in a browser: node page.mjs FILE.html prints JSON, times in ms.  Started by page.py.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const LOADS = 3;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
const url = pathToFileURL(process.argv[2]).href;
const found = [];
for (let load = 0; load < LOADS; load++) found.push(await measured());
await browser.close();
const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
console.log(JSON.stringify(Object.fromEntries(Object.keys(found[0]).map((name) => [name, middle(found.map((one) => one[name]))]))));

async function measured() {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    // The frame after the one in which the viewer has drawn.
    const look = () => (window.gradscope && !window.gradscope.waiting ? requestAnimationFrame(() => (window.first = performance.now())) : requestAnimationFrame(look));
    look();
  });
  await page.goto(url);
  await page.waitForFunction(() => window.first);
  const times = await page.evaluate(inPage);
  await page.close();
  return times;
}

async function inPage() {
  const viewer = window.gradscope;
  const drawn = async () => {
    while (viewer.waiting) await new Promise(requestAnimationFrame);
  };
  const timed = async (work) => {
    const start = performance.now();
    await work();
    return performance.now() - start;
  };
  const expand = [];
  // Downwards: each time the last group that the drawing has closed.
  for (let i = 0; i < 8; i++) {
    const box = viewer.drawing.boxes.findLast((one) => one.group !== undefined && !one.open);
    if (!box) break;
    expand.push(await timed(async () => (viewer.toggle(box.key), await drawn())));
  }
  const { input } = viewer.finder;
  const search = (words) => timed(() => ((input.value = words), input.dispatchEvent(new Event("input")), viewer.finder.finding));
  const first = await search("weight");
  const next = await search("tanh");
  const reveal = await timed(async () => (viewer.reveal({ node: viewer.model.size - 1 }), await drawn()));
  return { nodes: viewer.model.size, first: window.first, expand: Math.max(...expand), search: first, again: next, reveal };
}
