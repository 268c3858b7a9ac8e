// The details of one session, which are asked for while they are shown.

import { proof } from './exchange.js';

const EVERY = 1000;
/** After an error, as when the session has ended, it is asked less often. */
const AGAIN = 5000;

/**
 * Asks for the details of a session while `isShown` returns true; calls `took` with them, or `failed`
 * with the reason that there are none. Returns a function that has the next step explained.
 */
export function follow(session, { isShown, took, failed }) {
  let explains = false;
  let timer = null;

  async function ask() {
    if (!isShown()) return;
    const path = `/sessions/${session}${explains ? '?explain' : ''}`;
    explains = false;
    let pause = EVERY;
    try {
      const answer = await fetch(path, { headers: proof(), cache: 'no-store' });
      const isAnswer = answer.headers.get('Content-Type')?.startsWith('application/json');
      const body = isAnswer ? await answer.json() : { error: `status ${answer.status}` };
      if (answer.ok) took(body);
      else failed(body.error);
      if (!answer.ok) pause = AGAIN;
    } catch {
      // The stream of updates says that there is no contact.
      pause = AGAIN;
    }
    timer = setTimeout(ask, document.hidden ? AGAIN : pause);
  }

  // The view is put on the page after it is made.
  timer = setTimeout(ask, 0);
  return () => {
    explains = true;
    clearTimeout(timer);
    ask();
  };
}
