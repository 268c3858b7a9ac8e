// Exchanges a token for a cookie. The token is sent in a header: it reaches no log, no history and
// no other site. Those who may act get a proof as well, which is kept for this port alone.

const PROOF = 'proof';

/** Returns the answer to a token, or to the cookie without one. */
export async function exchange(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch('/sign-in', { headers, cache: 'no-store' });
  if (answer.status === 200) localStorage.setItem(PROOF, (await answer.json()).proof);
  return answer;
}

/** Returns the token in the address, if it has one: `act` is that of those who may act. */
export function tokenInAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  return { watch: given.get('token'), act: given.get('act') };
}

/** Forgets the proof: it is that of an earlier start. */
export function forgetProof() {
  localStorage.removeItem(PROOF);
}

/** Returns the headers that prove that this page may act. */
export function proof() {
  const kept = localStorage.getItem(PROOF);
  return kept ? { 'X-Proof': kept } : {};
}
