// How long a page takes in a browser: node page.mjs FILE.html prints JSON, times in ms.  Started by page.py.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const LOADS = 9;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
// What the browser takes for any page: one with nothing but an empty canvas.  Loaded in turns, for other work may share the cores.
const empty = `${process.argv[2]}.empty.html`;
writeFileSync(empty, "<!doctype html><canvas></canvas><script>gradscope = {}</script>");
const found = [];
for (let load = 0; load < LOADS; load++) {
  const { first: floor } = await measured(empty, () => ({}));
  found.push({ ...(await measured(process.argv[2], inPage)), floor });
}
await browser.close();
const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
console.log(JSON.stringify(Object.fromEntries(Object.keys(found[0]).map((name) => [name, middle(found.map((one) => one[name]))]))));

async function measured(file, use) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries())).observe({ entryTypes: ["longtask"] });
    // The frame after the one in which the viewer has drawn.  Said, for a browser that is asked has something else to do.
    const look = () => (window.gradscope && !window.gradscope.waiting ? requestAnimationFrame(() => console.log((window.first = performance.now()))) : requestAnimationFrame(look));
    look();
  });
  const said = page.waitForEvent("console");
  await page.goto(pathToFileURL(file).href, { waitUntil: "commit" });
  const first = Number((await said).text());
  const times = { first, ...(await page.evaluate(use)) };
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
  await viewer.rest;
  const whole = performance.now();
  const { input } = viewer.finder;
  const search = (words) => timed(() => ((input.value = words), input.dispatchEvent(new Event("input")), viewer.finder.finding));
  const asked = await search("weight");
  const again = await search("tanh");
  // Observers are told later.
  await new Promise((done) => setTimeout(done, 100));
  const longest = Math.max(0, ...window.long.filter(({ startTime }) => startTime >= window.first).map(({ duration }) => duration));
  const expand = [];
  // Downwards: each time the last group that the drawing has closed.
  for (let i = 0; i < 8; i++) {
    const box = viewer.drawing.boxes.findLast((one) => one.group !== undefined && !one.open);
    if (!box) break;
    expand.push(await timed(async () => (viewer.toggle(box.key), await drawn())));
  }
  return { nodes: viewer.model.size, whole, search: asked, again, longest, expand: Math.max(...expand) };
}
