// The newest moves of sessions from one worker to another.

import { table } from '../elements.js';
import { age, bytes } from '../words.js';

const REASONS = {
  loss: 'the worker was lost',
  drain: 'the worker is drained',
  balance: 'the worker had more slots than another',
  link: 'the worker cannot reach another',
};

function make() {
  let seconds = 0;
  const list = table('Moves', [
    { title: 'ago', text: (of) => age(Math.max(0, seconds - of.seconds)), kind: 'number' },
    { title: 'session', text: (of) => of.name, link: (of) => `#/sessions/${of.session}` },
    { title: 'from', text: (of) => of.from },
    { title: 'to', text: (of) => of.to },
    { title: 'slots', text: (of) => String(of.slots), kind: 'number' },
    { title: 'bytes', text: (of) => bytes(of.bytes), kind: 'number' },
    { title: 'because', text: (of) => REASONS[of.reason] ?? of.reason },
  ], (of) => of.number, 'No session has moved lately.');

  function update(status) {
    seconds = status.seconds;
    list.update(status.events.filter((of) => of.kind === 'slots_moved').reverse());
  }

  return { node: list.node, update };
}

export default { path: 'moves', title: 'Moves', make };
