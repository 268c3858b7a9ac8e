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
    const isExplaining = explains;
    const path = `/sessions/${session}${isExplaining ? '?explain' : ''}`;
    explains = false;
    let isOk = false;
    let body = null;
    try {
      const answer = await fetch(path, { headers: proof(), cache: 'no-store', signal: ends });
      const isAnswer = answer.headers.get('Content-Type')?.startsWith('application/json');
      body = isAnswer ? await answer.json() : { error: `status ${answer.status}` };
      isOk = answer.ok;
    } catch {
      // The stream of updates says that there is no contact.
    }
    if (ends.aborted) return AGAIN;
    if (isOk) took(body);
    else if (body) failed(body.error);
    // What was not asked is asked with the next question.
    if (!isOk) explains ||= isExplaining;
    return isOk ? EVERY : AGAIN;
  }

  /** Asks now and then, one question at a time. */
  async function go() {
    clearTimeout(timer);
    if (isAsking) return;
    isAsking = true;
    const pause = await ask();
    isAsking = false;
    if (ends.aborted) return;
    if (explains && pause === EVERY) go();
    else timer = setTimeout(go, document.hidden ? AGAIN : pause);
  }

  go();
  return () => {
    explains = true;
    go();
  };
}
