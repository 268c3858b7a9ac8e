// The details of one session, which are asked for while they are shown.

import { proof } from './exchange.js';

const EVERY = 1000;
/** After an error, as when the session has ended, it is asked less often. */
const AGAIN = 5000;

/**
 * Asks for the details of a session until a signal is aborted; calls `took` with them, or `failed`
 * with the reason that there are none. Returns a function that has the next step explained.
 */
export function follow(session, ends, { took, failed }) {
  let explains = false;
  let isAsking = false;
  let timer = null;
  ends.addEventListener('abort', () => clearTimeout(timer));

  /** Asks once; returns after how long to ask again. */
  async function ask() {
    const path = `/sessions/${session}${explains ? '?explain' : ''}`;
    explains = false;
    try {
      const answer = await fetch(path, { headers: proof(), cache: 'no-store', signal: ends });
      const isAnswer = answer.headers.get('Content-Type')?.startsWith('application/json');
      const body = isAnswer ? await answer.json() : { error: `status ${answer.status}` };
      if (ends.aborted) return AGAIN;
      if (answer.ok) took(body);
      else failed(body.error);
      return answer.ok ? EVERY : AGAIN;
    } catch {
      // The stream of updates says that there is no contact.
      return AGAIN;
    }
  }

  /** Asks now and then, one question at a time. */
  async function go() {
    clearTimeout(timer);
    if (isAsking) return;
    isAsking = true;
    const pause = await ask();
    isAsking = false;
    if (ends.aborted) return;
    if (explains) go();
    else timer = setTimeout(go, document.hidden ? AGAIN : pause);
  }

  go();
  return () => {
    explains = true;
    go();
  };
}
