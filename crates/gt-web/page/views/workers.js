// Workers: what each does, holds, and has to do.

import { column, WORKER_ACTIONS } from '../actions.js';
import { table } from '../elements.js';
import { bytes, number, percent } from '../words.js';

function state(worker) {
  if (worker.draining) return 'draining';
  return worker.busy_for === null ? 'idle' : 'busy';
}

/** Returns what a worker's time went to, the largest parts first. */
function activities(worker) {
  const parts = [...Object.entries(worker.activities), ['not reported yet', worker.untold]];
  const large = parts.filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
  return large.map(([name, share]) => `${name} ${percent(share)}`).join(', ') || '–';
}

/** Returns a worker's GPU, with how busy it is and its memory. */
function gpu({ gpu: of }) {
  if (!of) return '–';
  const parts = [of.index === null ? of.name : `${of.name} #${of.index}`];
  if (of.used_percent !== null) parts.push(percent(of.used_percent / 100));
  if (of.used_bytes !== null) parts.push(`${bytes(of.used_bytes)} of ${bytes(of.total_bytes)}`);
  return parts.join(', ');
}

const COLUMNS = [
  { title: 'worker', text: (of) => of.name },
  { title: 'machine', text: (of) => [of.machine ?? '–', ...(of.rack ? [of.rack] : [])].join(', ') },
  { title: 'state', text: state, kind: 'short' },
  { title: 'busy', text: (of) => percent(1 - of.idle), part: (of) => 1 - of.idle, kind: 'number' },
  { title: 'with', text: activities },
  { title: 'queue', text: (of) => number(of.queue), kind: 'number' },
  { title: 'memory', text: (of) => bytes(of.bytes), kind: 'number' },
  { title: 'limit', text: (of) => (of.memory_limit === null ? 'none' : bytes(of.memory_limit)), kind: 'number' },
  { title: 'most', text: (of) => bytes(of.bytes_peak), kind: 'number' },
  { title: 'spilled', text: (of) => bytes(of.spilled_bytes), kind: 'number' },
  { title: 'snapshots', text: (of) => (of.snapshot_bytes === null ? '–' : bytes(of.snapshot_bytes + of.snapshot_disk_bytes)), kind: 'number' },
  { title: 'failed', text: (of) => number(of.failed), kind: 'number', isBad: (of) => of.failed > 0 },
  { title: 'engine', text: (of) => [of.engine, of.version].filter(Boolean).join(' ') || '–' },
  { title: 'GPU', text: gpu },
  column(WORKER_ACTIONS, (of) => of.name),
];

function make() {
  const list = table('Workers', COLUMNS, (of) => of.number, 'No worker is connected: gt worker starts one.');
  return { node: list.node, update: (status) => list.update(status.workers) };
}

export default { path: 'workers', title: 'Workers', make };
