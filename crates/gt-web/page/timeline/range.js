// The times that are seen of a recording: zooming and panning keep within it.

/** The shortest time that is seen, in seconds: instructions take some hundred nanoseconds. */
const SHORTEST = 1e-7;

export class Range {
  constructor(length) {
    this.length = Math.max(length, SHORTEST);
    this.show(0, this.length);
  }

  get width() {
    return this.to - this.from;
  }

  get isWhole() {
    return this.width >= this.length;
  }

  /** Shows the time between two times, as far as the recording has it. */
  show(from, to) {
    const width = Math.min(Math.max(to - from, SHORTEST), this.length);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - width / 2, 0), this.length - width);
    this.to = this.from + width;
  }

  /** Shows a part of what is seen, or more than it; the time `around` stays where it is. */
  zoom(factor, around = (this.from + this.to) / 2) {
    const width = Math.min(Math.max(this.width * factor, SHORTEST), this.length);
    const from = around - (around - this.from) * (width / this.width);
    this.show(from, from + width);
  }

  pan(seconds) {
    this.show(this.from + seconds, this.to + seconds);
  }
}
