// Mouse, wheel and touch on the canvas.

/** Pixels that a pointer may move and still be a click. */
const STILL = 4;

export function listenToPointer(viewer) {
  const { canvas } = viewer;
  canvas.addEventListener("wheel", (event) => wheel(viewer, event), { passive: false });
  canvas.addEventListener("pointerdown", (event) => press(viewer, event));
  canvas.addEventListener("dblclick", (event) => viewer.toggle(boxAt(viewer, event)?.key));
}

function wheel(viewer, event) {
  event.preventDefault();
  // A pinch on a touchpad comes as a wheel with small steps and the control key.
  const speed = event.ctrlKey ? 100 : 400;
  viewer.zoomAt(Math.exp(-event.deltaY / speed), event.offsetX, event.offsetY);
}

function press(viewer, down) {
  const { canvas } = viewer;
  const from = { ...viewer.view };
  let moved = false;
  const move = (event) => {
    const [dx, dy] = [event.clientX - down.clientX, event.clientY - down.clientY];
    moved ||= Math.hypot(dx, dy) > STILL;
    if (!moved) return;
    canvas.classList.add("moving");
    viewer.view.x = from.x - dx / from.zoom;
    viewer.view.y = from.y - dy / from.zoom;
    viewer.draw();
  };
  const up = () => {
    removeEventListener("pointermove", move);
    canvas.classList.remove("moving");
    if (!moved) viewer.select(boxAt(viewer, down)?.key ?? null);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up, { once: true });
}

/** The innermost box under the pointer. */
function boxAt(viewer, { offsetX, offsetY }) {
  const { view, drawing } = viewer;
  const x = view.x + offsetX / view.zoom;
  const y = view.y + offsetY / view.zoom;
  return drawing.boxes.findLast((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
}
