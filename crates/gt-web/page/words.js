// Numbers as readable text, as `gt top` shows them.

function scaled(value, step, units, digits = 1) {
  let unit = 0;
  while (value >= step * 0.99995 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)}${units[0]}` : `${value.toFixed(digits)}${units[unit]}`;
}

/** 1.5 MB; a dash for what is not known. */
export function bytes(count) {
  return count === null || count === undefined ? '–' : scaled(count, 1000, [' B', ' KB', ' MB', ' GB', ' TB', ' PB']);
}

/** 12.3k */
export function number(value) {
  return value === null || value === undefined ? '–' : scaled(value, 1000, ['', 'k', 'M', 'G', 'T']);
}

/** 37 % */
export function percent(fraction) {
  return `${Math.round(100 * fraction)} %`;
}

/** 12.3 s of device time */
export function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return seconds >= 1e-3 || seconds === 0 ? `${(1e3 * seconds).toFixed(seconds ? 1 : 0)} ms` : `${(1e6 * seconds).toFixed(0)} µs`;
}

/** 3 min */
export function age(seconds) {
  if (seconds >= 172800) return `${Math.floor(seconds / 86400)} days`;
  if (seconds >= 7200) return `${Math.floor(seconds / 3600)} h`;
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds)} s`;
}

/** 0–71, 80, 81: numbers in their order, of which three and more in a row are one range. */
export function ranges(numbers) {
  const runs = [];
  for (const of of numbers) {
    const last = runs.at(-1);
    if (last && of === last.at(-1) + 1) last.push(of);
    else runs.push([of]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}–${run.at(-1)}` : run.join(', '))).join(', ');
}

/** w0 × 2, w1: workers, each with the number of slots. */
export function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const each = [...counts].map(([name, count]) => `${name || 'no worker'}${count > 1 ? ` × ${count}` : ''}`);
  return each.join(', ') || '–';
}
