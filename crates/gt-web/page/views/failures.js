// What went wrong lately, and what was restored; workers that join and leave.

import { table } from '../elements.js';
import { age, bytes, duration } from '../words.js';

const KINDS = {
  worker_joined: (of) => (of.back ? 'is back' : 'has joined'),
  worker_drains: () => 'is drained',
  drain_ended: () => 'serves on, as its drain took too long',
  worker_left: () => 'has ended',
  worker_lost: () => 'was lost',
  session_ended: () => 'was ended',
  recovery_begun: (of) => `is being restored, from ${bytes(of.bytes)} and ${of.batches === 1 ? 'one batch' : `${of.batches} batches`} since`,
  recovered: (of) => `is restored, after ${duration(of.took_seconds)}`,
  tensors_lost: () => 'has lost tensors',
  command_given_up: () => 'has a command that workers died of',
};
const BAD = ['worker_lost', 'session_ended', 'tensors_lost', 'command_given_up'];

function make() {
  let seconds = 0;
  const isBad = (of) => BAD.includes(of.kind);
  const list = table('Failures and recoveries', [
    { title: 'ago', text: (of) => age(Math.max(0, seconds - of.seconds)), kind: 'number' },
    { title: 'who', text: (of) => of.name ?? `worker ${of.worker}`, link: (of) => (of.name === undefined ? '#/workers' : `#/sessions/${of.session}`) },
    { title: 'what', text: (of) => KINDS[of.kind]?.(of) ?? of.kind, isBad },
    { title: 'because', text: (of) => of.reason || '–' },
  ], (of) => of.number, 'Nothing has happened lately.');

  function update(status) {
    seconds = status.seconds;
    list.update(status.events.filter((of) => of.kind !== 'slots_moved').reverse());
  }

  return { node: list.node, update };
}

export default { path: 'failures', title: 'Failures', make };
