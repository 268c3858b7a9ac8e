// Recordings of what the cluster does: each client, the dispatcher and each worker as a row of spans.

import { choice, element, setText, table } from '../elements.js';
import { facts, length, moment } from '../timeline/describe.js';
import { css, theme } from '../timeline/draw.js';
import { lanes } from '../timeline/lanes.js';
import { longest } from '../timeline/pick.js';
import { list, record, SECONDS } from '../timeline/record.js';
import { decode } from '../timeline/recording.js';
import { age, bytes, number as short } from '../words.js';

/** The seconds that are offered. */
const CHOICES = [1, 2, 5, 10, 30, 60];
/** How often the server is asked while it records and otherwise, in milliseconds. */
const SOON = 500;
const LATER = 5000;
/** The longest spans in sight are listed, so many, after nothing has moved for some milliseconds. */
const LISTED = 20;
const SETTLED = 250;

const count = (of) => of.toLocaleString('en');

function state(of) {
  if (of.state === 'recording') return `records: ${Math.min(Math.floor(of.age), of.seconds)} of ${of.seconds} s, ${count(of.events)} events`;
  if (of.state === 'failed') return `failed: ${of.error}`;
  const lost = of.dropped > 0 ? `, ${count(of.dropped)} lost` : '';
  return `${count(of.events)} events${lost}${of.ended ? `, ended early: ${of.ended}` : ''}`;
}

/** A line about a recording, for those who do not see it. */
function summary({ header, length: seconds, rows, highlighted }) {
  const instructions = rows.filter(({ part }) => part === 'worker').reduce((sum, { index }) => sum + index.instructions(), 0);
  const lost = header.dropped > 0 ? `; ${count(header.dropped)} events were lost` : '';
  const moves = header.moves > 0 ? `, ${count(header.moves)} moves of blocks` : '';
  const others = highlighted === null ? '' : '; other sessions are grey';
  return `${length(seconds)} with ${count(header.spans)} events on ${count(rows.length)} rows, ${count(instructions)} instructions on workers${moves}${lost}${others}.`;
}

function make(argument, ends) {
  const wanted = /^\d+$/.test(argument ?? '') ? Number(argument) : null;
  let shown = null;
  let recording = null;
  let seconds = String(SECONDS);
  let timer = null;
  let settled = null;

  const button = element('button', { type: 'button' });
  const said = element('p', { role: 'status' });
  const howLong = choice('For', 'seconds', (value) => {
    seconds = value;
    relabel();
  });
  function relabel() {
    howLong.update(CHOICES.map((of) => [String(of), `${of} s`]), seconds);
    setText(button, `Record ${seconds} s`);
  }
  button.addEventListener('click', async () => {
    const { number, error } = await record(Number(seconds));
    setText(said, error ?? '');
    said.classList.toggle('bad', Boolean(error));
    if (number) location.hash = `#/timeline/${number}`;
  });

  const recordings = table('Recordings', [
    { title: 'recording', text: (of) => `${of.number}`, link: (of) => `#/timeline/${of.number}`, kind: 'short' },
    { title: 'ago', text: (of) => age(of.age), kind: 'number' },
    { title: 'seconds', text: (of) => String(of.seconds), kind: 'number' },
    { title: 'what it has', text: state, isBad: (of) => of.state === 'failed' },
    { title: 'size', text: (of) => bytes(of.bytes), kind: 'number' },
  ], (of) => of.number, 'Nothing is recorded yet.');

  const drawn = lanes(ends, () => {
    clearTimeout(settled);
    settled = setTimeout(settle, SETTLED);
  });
  const about = element('p', { id: 'timeline-summary' });
  const seen = element('p', { class: 'summary', 'aria-live': 'polite' });
  const highlight = choice('Highlight', 'highlight', (value) => {
    recording.highlight(value === '' ? null : Number(value));
    drawn.recolour();
    describe();
  });
  const legend = element('ul', { class: 'legend' });
  const file = element('a', { download: '' }, 'Open in Perfetto');
  const perfetto = element('p', {}, file, ': the link downloads a file; open it at ui.perfetto.dev ("Open trace file") or in chrome://tracing.');
  const spans = table(`The ${LISTED} longest spans in sight`, [
    { title: 'span', text: ({ of }) => of.name },
    { title: 'on', text: ({ of }) => of.on },
    { title: 'takes', text: ({ of }) => of.takes, kind: 'number' },
    { title: 'at', text: ({ of }) => of.at, kind: 'number' },
    { title: 'instructions', text: ({ of }) => of.instructions ?? '1', kind: 'number' },
    { title: 'size', text: ({ of }) => of.size ?? '–', kind: 'number' },
    { title: 'session', text: ({ of }) => of.session ?? '–' },
    { title: 'look', text: () => '', name: ({ of }) => `to ${of.name} at ${of.at}`, actions: [{ title: 'Zoom', press: ({ span, row }) => drawn.zoomTo(span, row) }] },
  ], ({ span }) => span, 'No span is in sight.');
  const whole = element('div', {}, about, highlight.node, drawn.node, seen, legend, perfetto);
  whole.hidden = true;
  spans.node.hidden = true;
  const controls = element('div', { class: 'controls record' }, howLong.node, button);
  const node = element('div', {}, controls, said, whole, recordings.node, spans.node);

  function settle() {
    if (!recording) return;
    const range = drawn.range();
    setText(seen, range.isWhole ? 'All of it is in sight.' : `In sight: ${drawn.seen()}, from ${moment(range.from, range.width / 100)} on.`);
    spans.update(longest(recording, range, LISTED).map(({ span, row }) => ({ span, row, of: facts(recording, span, row) })));
  }

  function describe() {
    setText(about, summary(recording));
    const colours = theme();
    legend.replaceChildren(...recording.legend().map((of) => {
      const swatch = element('i', { 'aria-hidden': 'true' });
      swatch.style.background = css(of, colours);
      return element('li', {}, swatch, `${of.name}${of.seconds > 0 ? ` ${length(of.seconds)}` : ''}, ${short(of.count)}`);
    }));
    const named = recording.sessions().map(([number, name]) => [String(number), name]);
    highlight.update([['', 'all sessions'], ...named], String(recording.highlighted ?? ''));
  }

  async function open(number) {
    shown = number;
    setText(said, `Recording ${number} is loaded.`);
    const answer = await fetch(`/recordings/${number}`, { cache: 'no-store', signal: ends }).catch(() => null);
    if (ends.aborted) return;
    if (!answer?.ok) {
      setText(said, answer?.status === 404 ? `Recording ${number} is not kept any more.` : 'The recording could not be loaded.');
      return;
    }
    const content = await answer.arrayBuffer().catch(() => null);
    if (ends.aborted) return;
    if (!content) {
      setText(said, 'The recording could not be loaded.');
      return;
    }
    recording = decode(content);
    setText(said, '');
    file.href = `/recordings/${number}.json`;
    whole.hidden = false;
    spans.node.hidden = false;
    drawn.show(recording);
    describe();
    settle();
  }

  async function look() {
    const all = await list(ends);
    if (ends.aborted) return;
    if (all) {
      recordings.update(all);
      const running = all.find((of) => of.state === 'recording');
      button.disabled = running !== undefined;
      const own = wanted === null ? running ?? all.find((of) => of.state === 'ready') : all.find((of) => of.number === wanted);
      const isOpen = own?.state === 'ready' && own.number === shown;
      if (own?.state === 'ready' && shown !== own.number && (wanted !== null || shown === null)) await open(own.number);
      else if (!isOpen && wanted !== null && !own) setText(said, `Recording ${wanted} is not kept any more.`);
      else if (own && own.state !== 'ready') {
        setText(said, `Recording ${own.number} ${state(own)}`);
        said.classList.toggle('bad', own.state === 'failed');
      }
      wait(running ? SOON : LATER);
    } else wait(LATER);
  }

  /** Looks again after some milliseconds. */
  function wait(pause) {
    // The view may have ended while a recording was loaded.
    if (!ends.aborted) timer = setTimeout(look, pause);
  }

  ends.addEventListener('abort', () => {
    clearTimeout(timer);
    clearTimeout(settled);
  });
  relabel();
  recordings.update([]);
  look();
  return { node, update() {} };
}

export default { path: 'timeline', title: 'Timeline', make };
