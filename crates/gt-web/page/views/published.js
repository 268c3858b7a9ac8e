// What is published, and how many sessions read it.

import { table } from '../elements.js';
import { age, bytes, number } from '../words.js';

function state(of) {
  if (of.withdrawn) return 'withdrawn';
  return of.visible ? 'can be read' : 'being stored';
}

const COLUMNS = [
  { title: 'name', text: (of) => of.name },
  { title: 'version', text: (of) => String(of.version), kind: 'number' },
  { title: 'state', text: state, kind: 'short' },
  { title: 'for', text: (of) => of.audience },
  { title: 'age', text: (of) => age(Math.max(0, Date.now() / 1000 - of.at)), kind: 'number' },
  { title: 'tensors', text: (of) => number(of.tensors), kind: 'number' },
  { title: 'bytes', text: (of) => bytes(of.bytes), kind: 'number' },
  { title: 'readers', text: (of) => String(of.readers), kind: 'number' },
  { title: 'description', text: (of) => of.description || '–' },
];

function make() {
  const list = table('Published', COLUMNS, (of) => `${of.name}\n${of.version}`, 'Nothing is published.');
  return { node: list.node, update: (status) => list.update(status.publications) };
}

export default { path: 'published', title: 'Published', make };
