// The drawing on white paper: as a whole, and on further sheets where it would be too small on one.
import { LARGEST } from "./camera.js";
import { element, faint } from "./element.js";
import { Painter } from "./paint.js";
import { PAPER } from "./theme.js";

/** A drawing that would be smaller on one sheet is printed on several as well: the 11 pixels of most words are 6 points then. */
const SMALLEST = 8 / 11;
const MOST_SHEETS = 12;
/** Pixels of a sheet, in the form of what A4 and Letter leave between their margins, and beside the river on the first. */
const [SHEET, FIRST] = [{ width: 700, height: 900 }, { width: 610, height: 820 }];
/** Dots for each of these pixels. */
const [FINE, FINER] = [2, 3];

/** The first sheet: the whole drawing. */
export function onPaper(viewer) {
  const { drawing } = viewer;
  const zoom = Math.min(FIRST.width / drawing.width, FIRST.height / drawing.height, LARGEST);
  return { ...viewer.scene(), hovered: null, selected: null, bar: null, view: { x: (drawing.width - FIRST.width / zoom) / 2, y: 0, zoom }, size: FIRST, theme: PAPER, ratio: FINER };
}

/** The drawing in rows and columns of sheets, as large as so many hold it. */
export function addSheets(viewer) {
  const { drawing } = viewer;
  if (onPaper(viewer).view.zoom >= SMALLEST) return;
  const { zoom, rows, columns } = division(drawing);
  const sheets = Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const canvas = element("canvas", {});
    const view = { x: (column * SHEET.width) / zoom, y: (row * SHEET.height) / zoom, zoom };
    new Painter(canvas, viewer.model).paint({ ...viewer.scene(), hovered: null, selected: null, bar: null, view, size: SHEET, theme: PAPER, ratio: FINE });
    const place = [columns > 1 ? `column ${column + 1} of ${columns}` : "", rows > 1 ? `row ${row + 1} of ${rows}` : ""].filter(Boolean).join(", ");
    return element("figure", { class: "sheet" }, faint("figcaption", place), canvas);
  });
  document.body.append(...sheets);
}

export const removeSheets = () => document.querySelectorAll(".sheet").forEach((sheet) => sheet.remove());

/** Few columns where that can be read, for a sheet is read downwards; else as large as may be. */
function division({ width, height }) {
  const ways = Array.from({ length: MOST_SHEETS }, (_, i) => {
    const columns = i + 1;
    const most = Math.floor(MOST_SHEETS / columns);
    const zoom = Math.min(1, (columns * SHEET.width) / width, (most * SHEET.height) / height);
    return { columns, zoom, rows: Math.ceil((height * zoom) / SHEET.height) };
  });
  return ways.find(({ zoom }) => zoom >= SMALLEST) ?? ways.reduce((best, way) => (way.zoom > best.zoom ? way : best));
}
