// The page: a header with links to the views, and one view at a time.

import { begin } from './actions.js';
import { element, setText } from './elements.js';
import { History } from './history.js';
import { listen } from './live.js';
import mine from './views/mine.js';
import workers from './views/workers.js';
import sessions from './views/sessions.js';
import session from './views/session.js';
import users from './views/users.js';
import published from './views/published.js';
import moves from './views/moves.js';
import hot from './views/hot.js';
import failures from './views/failures.js';
import hour from './views/hour.js';
import timeline from './views/timeline.js';

/**
 * Each view has a link of its own. `make` takes the argument in the address and a signal, which is
 * aborted when another view is shown; it returns the view's element and a function that updates it.
 */
const VIEWS = [mine, workers, sessions, users, published, hot, moves, failures, hour, timeline];

const content = document.getElementById('content');
const contact = document.getElementById('contact');
const dispatcher = document.getElementById('dispatcher');
const past = new History();
let status = null;
let shown = null;
/** Ends what the shown view follows. */
let ending = null;

const links = VIEWS.map((view) => {
  const link = element('a', { href: `#/${view.path}` }, view.title);
  document.getElementById('views').append(element('li', {}, link));
  return [view, link];
});

/** Returns the view that the address names, and its title and argument. */
function wanted() {
  const [path, argument] = location.hash.replace(/^#\/?/, '').split('/');
  if (path === sessions.path && argument) return { view: session, within: sessions, argument };
  const view = VIEWS.find((of) => of.path === path) ?? mine;
  return { view, within: view, argument: argument ?? null };
}

function show() {
  // The token of a link that is opened again: the cookie is all that is needed.
  if (location.hash.startsWith('#token=')) history.replaceState(null, '', '/');
  const { view, within, argument } = wanted();
  for (const [of, link] of links) {
    if (of === within) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const title = element('h2', { tabindex: -1 }, view.title);
  const isFirst = shown === null;
  ending?.abort();
  ending = new AbortController();
  shown = view.make(argument, ending.signal);
  content.replaceChildren(title, shown.node);
  document.title = `${view.title} – GT`;
  if (!isFirst) title.focus();
  update();
}

function update() {
  if (status) shown.update(status, past);
}

function say(text, isBad) {
  setText(contact, text);
  contact.classList.toggle('bad', isBad);
  content.classList.toggle('stale', isBad);
}

document.getElementById('skip').addEventListener('click', () => content.querySelector('h2').focus());
addEventListener('hashchange', show);
begin();
show();
say('Waiting for the first status', false);
listen({
  status(given) {
    status = given;
    past.add(given);
    setText(dispatcher, given.dispatcher);
    say('', false);
    update();
  },
  lost({ dispatcher: title, error }) {
    past.addGap();
    if (title) setText(dispatcher, title);
    say(`No status: ${error}`, true);
  },
  contact(state) {
    past.addGap();
    say(state === 'signed out'
      ? 'Signed out: open the link that was printed when the page was started again'
      : 'No contact with the program that serves this page; trying again', true);
  },
});
