// A recording as the page reads it: columns of numbers, and what many spans share.

import { RowIndex } from './row-index.js';

/**
 * Reads a recording. Times are in seconds from its first event on. A span is a number: its place in
 * the columns `begin`, `end`, `bytes`, `id` (-1 for none), `kind` and `count`.
 */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let offset = 4 + length;
  const column = (Type, count) => {
    const made = new Type(buffer, offset, count);
    offset += made.byteLength;
    return made;
  };
  const columns = (count, types) => Object.fromEntries(
    Object.entries(types).map(([name, Type]) => [name, column(Type, count)]));
  const spans = columns(header.spans, {
    begin: Float64Array, end: Float64Array, bytes: Float64Array, id: Float64Array, kind: Uint32Array, count: Uint32Array,
  });
  const moves = columns(header.moves, {
    sent: Float64Array, received: Float64Array, size: Float64Array, from: Uint32Array, to: Uint32Array,
  });
  for (const times of [spans.begin, spans.end, moves.sent, moves.received]) {
    for (let at = 0; at < times.length; at += 1) times[at] -= header.begin;
  }
  return new Recording(header, spans, moves);
}

/** A recording with an index of each row. */
export class Recording {
  constructor(header, spans, moves) {
    this.header = header;
    this.spans = spans;
    this.moves = moves;
    this.length = header.end - header.begin;
    this.kinds = header.kinds;
    /** The colours of its spans, and at last that of spans which are not highlighted. */
    const used = [...new Set(header.kinds.map(({ colour }) => colour))].sort((a, b) => a - b);
    this.colours = [...used.map((of) => header.colours[of]), { name: 'other sessions', rgb: null }];
    this.places = new Map(used.map((of, place) => [of, place]));
    this.colour = new Uint8Array(header.spans);
    this.longestMove = moves.sent.reduce((most, sent, at) => Math.max(most, moves.received[at] - sent), 0);
    this.rows = header.rows.map((row, place) => ({
      ...row, place, index: new RowIndex(this, row.start, header.rows[place + 1]?.start ?? header.spans),
    }));
    this.highlight(null);
    for (const row of this.rows) row.busy = row.index.busy() / Math.max(this.length, 1e-9);
    if (header.session !== null) this.highlight(header.session);
  }

  /** The sessions of spans: numbers with names. */
  sessions() {
    const named = new Map();
    for (const { session, session_name: name } of this.kinds) {
      if (session !== null && !named.get(session)) named.set(session, name ?? `#${session}`);
    }
    return [...named].sort(([a], [b]) => a - b);
  }

  /** Draws the spans of other sessions in grey; of none with null, or if the session has no spans. */
  highlight(session) {
    const isKnown = this.kinds.some((kind) => kind.session === session);
    this.highlighted = session !== null && isKnown ? session : null;
    const other = this.colours.length - 1;
    const of = Uint8Array.from(this.kinds, (kind) =>
      this.highlighted === null || kind.session === this.highlighted ? this.places.get(kind.colour) : other);
    const { kind } = this.spans;
    for (let at = 0; at < kind.length; at += 1) this.colour[at] = of[kind[at]];
    for (const row of this.rows) row.index.addUp();
  }

  /** The seconds of each colour with the number of instructions, for the legend. */
  legend() {
    const { begin, end, count } = this.spans;
    const sums = this.colours.map(({ name, rgb }, place) => ({ name, rgb, place, seconds: 0, count: 0, spans: 0 }));
    for (let at = 0; at < this.colour.length; at += 1) {
      const sum = sums[this.colour[at]];
      sum.seconds += end[at] - begin[at];
      sum.count += count[at];
      sum.spans += 1;
    }
    return sums.filter(({ spans }) => spans > 0);
  }
}
