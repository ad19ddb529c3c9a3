// The page in a real browser, loaded from a file.  tests/test_page_in_browser.py writes the pages that are looked at
// here, each beside the JSON of the same report, and names their folder in PAGES, the kind of browser in BROWSER and
// its program in PROGRAM.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as browsers from "playwright-core";

const { PAGES, BROWSER, PROGRAM } = process.env;

// A Firefox as it is installed is driven by WebDriver BiDi; playwright's own protocol needs a Firefox of its own.
const LAUNCH = {
  chromium: { executablePath: PROGRAM, args: ["--no-sandbox", "--disable-gpu"] },
  firefox: { executablePath: PROGRAM, channel: "moz-firefox" },
};

/** Of a test about what only Chromium can be told to do: touch, media and colours of the system. */
const chromiumOnly = { skip: BROWSER === "chromium" ? false : "the driver of Firefox cannot do this" };

/** Of a test about what is counted and said, which no browser does for itself. */
const oncePerPage = { skip: BROWSER === "chromium" ? false : "it is the same in every browser" };

let browser;
before(async () => {
  browser = await browsers[BROWSER].launch(LAUNCH[BROWSER]);
});
after(() => browser.close());

const report = (name) => JSON.parse(readFileSync(`${PAGES}/${name}.json`, "utf8"));

/** Opens a page; it fails the test if it complains or asks for anything but itself. */
async function opened(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().endsWith(`${name}.html`)) complaints.push(`asks for ${request.url()}`);
  });
  const { hash = "" } = options;
  await page.goto(pathToFileURL(`${PAGES}/${name}.html`).href + hash);
  await whole(page);
  // Most of what is tried is the graph with its facts: it has the room that it has where there is no code.
  if (!options.isAsItOpens) for (const name of ["Facts", "Code"]) {
    const button = page.locator("header").getByRole("button", { name, exact: true });
    const isWrong = (await button.isVisible()) && (await button.getAttribute("aria-pressed")) !== String(name === "Facts");
    if (isWrong) await button.click();
    // The graph is placed anew with the next frame.
    if (isWrong) await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
  page.closed = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return page;
}

/** The graph is drawn, and all that comes after it. */
const whole = async (page) => {
  await page.waitForFunction(() => window.gradscope?.rest);
  await page.evaluate(() => window.gradscope.rest);
};

/** Where the box of a node or group (n3, g2) is on the screen; canvases have no elements to ask. */
const place = (page, key) =>
  page.evaluate((wanted) => {
    const { view, boxes, canvas } = window.gradscope;
    const { left, top } = canvas.getBoundingClientRect();
    const box = boxes.get(wanted);
    return { x: left + (box.x - view.x + box.width / 2) * view.zoom, y: top + (box.y - view.y + 12) * view.zoom };
  }, key);

const click = async (page, key, times = 1) => {
  const { x, y } = await place(page, key);
  await (times === 1 ? page.mouse.click(x, y) : doubleClick(page, x, y));
};

/** The driver of Firefox presses twice, but Firefox does not take that for a double-click. */
async function doubleClick(page, x, y) {
  await page.mouse.dblclick(x, y);
  if (BROWSER === "chromium") return;
  await page.evaluate(([clientX, clientY]) => {
    const at = { clientX, clientY, bubbles: true };
    document.elementFromPoint(clientX, clientY).dispatchEvent(new MouseEvent("dblclick", at));
  }, [x, y]);
}
const heading = (page) => page.locator("aside h2").innerText();
const panel = (page) => page.locator("aside").innerText();
const drawn = (page) => page.evaluate(() => [...window.gradscope.boxes.keys()]);
/** The node whose numbers the selected box shows: of a repeat that is drawn once, in the round that is shown. */
const selectedNode = (page) => page.evaluate(() => window.gradscope.thing(window.gradscope.selected)?.node);
const nodeOf = ({ graph }, name) => graph.leaves.find((leaf) => leaf.names.includes(name)).node;
const norm = (x) => Number(x).toPrecision(4);

/** Whether the river tells of gradients that are not finite, and of zeros. */
const onRiver = async (page) => [await page.locator(".river path.bad").count() > 0, await page.locator(".river path.zero").count() > 0];

/** The facts of a section of the panel, by their names. */
const facts = (page, head) =>
  page.evaluate((wanted) => {
    const section = [...document.querySelectorAll("aside section")].find((one) => one.querySelector("h3")?.textContent === wanted);
    return Object.fromEntries([...section.querySelectorAll("dt")].map((name) => [name.textContent, name.nextElementSibling.textContent]));
  }, head);

test("numbers in the panel are those of the report", oncePerPage, async () => {
  const page = await opened("transformer");
  const saved = report("transformer");
  const [pass] = saved.passes;
  for (const leaf of [saved.graph.leaves[0], saved.graph.leaves.at(-1)]) {
    await page.evaluate((node) => window.gradscope.reveal({ node }), leaf.node);
    assert.equal(await heading(page), leaf.names[0]);
    const shown = await facts(page, "upstream gradient");
    const known = pass.gradients[pass.upstream[leaf.node][0]];
    assert.equal(norm(shown["‖g‖"]), norm(known.norm));
    assert.equal(shown.state, known.state);
  }
  await page.closed();
});

test("what enters a group is what crosses its border", oncePerPage, async () => {
  const page = await opened("transformer");
  const { graph, passes: [pass] } = report("transformer");
  const groups = await page.evaluate(() => {
    const { model } = window.gradscope;
    return [...model.parent.keys()].map((group) => ({ nodes: model.inside(group), norm: model.entering(group).norm }));
  });
  assert.ok(groups.length > 50);
  for (const { nodes, norm: shown } of groups) {
    const inside = new Set(nodes);
    const places = new Set(graph.edges.filter(([source, , target]) => inside.has(target) && !inside.has(source)).map(([, , target, output]) => `${target} ${output}`));
    for (const { node, output } of graph.roots) if (inside.has(node)) places.add(`${node} ${output}`);
    const norms = [...places].map((at) => at.split(" ").map(Number)).map(([node, output]) => pass.gradients[pass.upstream[node][output]].norm);
    const known = Math.hypot(...norms);
    assert.ok(Math.abs(shown - known) <= 1e-5 * known, `${shown} is not ${known}`);
  }
  await page.closed();
});

test("every contribution is listed, and their sum", oncePerPage, async () => {
  const page = await opened("small");
  const saved = report("small");
  await page.evaluate((node) => window.gradscope.reveal({ node }), nodeOf(saved, "b"));
  const text = await panel(page);
  assert.match(text, /sum of 2 contributions\n\[0\.3, 4, 0\.0005\] from 2\*b\*b|sum of 2 contributions\n\[0\.6, 8, 0\.001\] from/);
  assert.match(text, /Σ \[1\.2, 16, 0\.002\]/);
  await page.closed();
});

test("what came through a skip and what cancels is told as in pictures, and seen", oncePerPage, async () => {
  const page = await opened("opposed");
  const key = `n${report("opposed").graph.nodes.find((node) => node.variable === "h").id}`;
  const words = "53 % by skip · 2 gradients cancel 94.7 %";
  const { x, y } = await place(page, key);
  await page.mouse.move(x, y);
  assert.ok((await page.locator(".tip").innerText()).includes(words));
  await page.mouse.click(x, y);
  assert.ok((await panel(page)).includes(`Σ 0.1 · ${words}`));
  assert.ok((await page.locator(".said").innerText()).endsWith(words));
  const svg = await savedSvg(page);
  // A bar of which only what is left is full.
  const [, full, , whole] = /width="([\d.]+)" height="(\d+)" fill="#0b5a79"\/>\n<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="\2" fill="none" stroke="#0b5a79"/.exec(svg) ?? [];
  assert.ok(Math.abs(full / whole - 1 / 19) < 0.01, `${full} of ${whole}`);
  await page.closed();
});

test("a node tells its formula, and a seed what was given", oncePerPage, async () => {
  const page = await opened("small");
  await page.evaluate(() => window.gradscope.reveal({ node: 1 }));
  await page.keyboard.press("ArrowUp");
  await click(page, "s0");
  assert.equal(await heading(page), "∂L/∂y");
  assert.match(await panel(page), /\[0\.1, 1, 0\.0001\]/);
  const log = report("small").graph.nodes.find((node) => node.op === "LogBackward0");
  await page.evaluate((node) => window.gradscope.reveal({ node }), log.id);
  assert.equal((await facts(page, "formula"))["∂/∂self"], "1/self");
  await page.closed();
});

test("a closed box opens where it is, and closes again", async () => {
  const page = await opened("transformer");
  await page.keyboard.press("f");
  const key = await page.evaluate(() => window.gradscope.drawing.boxes.find((box) => box.group !== undefined && !box.open).key);
  await click(page, key);
  const [before, count] = [await place(page, key), (await drawn(page)).length];
  await page.keyboard.press("Enter");
  const expanded = await place(page, key);
  assert.ok((await drawn(page)).length > count);
  assert.ok(Math.abs(expanded.x - before.x) < 1 && Math.abs(expanded.y - before.y) < 1);
  await click(page, key, 2);
  assert.equal((await drawn(page)).length, count);
  const closed = await place(page, key);
  assert.ok(Math.abs(closed.x - before.x) < 1 && Math.abs(closed.y - before.y) < 1);
  await page.closed();
});

test("every node can be reached by opening, and is drawn once", oncePerPage, async () => {
  const page = await opened("transformer");
  const nodes = await page.evaluate(() => {
    const viewer = window.gradscope;
    for (let closed; (closed = viewer.drawing.boxes.find((box) => box.group !== undefined && !box.open)); ) viewer.toggle(closed.key);
    return viewer.drawing.boxes.flatMap((box) => box.bars ?? [box]).filter((one) => one.node !== undefined).map((one) => one.node).sort((a, b) => a - b);
  });
  assert.deepEqual(nodes, report("transformer").graph.nodes.map((node) => node.id));
  await page.closed();
});

test("search finds a parameter and opens what it is in", async () => {
  const page = await opened("transformer");
  await page.keyboard.press("/");
  await page.keyboard.type("h.3.attn.c_proj.weight");
  await page.locator("[role=option]").first().waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await heading(page), "gpt.h.3.attn.c_proj.weight");
  assert.equal(await selectedNode(page), nodeOf(report("transformer"), "gpt.h.3.attn.c_proj.weight"));
  await page.keyboard.press("/");
  await page.keyboard.type("no such thing");
  assert.match(await page.locator(".results").innerText(), /nothing found/);
  await page.closed();
});

test("operands go from left to right as in the expression", oncePerPage, async () => {
  for (const name of ["small", "transformer", "unet"]) {
    const page = await opened(name);
    await page.evaluate(() => window.gradscope.openAll());
    // For every operation that is drawn, the lines that leave it by slot: where they are below it.
    const lists = await page.evaluate(() => {
      const { drawing: { boxes, bundles }, model } = window.gradscope;
      const slotOf = ({ edges }) => model.slot[edges[0]];
      const leaving = boxes.filter(({ node }) => node !== undefined).map(({ key, around }) => bundles.filter((one) => one.from === key && one.around === around));
      return leaving.filter(({ length }) => length > 1).map((some) => some.sort((a, b) => slotOf(a) - slotOf(b)).map(({ points }) => points[1].x));
    });
    assert.ok(lists.length > 1);
    for (const xs of lists) assert.deepEqual(xs, xs.slice().sort((a, b) => a - b), name);
    await page.closed();
  }
  const page = await opened("recurrent");
  const leaves = await page.evaluate(() => window.gradscope.drawing.boxes.filter(({ node }) => window.gradscope.model.isLeaf(node)).sort((a, b) => a.x - b.x).map(({ node }) => window.gradscope.model.title(node)));
  assert.deepEqual(leaves, ["w", "h", "u"]);
  await page.closed();
});

test("edges that are all that comes to a tensor are told by their sum, others as one vector", oncePerPage, async () => {
  const page = await opened("recurrent");
  const { graph, passes: [pass] } = report("recurrent");
  const several = await page.evaluate(() => window.gradscope.drawing.bundles.filter(({ edges, each }) => edges.length > 1 && !each).map(({ key, edges }) => ({ key, edges })));
  let sums = 0;
  for (const { key, edges } of several) {
    await page.evaluate((one) => window.gradscope.select(one), key);
    const words = await page.locator(".said").textContent();
    const told = Number(words.match(/gradient \[?-?([\d.e-]+)/)?.[1]);
    const ends = new Set(edges.map((edge) => graph.edges[edge].slice(2).join(" ")));
    const [node, output] = [...ends][0].split(" ").map(Number);
    const isSum = ends.size === 1 && graph.edges.filter(([, , target, to]) => target === node && to === output).length === edges.length;
    const norms = isSum ? [pass.upstream[node][output]] : edges.map((edge) => pass.edges[edge]);
    const expected = Math.hypot(...norms.map((entry) => pass.gradients[entry].norm));
    assert.ok(Math.abs(told - expected) <= 1e-3 * expected, `${words} ${expected}`);
    sums += isSum;
  }
  assert.ok(sums > 0);
  await page.closed();
});

test("lines that meet at the border of a group are of the same edges", oncePerPage, async () => {
  for (const name of ["transformer", "steps", "unet"]) {
    const page = await opened(name);
    const open = () => page.evaluate(() => {
      const { drawing: { bundles } } = window.gradscope;
      const isPort = (key) => /^[<>]/.test(key);
      const at = ({ x, y }) => `${Math.round(x)} ${Math.round(y)}`;
      const meeting = [];
      for (const one of bundles) {
        for (const other of bundles) {
          if (one === other || at(one.points.at(-1)) !== at(other.points[0])) continue;
          meeting.push([one.key, other.key, one.edges.concat(one.seeds.map((seed) => `s${seed}`)).some((edge) => other.edges.includes(edge) || other.seeds.some((seed) => `s${seed}` === edge))]);
        }
      }
      return { meeting, ports: bundles.filter(({ from, to }) => isPort(from) || isPort(to)).length };
    });
    for (const { meeting, ports } of [await open(), (await page.evaluate(() => window.gradscope.openAll()), await open())]) {
      assert.ok(!ports || meeting.length, name);
      assert.deepEqual(meeting.filter(([, , isSame]) => !isSame), [], name);
    }
    await page.closed();
  }
});

test("no box is called by a number alone, and each module has its class", oncePerPage, async () => {
  for (const [name, known] of [["sequential", ["▾ experts.2.2", "▾ experts.* ×3"]], ["layers-17", ["▾ 16 Linear"]], ["unet", ["▾ join", "Up"]]]) {
    const page = await opened(name);
    const first = await savedSvg(page);
    await page.evaluate(() => window.gradscope.openAll());
    const texts = [...`${first}${await savedSvg(page)}`.matchAll(/<text[^>]*font-weight="(\d+)"[^>]*>([^<]*)<\/text>/g)];
    const titles = texts.filter(([, weight]) => weight === "600").map(([, , text]) => text);
    assert.deepEqual(titles.filter((text) => /^[▾▸✖▲△ ]*([\d.*]+|self|.)( ×[\d,]+)?$/.test(text) && !/^[▾▸✖▲△x]$/.test(text)), [], name);
    for (const one of known) assert.ok(texts.some(([, , text]) => text === one), `${one} in ${titles}`);
    await page.closed();
  }
});

test("what stands beside a line is on no other line, no box, and no other of them", oncePerPage, async () => {
  const opening = [...["small", "transformer", "unet", "opposed", "towers"].map((name) => [name, true]), ...["unet", "columns"].map((name) => [name, false])];
  for (const [name, isAll] of opening) {
    const page = await opened(name);
    if (isAll) await page.evaluate(() => window.gradscope.openAll());
    const found = await page.evaluate(() => {
      const { drawing: { boxes, bundles } } = window.gradscope;
      const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
      const labels = bundles.filter(({ label }) => label).map(({ key, around, label: { x, y, isLeft }, room }) => ({ key, around, left: isLeft ? x - room : x, right: isLeft ? x : x + room, top: y - 6, bottom: y + 6 }));
      const others = boxes.map(({ key, around, x, y, width, height }) => ({ key, around, left: x, right: x + width, top: y, bottom: y + height }));
      // The parts of lines that go straight down.
      const lines = bundles.flatMap(({ key, around, points }) => points.slice(1).flatMap((to, i) => (Math.abs(to.x - points[i].x) < 1 ? [{ key, around, left: to.x - 5, right: to.x + 5, top: points[i].y, bottom: to.y }] : [])));
      const cut = labels.filter((one) => others.some((box) => box.key === one.around && (one.top < box.top || one.bottom > box.bottom || one.left < box.left || one.right > box.right)));
      return { count: labels.length, lines: lines.length, cut: cut.map(({ key }) => key), bad: labels.flatMap((one) => [...labels, ...others, ...lines].filter((other) => other.around === one.around && (other.key !== one.key || lines.includes(other)) && meet(one, other)).map((other) => `${one.key} on ${other.key}`)) };
    });
    assert.ok(found.count && found.lines, name);
    assert.deepEqual([...found.bad, ...found.cut], [], name);
    await page.closed();
  }
});

/** The boxes that are drawn, by their names. */
const named = (page) =>
  page.evaluate(() => {
    const { drawing: { boxes }, model } = window.gradscope;
    const name = ({ node, group, seed }) => (seed !== undefined ? "seed" : group === undefined ? model.title(node) : model.group(group).title);
    return boxes.map(({ x, y, width, height, ...box }) => ({ key: box.key, name: name(box), left: x, top: y, right: x + width, bottom: y + height, middle: y + height / 2 }));
  });

test("the sides of a U-Net face each other, and each skip goes straight across", oncePerPage, async () => {
  const page = await opened("unet");
  const boxes = await named(page);
  const at = (name) => boxes.find((box) => box.name === name);
  for (const [up, down] of [["up.2", "down0"], ["up.1", "down1"], ["up.0", "down2"]]) {
    assert.ok(Math.abs(at(up).middle - at(down).middle) < 1, up);
    assert.ok(at(down).right < at(up).left, up);
    const skip = await page.evaluate(([from, to]) => window.gradscope.drawing.bundles.find((one) => one.from === from && one.to === to), [at(up).key, at(down).key]);
    assert.deepEqual([...new Set(skip.points.map(({ y }) => Math.round(y)))], [Math.round(at(up).middle)]);
    const { view, left, top } = await page.evaluate(() => ({ view: window.gradscope.view, ...window.gradscope.canvas.getBoundingClientRect().toJSON() }));
    await page.mouse.click(left + ((at(up).left + at(down).right) / 2 - view.x) * view.zoom, top + (at(up).middle - view.y) * view.zoom);
    assert.equal(await page.evaluate(() => window.gradscope.selected), skip.key);
  }
  assert.ok(at("up.2").bottom < at("up.1").top && at("up.1").bottom < at("up.0").top);
  // Keys go where the box is that they point to.
  await page.evaluate((key) => window.gradscope.select(key), at("down2").key);
  const way = [];
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press("ArrowUp");
    const selected = await page.evaluate(() => window.gradscope.selected);
    way.push(boxes.find(({ key }) => key === selected).name);
  }
  assert.deepEqual(way, ["MaxPool2D", "down1", "MaxPool2D", "down0", "x"]);
  // What is open has its lines above and below, and so has all that is beside it.
  await page.evaluate((key) => window.gradscope.toggle(key), at("down1").key);
  const heights = new Map((await named(page)).map((box) => [box.key, box]));
  const upwards = await page.evaluate(() => window.gradscope.drawing.bundles.filter(({ around }) => around === null).map(({ from, to }) => [from, to]));
  assert.deepEqual(upwards.filter(([from, to]) => heights.get(from).bottom > heights.get(to).top), []);
  await page.evaluate((key) => window.gradscope.toggle(key), at("down1").key);
  assert.deepEqual(await named(page), boxes);
  await page.closed();
});

test("what all of a U-Net takes stands below it", oncePerPage, async () => {
  const page = await opened("timed");
  const boxes = await named(page);
  const at = (name) => boxes.find((box) => box.name === name);
  for (const [up, down] of [["up.2", "down0"], ["up.1", "down1"], ["up.0", "down2"]]) assert.ok(at(down).right < at(up).left, up);
  const time = at("time") ?? at("Addmm");
  assert.ok(time.top > Math.max(...["up.0", "down2"].map((name) => at(name).bottom)));
  const lines = await page.evaluate((key) => window.gradscope.drawing.bundles.filter(({ to }) => to === key).map(({ from, points }) => ({ from, points })), time.key);
  assert.equal(lines.length, 6);
  // Down beside all that is above, and in from its sides.
  for (const { points } of lines) {
    const over = (a, b) => boxes.filter((box) => Math.max(a.x, b.x) > box.left + 1 && Math.min(a.x, b.x) < box.right - 1 && Math.max(a.y, b.y) > box.top && Math.min(a.y, b.y) < box.bottom);
    assert.deepEqual(points.slice(1).flatMap((b, i) => over(points[i], b)).map(({ name }) => name), []);
    assert.ok(Math.abs(points.at(-1).y - time.middle) < 1);
  }
  await page.closed();
});

test("a wall stands where history was cut, and leads to the line that cut it", oncePerPage, async () => {
  const page = await opened("detached", WIDE);
  const { graph: { walls: [wall], nodes } } = report("detached");
  const lines = await page.evaluate(() => window.gradscope.drawing.bundles.filter(({ to }) => to === "w0").map(({ from, edges }) => [window.gradscope.boxes.get(from), edges.length]));
  assert.equal(lines.length, 1);
  const [[taker, edges]] = lines;
  assert.equal(edges, 0);
  assert.ok(taker.node === wall.node || (await page.evaluate(([node, g]) => window.gradscope.model.isInside(node, g), [wall.node, taker.group])), `${nodes[wall.node].op}`);
  await click(page, "w0");
  assert.equal(await heading(page), "detach towers.py:3");
  assert.match(await panel(page), /history cut here/);
  assert.match(await page.locator(".code .here").textContent(), /3fake\.detach\(\) history cut here/);
  // The list says it, too, and what took it opens with the line inside.
  assert.match(await page.locator(".list").textContent(), /history cut here: detach towers\.py:3/);
  await page.evaluate((node) => window.gradscope.reveal({ node }), wall.node);
  const open = await page.evaluate(() => window.gradscope.drawing.bundles.filter(({ to }) => /w0$/.test(to)).map(({ from, to }) => [from, to]));
  assert.deepEqual(open.map(([, to]) => to).sort(), [">w0", "w0"]);
  await page.closed();
});

test("a box says at how many of its leaves what meets cancels", oncePerPage, async () => {
  const page = await opened("towers");
  const { passes: [pass], graph } = report("towers");
  const key = (await named(page)).find(({ name }) => name === "D.*").key;
  await page.evaluate((key) => window.gradscope.select(key), key);
  const lost = graph.leaves.map(({ node }) => {
    const along = graph.edges.map(([, , target], i) => [target, pass.gradients[pass.edges[i]].norm]).filter(([target]) => target === node);
    return 1 - (pass.gradients[pass.upstream[node][0]].norm ?? 0) / along.reduce((sum, [, norm]) => sum + norm, 0);
  });
  const [, many, said] = /(\d) of 4 cancel up to ([\d.]+) %/.exec(await panel(page));
  assert.equal(Number(many), Object.keys(await page.evaluate(() => window.gradscope.model.pass.cancelled)).length);
  assert.ok(Math.abs(Number(said) / 100 - Math.max(...lost)) < 1e-3, `${said} ${lost}`);
  await page.closed();
});

test("a long chain goes on in the next column", oncePerPage, async () => {
  const page = await opened("columns");
  const boxes = await named(page);
  const centre = ({ left, right }) => Math.round((left + right) / 2);
  const order = [...new Set(boxes.map(centre))].sort((a, b) => a - b);
  const columns = new Map(order.map((x) => [x, boxes.filter((box) => centre(box) === x)]));
  assert.ok(order.length > 1 && order.length < 6, order.join());
  const [first, ...others] = order.map((x) => columns.get(x));
  for (const column of others) assert.ok(Math.abs(first.length - column.length) < 4, `${first.length} and ${column.length}`);
  assert.ok(Math.max(...boxes.map(({ bottom }) => bottom)) < 800);
  // The way of the gradient is down each column, the first on the left.
  const read = order.flatMap((x) => columns.get(x).sort((a, b) => a.top - b.top).map(({ key }) => key));
  const lines = await page.evaluate(() => window.gradscope.drawing.bundles.map(({ from, to, points }) => ({ from, to, points })));
  assert.deepEqual(read.slice(1).map((to, i) => `${read[i]} ${to}`).sort(), lines.map(({ from, to }) => `${from} ${to}`).sort());
  const at = new Map(boxes.map((box) => [box.key, box]));
  for (const { from, to, points } of lines) {
    assert.ok(Math.abs(points[0].y - at.get(from).bottom) < 1 && Math.abs(points.at(-1).y - at.get(to).top) < 1);
    const isOn = (one, a, b) => Math.max(a.x, b.x) > one.left && Math.min(a.x, b.x) < one.right && Math.max(a.y, b.y) > one.top + 1 && Math.min(a.y, b.y) < one.bottom - 1;
    assert.deepEqual(points.slice(1).flatMap((b, i) => boxes.filter((one) => isOn(one, points[i], b)).map(({ name }) => name)), []);
  }
  await page.closed();
});

test("the weights that two calls share are one box, which opens", oncePerPage, async () => {
  const page = await opened("towers");
  const lines = () => page.evaluate(() => window.gradscope.drawing.bundles.map(({ from, to, edges }) => [from, to, edges.length]));
  const shared = (await named(page)).find(({ name }) => name === "D.*");
  // The towers that stand on it begin beside each other, though one is higher.
  const tops = (await named(page)).filter(({ name }) => name === "Softplus").map(({ top }) => top);
  assert.ok(tops.length === 2 && tops[0] === tops[1], tops.join());
  assert.deepEqual((await lines()).filter(([, to]) => to === shared.key).map(([, , edges]) => edges), [4, 4]);
  await page.evaluate((key) => window.gradscope.select(key), shared.key);
  assert.match(await panel(page), /^D\.\*\n\nleaves · 4 leaves\n[\s\S]*D\.0\.weight/);
  await page.evaluate((node) => window.gradscope.reveal({ node }), nodeOf(report("towers"), "D.2.bias"));
  assert.equal(await heading(page), "D.2.bias");
  assert.equal((await named(page)).filter(({ name }) => /^D\.\d/.test(name)).length, 4);
  await page.closed();
});

test("a picture and the page have one scale and one palette", oncePerPage, async () => {
  const page = await opened("small");
  const [, legend] = /(‖g‖, log [^<]*<.*)\t*node \[/s.exec(readFileSync(`${PAGES}/small.dot`, "utf8"));
  const inPicture = { ends: [/‖g‖, log scale {2}([^<]*)/, /<\/TD><TD ALIGN="LEFT" WIDTH="\d+"><FONT[^>]*>([\d.e-]+)<\/FONT>/].map((one) => one.exec(legend)[1]), colors: [...legend.matchAll(/BGCOLOR="(#\w+)"/g)].map(([, color]) => color) };
  const onPage = await page.evaluate(() => ({ ends: [...document.querySelectorAll("footer .end")].map((one) => one.textContent), colors: window.gradscope.scale.steps }));
  assert.deepEqual(onPage, inPicture);
  await page.closed();
});

test("at first text can be read, and most of the model is in sight", oncePerPage, async () => {
  for (const name of ["small", "transformer", "unet", "sequential", "broken", "findings", "columns", "towers"]) {
    const page = await opened(name, { viewport: { width: 1400, height: 900 } });
    const svg = await savedSvg(page);
    const zoom = await page.evaluate(() => window.gradscope.view.zoom);
    for (const [, size] of svg.matchAll(/font-size="([\d.]+)"/g)) assert.ok(size * zoom >= 11, `${name}: ${size * zoom}`);
    const [most, shown] = await page.evaluate(() => {
      const { model, drawing } = window.gradscope;
      const seen = new Set(window.gradscope.inSight().map(({ key }) => key));
      const ops = (boxes) => boxes.filter((box) => !box.open).flatMap((box) => box.bars ?? [box]).reduce((sum, { group }) => sum + (group === undefined ? 1 : model.ops[group]), 0);
      return [ops(drawing.boxes), ops(drawing.boxes.filter(({ key }) => seen.has(key)))];
    });
    assert.ok(2 * shown > most, `${name}: ${shown} of ${most}`);
    // The code beside it leaves 700 pixels to what needs them.
    const [width, sides] = await page.evaluate(() => {
      const { drawing, view, canvas } = window.gradscope;
      return [drawing.width, [-view.x, view.x + canvas.clientWidth / view.zoom - drawing.width]];
    });
    assert.ok(width > 650 || Math.min(...sides) >= 0, `${name}: ${sides}`);
    await page.closed();
  }
});

test("a repeat names what was never called of its list", oncePerPage, async () => {
  const page = await opened("routed");
  assert.match(await page.locator(".list").textContent(), /experts\.\* ×4 · not called: experts\.4, /);
  await page.closed();
});

test("what is nearly all of blocks that are drawn once is open at first", oncePerPage, async () => {
  const page = await opened("routed", { viewport: { width: 1400, height: 900 } });
  const [open, fits] = await page.evaluate(() => {
    const { drawing, model, canvas } = window.gradscope;
    const titles = drawing.boxes.filter((box) => box.open).map(({ group }) => model.group(group).title.replace(/\d/, "*"));
    return [titles, drawing.height < canvas.clientHeight];
  });
  assert.deepEqual([open, fits], [["layers.*", "layers.*.moe"], false]);
  await page.closed();
});

test("a repeat that is too wide to be read stays closed at first, however much of the model it is", async () => {
  const openAtFirst = async (name) => {
    const page = await opened(name, { viewport: { width: 1400, height: 900 } });
    const open = await page.evaluate(() => window.gradscope.drawing.boxes.filter(({ group, open }) => open && window.gradscope.model.group(group).kind === "repeat").length);
    await page.closed();
    return open;
  };
  assert.equal(await openAtFirst("transformer"), 1);
  assert.equal(await openAtFirst("wide"), 0);
});

test("search puts exact names first, and NaN finds where it is made", oncePerPage, async () => {
  const found = async (page, words) => {
    await page.keyboard.press("/");
    await page.keyboard.type(words);
    await page.locator("[role=option]").first().waitFor();
    const texts = await page.locator("[role=option]").allInnerTexts();
    await page.keyboard.press("Escape");
    return texts.map((text) => text.split("\n")[0]);
  };
  const page = await opened("transformer");
  assert.equal((await found(page, "loss"))[0].split(" = ")[0], "loss");
  assert.ok((await found(page, "attn")).slice(0, 12).every((name) => name.endsWith(".attn")));
  await page.closed();
  const bad = await opened("broken");
  assert.deepEqual((await found(bad, "nan")).slice(0, 4), ["torch.log(p)", "p = w*scale", "scale", "w"]);
  await bad.closed();
});

test("the keys are told over the page, and the page says nothing of where the program lies", async () => {
  const page = await opened("small");
  assert.equal(await page.locator("dialog").count(), 0);
  await page.keyboard.press("?");
  assert.match(await page.locator("dialog").innerText(), /Enter\s+open or close/);
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.closed();
  const other = await opened("elsewhere");
  assert.match(await other.locator("header").innerText(), /train\.py/);
  assert.doesNotMatch(await other.locator("header").innerText(), /home/);
  await other.closed();
});

test("a saved picture has the colours of sizes, and no mark of the selection", oncePerPage, async () => {
  const page = await opened("small");
  await page.evaluate(() => window.gradscope.reveal({ node: 1 }));
  const svg = await savedSvg(page);
  const colors = await page.evaluate(() => window.gradscope.scale.steps);
  for (const color of colors) assert.ok(svg.includes(`height="10" fill="${color}"`), color);
  assert.ok(!svg.includes("#6d28d9"));
  await page.closed();
});

test("a leaf shows the strongest way from the root", oncePerPage, async () => {
  const page = await opened("small");
  const saved = report("small");
  await click(page, `n${nodeOf(saved, "b")}`);
  const ends = await page.evaluate(() => window.gradscope.path.list.map((edge) => window.gradscope.model.target[edge]));
  const words = ends.map((node) => saved.graph.origins[saved.graph.nodes[node].origin]?.expression ?? "leaf");
  assert.deepEqual(words.slice(0, 2), ["3*a + 2*b*b", "2*b*b"]);
  assert.equal(ends.at(-1), nodeOf(saved, "b"));
  assert.match(await panel(page), /strongest way from the root, \d edges/);
  await page.closed();
});

test("arrow keys follow the lines, and what they reach is said", async () => {
  const page = await opened("small");
  await page.locator("canvas").focus();
  const said = () => page.locator("[aria-live]").innerText();
  await page.keyboard.press("ArrowDown");
  assert.match(await said(), /^y = 3\*a \+ 2\*b\*b \+ torch\.log\(c\), Add, gradient \[0\.1, 1, 0\.0001\]/);
  const visited = [];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press("ArrowDown");
    visited.push(await heading(page));
  }
  assert.ok(["a", "b", "c"].includes(visited.at(-1)) || visited.includes("c"), visited.join());
  await page.keyboard.press("Escape");
  assert.equal(await said(), "");
  await page.closed();
});

test("the list can be walked and opened by keys alone", async () => {
  const page = await opened("transformer");
  await page.keyboard.press("l");
  const row = () => page.evaluate(() => ({ text: document.activeElement.textContent, role: document.activeElement.getAttribute("role"), expanded: document.activeElement.getAttribute("aria-expanded") }));
  assert.equal((await row()).role, "treeitem");
  for (let i = 0; i < 60 && (await row()).expanded !== "false"; i++) await page.keyboard.press("ArrowDown");
  const closed = await row();
  const count = (await drawn(page)).length;
  await page.keyboard.press("ArrowRight");
  assert.equal((await row()).expanded, "true");
  assert.ok((await drawn(page)).length > count);
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual(await row(), closed);
  await page.closed();
});

test("it opens at the worst finding, and goes to the next and back", oncePerPage, async () => {
  const page = await opened("findings");
  const saved = report("findings");
  const nodes = ["error", "warning"].flatMap((level) => saved.findings.filter((finding) => finding.severity === level && finding.node).map((finding) => finding.node.id));
  const at = async () => `n${await selectedNode(page)}`;
  assert.equal(await at(), `n${nodes[0]}`);
  assert.match(await panel(page), new RegExp(saved.findings.find((finding) => finding.node?.id === nodes[0]).rule));
  await page.keyboard.press("n");
  assert.equal(await at(), `n${nodes[1]}`);
  assert.match(await page.locator(".alarm").innerText(), /2 of 2 findings/);
  await page.keyboard.press("p");
  assert.equal(await at(), `n${nodes[0]}`);
  await page.getByRole("button", { name: "next finding" }).click();
  assert.equal(await at(), `n${nodes[1]}`);
  await page.closed();
});

test("closed groups show the findings inside them", oncePerPage, async () => {
  const page = await opened("findings");
  const told = await page.evaluate(() => {
    const viewer = window.gradscope;
    const node = viewer.model.troubles.places[0];
    return viewer.model.around(viewer.model.owner[node]).map((group) => viewer.model.troubles.at({ group }));
  });
  assert.ok(told.length > 1 && told.every((severity) => severity === "error"), told.join());
  await page.closed();
});

test("without findings it opens where gradients stop being finite", oncePerPage, async () => {
  const page = await opened("broken");
  assert.equal(await heading(page), "torch.log(p)");
  assert.match(await panel(page), /NaN or Inf begins here/);
  await page.closed();
});

test("every state of a gradient is told apart", oncePerPage, async () => {
  const page = await opened("states");
  const text = await page.locator(".list").evaluate((list) => list.textContent);
  for (const words of ["zero, leaf, gradient 0", "none, leaf, gradient no grad", "skipped, leaf, gradient not reached", "nan, leaf, gradient ✖ 4096 NaN"]) assert.ok(text.includes(words), words);
  const svg = await savedSvg(page);
  // Lines: dashed where nothing flows, magenta where it is not finite.
  for (const line of [/stroke="#8b95a3" stroke-width="1" stroke-dasharray="5 4"/, /fill="none" stroke="#ad1450" stroke-width="3"/]) assert.match(svg, line);
  await page.closed();
});

test("the river names what differs in more than its number, and of many blocks some by their numbers", oncePerPage, async () => {
  for (const [name, height, names] of [["sequential", 800, "experts.2 experts.1 experts.0"], ["transformer", 560, "11 8 4 0 h.* ×12"]]) {
    const page = await opened(name, { viewport: { width: 1280, height } });
    assert.equal((await page.locator(".river text").allTextContents()).join(" "), names);
    await page.closed();
  }
});

test("names cannot act", async () => {
  const page = await opened("hostile");
  await page.keyboard.press("/");
  await page.keyboard.type("script");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => window.acted), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  assert.match(await panel(page), /<img src=x onerror=/);
  await page.closed();
});

test("a name that JavaScript knows too is a name", oncePerPage, async () => {
  const page = await opened("hostile");
  for (const node of report("hostile").graph.nodes) {
    await page.evaluate((n) => window.gradscope.reveal({ node: n }), node.id);
    assert.notEqual(await heading(page), "");
  }
  await page.closed();
});

test("a script that is not the page's own does not run", async () => {
  const page = await opened("small");
  const refused = await page.evaluate(async () => {
    const heard = new Promise((done) => addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective), { once: true }));
    document.body.append(Object.assign(document.createElement("script"), { textContent: "window.acted = 1" }));
    return heard;
  });
  assert.match(refused, /^script-src/);
  assert.equal(await page.evaluate(() => window.acted), undefined);
});

/** What is seen of a page that is not whole. */
async function seen(name) {
  const context = await browser.newContext({ offline: true });
  const page = await context.newPage();
  await page.goto(pathToFileURL(`${PAGES}/${name}.html`).href);
  await page.waitForTimeout(100);
  const words = await page.locator("body").innerText();
  const isDrawn = await page.evaluate(() => Boolean(window.gradscope));
  await context.close();
  return { words, isDrawn };
}

test("a page that is cut off says so, wherever it is cut", async () => {
  for (const name of JSON.parse(readFileSync(`${PAGES}/cut.json`, "utf8"))) {
    const { words, isDrawn } = await seen(name);
    assert.match(words, /^This page draws a graph .* the file is cut off/, name);
    assert.equal(isDrawn, false);
  }
});

test("a damaged page says so", async () => {
  const { words, isDrawn } = await seen("damaged");
  assert.match(words, /cannot be drawn: the file is damaged/);
  assert.equal(isDrawn, false);
});

test("a comparison opens at what only one side has", oncePerPage, async () => {
  const page = await opened("compared");
  const [marked, selected] = await page.evaluate(() => [Object.keys(window.gradscope.shown.data.marks)[0], window.gradscope.selected ?? null]);
  const { x, y } = await place(page, `n${marked}`);
  assert.ok(x > 0 && x < 1280 && y > 0 && y < 800);
  assert.equal(selected, null);
  await page.closed();
});

test("where next to nothing is left for all leaves, the page marks it", oncePerPage, async () => {
  const page = await opened("lost");
  const node = report("lost").graph.nodes.find(({ op }) => op.startsWith("Sigmoid")).id;
  assert.equal(await page.evaluate((node) => window.gradscope.model.troubles.at({ node }), node), "warning");
  await page.evaluate((node) => window.gradscope.reveal({ node }), node);
  assert.match(await panel(page), /▲ falls to 1e-9/);
  await page.closed();
});

test("a comparison opens with how far apart gradients are, as its picture tells", oncePerPage, async () => {
  const page = await opened("distant");
  const told = await page.evaluate(() => {
    const { drawing, shown, model } = window.gradscope;
    const on = (edge) => shown.onLine(drawing.bundles.find(({ edges }) => edges.includes(edge)));
    return [...model.source.keys()].map((edge) => [model.title(model.target[edge]), on(edge).words, on(edge).color ?? "", shown.of({ node: model.target[edge] }).words]);
  });
  assert.deepEqual(told.filter(([title]) => title === "a").map(([, words, , inBox]) => [words, inBox]), [["50%", "50%"]]);
  assert.deepEqual(told.filter(([title]) => title === "b").map(([, words, color]) => [words, color]), [["=", ""]]);
  assert.match(await panel(page), /first difference: .*\n\nleaves, largest difference first\n\n?50% a\n/);
  assert.match(await page.locator("footer").textContent(), /‖A - B‖ in % of the larger ‖g‖.*less – more/);
  assert.match(await savedSvg(page), /‖g‖\sA\s10\s·\sB\s5\s+50%/);
  await page.closed();
});

test("what the verdict is about is marked in the innermost box, at its line and in words", oncePerPage, async () => {
  const page = await opened("marked", WIDE);
  const rsqrt = report("marked").graph.nodes.filter(({ op }) => op.startsWith("Rsqrt")).at(-1).id;
  const isClosed = await page.evaluate((node) => {
    const { boxes, model } = window.gradscope;
    return [...boxes.values()].some((box) => !box.open && box.bars?.some(({ group }) => group !== undefined && model.isInside(node, group)));
  }, rsqrt);
  assert.ok(isClosed);
  const told = async () => [...(await savedSvg(page)).matchAll(/<text[^>]*fill="([^"]*)"[^>]*>([^<]*)<\/text>/g)].filter(([, , text]) => /△|grows/.test(text));
  const drawn = async (...more) => page.evaluate((more) => {
    const { marks } = window.gradscope.model.troubles;
    marks.splice(0, marks.length, ...marks.filter(([, , , , isRound]) => !isRound), ...more);
  }, more);
  // What is said of a round is said by what stands for all of them.
  await drawn([rsqrt, "information", "grows ×109", -1, true]);
  assert.deepEqual((await told()).map(([, , text]) => text), ["▾ △ blocks.* ×12", "· grows ×109", "△", "· grows ×40 in blocks.0, 8.912 to 356.5"]);
  await drawn();
  const words = await told();
  assert.deepEqual(words.map(([, , text]) => text), ["△", "· grows ×40 in blocks.0, 8.912 to 356.5"]);
  assert.match(await savedSvg(page), />blocks\.11<[^]*>blocks\.0</);
  assert.equal(new Set(words.map(([, color]) => color)).size, 1);
  assert.equal(await page.locator(".code .line", { hasText: "bent.rsqrt()" }).locator(".guilt").textContent(), " △ grows ×40 in blocks.0, 8.912 to 356.5");
  assert.equal(await page.locator(".code .guilt", { hasText: "△" }).count(), 1);
  assert.match(await page.locator(".code .used", { hasText: "norm.scale" }).textContent(), / x\s334\.4 \(320\.8\shere\)$/);
  assert.match(await page.locator("footer").textContent(), /△ worth a look/);
  assert.doesNotMatch(await page.locator("footer").textContent(), /[✖▲]/);
  // Of leaves that have no line of their own those that take them are marked.
  const guilt = async (path, name, said) => page.evaluate(([node, name, said]) => {
    const { model, code } = window.gradscope;
    model.troubles.marks.push([node, "information", said, -1, false, name]);
    code.show();
    return [...document.querySelectorAll(".code .line")].find((line) => line.textContent.includes("self.scale * x")).querySelector(".guilt").textContent;
  }, [nodeOf(report("marked"), path), name, said]);
  assert.equal(await guilt("blocks.3.norm.scale", "norm.scale", "cancels 75.2 %"), " △ norm.scale: cancels 75.2 %");
  assert.equal(await guilt("blocks.4.norm.scale", "norm.scale", "cancels 75.2 %"), " △ norm.scale ×2: cancels 75.2 %");
  assert.equal(await guilt("blocks.5.norm.scale", "last.scale", "cancels 75.2 %"), " △ 3 leaves: cancels 75.2 %");
  assert.equal(await guilt("blocks.6.norm.scale", "norm.scale", "cancels 80 %"), " △ norm.scale: cancels 75.2 % and 1 more");
  await page.evaluate((node) => window.gradscope.reveal({ node }), rsqrt);
  assert.match(await panel(page), /△ grows ×40/);
  await page.closed();
});

test("the first view has what is marked with the numbers that leave it, and no box that is cut where it need not be", oncePerPage, async () => {
  for (const height of [900, 620, 480]) {
    const page = await opened("marked", { isAsItOpens: true, viewport: { width: 1400, height } });
    const { zoom, below, cut } = await page.evaluate((node) => {
      const { drawing, view, canvas, model } = window.gradscope;
      const bottom = view.y + canvas.clientHeight / view.zoom;
      const box = drawing.boxes.find((one) => !one.open && (one.bars ?? [one]).some(({ group }) => group !== undefined && model.isInside(node, group)));
      const ends = drawing.bundles.filter(({ from, label }) => from === box.key && label).map(({ label }) => label.y + 6);
      const words = drawing.bundles.filter(({ label }) => label).map(({ label }) => ({ y: label.y - 6, height: 12 }));
      const isCut = (one) => !one.open && [view.y, bottom].some((edge) => one.y < edge && one.y + one.height > edge);
      return { zoom: view.zoom, below: [box.y - view.y, bottom - Math.max(box.y + box.height, ...ends)], cut: [...drawing.boxes, ...words].filter(isCut).length };
    }, report("marked").graph.nodes.filter(({ op }) => op.startsWith("Rsqrt")).at(-1).id);
    assert.ok(zoom >= 1 && Math.min(...below) >= 0, `${height}: ${below}`);
    assert.ok(cut <= (height < 900 ? 1 : 0), `${height}: ${cut}`);
    await page.closed();
  }
});

test("where nothing is marked the first view has what stands for most of the graph, and a button leads to the output", oncePerPage, async () => {
  const page = await opened("transformer", WIDE);
  const seen = () => page.evaluate(() => {
    const { view, canvas, boxes } = window.gradscope;
    const [frame, seed] = [[...boxes.values()].find((box) => box.open && box.bars), boxes.get("s0")];
    return [frame, seed].map(({ y, height }) => y >= view.y && y + height <= view.y + canvas.clientHeight / view.zoom);
  });
  assert.deepEqual(await seen(), [true, false]);
  await page.getByRole("button", { name: /^↑ .* above/ }).click();
  assert.deepEqual(await seen(), [false, true]);
  await page.closed();
});

test("the call of a module without a name of its own stands on a line below", oncePerPage, async () => {
  const page = await opened("marked", WIDE);
  await page.evaluate(() => window.gradscope.fit());
  const words = [...(await savedSvg(page)).matchAll(/<text[^>]*y="([\d.]+)"[^>]*>(judge\([a-z]+\)|Sequential)<\/text>/g)];
  assert.deepEqual(words.map(([, , text]) => text).sort(), ["Sequential", "Sequential", "judge(fake)", "judge(real)"]);
  const [title, call] = ["Sequential", "judge(fake)"].map((wanted) => Number(words.find(([, , text]) => text === wanted)[1]));
  assert.ok(call - title > 10 && call - title < 18, `${call - title}`);
  await page.closed();
});

test("what backward made is told by a ∂ before what it was made of", oncePerPage, async () => {
  const page = await opened("differentiated");
  const labels = await page.evaluate(() => [0, 1].map((node) => window.gradscope.model.label(node)));
  assert.deepEqual(labels.map((one) => one.includes("∂")), [true, false]);
  await page.closed();
});

test("another backward pass has other numbers", oncePerPage, async () => {
  const page = await opened("passes");
  const saved = report("passes");
  const node = nodeOf(saved, "a");
  await page.evaluate((n) => window.gradscope.reveal({ node: n }), node);
  for (const [i, pass] of saved.passes.entries()) {
    await page.getByLabel("Backward pass").selectOption(String(i));
    const shown = await facts(page, "upstream gradient");
    assert.equal(norm(shown["‖g‖"]), norm(pass.gradients[pass.upstream[node][0]].norm));
  }
  await page.keyboard.press("Escape");
  await page.closed();
});

test("one switch goes through the calls of all graphs, and Back returns", async () => {
  const page = await opened("graphs");
  const saved = report("graphs");
  const choice = page.getByLabel("Backward pass");
  // A graph is unpacked when it is first asked for.
  const shows = (...wanted) => page.waitForFunction((seen) => { const { model, passes } = window.gradscope; return String([model.data.graph, model.data.passes.indexOf(model.pass), model.size, passes.value]) === seen && window.gradscope.rest; }, String(wanted), { timeout: 5000 });
  const [one, other] = [saved, saved.others[0]].map(({ graph }) => graph.nodes.length);
  assert.deepEqual(await choice.locator("option").allTextContents(), ["backward call 1", "backward call 2", "backward call 3"]);
  await page.keyboard.press("]");
  await shows(1, 0, other, 1);
  assert.equal(await page.locator("canvas").count(), 1);
  await page.keyboard.press("]");
  await shows(0, 1, one, 2);
  await page.goBack();
  await shows(1, 0, other, 1);
  await choice.focus();
  await choice.selectOption("0");
  await shows(0, 0, one, 0);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Backward pass");
  await page.keyboard.press("Escape");
  await page.reload();
  await whole(page);
  await shows(0, 0, one, 0);
  await page.closed();
});

test("what colours mean can be chosen, and a link keeps it", async () => {
  const page = await opened("answers");
  const choice = page.getByLabel("What colours mean");
  const footer = () => page.locator("footer").innerText();
  assert.deepEqual(await choice.locator("option").allTextContents(), ["‖gradient‖", "derivatives", "saved bytes", "findings", "‖g‖ ÷ ‖w‖ of leaves"]);
  assert.match(await footer(), /right\s+meant to differ\s+not differentiable\s+wrong/);
  const { checks, memory } = report("answers");
  const [wrong] = checks.calls.find((call) => call.verdict === "wrong").nodes;
  await page.evaluate((node) => window.gradscope.reveal({ node }), wrong);
  assert.match(await panel(page), /derivatives\s+wrong\s+saved bytes\s+4 KiB/);
  await page.keyboard.press("o");
  assert.match(await footer(), /KiB[^]*fewer – more/);
  assert.match(page.url(), /show=1/);
  const total = memory.kept.reduce((sum, { bytes }) => sum + bytes, 0);
  assert.equal(await page.evaluate(() => window.gradscope.shown.of({ group: 0 }).norm), total);
  await page.reload();
  await whole(page);
  assert.equal(await choice.inputValue(), "2");
  const leaf = nodeOf(report("answers"), report("answers").graph.leaves[0].names[0]);
  const [ratio, size] = await page.evaluate((node) => [window.gradscope.overlays[3].of({ node }).norm, window.gradscope.model.upstream(node).norm], leaf);
  assert.equal(ratio, size / 2);
  await page.closed();
});

test("the ranks can be chosen, and how far they are apart", oncePerPage, async () => {
  const page = await opened("ranks");
  const saved = report("ranks");
  const node = nodeOf(saved, "a");
  const [pass] = saved.passes;
  const own = pass.gradients[pass.upstream[node][0]].norm;
  await page.evaluate((n) => window.gradscope.reveal({ node: n }), node);
  const choice = page.getByLabel("Rank");
  assert.deepEqual(await choice.locator("option").allTextContents(), ["rank 0 of 4", "rank 1 of 4", "spread over 2 of 4 ranks", "rank 2: it made another graph", "rank 3: it made another graph"]);
  assert.equal(await choice.locator("option[disabled]").count(), 2);
  assert.equal(norm((await facts(page, "upstream gradient"))["‖g‖"]), norm(own));
  await choice.selectOption("1");
  assert.equal(norm((await facts(page, "upstream gradient"))["‖g‖"]), norm(3 * own));
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("r");
  assert.equal(await choice.inputValue(), "spread");
  const apart = await facts(page, "upstream gradient");
  assert.deepEqual([apart["smallest ‖g‖"], apart["largest ‖g‖"]].map((text) => text.replace(/^[\d.]+/, "")), [" on rank 0", " on rank 1"]);
  assert.equal(apart["largest ÷ smallest"], "3×");
  assert.match(await panel(page), /‖g‖ on each rank\n.* on rank 0\n.* on rank 1\n.* on rank 2\n+\.grad: /);
  assert.equal(await page.getByLabel("What colours mean").locator("option:checked").textContent(), "largest ÷ smallest ‖gradient‖ over ranks");
  assert.match(page.url(), /rank=spread/);
  await page.keyboard.press("Escape");
  const text = await panel(page);
  assert.match(text, /parameters over 4 ranks, furthest apart first/);
  assert.match(text, /… .* b\nnot in the graph of rank 3/);
  await page.keyboard.press("r");
  assert.equal(await choice.inputValue(), "0");
  await page.closed();
});

test("the address remembers the rank", oncePerPage, async () => {
  const page = await opened("ranks", { hash: "#rank=spread" });
  assert.equal(await page.getByLabel("Rank").inputValue(), "spread");
  await page.closed();
});

test("a histogram counts every element", oncePerPage, async () => {
  const page = await opened("histograms");
  const saved = report("histograms");
  const { node } = saved.graph.leaves[0];
  await page.evaluate((n) => window.gradscope.reveal({ node: n }), node);
  await page.locator("aside svg").first().waitFor();
  const [pass] = saved.passes;
  const [zeros, , counts] = pass.gradients[pass.upstream[node][0]].histogram;
  assert.match(await page.locator("figcaption").first().innerText(), new RegExp(`${zeros} zeros? · 0 NaN · 0 Inf`));
  const bars = await page.locator("aside svg").first().locator("rect title").allTextContents();
  assert.deepEqual(bars.map((text) => Number(text.split(" ")[0].replaceAll(",", ""))), counts.filter(Boolean));
  await page.closed();
});

test("the range of the colours can be moved by keys and pointer", async () => {
  const page = await opened("transformer");
  const [from, to] = await page.locator("footer").getByRole("slider").all();
  const value = async (end) => Number(await end.getAttribute("aria-valuenow"));
  const [low, high] = [await value(from), await value(to)];
  await to.focus();
  await page.keyboard.press("ArrowLeft");
  assert.ok((await value(to)) < high);
  const { x, y } = await from.boundingBox();
  await page.mouse.move(x + 5, y + 5);
  await page.mouse.down();
  await page.mouse.move(x - 40, y + 5);
  await page.mouse.up();
  assert.ok((await value(from)) < low);
  await page.closed();
});

test("the address remembers what is selected", async () => {
  const node = nodeOf(report("transformer"), "gpt.h.3.attn.c_proj.weight");
  const page = await opened("transformer", { hash: `#at=n${node}` });
  assert.equal(await heading(page), "gpt.h.3.attn.c_proj.weight");
  await page.closed();
});

/** The colour of the canvas in its corner, read from a copy of it. */
const corner = (page) =>
  page.evaluate(() => {
    const copy = document.createElement("canvas").getContext("2d");
    copy.drawImage(window.gradscope.canvas, 0, 0);
    return [...copy.getImageData(2, 2, 1, 1).data].slice(0, 3);
  });

/** Ways to put a page inside another, given its text and an iframe. */
const FRAMES = {
  srcdoc: (frame, text) => frame.setAttribute("srcdoc", text),
  blob: (frame, text) => frame.setAttribute("src", URL.createObjectURL(new Blob([text], { type: "text/html" }))),
  data: (frame, text) => frame.setAttribute("src", `data:text/html;base64,${btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""))}`),
};

for (const [way, put] of Object.entries(FRAMES)) {
  test(`inside another page, in a sandbox, by ${way}`, async () => {
    const context = await browser.newContext({ viewport: { width: 900, height: 600 }, offline: true });
    const page = await context.newPage();
    const complaints = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.setContent('<iframe sandbox="allow-scripts" style="width: 860px; height: 520px"></iframe>');
    await page.evaluate(`(${put})(document.querySelector("iframe"), ${JSON.stringify(readFileSync(`${PAGES}/transformer.html`, "utf8"))})`);
    await page.waitForFunction(() => frames.length);
    const inner = page.frames()[1];
    await whole(inner);
    const leaf = `n${report("transformer").graph.leaves[0].node}`;
    await inner.evaluate((key) => window.gradscope.select(key), leaf);
    assert.equal(await inner.evaluate(() => window.gradscope.selected), leaf);
    const aside = await inner.evaluate(() => {
      const { view, canvas, drawing } = window.gradscope;
      return (drawing.width / 2 - view.x) * view.zoom - canvas.clientWidth / 2;
    });
    assert.ok(Math.abs(aside) < 1, "the drawing stands in the middle");
    assert.match(await inner.locator("aside h2").innerText(), /\S/);
    const steps = await inner.evaluate(() => {
      const viewer = window.gradscope;
      const many = () => viewer.boxes.size;
      viewer.select(null);
      const before = many();
      viewer.toggle(viewer.drawing.boxes.find((box) => box.group !== undefined && !box.open).key);
      const opened = many();
      viewer.undo();
      return [opened > before, many() === before];
    });
    assert.deepEqual(steps, [true, true]);
    assert.deepEqual(complaints, []);
    await context.close();
  });
}

test("it is dark where the reader's system is, and white on paper", chromiumOnly, async () => {
  const page = await opened("small", { colorScheme: "dark" });
  await page.waitForFunction(() => !window.gradscope.waiting);
  assert.ok((await corner(page)).every((part) => part < 60));
  // Each step of the scale has a contrast of 3 to white.
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const steps = await page.evaluate(() => window.gradscope.scale.steps);
  for (const step of steps) {
    const [r, g, b] = [1, 3, 5].map((i) => linear(parseInt(step.slice(i, i + 2), 16) / 255));
    assert.ok(1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) >= 3, step);
  }
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.deepEqual(await corner(page), [255, 255, 255]);
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: 794, height: 1123 });
  await page.waitForFunction(() => !window.gradscope.waiting);
  assert.deepEqual(await corner(page), [255, 255, 255]);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("aside")).color), "rgb(22, 24, 29)");
  assert.equal(await page.locator("header input").isVisible(), false);
  assert.equal(await page.locator("footer .scale").isVisible(), true);
  await page.closed();
});

test("where somebody has chosen the colours the river has no others", chromiumOnly, async () => {
  const page = await opened("spoilt", { forcedColors: "active" });
  const shown = await page.evaluate(() => {
    const colors = (element) => [getComputedStyle(element).fill, getComputedStyle(element).stroke].filter((one) => one.startsWith("rgb"));
    const probe = document.body.appendChild(document.createElement("i"));
    const chosen = ["Canvas", "CanvasText", "Highlight", "LinkText"].map((name) => ((probe.style.color = name), getComputedStyle(probe).color));
    return [...document.querySelectorAll(".river path.bad, .river path.median, .river path.stream, .river rect:not(pattern *)")].map((one) => [one.getAttribute("class"), colors(one).filter((color) => !chosen.includes(color))]);
  });
  assert.ok(shown.length > 3);
  for (const [name, others] of shown) assert.deepEqual(others, [], name);
  await page.closed();
});

test("a graph without gradients is drawn without numbers", oncePerPage, async () => {
  const page = await opened("traced");
  assert.match(await page.locator("footer").innerText(), /no gradients in this report/);
  assert.equal(await page.locator(".river").isVisible(), false);
  await click(page, "n0");
  assert.doesNotMatch(await panel(page), /upstream gradient/);
  await page.closed();
});

test("a hundred thousand nodes can be used", async () => {
  const page = await opened("large");
  const saved = await page.evaluate(() => window.gradscope.model.size);
  assert.ok(saved >= 100_000, String(saved));
  assert.ok((await drawn(page)).length < 200);
  const key = await page.evaluate(() => window.gradscope.drawing.boxes.find((box) => box.group !== undefined && !box.open).key);
  await click(page, key, 2);
  assert.ok((await drawn(page)).length > 10);
  await page.keyboard.press("/");
  await page.keyboard.type("#77777");
  await page.locator("[role=option]").first().waitFor();
  await page.keyboard.press("Enter");
  assert.match(await panel(page), /#77777\b/);
  assert.ok((await drawn(page)).includes("n77777"));
  await page.keyboard.press("Escape");
  await page.keyboard.press("e");
  await page.locator(".status", { hasText: "stay closed" }).waitFor();
  const many = (await drawn(page)).length;
  assert.ok(many > 300 && many <= 600, String(many));
  await page.keyboard.press("c");
  await page.waitForFunction(() => window.gradscope.boxes.size < 200);
  await page.closed();
});

// ---------------------------------------------------------------- long repeats

/** What is in sight as SVG. */
const savedSvg = (page) =>
  page.evaluate(async () => {
    const saved = new Promise((done) => (URL.createObjectURL = (blob) => (done(blob), "#")));
    [...document.querySelectorAll("button")].find((one) => one.textContent === "Save this view as SVG").click();
    return (await saved).text();
  });

/** The closed repeats and parts that are drawn: their words, their rounds and, as in a saved picture, their bars. */
const strips = (page) =>
  page.evaluate(async () => {
    const { drawing, model } = window.gradscope;
    const saved = new Promise((done) => (URL.createObjectURL = (blob) => (done(blob), "#")));
    [...document.querySelectorAll("button")].find((one) => one.textContent === "Save this view as SVG").click();
    const caps = [...(await (await saved).text()).matchAll(/<rect x="([^"]*)" y="([^"]*)" width="[^"]*" height="1"/g)].map(([, x, y]) => [Number(x), Number(y)]);
    const isIn = ({ x, y, width, height }) => ([left, top]) => left > x + 9 && left < x + width - 9 && top > y + 24 && top < y + height - 20;
    const closed = drawing.boxes.filter((box) => !box.open && box.group !== undefined && ["repeat", "part"].includes(model.group(box.group).kind));
    const words = [...document.querySelectorAll(".list [role=treeitem]")].map((item) => item.textContent);
    return { boxes: drawing.boxes.length, words, closed: closed.map((box) => ({ key: box.key, title: model.group(box.group).title, rounds: model.rounds(box.group).length, bars: caps.filter(isIn(box)).length })) };
  });

/** A place in the strip of the box of an operation that stands for several layers: shares of its width and height. */
const inStrip = (page, across, down) =>
  page.evaluate(([right, below]) => {
    const { drawing, model, canvas } = window.gradscope;
    const box = drawing.boxes.find(({ bars, node }) => bars && node !== undefined && !model.isLeaf(node));
    window.gradscope.goTo(box.key);
    const { view } = window.gradscope;
    const { left, top } = canvas.getBoundingClientRect();
    const tall = model.isPair ? 14 : 15;
    const at = { x: box.x + 14 + (box.width - 28) * right, y: box.y + box.height - 4 - tall * (1 - below) };
    return { box, x: left + (at.x - view.x) * view.zoom, y: top + (at.y - view.y) * view.zoom };
  }, [across, down]);

test("a strip has a tile for each layer and call, or two bars of a comparison, and each leads to its own", oncePerPage, async () => {
  for (const [name, across, down, call] of [["steps", 2.5 / 4, 1.5 / 3, "backward call 2"], ["pair", 2.75 / 4, 0.5, "gradscope's own pass"]]) {
    const page = await opened(name);
    const pass = report(name).passes[1];
    const { box, x, y } = await inStrip(page, across, down);
    const told = norm(pass.gradients[pass.upstream[box.bars[2].node][0]].norm);
    await page.mouse.move(x, y);
    const [, where, size] = (await page.locator(".tip").innerText()).split("\n");
    assert.deepEqual([where, norm(size.split(" ")[1])], [call, told]);
    await page.mouse.click(x, y);
    assert.equal(await selectedNode(page), box.bars[2].node);
    assert.equal(await page.evaluate(() => window.gradscope.model.data.passes.indexOf(window.gradscope.model.pass)), 1);
    assert.equal(norm((await facts(page, "upstream gradient"))["‖g‖"]), told);
    await page.mouse.click(x, y);
    assert.equal(await page.evaluate((key) => window.gradscope.boxes.get(key).picked, box.key), null);
    await page.closed();
  }
});

/** For how many layers the boxes stand that stand for several. */
const standing = (page) => page.evaluate(() => [...new Set(window.gradscope.drawing.boxes.filter((box) => box.bars).map((box) => box.bars.length))]);

test("equal blocks are drawn once, a bar opens one of them", async () => {
  const page = await opened("transformer");
  const { graph, passes: [pass] } = report("transformer");
  const { blocks, frame, box, x, y } = await page.evaluate(() => {
    const { drawing, model, view, canvas } = window.gradscope;
    const [repeat] = model.once;
    const frame = drawing.boxes.find(({ key }) => key === `g${repeat}`);
    const box = drawing.boxes.find(({ bars, node }) => bars && node !== undefined && !model.isLeaf(node));
    const { left, top } = canvas.getBoundingClientRect();
    // The third bar from the left; the strip is 14 from each side and 11 above the lower edge.
    const at = { x: box.x + 14 + ((box.width - 28) * 2.5) / box.bars.length, y: box.y + box.height - 11 };
    return { blocks: model.rounds(repeat).length, frame, box, x: left + (at.x - view.x) * view.zoom, y: top + (at.y - view.y) * view.zoom };
  });
  assert.ok(blocks > 2 && frame.open && frame.bars.length === blocks);
  assert.deepEqual(await standing(page), [blocks]);
  const norms = box.bars.map(({ node }) => pass.gradients[pass.upstream[node][0]].norm);
  const told = () => page.evaluate((key) => { const { gradients, boxes } = window.gradscope; return gradients.of(boxes.get(key)); }, box.key);
  assert.deepEqual((await told()).span.map((info) => norm(info.norm)), [norm(Math.min(...norms)), norm(Math.max(...norms))]);
  assert.ok(new Set(box.bars.map(({ node }) => graph.nodes[node].op)).size === 1);
  // Bars are as high as in a picture: by the numbers of their strip alone, over at least a decade.
  const logs = norms.map(Math.log10);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const less = Math.max(1 - (high - low), 0) / 2;
  const drawn = [...(await savedSvg(page)).matchAll(/<rect x="([^"]*)" y="([^"]*)" width="[^"]*" height="([^"]*)"/g)].map((found) => found.slice(1).map(Number));
  const isBar = ([left, upper, tall]) => left > box.x + 13.9 && left < box.x + box.width - 14 && Math.abs(upper + tall - box.y - box.height + 4) < 0.1;
  const [, ...tall] = drawn.filter(isBar).map(([, , height]) => height);
  assert.deepEqual(tall.map(Math.round), logs.map((log) => Math.round(2 + (12 * (log - low + less)) / (high - low + 2 * less))));
  await page.mouse.click(x, y);
  assert.equal(await selectedNode(page), box.bars[2].node);
  assert.equal(norm((await told()).norm), norm(norms[2]));
  const shown = await page.evaluate(() => location.hash);
  for (const number of [3, 2, 1, 0]) {
    await page.keyboard.press(number === 3 ? "." : ",");
    assert.equal(await selectedNode(page), box.bars[number].node);
  }
  await page.keyboard.press(",");
  assert.match(await panel(page), new RegExp(`${blocks} layers, in backward order`));
  await page.locator("aside").getByRole("button", { name: /h\.0/ }).click();
  assert.equal(await selectedNode(page), box.bars.at(-1).node);
  await page.evaluate((hash) => (location.hash = hash), shown);
  await page.waitForFunction((node) => window.gradscope.thing(window.gradscope.selected)?.node === node, box.bars[2].node);
  await page.closed();
});

test("bars, words and list of equal blocks tell what colours mean", oncePerPage, async () => {
  const page = await opened("answers");
  const { memory } = report("answers");
  const bytesOf = ({ node }) => memory.kept.find((one) => one.holders.some(([id]) => id === node))?.bytes;
  await page.getByLabel("What colours mean").selectOption("saved bytes");
  // It opens at a finding, so in one layer.
  await page.evaluate(() => window.gradscope.nextLayer(1));
  while ((await page.evaluate(() => window.gradscope.boxes.get(window.gradscope.selected).picked)) !== null) await page.keyboard.press(".");
  const { bars, shown, x, y } = await page.evaluate(() => {
    const { drawing, model, canvas, shown } = window.gradscope;
    const box = drawing.boxes.find(({ bars, node }) => bars && node !== undefined && !model.isLeaf(node));
    window.gradscope.goTo(box.key);
    const { view } = window.gradscope;
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [box.x + 14 + ((box.width - 28) * 1.5) / box.bars.length, box.y + box.height - 11];
    return { ...box, shown: shown.bars(box).map((info) => info.norm), x: left + (x - view.x) * view.zoom, y: top + (y - view.y) * view.zoom };
  });
  const known = bars.map(bytesOf);
  assert.ok(known.length > 2 && new Set(known).size === known.length);
  assert.deepEqual(shown, known);
  const words = known.map((bytes) => `${Number((bytes / 1024).toPrecision(3))} KiB`);
  await page.mouse.move(x, y);
  assert.match(await page.locator(".tip").innerText(), new RegExp(`saved bytes: ${words[1]}$`));
  const text = await panel(page);
  assert.match(text, new RegExp(`saved bytes: ${known.length} layers, in backward order\\n${words.map((one) => `${one} \\S+`).join("\\n")}`));
  assert.match(await page.locator(".said").innerText(), new RegExp(`, saved bytes ${[Math.min(...known), Math.max(...known)].map((one) => `${Number((one / 1024).toPrecision(3))} KiB`).join("–")}$`));
  const listed = () => page.locator('.list [aria-selected="true"]').textContent();
  assert.match(await listed(), /saved bytes/);
  await page.mouse.click(x, y);
  assert.match(await panel(page), new RegExp(`saved bytes\\s+${words[1]}\\n`));
  await page.getByLabel("What colours mean").selectOption("‖gradient‖");
  await page.waitForFunction(() => / gradient /.test(document.querySelector('.list [aria-selected="true"]')?.textContent));
  await page.closed();
});

test("a loop of many rounds is drawn as a timeline", oncePerPage, async () => {
  for (const [name, isLong] of [["loop-64", true], ["loop-1000", true], ["recurrent", false], ["layers-17", false]]) {
    const page = await opened(name);
    const wide = await page.evaluate(() => Math.max(...window.gradscope.drawing.boxes.filter(({ group, open }) => group !== undefined && !open).map(({ width }) => width)));
    assert.equal(wide > 400, isLong, `${name}: ${wide}`);
    await page.closed();
  }
});

test("a repeat of many rounds is one box with a bar for each, and its parts are told by theirs", oncePerPage, async () => {
  const names = readdirSync(PAGES).map((file) => /^(?:loop|layers)-\d+(?=\.html)/.exec(file)?.[0]).filter(Boolean);
  assert.ok(names.length > 8);
  for (const name of names) {
    const count = Number(name.split("-")[1]);
    const page = await opened(name);
    const first = await strips(page);
    assert.ok(first.boxes <= 8, `${name}: ${first.boxes} boxes`);
    assert.match(first.words.join("\n"), new RegExp(`[▸▾] ([▲△] \\w+: )?(torch.tanh|0–\\d+ Linear).* ×${count.toLocaleString("en-US")},`));
    if (name.startsWith("layers")) {
      assert.deepEqual(await standing(page), [count], name);
      await page.closed();
      continue;
    }
    assert.deepEqual(first.closed.map(({ rounds, bars }) => [rounds, bars]), [[count, count]], name);
    await page.evaluate((key) => (window.gradscope.toggle(key), window.gradscope.fit()), first.closed[0].key);
    const { boxes, closed } = await strips(page);
    assert.ok(boxes <= 130, `${name}: ${boxes} boxes`);
    if (count > 120) assertDivided(closed, count);
    else assert.deepEqual(closed, [], name);
    assert.deepEqual((await page.locator(".river text").allTextContents()).filter((words) => / of /.test(words)), [], name);
    await page.closed();
  }
});

/** Parts follow one another from the first round to the last, and each has a bar for each of its own. */
function assertDivided(parts, count) {
  const ranges = parts.map(({ title, ...rest }) => ({ ...rest, title, numbers: title.replaceAll(",", "").match(/\d+/g).map(Number) }));
  ranges.sort((a, b) => a.numbers[0] - b.numbers[0]);
  let behind = 0;
  for (const { title, rounds, bars, numbers: [from, to, of] } of ranges) {
    assert.deepEqual([from, of, rounds, bars], [behind + 1, count, to - behind, to - behind], title);
    assert.ok(rounds >= 30, title);
    behind = to;
  }
  assert.equal(behind, count);
}

// ---------------------------------------------------------------- the code

const WIDE = { isAsItOpens: true, viewport: { width: 1400, height: 900 } };

test("the code tells at each line what arrives, and leads to its boxes and back", async () => {
  const page = await opened("spoilt", WIDE);
  const { graph, passes: [pass] } = report("spoilt");
  const lines = await page.locator(".code button.line").evaluateAll((all) => all.map((one) => [".at", "code", ".flow", ".used"].map((part) => one.querySelector(part).textContent)));
  const made = graph.nodes.filter((node) => node.kind !== "leaf").reverse();
  assert.deepEqual(lines.map(([at]) => Number(at)), made.map((node) => graph.origins[node.origin].line));
  for (const [i, node] of made.entries()) {
    const { state, norm } = pass.gradients[pass.upstream[node.id][0]];
    if (state === "finite") assert.ok(Math.abs(Number(lines[i][2]) - norm) < 1e-3 * norm, lines[i].join());
    else assert.match(lines[i][2], /✖ 4 Inf/);
  }
  assert.match(lines[12][3], /●\sw12\s0$/);
  await page.locator(".code button.line", { hasText: "x * w7" }).click();
  assert.equal(await heading(page), "x = x * w7");
  assert.equal(await page.locator(".code .here code").textContent(), "x * w7");
  await click(page, `n${made[8].id}`);
  assert.equal(await page.locator(".code .here code").textContent(), "x * w8");
  await page.keyboard.press("s");
  assert.equal(await page.locator(".code").isVisible(), false);
  await page.closed();
});

test("where a window is narrow the code comes when it is asked for", oncePerPage, async () => {
  const page = await opened("findings", { isAsItOpens: true, viewport: { width: 1100, height: 800 } });
  assert.equal(await page.locator(".code").isVisible(), false);
  await page.getByRole("button", { name: "Code", exact: true }).click();
  assert.equal(await page.locator(".code").isVisible(), true);
  const told = await page.locator(".code .finding").allTextContents();
  assert.deepEqual(told.map((one) => one.split(" ")[1]).sort(), report("findings").findings.filter(({ location }) => location).map(({ rule }) => rule).sort());
  await page.closed();
});

test("facts give the code and the graph their room, and stand over the graph for what is selected", oncePerPage, async () => {
  const page = await opened("transformer", { isAsItOpens: true });
  const [aside, code] = [page.locator("aside"), page.locator(".code")];
  assert.deepEqual([await code.isVisible(), await aside.isVisible()], [true, false]);
  const key = await page.evaluate(() => window.gradscope.drawing.boxes.filter((box) => box.node !== undefined).sort((a, b) => b.x - a.x)[0].key);
  await page.evaluate((wanted) => window.gradscope.goTo(wanted), key);
  const [facts, box] = [await aside.boundingBox(), await place(page, key)];
  assert.ok(box.x < facts.x, "what is selected is beside its facts");
  await page.keyboard.press("Escape");
  assert.equal(await aside.isVisible(), false);
  await page.keyboard.press("d");
  assert.equal(await aside.isVisible(), true);
  await page.closed();
});

test("a double-click opens what its facts come to stand over, and one elsewhere opens nothing", oncePerPage, async () => {
  const page = await opened("transformer", { isAsItOpens: true });
  const [key, x, y] = await page.evaluate(() => {
    const { gradscope: viewer } = window;
    const box = viewer.drawing.boxes.find((one) => one.group !== undefined && !one.open);
    const { left, top, width, height } = viewer.canvas.getBoundingClientRect();
    Object.assign(viewer.view, { zoom: 1, x: box.x + box.width - width + 60, y: box.y - height / 2 });
    viewer.pan(0, 0);
    return [box.key, left + width - 60 - box.width / 2, top + height / 2 + 12];
  });
  const isOpen = () => page.evaluate((wanted) => window.gradscope.boxes.get(wanted).open, key);
  await page.mouse.dblclick(x, y);
  assert.equal(await isOpen(), true);
  await page.keyboard.press("Control+z");
  assert.equal(await isOpen(), false);
  await page.locator("canvas").dispatchEvent("dblclick", { clientX: 700, clientY: 790, bubbles: true });
  assert.equal(await isOpen(), false);
  await page.closed();
});

test("bytes and verdicts at a line are those of all that it made", oncePerPage, async () => {
  const page = await opened("kept", WIDE);
  const flow = page.locator(".code button.line .flow");
  await page.getByLabel("What colours mean").selectOption({ label: "derivatives" });
  assert.deepEqual(await flow.allTextContents(), ["right–wrong"]);
  await page.getByLabel("What colours mean").selectOption({ label: "saved bytes" });
  const total = report("kept").memory.kept.reduce((sum, { bytes }) => sum + bytes, 0);
  assert.deepEqual(await flow.allTextContents(), [`${total / 1024} KiB`]);
  await page.closed();
});

test("the verdict is said above all, of the call that is shown", oncePerPage, async () => {
  const page = await opened("spoilt");
  assert.match(await page.locator(".verdict").textContent(), /makes the first NaN or infinity in backward order; 4 of 17 leaves get NaN or infinity/);
  await page.closed();
});

test("the verdict is not said of another rank", oncePerPage, async () => {
  const page = await opened("sized");
  const told = () => page.locator(".verdict").textContent();
  const first = await told();
  assert.match(first, /^△ ‖g‖ grows ×6050 from gpt.h.11 back through gpt.h.0: 6.53 arrives, 39519 goes on\nall 150 leaves get ‖g‖ /);
  await page.getByLabel("Rank").selectOption("1");
  assert.equal(await told(), "");
  await page.getByLabel("Rank").selectOption("0");
  assert.equal(await told(), first);
  await page.closed();
});

// ---------------------------------------------------------------- the river

test("the river tells of what is not finite and of zeros; a graph that is seen as a whole has none", oncePerPage, async () => {
  const page = await opened("spoilt");
  assert.deepEqual(await onRiver(page), [true, true]);
  await page.closed();
  const small = await opened("small");
  assert.equal(await small.locator(".river").isVisible(), false);
  await small.closed();
});

/** The middle of a row of the river on the screen. */
const alongRiver = (page, share) =>
  page.locator(".river").evaluate((river, part) => {
    const { left, top, width, height } = river.getBoundingClientRect();
    return { x: left + width - 20, y: top + part * height };
  }, share);

test("the river shows every gradient in backward order, and leads to it", async () => {
  const page = await opened("transformer");
  const { graph, passes: [pass] } = report("transformer");
  const rows = await page.evaluate(() => {
    const { rows, mid, low, high } = window.gradscope.river.profile;
    return [...Array(rows).keys()].map((row) => ({ nodes: window.gradscope.river.nodesOf(row), norms: [low, mid, high].map((one) => 10 ** one[row]) }));
  });
  assert.deepEqual([rows[0].nodes[0], rows.at(-1).nodes[1]], [0, graph.nodes.length]);
  for (const { nodes: [from, to], norms: [low, mid, high] } of rows) {
    const ops = graph.nodes.slice(from, to).filter((node) => node.kind !== "leaf").map((node) => pass.gradients[pass.upstream[node.id][0]].norm);
    if (!ops.length) continue;
    assert.ok(low <= mid && mid <= high);
    for (const shown of [low, mid, high]) assert.ok(ops.some((norm) => Math.abs(norm - shown) < 1e-4 * norm), `${shown} is none of ${ops}`);
  }
  const { x, y } = await alongRiver(page, 0.5);
  await page.mouse.move(x, y);
  assert.match(await page.locator(".tip").innerText(), /^gpt\.h\.\d[\s\S]*‖g‖/);
  await page.mouse.click(x, y);
  const node = await selectedNode(page);
  assert.ok(Math.abs(node / graph.nodes.length - 0.5) < 0.05, String(node));
  await page.closed();
});

test("the river's lens is what is in sight, dragging and keys move it", async () => {
  const page = await opened("transformer");
  const lens = async () => page.locator(".lens").evaluate((one) => [Number(one.getAttribute("y")), Number(one.getAttribute("height"))]);
  await page.evaluate(() => window.gradscope.openAll());
  const settled = () => page.waitForFunction(() => !window.gradscope.waiting);
  const [{ x, y }, end] = [await alongRiver(page, 0.2), await alongRiver(page, 0.85)];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x, y + 20);
  await settled();
  const early = await lens();
  await page.mouse.move(end.x, end.y, { steps: 3 });
  await settled();
  const late = await lens();
  await page.mouse.up();
  assert.ok(early[0] + early[1] / 2 < late[0] + late[1] / 2, `${early} is not above ${late}`);
  await page.locator(".river").focus();
  await page.keyboard.press("Home");
  assert.equal(await page.locator(".river").getAttribute("aria-valuenow"), "0");
  assert.match(await page.locator(".river").getAttribute("aria-valuetext"), /‖g‖ \d/);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => window.gradscope.selected), "n0");
  await page.closed();
});

// ---------------------------------------------------------------- hands

/** Fingers on the screen: a list of their places for each moment; none is when they are lifted. */
async function touch(page, ...moments) {
  const session = await page.context().newCDPSession(page);
  const began = Date.now() / 1000;
  for (const [i, places] of moments.entries()) {
    const type = places === "cancel" ? "touchCancel" : places.length === 0 ? "touchEnd" : places.length > (moments[i - 1]?.length ?? 0) ? "touchStart" : "touchMove";
    await session.send("Input.dispatchTouchEvent", { type, timestamp: began + i / 50, touchPoints: places === "cancel" ? [] : places.map(([x, y], id) => ({ x, y, id })) });
  }
}
const view = (page) => page.evaluate(() => ({ ...window.gradscope.view }));

test("two fingers zoom, one drags, two taps open, and what is cancelled ends", chromiumOnly, async () => {
  const page = await opened("transformer", { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true });
  const { left, top } = await page.locator("canvas").evaluate((canvas) => canvas.getBoundingClientRect().toJSON());
  const before = await view(page);
  await touch(page, [[left + 100, top + 100]], [[left + 100, top + 100], [left + 200, top + 100]], [[left + 50, top + 100], [left + 250, top + 100]], []);
  const zoomed = await view(page);
  assert.ok(Math.abs(zoomed.zoom / before.zoom - 2) < 0.05, `${before.zoom} to ${zoomed.zoom}`);
  const under = ({ x, y, zoom }) => [x + 150 / zoom, y + 100 / zoom];
  under(before).forEach((was, i) => assert.ok(Math.abs(was - under(zoomed)[i]) < 1, "the middle stays where it is"));
  await touch(page, [[left + 100, top + 100]], [[left + 130, top + 100]], "cancel");
  const dragged = await view(page);
  assert.ok(dragged.x < zoomed.x);
  await page.mouse.move(left + 200, top + 200);
  assert.deepEqual(await view(page), dragged);
  await page.evaluate(() => window.gradscope.closeAll());
  const key = await page.evaluate(() => window.gradscope.drawing.boxes.find((box) => box.group !== undefined && !box.open).key);
  await page.evaluate((one) => window.gradscope.keepInSight(window.gradscope.boxes.get(one)), key);
  const { x, y } = await place(page, key);
  const isOpen = () => page.evaluate((one) => window.gradscope.boxes.get(one).open, key);
  // The browser tells when a finger touched; here in a moment, however busy the machine is.
  await touch(page, [[x, y]], [], [[x, y]], []);
  assert.equal(await isOpen(), true);
  await page.evaluate((one) => window.gradscope.keepInSight(window.gradscope.boxes.get(one)), key);
  const shown = await place(page, key);
  const width = await page.evaluate((one) => window.gradscope.boxes.get(one).width * window.gradscope.view.zoom, key);
  await touch(page, [[shown.x - width / 2 + 10, shown.y]], []);
  assert.equal(await isOpen(), false);
  await page.closed();
});

test("only the left button drags, and a wheel goes sideways too", async () => {
  const page = await opened("small");
  const { left, top } = await page.locator("canvas").evaluate((canvas) => canvas.getBoundingClientRect().toJSON());
  const before = await view(page);
  await page.mouse.move(left + 30, top + 60);
  await page.mouse.down({ button: "right" });
  await page.mouse.move(left + 90, top + 60);
  await page.mouse.up({ button: "right" });
  assert.deepEqual(await view(page), before);
  await page.mouse.wheel(40, 0);
  await page.waitForFunction((x) => window.gradscope.view.x > x, before.x);
  await page.getByRole("button", { name: "zoom in" }).click();
  assert.ok((await view(page)).zoom > before.zoom);
  await page.keyboard.press("f");
  assert.deepEqual(await view(page), before);
  await page.closed();
});

test("a double-click beside the boxes of an open group leaves it open; its heading and sign close it", async () => {
  const page = await opened("transformer");
  await page.keyboard.press("f");
  const key = await page.evaluate(() => window.gradscope.drawing.boxes.find((box) => box.open).key);
  const [x, y] = await page.evaluate((one) => {
    const { view, boxes, canvas } = window.gradscope;
    const { left, top } = canvas.getBoundingClientRect();
    const box = boxes.get(one);
    return [left + (box.x - view.x) * view.zoom, top + (box.y - view.y) * view.zoom];
  }, key);
  const isOpen = () => page.evaluate((one) => window.gradscope.boxes.get(one).open, key);
  await doubleClick(page, x + 5, y + 60);
  assert.equal(await isOpen(), true);
  assert.equal(await page.evaluate(() => window.gradscope.selected), key);
  await doubleClick(page, x + 60, y + 10);
  assert.equal(await isOpen(), false);
  const closed = await place(page, key);
  const width = await page.evaluate((one) => window.gradscope.boxes.get(one).width * window.gradscope.view.zoom, key);
  await page.mouse.click(closed.x - width / 2 + 8, closed.y);
  assert.equal(await isOpen(), true);
  await page.closed();
});

test("opening is undone by Ctrl-Z and by Back, and an address that is changed is heeded", async () => {
  const page = await opened("transformer");
  const first = await drawn(page);
  const box = () => page.evaluate(() => window.gradscope.drawing.boxes.find((one) => one.group !== undefined && !one.open).key);
  const step = async (act, wanted) => {
    await act();
    await page.waitForFunction((many) => window.gradscope.boxes.size === many, wanted);
  };
  await page.evaluate((key) => window.gradscope.toggle(key), await box());
  const one = (await drawn(page)).length;
  await page.evaluate((key) => window.gradscope.toggle(key), await box());
  const two = (await drawn(page)).length;
  assert.ok(two > one && one > first.length);
  await step(() => page.keyboard.press("Control+z"), one);
  await step(() => page.keyboard.press("Control+y"), two);
  await step(() => page.goBack(), one);
  await step(() => page.goForward(), two);
  const link = await page.evaluate(() => window.gradscope.link());
  await page.evaluate(() => window.gradscope.closeAll());
  assert.equal((await drawn(page)).length, first.length);
  await page.evaluate((hash) => (location.hash = hash), link.split("#")[1]);
  await page.waitForFunction((many) => window.gradscope.boxes.size === many, two);
  await page.closed();
  const other = await opened("transformer", { hash: `#${link.split("#")[1]}` });
  assert.equal((await drawn(other)).length, two);
  await other.closed();
});

test("a line can be selected, and is told with its edges", async () => {
  const page = await opened("small");
  const at = await page.evaluate(() => {
    const { view, canvas, drawing } = window.gradscope;
    const { left, top } = canvas.getBoundingClientRect();
    const [a, b] = drawing.bundles.find((bundle) => bundle.from === "s0").points.slice(-2);
    return [left + ((a.x + b.x) / 2 - view.x) * view.zoom, top + ((a.y + b.y) / 2 - view.y) * view.zoom];
  });
  await page.mouse.move(...at);
  assert.match(await page.locator(".tip").innerText(), /^∂L\/∂y → y = 3\*a/);
  await page.mouse.click(...at);
  assert.match(await heading(page), /^∂L\/∂y → y = 3\*a/);
  assert.deepEqual((await facts(page, undefined)).values, "[0.1, 1, 0.0001]");
  await page.closed();
});

// ---------------------------------------------------------------- screens, paper and files

test("all of it can be reached on a small screen, and where the page is zoomed in", async () => {
  const page = await opened("findings");
  for (const [width, height] of [[375, 812], [640, 400], [320, 256]]) {
    await page.setViewportSize({ width, height });
    const found = await page.evaluate(() => {
      const { canvas } = window.gradscope;
      const wide = document.documentElement.scrollWidth;
      const outside = [...document.querySelectorAll("button, input, summary, select, [role=slider]")].filter((one) => one.offsetParent && !one.closest("footer, .menu > div")).filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent);
      return { canvas: [canvas.clientWidth, canvas.clientHeight], wide, outside };
    });
    assert.ok(found.canvas[0] >= 240 && found.canvas[1] >= 140, `${width}: ${found.canvas}`);
    assert.ok(found.wide <= width, `${width}: ${found.wide}`);
    assert.deepEqual(found.outside, [], String(width));
    await page.locator("aside h2").scrollIntoViewIfNeeded();
  }
  await page.closed();
});

test("a name of 5,000 characters leaves room for the rest", oncePerPage, async () => {
  const page = await opened("long");
  const node = report("long").graph.leaves[0].node;
  await page.evaluate((n) => window.gradscope.reveal({ node: n }), node);
  assert.ok((await page.locator("aside h2").boundingBox()).height < 300);
  await page.keyboard.press("Escape");
  for (const link of await page.locator("aside .link").allInnerTexts()) assert.ok(link.length < 200);
  await page.closed();
});

/** The bytes that the page hands to the browser, to be saved, when it is acted on. */
async function handedOver(page, act) {
  await page.evaluate(() => {
    window.handed = new Promise((done) => (URL.createObjectURL = (blob) => (blob.arrayBuffer().then(done), "#")));
  });
  await act();
  return Buffer.from(await page.evaluate(async () => [...new Uint8Array(await window.handed)]));
}

test("what is in sight is saved as SVG and PNG, and facts are copied", async () => {
  const page = await opened("hostile");
  const saved = async (name) => {
    await page.locator("summary").click();
    const press = () => page.getByRole("button", { name }).click();
    if (BROWSER === "firefox") return handedOver(page, press); // whose driver tells of no download
    const [download] = await Promise.all([page.waitForEvent("download"), press()]);
    return readFileSync(await download.path());
  };
  const svg = String(await saved("Save this view as SVG"));
  const told = await page.evaluate((text) => {
    const read = new DOMParser().parseFromString(text, "image/svg+xml");
    return { kinds: [...new Set([...read.querySelectorAll("*")].map((one) => one.tagName))].sort(), text: read.documentElement.textContent };
  }, svg);
  assert.deepEqual(told.kinds, ["clipPath", "g", "path", "rect", "style", "svg", "text", "title"]);
  assert.match(told.text, /‖gradient‖: \S+ to \S+, smaller – typical – larger$/);
  assert.match(told.text, /constructor/);
  const png = await saved("Save this view as PNG");
  assert.deepEqual([...png.subarray(1, 4)], [...Buffer.from("PNG")]);
  assert.equal(png.readUInt32BE(16), 2 * await page.evaluate(() => window.gradscope.canvas.clientWidth));
  await page.evaluate(() => window.gradscope.reveal({ node: 0 }));
  await page.evaluate(() => (document.execCommand = () => (window.copied = document.activeElement.value)));
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.getByRole("button", { name: "Copy as text" }).click();
  await page.locator(".status", { hasText: "copied" }).waitFor();
  assert.match(await page.evaluate(() => window.copied), /upstream gradient[\s\S]*‖g‖/);
  await page.closed();
});

test("what one sheet cannot hold is printed on several", async () => {
  const printed = async (page) => {
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    return page.locator(".sheet figcaption").allTextContents();
  };
  // Words of 11 pixels are 6 points where a drawing is 8/11 of its size.
  for (const name of ["small", "unet", "transformer", "findings"]) {
    const page = await opened(name);
    const { width, height } = await page.evaluate(() => ({ width: window.gradscope.drawing.width, height: window.gradscope.drawing.height }));
    const isSmall = Math.min(610 / width, 820 / height) < 8 / 11;
    assert.equal((await printed(page)).length > 0, isSmall, name);
    assert.equal(isSmall, ["transformer", "findings"].includes(name));
    const { canvas } = await page.evaluate(() => ({ canvas: [window.gradscope.canvas.width, window.gradscope.canvas.height] }));
    assert.deepEqual(canvas, [3 * 610, 3 * 820]);
    await page.closed();
  }
  const page = await opened("transformer");
  await page.evaluate(() => window.gradscope.openAll());
  const sheets = await printed(page);
  assert.ok(sheets.length > 1 && sheets.length <= 12, sheets.join());
  assert.match(sheets.at(-1), /row (\d+) of \1/);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.locator(".sheet").count(), 0);
  await page.closed();
});

test("nothing serious for those who cannot see, hear or point", oncePerPage, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const page = await opened("answers");
  await page.evaluate(axe);
  for (const [colorScheme, width, height] of [["light", 1280, 800], ["dark", 375, 812]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.locator("summary").click();
    const found = await page.evaluate(() => window.axe.run());
    const grave = found.violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.map((node) => node.html.slice(0, 120)).join(" ")}`);
    assert.deepEqual(grave, [], colorScheme);
  }
  await page.closed();
});
