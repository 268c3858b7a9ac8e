// Spans as text.

import { bytes, duration } from '../words.js';

/** 12.3 µs, with nanoseconds for the shortest ones. */
export function length(seconds) {
  if (seconds >= 1e-5 || seconds === 0) return duration(seconds);
  return seconds >= 1e-6 ? `${(seconds * 1e6).toFixed(2)} µs` : `${Math.round(seconds * 1e9)} ns`;
}

/** 3.2001 s after the first event, with as many digits as distinguish times `step` apart. */
export function moment(seconds, step) {
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step)), 0), 9);
  return `${seconds.toFixed(digits)} s`;
}

/** Times at round numbers, about `count` of them. */
export function ticks(from, to, count) {
  const rough = Math.max((to - from) / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((of) => of >= rough * 0.999);
  const times = [];
  for (let number = Math.ceil(from / step); number * step <= to; number += 1) times.push(number * step);
  return { times, step };
}

/** What a span is: a name and what belongs to it. */
export function facts(recording, span, row) {
  const { spans, kinds } = recording;
  const kind = kinds[spans.kind[span]];
  const taken = spans.end[span] - spans.begin[span];
  const count = spans.count[span];
  return {
    name: kind.name,
    on: row.part === 'dispatcher' ? row.name : `${row.name} (${row.part})`,
    takes: taken > 0 ? length(taken) : 'a moment',
    at: moment(spans.begin[span], 1e-6),
    instruction: spans.id[span] >= 0 ? `#${spans.id[span]}` : null,
    instructions: count === 1 ? null : count.toLocaleString('en'),
    size: spans.bytes[span] > 0 ? bytes(spans.bytes[span]) : null,
    session: kind.session === null ? null : kind.session_name ?? `#${kind.session}`,
    steps: kind.steps,
    lines: kind.lines,
    failed: kind.failed ? 'yes' : null,
    kind: recording.header.colours[kind.colour].name,
  };
}

/** The text in a box: all of it, or the name alone, if it has room for so many letters. */
export function label(recording, span, room) {
  const { spans, kinds } = recording;
  const { name } = kinds[spans.kind[span]];
  if (name.length > room) return room > 4 ? `${name.slice(0, room - 1)}…` : '';
  const count = spans.count[span];
  const parts = [name, spans.id[span] >= 0 && `#${spans.id[span]}`, count !== 1 && `× ${count}`,
    spans.bytes[span] > 0 && bytes(spans.bytes[span])].filter(Boolean);
  while (parts.join(' ').length > room) parts.pop();
  return parts.join(' ');
}
