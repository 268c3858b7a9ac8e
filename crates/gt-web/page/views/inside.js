// What a session computes and holds: its instructions, its hot paths, its program's tensors, and the
// plan of one step.

import { follow } from '../details.js';
import { element, setText, table } from '../elements.js';
import { mesh } from '../mesh.js';
import { onResize } from '../observe.js';
import { age, bytes, number, percent, ranges } from '../words.js';

/** The width of the picture's scroll bar and outlines, in pixels. */
const MARGIN = 16;

const dims = (shape) => `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
/** A list without spaces may be long: it is broken into lines at its commas. */
const listed = (texts) => texts.replaceAll(',', ', ') || '–';
const placed = (of) => `${of.dtype} ${dims(of.shape)} ${of.placement} on ${ranges(of.slots)}`;

const STREAM = [
  { title: 'operation', text: (of) => of.operation },
  { title: 'line', text: (of) => of.line || '–' },
  { title: 'scope', text: (of) => of.signal || '–' },
  { title: 'instructions', text: (of) => number(of.count), kind: 'number' },
  { title: 'hot', text: (of) => percent(of.hot / of.count), part: (of) => of.hot / of.count, kind: 'number' },
  { title: 'bytes made', text: (of) => bytes(of.bytes), kind: 'number' },
];

const HOT_PATHS = [
  { title: 'hot path', text: (of) => `#${of.number}`, kind: 'short' },
  { title: 'operations', text: (of) => listed(of.operations) },
  { title: 'lines', text: (of) => listed(of.lines) },
  { title: 'length', text: (of) => number(of.steps), kind: 'number' },
  { title: 'instructions', text: (of) => number(of.instructions), kind: 'number' },
  { title: 'iterations', text: (of) => number(Math.floor(of.instructions / of.steps)), kind: 'number' },
];

const HELD = [
  { title: 'variable', text: (of) => of.variable || of.purpose || '–' },
  { title: 'line', text: (of) => of.line || '–' },
  { title: 'tensor', text: (of) => `${of.dtype} ${dims(of.shape)}` },
  { title: 'bytes', text: (of) => bytes(of.bytes), kind: 'number' },
];

function moveText(moved) {
  return `${moved.collective} of ${bytes(moved.bytes)}: ${moved.from.placement} on ${ranges(moved.from.slots)}`
    + ` to ${moved.to.placement} on ${ranges(moved.to.slots)}, because ${moved.reason}`;
}

/** Makes the sections of a session's view, until a signal is aborted. */
export function inside(session, ends, { now, isDetached }) {
  const said = element('p', { class: 'none', role: 'status' });
  const counted = element('p', { class: 'note' });
  const stream = table('Instructions', STREAM, (of) => `${of.operation}\n${of.line}\n${of.signal}`, 'Nothing was planned for it lately.');
  const hotPaths = table('Hot paths', HOT_PATHS, (of) => of.number, 'Its program has no hot paths.');
  const heldNote = element('p', { class: 'note' });
  const held = table('Largest tensors of the program', HELD, (of) => of.key, 'No tensors are listed.');
  const picture = mesh();
  let explained = null;
  let chosen = 0;
  const drawnNote = element('p', { class: 'note' });
  const drawn = element('div', { class: 'drawn', tabindex: 0 }, picture.node);
  const drawing = element('div', {}, drawnNote, drawn);
  drawing.hidden = true;
  function draw() {
    const step = explained?.steps[chosen];
    if (!explained || explained.slots.length === 0) return;
    setText(drawnNote, step ? `Step ${chosen + 1}, the output of ${step.operation}: ${placed(step.output)}.` : 'No operation is planned.');
    picture.draw(explained, step, drawn.clientWidth - MARGIN);
  }
  const show = (step) => {
    chosen = step.place;
    draw();
  };
  const steps = table('Plan', [
    { title: 'operation', text: (of) => of.operation },
    { title: 'output', text: (of) => placed(of.output) },
    { title: 'moved', text: (of) => of.moves.map(moveText).join('; ') || '–', isBad: (of) => of.moves.length > 0 },
    { title: 'line', text: (of) => of.line || '–' },
    { title: 'picture', kind: 'short', text: () => '', name: (of) => `${of.operation}, step ${of.place + 1}`, actions: [{ title: 'Show', press: show }] },
  ], (of) => of.place, 'Nothing is explained yet.');
  const explain = element('button', { type: 'button' }, 'Explain its next step');
  const explainNote = element('p', { class: 'note', role: 'status' });
  steps.node.classList.add('scrolls');
  steps.node.tabIndex = 0;
  const node = element('section', {}, said,
    element('h3', {}, 'What it computes'), counted, stream.node, hotPaths.node,
    element('h3', {}, 'What it holds'), heldNote, held.node,
    element('h3', {}, 'Where it computes'), element('p', { class: 'controls' }, explain), explainNote, drawing, steps.node);

  function tookHeld(given) {
    const seen = new Map();
    // Two tensors may look the same.
    const keyed = given.largest.map((of) => {
      const like = JSON.stringify(of);
      seen.set(like, (seen.get(like) ?? 0) + 1);
      return { ...of, key: `${like}\n${seen.get(like)}` };
    });
    held.update(keyed);
    const rest = given.others > 0 ? `, and ${number(given.others)} others of ${bytes(given.other_bytes)}` : '';
    setText(heldNote, `${number(keyed.length)} ${keyed.length === 1 ? 'tensor' : 'tensors'}, as the program listed them${rest}.`);
  }

  function tookExplained(given) {
    if (given === null || given.at === explained?.at && given.steps.every((of, at) => of.line === explained.steps[at]?.line)) return;
    chosen = given.at === explained?.at ? chosen : 0;
    explained = given;
    drawing.hidden = explained.slots.length === 0;
    draw();
    steps.update(given.steps.map((of, place) => ({ ...of, place })));
    const moved = given.steps.flatMap((of) => of.moves);
    const sum = bytes(moved.reduce((total, of) => total + of.bytes, 0));
    const what = given.cut ? 'A part of its stream' : 'One step, or one iteration of a hot path';
    const links = given.slow_links.map((of) => ` Slow link: ${of.one} to ${of.other}, ${bytes(of.bytes_per_second)}/s.`).join('');
    setText(explainNote, `${what}: ${number(given.steps.length)} operations, ${number(moved.length)} moves of ${sum} between workers.${links}`);
  }

  onResize(drawn, draw, ends);
  const next = follow(session, ends, {
    took(details) {
      setText(said, '');
      stream.update(details.stream);
      const rest = details.unlisted > 0 ? ` ${number(details.unlisted)} more are of other kinds.` : '';
      const others = details.unlisted_hot_paths > 0 ? ` ${number(details.unlisted_hot_paths)} hot paths are not listed.` : '';
      setText(counted, `Planned in the last ${age(Math.max(0, now() - details.since))}.${rest}${others}`);
      hotPaths.update(details.hot_paths);
      if (details.held) tookHeld(details.held);
      else setText(heldNote, isDetached() ? 'The session has no program at present.' : 'The program has not listed its tensors yet: it may be in a long call.');
      tookExplained(details.explained);
    },
    failed(reason) {
      setText(said, reason);
    },
  });
  explain.addEventListener('click', () => {
    setText(explainNote, 'Waiting for the next step of the program.');
    next();
  });
  return node;
}
