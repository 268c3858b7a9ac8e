// Recordings at the server: starting one, and what there is.

import { element, setText } from '../elements.js';

/** The seconds of a recording, unless others are chosen. */
export const SECONDS = 5;

/** The hint of an error is a sentence after it. */
function said(text) {
  return text.replace(/\s*\n\s*hint: /, '; ');
}

/** Starts a recording, and returns its number, or an error. */
export async function record(seconds, session = null) {
  try {
    const answer = await fetch('/recordings', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ seconds, session }),
    });
    const isAnswer = answer.headers.get('Content-Type')?.startsWith('application/json');
    const { number, error } = isAnswer ? await answer.json() : {};
    return number ? { number } : { error: said(error ?? `It was refused (status ${answer.status}).`) };
  } catch {
    return { error: 'There was no answer.' };
  }
}

/** Returns the recordings, newest first; null without an answer, as after a signal's abort. */
export async function list(ends) {
  try {
    const answer = await fetch('/recordings', { cache: 'no-store', signal: ends });
    if (!answer.ok) return null;
    const { recordings } = await answer.json();
    return recordings.map((of) => ({ ...of, error: of.error && said(of.error) }));
  } catch {
    return null;
  }
}

/** Makes a button that records what a session does, and shows the recording. */
export function recordButton(session) {
  const button = element('button', { type: 'button' }, `Record ${SECONDS} s`);
  const outcome = element('span', { role: 'status' });
  button.addEventListener('click', async () => {
    button.disabled = true;
    const { number, error } = await record(SECONDS, session);
    button.disabled = false;
    setText(outcome, error ?? '');
    if (number) location.hash = `#/timeline/${number}`;
  });
  return element('p', { class: 'controls' }, button, outcome);
}
