// Draws what is seen of a recording. The cost depends on the pixels, not on the number of spans.
//
// As `gt visualize`: a span that is wide enough is a box; narrower ones are merged into a bar for each
// column of pixels, as high as the row is busy there, in the colour of most of it.

import { colour } from '../observe.js';
import { label, moment, ticks } from './describe.js';

/** Narrower spans are merged, in pixels. */
const NARROW = 2;
/** The steps of the height of a bar, and the least number of them. */
const STEPS = 8;
const LEAST = 2;
/** Between boxes, in pixels. */
const GAP = 0.5;
/** Waiting is drawn thinner, so that concurrent work is visible: a part of the row's height. */
const THIN = 0.3;
/** The width of a letter, in pixels, and the least widths and heights of what has text. */
const LETTER = 6.1;
const LABELLED = 26;
const TALL = 13;
/** The most arrows; with more moves in sight, none is drawn. */
const ARROWS = 300;
/** The least distance of times on the axis, in pixels. */
const APART = 110;
/** The ring of the focus, in pixels. */
const EDGE = 4;
/** The height of the axis. */
export const AXIS = 22;

const FONT = '11px system-ui, sans-serif';

/** The colours of the page, as the browser's light or dark theme has them. */
export function theme() {
  const names = ['back', 'text', 'dim', 'line', 'panel', 'accent', 'bad'];
  return Object.fromEntries(names.map((name) => [name, colour(`--${name}`)]));
}

/** A colour of spans as the browser writes it; that of other sessions is the theme's. */
export function css({ rgb }, { line }) {
  return rgb ? `rgb(${rgb.join(' ')})` : line;
}

/** Dark text on light colours, light text on dark ones. */
function ink({ rgb }, { dim }) {
  if (!rgb) return dim;
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? '#202020' : '#fff';
}

/** Returns the bytes of a colour as #rrggbb. */
function hex(text) {
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
}

/** Returns a pixel of an image: red is its lowest byte. */
function word([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Gives a canvas a size in the pixels of the page: screens may have several for each. */
export function resize(canvas, width, height) {
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

/** Draws recordings on one canvas; a `place` is the area of spans: x, y, width and height. */
export class Painter {
  constructor(context) {
    this.context = context;
    this.strips = document.createElement('canvas').getContext('2d');
    this.pixels = null;
    this.use(theme());
  }

  use(colours) {
    this.theme = colours;
  }

  /** Takes the colours of a recording. */
  take(recording) {
    this.recording = recording;
    this.fills = recording.colours.map((of) => css(of, this.theme));
    this.inks = recording.colours.map((of) => ink(of, this.theme));
    this.words = Uint32Array.from(recording.colours, ({ rgb }) => word(rgb ?? hex(this.theme.line)));
    this.thin = recording.colours.findIndex(({ name }) => name === 'queue');
    this.sums = new Float64Array(recording.colours.length);
  }

  /** Draws the spans of rows between two times; `place` returns the area of a row. */
  rows(rows, range, place) {
    if (rows.length === 0) return;
    const { width } = place(rows[0]);
    const columns = Math.ceil(width);
    const { strips } = this;
    if (this.pixels?.width !== columns || this.pixels.height !== rows.length * STEPS) {
      strips.canvas.width = columns;
      strips.canvas.height = rows.length * STEPS;
      this.pixels = strips.createImageData(columns, rows.length * STEPS);
    }
    const words = new Uint32Array(this.pixels.data.buffer);
    words.fill(0);
    const scale = width / range.width;
    const wide = rows.map(({ index }, at) => {
      const spans = [];
      index.forEach(range.from, range.to, NARROW / scale, (span) => spans.push(span));
      this.merge(index, range, scale, spans, words.subarray(at * STEPS * columns, (at + 1) * STEPS * columns));
      return spans;
    });
    strips.putImageData(this.pixels, 0, 0);
    this.context.imageSmoothingEnabled = false;
    rows.forEach((row, at) => {
      const { x, y, height } = place(row);
      this.context.drawImage(strips.canvas, 0, at * STEPS, width, STEPS, x, y, width, height);
      this.boxes(wide[at], range, place(row), scale);
    });
  }

  /** Draws the spans that are wide enough to be seen alone. */
  boxes(wide, range, place, scale) {
    const { context, recording: { spans: { begin, end, kind }, colour, kinds } } = this;
    let last = -1;
    for (const span of wide) {
      const x = place.x + Math.max(begin[span] - range.from, 0) * scale;
      const width = Math.max(place.x + Math.min((end[span] - range.from) * scale, place.width) - x - GAP, GAP);
      const of = colour[span];
      const height = of === this.thin ? place.height * THIN : place.height;
      const y = place.y + place.height - height;
      if (of !== last) context.fillStyle = this.fills[of];
      last = of;
      context.fillRect(x, y, width, height);
      if (kinds[kind[span]].failed) this.outline(x, y, width, height, this.theme.bad);
      if (width >= LABELLED && height >= TALL) {
        this.label(span, of, x, y + height / 2, width);
        last = -1;
      }
    }
  }

  /**
   * Merges the spans of a row that are too narrow to be seen alone. A pixel of `words` is one of the
   * steps of the height of one column; the last ones are the lowest.
   */
  merge(index, range, scale, wide, words) {
    const { sums, recording: { colour, spans: { begin, end } } } = this;
    const columns = words.length / STEPS;
    const limit = index.firstFrom(range.to);
    let next = 0;
    let first = index.firstFrom(range.from, index.from, limit);
    for (let column = 0; column < columns && first < limit; column += 1) {
      const last = index.firstFrom(range.from + (column + 1) / scale, first, limit);
      if (last === first) continue;
      let narrow = last - first;
      sums.fill(0);
      index.addDurations(first, last, sums);
      // Wide spans are boxes.
      for (; next < wide.length && wide[next] < last; next += 1) {
        if (wide[next] < first) continue;
        sums[colour[wide[next]]] -= end[wide[next]] - begin[wide[next]];
        narrow -= 1;
      }
      if (narrow > 0) {
        let busy = 0;
        // Moments take no time.
        let most = colour[last - 1];
        for (let of = 0; of < sums.length; of += 1) {
          busy += sums[of];
          if (sums[of] > sums[most]) most = of;
        }
        const steps = Math.min(Math.max(Math.ceil(busy * scale * STEPS), LEAST), STEPS);
        for (let step = STEPS - steps; step < STEPS; step += 1) words[step * columns + column] = this.words[most];
      }
      first = last;
    }
  }

  label(span, of, x, y, width) {
    const text = label(this.recording, span, Math.floor((width - 6) / LETTER));
    if (!text) return;
    this.context.fillStyle = this.inks[of];
    this.context.fillText(text, x + 3, y, width - 4);
  }

  outline(x, y, width, height, colour) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(x, y, width, height);
  }

  /** Draws the axis with its lines down to `bottom`. */
  axis(range, place, bottom) {
    const { context } = this;
    const { times, step } = ticks(range.from, range.to, place.width / APART);
    context.textAlign = 'center';
    for (const time of times) {
      const x = Math.round(place.x + ((time - range.from) / range.width) * place.width) + 0.5;
      context.fillStyle = this.theme.line;
      context.fillRect(x, AXIS - 4, 1, bottom - AXIS + 4);
      const text = moment(time, step);
      const half = (text.length * LETTER) / 2;
      context.fillStyle = this.theme.dim;
      context.fillText(text, Math.min(Math.max(x, place.x + half), place.x + place.width - half - EDGE), AXIS / 2 - 1);
    }
    context.textAlign = 'left';
  }

  /** Draws the moves of blocks as arrows, if they are few; returns how many are in sight. */
  moves(range, place, middle) {
    const { moves, longestMove } = this.recording;
    const first = lowerBound(moves.sent, range.from - longestMove);
    const last = lowerBound(moves.sent, range.to);
    if (last - first > ARROWS) return last - first;
    const { context } = this;
    const x = (time) => place.x + ((time - range.from) / range.width) * place.width;
    const colour = css(this.recording.header.colours.find(({ name }) => name === 'move'), this.theme);
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 1.5;
    for (let at = first; at < last; at += 1) {
      const from = [x(moves.sent[at]), middle(moves.from[at])];
      const to = [x(moves.received[at]), middle(moves.to[at])];
      const bend = Math.max(Math.abs(to[0] - from[0]) / 2, 6);
      context.beginPath();
      context.moveTo(...from);
      context.bezierCurveTo(from[0] + bend, from[1], to[0] - bend, to[1], ...to);
      context.stroke();
      context.beginPath();
      context.moveTo(...to);
      context.lineTo(to[0] - 6, to[1] - 3.5);
      context.lineTo(to[0] - 6, to[1] + 3.5);
      context.fill();
    }
    return last - first;
  }

  begin(width, height, ratio) {
    const { context } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.fillStyle = this.theme.back;
    context.fillRect(0, 0, width, height);
  }
}

function lowerBound(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
