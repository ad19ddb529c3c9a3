"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const [BAD, ZERO, GAP] = [Infinity, -Infinity, NaN];
const canvas = document.querySelector("canvas"), said = document.querySelector("output");
const choice = document.querySelector("select"), ROW = 20;
const span = data.high - data.low;

const rows = data.cells.map(text => Array.from({ length: text.length / 2 }, (_, at) => {
  const [a, b] = text.slice(2 * at, 2 * at + 2);
  if (a === "!") return BAD;
  if (a === "~") return ZERO;
  return a === " " ? GAP : data.low + (span * (64 * LETTERS.indexOf(a) + LETTERS.indexOf(b))) / 4095;
}));
const medians = rows.map(row => {
  const known = row.filter(Number.isFinite).sort((a, b) => a - b);
  return known[(known.length - 1) >> 1] ?? 0;
});
const count = data.first.length;

function louder(a, b) {
  return Number.isNaN(a) || b > a ? b : a;
}

function hatched(context, ratio, style) {
  const tile = document.createElement("canvas"), size = Math.round(5 * ratio);
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = style.getPropertyValue("--gap");
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = style.getPropertyValue("--faint");
  pen.lineWidth = ratio;
  pen.beginPath();
  for (const at of [-size, 0, size]) pen.moveTo(at, size), pen.lineTo(at + size, 0);
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  const ratio = devicePixelRatio || 1, height = Math.round(ROW * ratio);
  const width = (canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1));
  canvas.height = height * rows.length;
  const pen = canvas.getContext("2d"), hatch = hatched(pen, ratio, style);
  const [bad, gap] = ["--bad", "--gap"].map(name => style.getPropertyValue(name));
  const own = choice.value === "own", steps = data.colors.length - 1;
  const paint = (value, row) => {
    if (value === BAD) return bad;
    if (value === ZERO) return hatch;
    if (Number.isNaN(value)) return gap;
    // A hundredth to a hundred times its median.
    const place = own ? (value - medians[row] + 2) / 4 : (value - data.bottom) / (data.top - data.bottom);
    return data.colors[Math.round(Math.min(Math.max(place, 0), 1) * steps)];
  };
  const cells = Math.min(width, count);
  rows.forEach((row, number) => {
    for (let at = 0; at < cells; at++) {
      const [begin, end] = [at, at + 1].map(one => Math.floor((one * count) / cells));
      const value = row.slice(begin, end).reduce(louder, GAP);
      const [left, right] = [at, at + 1].map(one => Math.round((one * width) / cells));
      pen.fillStyle = paint(value, number);
      pen.fillRect(left, number * height, right - left, height - 1);
      if (!Number.isNaN(value)) continue;
      pen.fillStyle = style.getPropertyValue("--faint");
      pen.fillRect(left, Math.round((number + 0.5) * height), right - left, ratio);
    }
  });
}

function words(value, row) {
  if (value === BAD) return "not finite";
  if (value === ZERO) return "zero";
  if (Number.isNaN(value)) return "no gradient";
  const times = (10 ** (value - medians[row])).toPrecision(2);
  return `norm ${Number((10 ** value).toPrecision(3))}, ${Number(times)} times its median`;
}

let [column, line] = [0, 0];
const markAt = at => data.marks.find(mark => mark.at === at && mark.link);
function tell() {
  const [first, last] = [data.first, data.last].map(steps => steps[column].toLocaleString("en"));
  const steps = first === last ? `step ${first}` : `steps ${first} to ${last}`;
  const marks = data.marks.filter(one => one.at === column).map(one => one.text);
  said.textContent = [data.names[line], steps, words(rows[line][column], line), ...marks].join(" · ");
  canvas.classList.toggle("open", Boolean(markAt(column)));
}
function open() {
  const mark = markAt(column);
  if (mark) location.href = mark.link;
}
function point(event) {
  const box = canvas.getBoundingClientRect();
  const within = (place, most) => Math.min(Math.max(Math.floor(place * most), 0), most - 1);
  column = within((event.clientX - box.left) / box.width, count);
  line = within((event.clientY - box.top) / box.height, rows.length);
  tell();
}
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
if (count && rows.length) {
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("click", event => (point(event), open()));
  canvas.addEventListener("keydown", event => {
    if (event.key === "Enter") open();
    const [x, y] = KEYS[event.key] ?? [];
    if (x === undefined) return;
    event.preventDefault();
    column = Math.min(Math.max(column + x, 0), count - 1);
    line = Math.min(Math.max(line + y, 0), rows.length - 1);
    tell();
  });
  choice.addEventListener("change", draw);
  new ResizeObserver(draw).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);
}
