// Draws what is seen of a recording. The cost depends on the pixels, not on the number of spans.
//
// As `gt visualize`: a span that is wide enough is a box; narrower ones are merged into a bar for each
// column of pixels, as high as the row is busy there, in the colour of most of it.

import { label, moment, ticks } from './describe.js';

/** Narrower spans are merged, in pixels. */
const NARROW = 2;
/** The steps of the height of a bar, and the least one. */
const STEPS = 8;
const LEAST = 0.25;
/** Waiting is drawn thinner, so that concurrent work is visible: a part of the row's height. */
const THIN = 0.3;
/** The width of a letter, in pixels, and the least widths and heights of what has text. */
const LETTER = 6.1;
const LABELLED = 26;
const TALL = 13;
/** The most arrows; with more moves in sight, none is drawn. */
const ARROWS = 300;
/** The height of the axis. */
export const AXIS = 22;

const FONT = '11px system-ui, sans-serif';

/** The colours of the page, as the browser's light or dark theme has them. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    back: of('--back'), text: of('--text'), dim: of('--dim'), line: of('--line'), panel: of('--panel'), accent: of('--accent'), bad: of('--bad'),
  };
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

/** Draws recordings on one canvas; `place` is the area of a part: x, y, width and height. */
export class Painter {
  constructor(context) {
    this.context = context;
    this.use(theme());
  }

  use(colours) {
    this.theme = colours;
    this.fills = null;
  }

  /** Takes the colours of a recording. */
  take(recording) {
    this.recording = recording;
    this.fills = recording.colours.map((of) => css(of, this.theme));
    this.inks = recording.colours.map((of) => ink(of, this.theme));
    this.thin = recording.colours.findIndex(({ name }) => name === 'queue');
    this.sums = new Float64Array(recording.colours.length);
    this.bars = recording.colours.map(() => []);
  }

  /** Draws the spans of a row between two times. */
  row(row, range, place) {
    const scale = place.width / range.width;
    const least = NARROW / scale;
    this.wide = [];
    row.index.forEach(range.from, range.to, least, (span) => this.wide.push(span));
    this.merged(row.index, range, place, scale);
    const { spans: { begin, end }, colour, kinds, spans } = this.recording;
    const { context } = this;
    for (const span of this.wide) {
      const from = Math.max(begin[span], range.from);
      const to = Math.min(end[span], range.to);
      const x = place.x + (from - range.from) * scale;
      const width = Math.max((to - from) * scale - 0.5, 0.5);
      const of = colour[span];
      const height = of === this.thin ? place.height * THIN : place.height;
      const y = place.y + place.height - height;
      context.fillStyle = this.fills[of];
      context.fillRect(x, y, width, height);
      if (kinds[spans.kind[span]].failed) this.outline(x, y, width, height, this.theme.bad);
      if (width >= LABELLED && height >= TALL) this.label(span, of, x, y + height / 2, width);
    }
  }

  /** Draws the spans of a row that are too narrow to be seen alone. */
  merged(index, range, place, scale) {
    const columns = Math.ceil(place.width);
    const { spans: { begin: begins, end: ends }, colour } = this.recording;
    const { sums, bars } = this;
    const end = index.firstFrom(range.to);
    let next = 0;
    let first = index.firstFrom(range.from, index.from, end);
    let run = null;
    for (let column = 0; column < columns; column += 1) {
      const until = range.from + (column + 1) / scale;
      const last = index.firstFrom(until, first, end);
      let narrow = last - first;
      if (narrow > 0) {
        sums.fill(0);
        index.addDurations(first, last, sums);
        // Wide spans are boxes.
        while (next < this.wide.length && this.wide[next] < last) {
          const span = this.wide[next];
          if (span >= first) {
            sums[colour[span]] -= ends[span] - begins[span];
            narrow -= 1;
          }
          next += 1;
        }
      }
      if (narrow > 0) {
        let busy = 0;
        let most = -1;
        for (let of = 0; of < sums.length; of += 1) {
          busy += Math.max(sums[of], 0);
          if (sums[of] > 0 && (most < 0 || sums[of] > sums[most])) most = of;
        }
        // Moments take no time.
        if (most < 0) most = colour[last - 1];
        const height = place.height * Math.max(Math.ceil(Math.min(busy * scale, 1) * STEPS) / STEPS, LEAST);
        if (run && run.most === most && run.height === height && run.end === column) {
          run.end += 1;
        } else {
          if (run) bars[run.most].push(run);
          run = { most, height, begin: column, end: column + 1 };
        }
      }
      first = last;
    }
    if (run) bars[run.most].push(run);
    bars.forEach((list, of) => {
      if (list.length === 0) return;
      this.context.fillStyle = this.fills[of];
      for (const bar of list) {
        const width = Math.min(bar.end, place.width) - bar.begin;
        this.context.fillRect(place.x + bar.begin, place.y + place.height - bar.height, width, bar.height);
      }
      list.length = 0;
    });
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
    const { times, step } = ticks(range.from, range.to, place.width / 110);
    context.textAlign = 'center';
    for (const time of times) {
      const x = Math.round(place.x + ((time - range.from) / range.width) * place.width) + 0.5;
      context.fillStyle = this.theme.line;
      context.fillRect(x, AXIS - 4, 1, bottom - AXIS + 4);
      const text = moment(time, step);
      const half = (text.length * LETTER) / 2;
      context.fillStyle = this.theme.dim;
      if (x - half > place.x && x + half < place.x + place.width) context.fillText(text, x, AXIS / 2 - 1);
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
    const move = this.recording.colours.findIndex(({ name }) => name === 'move');
    context.strokeStyle = this.fills[move];
    context.fillStyle = this.fills[move];
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
