// One session: what it waits for and beside whom, and what it is due.

import { buttons, mayActOn, SESSION_ACTIONS } from '../actions.js';
import { chart } from '../chart.js';
import { element, facts, setText, table } from '../elements.js';
import { recordButton } from '../timeline/record.js';
import { age, bytes, counted, duration, number, percent } from '../words.js';
import { inside } from './inside.js';
import { lastError, troubles } from './mine.js';

const FACTS = [
  'waits for', 'troubles', 'last error', 'user', 'host', 'age', 'workers', 'instructions', 'instructions/s', 'hot', 'to run', 'used',
  'share', 'weight', 'device time', 'memory', 'quota', 'tensors', 'name kept',
];

function values(session) {
  const { weights, named } = session;
  return {
    'waits for': session.waits_for,
    troubles: troubles(session) || '–',
    'last error': lastError(session) || '–',
    user: [session.user || session.login, session.team && `of team ${session.team}`].filter(Boolean).join(' ') || '–',
    host: session.host || '–',
    age: age(session.seconds),
    workers: counted(session.slots),
    instructions: session.instructions.toLocaleString('en'),
    'instructions/s': number(session.rate),
    hot: session.instructions > 0 ? percent(session.hot_instructions / session.instructions) : '–',
    'to run': number(session.open),
    used: percent(session.used),
    share: percent(session.share),
    weight: `${weights.session}, user ${weights.user}, team ${weights.team}`,
    'device time': duration(session.device_seconds),
    memory: bytes(session.bytes),
    quota: session.memory_quotas.map((of) => `${bytes(of.bytes)} on each worker, of ${of.of}`).join(', ') || 'none',
    tensors: number(session.tensors),
    'name kept': named ? `${named.name}${named.detached ? ', detached' : ''}` : '–',
  };
}

function make(argument, ends) {
  const wanted = Number(argument);
  const name = element('p', { class: 'name' }, `Session ${Number.isInteger(wanted) ? wanted : ''}`);
  let latest = null;
  let seconds = 0;
  const acts = buttons(SESSION_ACTIONS, () => latest);
  const all = facts(FACTS, ['waits for', 'troubles', 'last error']);
  const windows = table('Device time', [
    { title: 'in the last', text: (of) => of.name },
    { title: 'used', text: (of) => duration(of.used_seconds), kind: 'number' },
    { title: 'entitled to', text: (of) => duration(of.entitled_seconds), kind: 'number' },
  ], (of) => of.name, 'None yet.');
  const behind = table('It waits beside', [{ title: 'session', text: (of) => of }], (of) => of, 'It waits beside no other session.');
  const rate = chart(ends, 'Instructions/s', (of) => of.rate === null ? null : of.sessions.get(wanted)?.rate, number);
  const memory = chart(ends, 'Memory', (of) => of.sessions.get(wanted)?.bytes, bytes);
  const rest = element('div', {}, acts, recordButton(wanted), all.node, windows.node, behind.node,
    element('h3', {}, 'The last minutes'), element('div', { class: 'charts' }, rate.node, memory.node),
    inside(wanted, ends, { now: () => seconds, isDetached: () => latest?.named?.detached ?? false }));
  rest.hidden = true;
  const ended = element('p', { class: 'none', role: 'status' });

  function update(status, history) {
    ({ seconds } = status);
    const session = status.sessions.find((of) => of.number === wanted);
    setText(ended, session ? '' : 'This session has ended, or never was.');
    rest.classList.toggle('stale', !session);
    acts.hidden = !session || !mayActOn(session);
    if (!session) return;
    latest = session;
    rest.hidden = false;
    setText(name, session.name);
    all.update(values(session));
    windows.update(['10s', '1min', '10min'].map((of) => ({ name: of, ...session.windows[of] })));
    behind.update([...new Set(session.behind)]);
    for (const each of [rate, memory]) each.update(history);
  }

  return { node: element('div', {}, name, ended, rest), update };
}

export default { path: 'session', title: 'Session', make };
