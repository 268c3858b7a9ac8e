// Users, with what they use of what they are due.

import { column, USER_ACTIONS } from '../actions.js';
import { table } from '../elements.js';
import { bytes, duration, percent } from '../words.js';

const used = (of) => of.windows['1min'];
const COLUMNS = [
  { title: 'user', text: (of) => of.user || 'without a key of their own' },
  { title: 'team', text: (of) => of.team || '–' },
  { title: 'sessions', text: (of) => String(of.sessions), kind: 'number' },
  { title: 'share', text: (of) => percent(of.share), part: (of) => of.share, kind: 'number' },
  { title: 'used in 1 min', text: (of) => duration(used(of).used_seconds), kind: 'number' },
  { title: 'entitled to', text: (of) => duration(used(of).entitled_seconds), kind: 'number' },
  { title: 'device time', text: (of) => duration(of.device_seconds), kind: 'number' },
  { title: 'memory', text: (of) => bytes(of.bytes), kind: 'number' },
  { title: 'weight', text: (of) => String(of.weights.user), kind: 'number' },
  column(USER_ACTIONS, (of) => of.user),
];

function make() {
  const list = table('Users', COLUMNS, (of) => `${of.team}\n${of.user}`, 'Nobody has had a session yet.');
  return { node: list.node, update: (status) => list.update(status.users) };
}

export default { path: 'users', title: 'Users', make };
