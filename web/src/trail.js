// What was seen before, one step for each that opened or closed something: for Ctrl-Z, and for the browser's Back and Forward.

export class Trail {
  /** Who shows a graph sets `written`, which says what is seen now as an address, and `go`, which shows what an address says. */
  constructor() {
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
    const isFirst = this.at < 0;
    this.steps.length = ++this.at;
    this.steps.push(address);
    this._write(isFirst ? "replaceState" : "pushState");
  }

  /** The same step, looked at in another way. */
  note() {
    if (this.at < 0 || this.isGoing) return;
    this.steps[this.at] = this.written();
    this._write("replaceState");
  }

  /** One back, or forward again; says whether there is one. */
  step(by) {
    const to = this.at + by;
    if (to < 0 || to >= this.steps.length) return false;
    if (this.isOwn) history.go(by);
    else {
      this.at = to;
      this._show();
    }
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
      this.isOwn = false;
    }
  }

  /** The browser went somewhere, or somebody changed the address. */
  _moved(step) {
    const address = location.hash.slice(1);
    if (address === this.steps[this.at]) return;
    if (step < this.steps.length) this.at = step;
    else this.steps.length = ++this.at;
    this.steps[this.at] = address;
    this._show();
  }
}
