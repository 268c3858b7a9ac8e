// What operators do: buttons that readers without the operators' token do not have.

import { askTwice } from './ask.js';
import { element, setText } from './elements.js';
import { exchange, forgetProof, proof, tokenInAddress } from './exchange.js';

const said = element('p', { role: 'status' });
const dismiss = element('button', { type: 'button', hidden: '' }, 'Dismiss');
document.getElementById('contact').after(element('div', { id: 'outcome' }, said, dismiss));
dismiss.addEventListener('click', () => say(''));

const NOT_VALID = 'The token of this link is not valid: it may be that of an earlier start.';

/** The user on whose sessions alone this page acts. */
let onlyUser = null;

/** Returns whether this page may act on a session, if it may act at all. */
export function mayActOn(session) {
  return onlyUser === null || session?.user === onlyUser;
}

/** Says what became of an action. */
function say(text, isBad = false) {
  setText(said, text);
  said.classList.toggle('bad', isBad);
  dismiss.hidden = text === '';
}

/** Signs in with the operators' token, if the address has it, and shows the buttons to operators. */
export async function begin() {
  const { act } = tokenInAddress();
  try {
    if (act) {
      history.replaceState(null, '', '/');
      const answer = await exchange(act);
      if (!answer.ok) say(NOT_VALID, true);
    }
    const answer = await fetch('/actions', { headers: proof(), cache: 'no-store' });
    if (answer.status === 401) forgetProof();
    const { actions, user } = answer.ok ? await answer.json() : { actions: [] };
    onlyUser = user ?? null;
    document.body.classList.toggle('acts', actions.length > 0);
    document.body.classList.toggle('operates', actions.includes('drain'));
  } catch {
    // The stream of updates says that there is no contact.
  }
}

async function act(body) {
  say(`Asked for: ${body.action}. Waiting for the answer.`);
  try {
    const answer = await fetch('/actions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...proof() },
      body: JSON.stringify(body),
    });
    const isAnswer = answer.headers.get('Content-Type')?.startsWith('application/json');
    const { done, error } = isAnswer ? await answer.json() : {};
    if (done) say(done);
    else say(error ?? `It was refused (status ${answer.status}): open the link for operators again.`, true);
  } catch {
    say('There was no answer: whether it was done, the page shows when there is contact again.', true);
  }
}

const ofSession = ({ name, user }) => (user ? { session: name, user } : { session: name });

function onSession(action, verb, means) {
  const press = (session) => askTwice({
    verb, name: session.name, means, done: () => act({ action, ...ofSession(session) }),
  });
  return { title: verb.split(' ')[0], press };
}

function onUser(action, verb, means) {
  const press = ({ user }) => askTwice({ verb, name: user, means, done: () => act({ action, user }) });
  return { title: verb.split(' ')[0], press, isFor: ({ user }) => user !== '' };
}

/** What is done with a session, with a worker, and with all sessions of a user. */
export const SESSION_ACTIONS = [
  onSession('pause', 'Pause the session', 'What it has sent already is computed. Then its program waits until the session is resumed.'),
  onSession('resume', 'Resume the session', 'Its program continues.'),
  onSession('end', 'End the session', 'Its tensors are freed, and its program gets an error. This cannot be undone.'),
  {
    title: 'Weigh',
    press: (session) => askTwice({
      verb: 'Weigh the session',
      name: session.name,
      means: 'The share of the session among those of its user follows from their weights; 1 is usual.',
      field: { label: 'Weight', value: session.weights.session, attributes: { min: 1, max: 1000000 } },
      done: (weight) => act({ action: 'weigh', weight, ...ofSession(session) }),
    }),
  },
];

export const WORKER_ACTIONS = [{
  title: 'Drain',
  press: ({ name }) => askTwice({
    verb: 'Drain the worker',
    name,
    means: 'Its sessions and tensors move to other workers, and its process ends. If that takes longer than the time given, it serves on.',
    field: { label: 'Seconds', value: 50, attributes: { min: 1, max: 50 } },
    done: (within) => act({ action: 'drain', worker: name, within }),
  }),
}];

export const USER_ACTIONS = [
  onUser('pause', 'Pause all sessions of the user', 'What they have sent already is computed. Then their programs wait, also those that begin later.'),
  onUser('resume', 'Resume all sessions of the user', 'Their programs continue.'),
  {
    title: 'Weigh',
    press: ({ user, weights }) => askTwice({
      verb: 'Weigh the user',
      name: user,
      means: 'The share of the workers among users follows from their weights. This one replaces the policy\'s; 0 is the policy\'s again.',
      field: { label: 'Weight', value: weights.user, attributes: { min: 0, max: 1000000 } },
      done: (weight) => act({ action: 'weigh', user, weight: weight === 0 ? null : weight }),
    }),
    isFor: ({ user }) => user !== '',
  },
];

/** Makes the buttons of actions on what `current` returns; only operators see them. */
export function buttons(actions, current) {
  return element('p', { class: 'controls act' }, ...actions.map(({ title, press }) => {
    const button = element('button', { type: 'button' }, title);
    button.addEventListener('click', () => press(current()));
    return button;
  }));
}

/** A column of a table with the actions on its rows, which users do not have. */
export function column(actions, name) {
  return { title: 'actions', kind: 'act operator', text: () => '', name, actions };
}

/** Signs in with a link that is opened in a tab that has the page already, maybe signed out. */
async function signInAgain() {
  const { watch, act } = tokenInAddress();
  const token = act ?? watch;
  if (!token) return;
  history.replaceState(null, '', '/');
  try {
    const answer = await exchange(token);
    if (answer.ok) location.reload();
    else say(NOT_VALID, true);
  } catch {
    say('There is no answer: the page is not served any more.', true);
  }
}

addEventListener('hashchange', signInAgain);
