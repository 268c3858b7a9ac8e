// Which span is at a place, and which are the longest ones in sight.

/** More spans at one place are described together. */
const SEVERAL = 3;

/**
 * Returns what is at a time of a row, where `near` seconds are as wide as a pointer: `span`, the
 * innermost one, or the number of `merged` spans, or null.
 */
export function at(recording, row, time, near) {
  const { begin, end } = recording.spans;
  const duration = (span) => end[span] - begin[span];
  let inner = null;
  row.index.forEach(time, time, 2 * near, (span) => {
    if (inner === null || duration(span) <= duration(inner)) inner = span;
  });
  const first = row.index.firstFrom(time - near);
  const last = row.index.firstFrom(time + near);
  let nearest = null;
  let narrow = 0;
  for (let span = first; span < last && narrow <= SEVERAL; span += 1) {
    if (duration(span) >= 2 * near) continue;
    narrow += 1;
    const distance = (of) => Math.abs((begin[of] + end[of]) / 2 - time);
    if (nearest === null || distance(span) < distance(nearest)) nearest = span;
  }
  if (narrow > SEVERAL) return { merged: last - first, first, last };
  if (nearest !== null && (inner === null || end[nearest] >= time)) return { span: nearest };
  return inner === null ? null : { span: inner };
}

/** Returns the longest spans in sight, the longest first, with their rows. */
export function longest(recording, range, count) {
  const { begin, end } = recording.spans;
  const each = recording.rows.flatMap((row) =>
    row.index.longest(range.from, range.to, count).map((span) => ({ span, row })));
  const duration = ({ span }) => end[span] - begin[span];
  return each.sort((a, b) => duration(b) - duration(a)).slice(0, count);
}
