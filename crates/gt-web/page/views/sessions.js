// All sessions, which can be sorted and filtered.

import { choice, element, table } from '../elements.js';
import { counted } from '../words.js';
import { COLUMNS } from './mine.js';

const ORDERS = {
  number: (a, b) => a.number - b.number,
  name: (a, b) => a.name.localeCompare(b.name),
  used: (a, b) => b.used - a.used,
  'instructions/s': (a, b) => b.rate - a.rate,
  memory: (a, b) => b.bytes - a.bytes,
};

function make() {
  let status = null;
  let order = 'number';
  const by = choice('Sort by', 'order', (value) => {
    order = value;
    update(status);
  });
  const filter = element('input', { id: 'filter', type: 'search' });
  filter.addEventListener('input', () => status && update(status));
  const columns = [...COLUMNS, { title: 'workers', text: (of) => counted(of.slots) }];
  const list = table('All sessions', columns, (of) => of.number, 'There are no such sessions.');
  const controls = element('div', { class: 'controls' }, by.node,
    element('p', { class: 'choice' }, element('label', { for: 'filter' }, 'Only names with'), ' ', filter));

  function update(newest) {
    status = newest;
    by.update(Object.keys(ORDERS).map((name) => [name, name]), order);
    const part = filter.value.toLowerCase();
    const found = newest.sessions.filter((of) => of.name.toLowerCase().includes(part));
    list.update(found.sort(ORDERS[order]));
  }

  return { node: element('div', {}, controls, list.node), update };
}

export default { path: 'sessions', title: 'Sessions', make };
