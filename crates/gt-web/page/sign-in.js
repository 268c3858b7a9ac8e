// Signs in with the token, which is in the link or typed.

import { exchange, tokenInAddress } from './exchange.js';

const said = document.getElementById('said');
const RELOADED = 'signed-in';

async function signIn(token) {
  try {
    const answer = await exchange(token);
    if (answer.ok) reload();
    else if (answer.status === 429) said.textContent = 'Too many wrong tokens: try again in a moment.';
    else if (token) said.textContent = 'This token is not valid: it may be that of an earlier start.';
  } catch {
    said.textContent = 'There is no answer: the page is not served any more.';
  }
}

/** Loads the page with the cookie; once, as a browser that refuses cookies would load it forever. */
function reload() {
  const isAgain = Date.now() - Number(sessionStorage.getItem(RELOADED)) < 3000;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  if (isAgain) said.textContent = 'This browser does not send the cookie of this page.';
  else location.reload();
}

document.getElementById('form').addEventListener('submit', (event) => {
  event.preventDefault();
  signIn(document.getElementById('token').value.trim());
});

function signInByAddress() {
  const { watch, act } = tokenInAddress();
  const token = act ?? watch;
  if (token) history.replaceState(null, '', '/');
  // Without a token, too: a browser that comes from another site has not sent its cookie yet.
  signIn(token);
}

addEventListener('hashchange', signInByAddress);
signInByAddress();
