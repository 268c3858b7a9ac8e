// My sessions first: what each does, waits for, and what went wrong.

import { chart } from '../chart.js';
import { choice, element, facts, table } from '../elements.js';
import { age, bytes, number, percent } from '../words.js';

const STORED = 'gt-whose';

/** Returns whose session it is: a user whom a key proves, or an account. */
export function owner(session) {
  return session.user ? `user:${session.user}` : `login:${session.login}`;
}

function shownOwner(of) {
  const name = of.slice(of.indexOf(':') + 1) || 'without a name';
  return of.startsWith('user:') ? `user ${name}` : name;
}

/** Returns what users should know of a session: its memory, its client, its losses. */
export function troubles(session) {
  const all = [];
  if (session.away) all.push('the connection of its client is lost');
  if (session.unkept) all.push(`its tensors would be lost with a worker: ${session.unkept}`);
  if (session.recoveries > 0) all.push(`restored ${session.recoveries === 1 ? 'once' : `${session.recoveries} times`}`);
  if (session.spilled_bytes > 0) all.push(`${bytes(session.spilled_bytes)} on disk`);
  return all.join('; ');
}

/** Returns the last error that a session's program received: what failed, where, and why. */
export function lastError({ last_error: error }) {
  if (!error) return '';
  const where = [error.line && `at ${error.line}`, error.worker && `on ${error.worker}`].filter(Boolean);
  return `${[error.operation, ...where].join(' ')}: ${error.reason} (${age(error.seconds)} ago)`;
}

function allTroubles(session) {
  const error = lastError(session);
  return [troubles(session), error && `last error: ${error}`].filter(Boolean).join('; ');
}

/** The columns of tables of sessions. */
export const COLUMNS = [
  { title: 'session', text: (of) => of.name, link: (of) => `#/sessions/${of.number}` },
  { title: 'waits for', text: (of) => of.waits_for },
  { title: 'instructions/s', text: (of) => number(of.rate), kind: 'number' },
  { title: 'used', text: (of) => percent(of.used), part: (of) => of.used, kind: 'number' },
  { title: 'share', text: (of) => percent(of.share), kind: 'number' },
  { title: 'memory', text: (of) => bytes(of.bytes), kind: 'number' },
  { title: 'troubles', text: (of) => allTroubles(of) || '–', isBad: (of) => allTroubles(of) !== '' },
];

function make(_, ends) {
  let status = null;
  let past = null;
  let chosen = localStorage.getItem(STORED) ?? 'me';
  const whose = choice('Whose', 'whose', (value) => {
    chosen = value;
    localStorage.setItem(STORED, value);
    update(status, past);
  });
  const sums = facts(['sessions', 'instructions/s', 'used', 'memory']);
  const list = table('Sessions', COLUMNS, (of) => of.number, 'There are no such sessions.');
  const rate = chart(ends, 'Instructions/s of all sessions', (of) => of.rate, number);
  const busy = chart(ends, 'Busy workers', (of) => of.busy, percent, 1);
  const memory = chart(ends, 'Memory of all workers', (of) => of.bytes, bytes);
  const node = element('div', {}, whose.node, sums.node, list.node,
    element('h3', {}, 'The last minutes'), element('div', { class: 'charts' }, rate.node, busy.node, memory.node));

  function update(newest, history) {
    [status, past] = [newest, history];
    const { reader } = newest;
    const me = reader.user ? `user:${reader.user}` : `login:${reader.login}`;
    const owners = [...new Set(newest.sessions.map(owner))].sort().filter((of) => of !== me);
    const isKnown = ['me', 'all', ...owners].includes(chosen);
    const named = isKnown ? [] : [[chosen, `${shownOwner(chosen)}, who has no session`]];
    whose.update([['me', `mine (${shownOwner(me)})`], ['all', 'all'],
      ...owners.map((of) => [of, shownOwner(of)]), ...named], chosen);
    const is = (session) => chosen === 'all' || owner(session) === (chosen === 'me' ? me : chosen);
    const own = newest.sessions.filter(is);
    const sum = (value) => own.reduce((total, of) => total + value(of), 0);
    sums.update({
      sessions: `${own.length} of ${newest.sessions.length}`,
      'instructions/s': number(sum((of) => of.rate)),
      used: percent(sum((of) => of.used)),
      memory: bytes(sum((of) => of.bytes)),
    });
    list.update(own);
    for (const each of [rate, busy, memory]) each.update(history);
  }

  return { node, update };
}

export default { path: 'mine', title: 'Mine', make };
