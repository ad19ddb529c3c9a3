// What was seen before, one step for each that opened or closed something: for Ctrl-Z, and for the browser's Back and Forward.

/** Steps that are kept. */
const MOST = 200;

export class Trail {
  /**
   * @param {() => string} written what is seen now, as an address
   * @param {(address: string) => void} go shows what an address says
   */
  constructor(written, go) {
    this.written = written;
    this.go = go;
    this.steps = [];
    this.at = -1;
    this.isGoing = false;
    // Inside another page, as in a notebook, the address and the way back are not this page's own.
    this.isOwn = window.parent === window;
    addEventListener("popstate", (event) => this._moved(event.state?.step));
    addEventListener("hashchange", () => this._moved(history.state?.step));
  }

  /** A step further: what was undone before is forgotten. */
  push() {
    if (this.isGoing) return;
    const address = this.written();
    if (address === this.steps[this.at]) return;
    this.steps = [...this.steps.slice(0, this.at + 1), address].slice(-MOST);
    const isFirst = this.at < 0;
    this.at = this.steps.length - 1;
    this._write(isFirst ? "replaceState" : "pushState");
  }

  /** The same step, looked at in another way. */
  note() {
    if (this.at < 0 || this.isGoing) return;
    this.steps[this.at] = this.written();
    this._write("replaceState");
  }

  /** One back, or forward again; says whether there was one. */
  step(by) {
    const to = this.at + by;
    if (to < 0 || to >= this.steps.length) return false;
    this.at = to;
    this._show();
    return true;
  }

  /** Show the step that was gone to; doing so is no step of its own. */
  _show() {
    this.isGoing = true;
    try {
      this.go(this.steps[this.at]);
    } finally {
      this.isGoing = false;
    }
    this._write("replaceState");
  }

  _write(how) {
    if (!this.isOwn) return;
    try {
      history[how]({ step: this.at }, "", `#${this.steps[this.at]}`);
    } catch {
      // Browsers allow so many in so much time, and some files none at all.
    }
  }

  /** The browser went somewhere, or somebody changed the address. */
  _moved(step) {
    const address = location.hash.slice(1);
    if (address === this.steps[this.at]) return;
    if (step !== undefined && this.steps[step] === address) this.at = step;
    else {
      this.steps = [...this.steps.slice(0, this.at + 1), address];
      this.at = this.steps.length - 1;
    }
    this._show();
  }
}
