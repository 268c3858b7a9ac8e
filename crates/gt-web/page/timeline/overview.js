// All of a recording above its rows, with a window over what is seen of it.

import { element } from '../elements.js';
import { Painter, resize, theme } from './draw.js';
import { Range } from './range.js';

/** Its height, and the width of the window's sides, in pixels. */
const HEIGHT = 44;
const SIDE = 2;
/** The part of a row's height that its spans take. */
const FILLED = 0.85;

/**
 * Makes the overview. `current()` returns the recording, the range, and x and width of the area of
 * times; `changed()` is called when the window was moved.
 */
export function overview(current, changed) {
  const node = element('canvas', { class: 'overview', 'aria-hidden': 'true' });
  const context = node.getContext('2d');
  const painter = new Painter(document.createElement('canvas').getContext('2d', { alpha: false }));

  /** Draws all rows without their texts, once: only the window moves. */
  function draw() {
    const { recording, x, width } = current();
    painter.begin(node.width, HEIGHT, devicePixelRatio);
    const row = HEIGHT / recording.rows.length;
    const place = (of) => ({ x, width, y: of.place * row, height: Math.max(row * FILLED, 1) });
    painter.rows(recording.rows, new Range(recording.length), place);
  }

  /** Takes the colours of a recording and of the theme. */
  function take(recording) {
    painter.use(theme());
    painter.take(recording);
    if (node.width > 0) draw();
  }

  function measure(width) {
    resize(node, width, HEIGHT);
    resize(painter.context.canvas, width, HEIGHT);
    draw();
  }

  function paint({ accent }) {
    const { range, x, width } = current();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(painter.context.canvas, 0, 0);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    const [from, to] = [range.from, range.to].map((time) => x + (time / range.length) * width);
    context.fillStyle = accent;
    context.globalAlpha = 0.25;
    context.fillRect(from, 0, Math.max(to - from, SIDE), HEIGHT);
    context.globalAlpha = 1;
    context.fillRect(from, 0, SIDE, HEIGHT);
    context.fillRect(Math.max(to - SIDE, from), 0, SIDE, HEIGHT);
  }

  function move(event) {
    const { range, x, width } = current();
    if (!range || event.buttons === 0) return;
    const middle = ((event.clientX - node.getBoundingClientRect().left - x) / width) * range.length;
    range.show(middle - range.width / 2, middle + range.width / 2);
    changed();
  }
  node.addEventListener('pointerdown', (event) => {
    node.setPointerCapture(event.pointerId);
    move(event);
  });
  node.addEventListener('pointermove', move);

  return { node, take, measure, paint };
}
