// The drawing of a recording: an overview, rows with spans, and the details of one span.

import { element, setText } from '../elements.js';
import { onResize, onScheme } from '../observe.js';
import { percent } from '../words.js';
import { facts, length } from './describe.js';
import { AXIS, Painter, resize, theme } from './draw.js';
import { FACTOR, react } from './gestures.js';
import { overview } from './overview.js';
import { at } from './pick.js';
import { Range } from './range.js';

/** The heights of a row, and of all rows that are seen at a time, in pixels. */
const ROW = { least: 20, most: 56 };
const SEEN = 520;
/** The width of the names of rows, at most and as a part of the whole. */
const NAMES = 170;
const NAMES_PART = 0.27;
const MARGIN = 6;
/** Rows of this height have a second line of text. */
const TWO_LINES = 34;
/** The width of a pointer, in pixels. */
const POINTER = 3;
/** A span that keys select is at least so wide afterwards, as a part of what is seen. */
const SELECTED = 0.02;

const KEYS = 'Keys: left and right move, + and - zoom, 0 shows all; up and down choose a row, comma and period the span before and after it, Enter zooms to it.';

/** Makes the drawing, until a signal is aborted; `changed` is called when what is seen has changed. */
export function lanes(ends, changed) {
  const canvas = element('canvas', {
    tabindex: 0, role: 'application', 'aria-roledescription': 'timeline', 'aria-label': 'Timeline of the recording', 'aria-describedby': 'timeline-summary timeline-keys',
  });
  const spacer = element('div', {}, canvas);
  const scrolled = element('div', { class: 'lanes' }, spacer);
  const whole = overview(() => ({ recording, range, ...area() }), () => draw(true));
  const details = element('p', { class: 'span-details', 'aria-live': 'polite' });
  const keys = element('p', { class: 'summary', id: 'timeline-keys' }, `${KEYS} A wheel or two fingers zoom as well, dragging moves.`);
  const button = (title, press) => {
    const made = element('button', { type: 'button' }, title);
    made.addEventListener('click', () => {
      press();
      draw(true);
    });
    return made;
  };
  const controls = element('p', { class: 'controls zoom' },
    button('Zoom in', () => range?.zoom(FACTOR)), button('Zoom out', () => range?.zoom(1 / FACTOR)),
    button('Show all', () => range?.show(0, range.length)),
    button('Earlier', () => range?.pan(-range.width / 2)), button('Later', () => range?.pan(range.width / 2)));
  const node = element('div', { class: 'timeline' }, controls, whole.node, scrolled, details, keys);

  const painter = new Painter(canvas.getContext('2d', { alpha: false }));
  let recording = null;
  let range = null;
  let chosen = null;
  let pointed = null;
  let isDue = false;
  let size = { width: 0, height: 0, row: ROW.most, names: NAMES };

  const area = () => ({ x: size.names, width: Math.max(size.width - size.names, 1) });
  const rowTop = (place) => AXIS + place * size.row - scrolled.scrollTop;
  const rowAt = (y) => (y < AXIS ? undefined : recording.rows[Math.floor((y - AXIS + scrolled.scrollTop) / size.row)]);

  function measure() {
    const width = scrolled.clientWidth;
    if (!recording || width === 0) return;
    const count = recording.rows.length;
    const row = Math.min(Math.max((SEEN - AXIS) / count, ROW.least), ROW.most);
    const all = AXIS + row * count + 2;
    size = { width, height: Math.min(all, SEEN), row, names: Math.min(NAMES, width * NAMES_PART) };
    spacer.style.height = `${all}px`;
    scrolled.style.height = `${size.height}px`;
    resize(canvas, width, size.height);
    whole.measure(width);
    draw();
  }

  /** Draws at the next frame, once for all changes until then. */
  function draw(hasMoved = false) {
    if (ends.aborted) return;
    if (hasMoved) changed();
    if (isDue || !recording) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      paint();
      whole.paint(painter.theme);
    });
  }

  function paint() {
    const { context } = painter;
    painter.begin(size.width, size.height, devicePixelRatio);
    const place = { ...area(), height: size.row * 0.8 };
    const first = Math.floor(scrolled.scrollTop / size.row);
    const rows = recording.rows.slice(first, first + Math.ceil(size.height / size.row) + 1);
    for (const row of rows) {
      context.fillStyle = painter.theme.panel;
      context.fillRect(place.x, rowTop(row.place) + size.row * 0.1, place.width, place.height);
    }
    painter.axis(range, place, size.height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, size.width, size.height - AXIS);
    context.clip();
    for (const row of rows) name(row, rowTop(row.place) + size.row / 2);
    context.beginPath();
    context.rect(place.x, AXIS, place.width, size.height - AXIS);
    context.clip();
    painter.rows(rows, range, (row) => ({ ...place, y: rowTop(row.place) + size.row * 0.1 }));
    for (const of of [chosen, pointed]) if (of?.span !== undefined) outline(of, place);
    painter.moves(range, place, (row) => rowTop(row) + size.row / 2);
    context.restore();
  }

  /** Draws the name of a row. */
  function name(row, middle) {
    const { context } = painter;
    const isTall = size.row > TWO_LINES;
    context.fillStyle = row === chosen?.row ? painter.theme.accent : painter.theme.text;
    context.fillText(fitted(row.name), MARGIN, middle - (isTall ? 6 : 0));
    if (!isTall) return;
    context.fillStyle = painter.theme.dim;
    const busy = `${percent(row.busy)} busy`;
    const both = `${row.part}, ${busy}`;
    context.fillText(both === fitted(both) ? both : busy, MARGIN, middle + 7);
  }

  function outline({ span, row }, place) {
    const { begin, end } = recording.spans;
    const x = (time) => place.x + ((time - range.from) / range.width) * place.width;
    const from = Math.max(x(begin[span]), place.x);
    const to = Math.min(x(end[span]), place.x + place.width);
    if (to < place.x || from > place.x + place.width) return;
    painter.outline(from, rowTop(row.place) + size.row * 0.1, Math.max(to - from, 2), place.height, painter.theme.text);
  }

  function fitted(text) {
    const room = Math.floor((size.names - 2 * MARGIN) / 6.1);
    return text.length > room ? `${text.slice(0, room - 1)}…` : text;
  }

  /** Describes what is pointed at, or else what is chosen. */
  function describe() {
    const of = pointed ?? chosen;
    if (!of) setText(details, 'Point at a span, or choose one by keys, to see what it is.');
    else if (of.merged) {
      setText(details, `${of.merged.toLocaleString('en')} spans at one place of ${of.row.name}: zoom in to tell them apart.`);
    } else if (of.span === undefined) setText(details, `${of.row.name}: no span is chosen.`);
    else {
      const { name, ...rest } = facts(recording, of.span, of.row);
      const known = Object.entries(rest).filter(([, value]) => value !== null);
      details.replaceChildren(element('strong', {}, name), ...known.flatMap(([key, value]) =>
        [' · ', element('span', { class: 'summary' }, key), ` ${value}`]));
    }
  }

  function find(x, y) {
    const row = x === null ? undefined : rowAt(y);
    if (!row || x < size.names) return null;
    const time = range.from + ((x - size.names) / area().width) * range.width;
    const found = at(recording, row, time, (POINTER / area().width) * range.width);
    return found && { ...found, row };
  }

  function point(x, y) {
    const found = find(x, y);
    if (found?.span === pointed?.span && found?.merged === pointed?.merged && found?.row === pointed?.row) return;
    pointed = found;
    describe();
    draw();
  }

  /** Chooses a span, and moves to where it is seen. */
  function choose(span, row) {
    chosen = { span, row };
    pointed = null;
    const { begin, end } = recording.spans;
    const taken = end[span] - begin[span];
    if (taken < SELECTED * range.width) range.show(begin[span] - taken / SELECTED / 2, end[span] + taken / SELECTED / 2);
    if (begin[span] < range.from || end[span] > range.to) {
      const width = Math.max(range.width, 2 * taken);
      range.show((begin[span] + end[span] - width) / 2, (begin[span] + end[span] + width) / 2);
    }
    see(row);
  }

  function zoomTo(span, row) {
    choose(span, row);
    const { begin, end } = recording.spans;
    const taken = Math.max(end[span] - begin[span], 1e-7);
    range.show(begin[span] - taken, end[span] + taken);
    see(row);
  }

  function see(row) {
    const [top, bottom] = [rowTop(row.place), rowTop(row.place) + size.row];
    if (top < AXIS) scrolled.scrollTop -= AXIS - top;
    if (bottom > size.height) scrolled.scrollTop += bottom - size.height;
    describe();
    draw(true);
  }

  /** Chooses by keys: a row, or a span of it. */
  function key(name) {
    const rows = recording.rows;
    const row = chosen?.row ?? rows[0];
    const middle = (range.from + range.to) / 2;
    if (name === 'ArrowUp' || name === 'ArrowDown') {
      const next = chosen ? rows[row.place + (name === 'ArrowUp' ? -1 : 1)] : row;
      if (next) {
        chosen = { row: next };
        pointed = null;
        see(next);
      }
    } else if (name === ',' || name === '.') {
      const step = name === ',' ? -1 : 1;
      const next = chosen?.span === undefined
        ? Math.min(row.index.firstFrom(middle), row.index.to - 1) : chosen.span + step;
      if (next >= row.index.from && next < row.index.to) choose(next, row);
    } else if (name === 'Enter' && chosen?.span !== undefined) zoomTo(chosen.span, row);
    else return false;
    return true;
  }

  react(canvas, {
    area,
    range: () => range,
    changed: () => draw(true),
    point,
    click(x, y) {
      const found = find(x, y);
      chosen = found;
      describe();
      draw();
    },
    scroll: (pixels) => { scrolled.scrollTop += pixels; },
    key,
  });
  scrolled.addEventListener('scroll', () => draw());
  onResize(scrolled, measure, ends);
  onScheme(recolour, ends);

  /** Draws with other colours: those of the theme, or of another highlight. */
  function recolour() {
    if (!recording) return;
    painter.use(theme());
    painter.take(recording);
    whole.take(recording);
    draw();
  }

  function show(given) {
    [recording, range, chosen, pointed] = [given, new Range(given.length), null, null];
    painter.take(recording);
    whole.take(recording);
    describe();
    measure();
    changed();
  }

  return { node, show, recolour, zoomTo, range: () => range, seen: () => length(range.width) };
}
