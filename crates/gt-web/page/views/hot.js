// Hot paths: how much of the work is hot, and what workers have compiled of it.

import { element, table } from '../elements.js';
import { duration, number, percent } from '../words.js';

const ratio = (part, whole) => (whole > 0 ? part / whole : 0);

const WORKERS = [
  { title: 'worker', text: (of) => of.name },
  { title: 'hot', text: (of) => percent(ratio(of.hot_paths.instructions, of.operations)), part: (of) => ratio(of.hot_paths.instructions, of.operations), kind: 'number' },
  { title: 'hot paths', text: (of) => number(of.hot_paths.sequences), kind: 'number' },
  { title: 'programs', text: (of) => number(of.hot_paths.cache_size), kind: 'number' },
  { title: 'hits', text: (of) => number(of.hot_paths.cache_hits), kind: 'number' },
  { title: 'misses', text: (of) => number(of.hot_paths.cache_misses), kind: 'number' },
  { title: 'failed', text: (of) => number(of.hot_paths.failures), kind: 'number', isBad: (of) => of.hot_paths.failures > 0 },
  { title: 'compiling took', text: (of) => duration(of.hot_paths.compile_seconds), kind: 'number' },
  { title: 'saved about', text: (of) => duration(of.hot_paths.saved_seconds), kind: 'number' },
];

const PROGRAMS = [
  { title: 'worker', text: (of) => of.worker },
  { title: 'operations', text: (of) => of.operations },
  { title: 'length', text: (of) => number(of.length), kind: 'number' },
  { title: 'runs', text: (of) => number(of.repetitions), kind: 'number' },
  { title: 'took', text: (of) => duration(of.seconds), kind: 'number' },
];

const SESSIONS = [
  { title: 'session', text: (of) => of.name, link: (of) => `#/sessions/${of.number}` },
  { title: 'instructions', text: (of) => number(of.instructions), kind: 'number' },
  { title: 'hot', text: (of) => percent(ratio(of.hot_instructions, of.instructions)), part: (of) => ratio(of.hot_instructions, of.instructions), kind: 'number' },
];

function make() {
  const sessions = table('How much of what sessions issue is hot', SESSIONS, (of) => of.number, 'There are no sessions.');
  const workers = table('What workers have compiled', WORKERS, (of) => of.number, 'No worker has reported yet.');
  const programs = table('The programs that ran the most operations', PROGRAMS, (of) => of.key, 'No worker has compiled anything yet.');
  const node = element('div', {}, sessions.node, workers.node, programs.node);

  function update(status) {
    sessions.update(status.sessions);
    const known = status.workers.filter((of) => of.hot_paths);
    workers.update(known);
    programs.update(known.flatMap(({ name, hot_paths: { top } }) => top.map((of, place) => ({ ...of, worker: name, key: `${name}\n${place}` }))));
  }

  return { node, update };
}

export default { path: 'hot', title: 'Hot paths', make };
