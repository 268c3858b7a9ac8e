// The last hour in minutes, which the dispatcher records whether a page is open or not.

import { chart, clock } from '../chart.js';
import { element, table } from '../elements.js';
import { bytes, duration, number, percent } from '../words.js';

/** Returns the minutes of a status, the oldest first. */
function minutes({ hour, seconds }) {
  const names = Object.keys(hour);
  const start = Math.round(Date.now() / 1000 - seconds);
  return hour.seconds.map((begin, at) => {
    const of = Object.fromEntries(names.map((name) => [name, hour[name][at]]));
    return { ...of, time: start + begin, busy: of.workers === 0 ? null : Math.min(1, of.used_seconds / 60 / of.workers) };
  });
}

function make(_, ends) {
  const charts = [
    chart(ends, 'Busy workers', (of) => of.busy, percent, 1),
    chart(ends, 'Sessions', (of) => of.sessions, number),
    chart(ends, 'Memory of sessions', (of) => of.bytes, bytes),
    chart(ends, 'Failures', (of) => of.losses, number),
  ];
  const list = table('Minutes', [
    { title: 'from', text: (of) => clock(of.time).slice(0, 5), kind: 'number' },
    { title: 'device time', text: (of) => duration(of.used_seconds), kind: 'number' },
    { title: 'workers', text: (of) => String(of.workers), kind: 'number' },
    { title: 'sessions', text: (of) => String(of.sessions), kind: 'number' },
    { title: 'memory', text: (of) => bytes(of.bytes), kind: 'number' },
    { title: 'on disk', text: (of) => bytes(of.spilled_bytes), kind: 'number' },
    { title: 'moves', text: (of) => String(of.moves), kind: 'number' },
    { title: 'recoveries', text: (of) => String(of.recoveries), kind: 'number' },
    { title: 'failures', text: (of) => String(of.losses), kind: 'number', isBad: (of) => of.losses > 0 },
  ], (of) => of.seconds, 'The first minute has not ended yet.');
  let newest = null;

  function update(status) {
    // The same minutes are drawn once.
    const last = status.hour.seconds.at(-1) ?? -1;
    if (last === newest) return;
    newest = last;
    const samples = minutes(status);
    for (const each of charts) each.update({ samples });
    list.update([...samples].reverse());
  }

  const node = element('div', {}, element('div', { class: 'charts' }, ...charts.map((of) => of.node)), list.node);
  return { node, update };
}

export default { path: 'hour', title: 'Last hour', make };
