// The connection to the server: one stream of updates.

/** Updates come every half second, and every two while the dispatcher does not answer. */
const SILENCE = 15000;
const AGAIN = 3000;
/** A page that nobody sees keeps no connection: browsers have six for a host. */
const HIDDEN = 60000;

/**
 * Calls `status` with each status, `lost` with an error instead of it, and `contact` with false when
 * the page's own server does not answer, or with 'signed out'.
 */
export function listen({ status, lost, contact }) {
  let source = null;
  let silence = null;
  let hidden = null;

  function open() {
    close();
    source = new EventSource('/events');
    source.addEventListener('status', (event) => heard(() => status(JSON.parse(event.data))));
    source.addEventListener('lost', (event) => heard(() => lost(JSON.parse(event.data))));
    source.addEventListener('error', () => failed());
    watch();
  }

  function close() {
    source?.close();
    source = null;
    clearTimeout(silence);
  }

  function heard(then) {
    watch();
    then();
  }

  function watch() {
    clearTimeout(silence);
    silence = setTimeout(() => {
      contact(false);
      open();
    }, SILENCE);
  }

  async function failed() {
    // A stream ends now and then; the browser then asks for another.
    if (source?.readyState !== EventSource.CLOSED) return;
    close();
    const answer = await fetch('/sign-in', { cache: 'no-store' }).catch(() => null);
    contact(answer?.status === 401 ? 'signed out' : false);
    if (answer?.status !== 401) silence = setTimeout(open, AGAIN);
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(close, HIDDEN);
    else if (source === null) open();
  });
  open();
}
