// A picture of a session's slots, and of where a tensor is on them.

import { bytes, ranges } from './words.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 150;
const HEIGHT = 96;
const GAP = 14;
/** Parts of a tensor are at least so wide and high, so that they are seen. */
const LEAST = 2;
/** The tensor inside a slot's box. */
const TENSOR = { x: 12, y: 42, width: 126, height: 40 };

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * Returns the part of a tensor that a slot has, as fractions of the tensor's picture: its last axis is
 * horizontal, the others are vertical, each within the one before it. Null if the slot has none of it.
 */
export function part(placed, slot) {
  let rank = placed.slots.indexOf(slot);
  if (rank < 0) return null;
  const shards = [];
  for (let at = placed.mesh.length - 1; at >= 0; at -= 1) {
    const coordinate = rank % placed.mesh[at];
    rank = Math.floor(rank / placed.mesh[at]);
    const shard = placed.shards[at];
    if (shard) shards.push({ axis: shard.axis, from: shard.cuts[coordinate], to: shard.cuts[coordinate + 1] });
  }
  const of = { x: 0, y: 0, width: 1, height: 1 };
  for (const { axis, from, to } of shards.sort((one, other) => one.axis - other.axis)) {
    const length = placed.shape[axis] || 1;
    const isLast = axis > 0 && axis === placed.shape.length - 1;
    const [begin, side] = isLast ? ['x', 'width'] : ['y', 'height'];
    of[begin] += of[side] * from / length;
    of[side] *= (to - from) / length;
  }
  return of.width > 0 && of.height > 0 ? of : null;
}

/** Where a side of a block begins, so that one of the least length is within the tensor. */
const within = (begin, length) => Math.min(begin * length, length - LEAST);

/**
 * Makes the picture; `draw` shows the slots of an explanation and the output of one of its steps, in
 * rows that fit into a width.
 */
export function mesh() {
  const node = document.createElementNS(SVG, 'svg');
  node.setAttribute('class', 'mesh');
  node.setAttribute('role', 'img');

  function box(slot, at, columns, placed, held) {
    const x = (at % columns) * (WIDTH + GAP);
    const y = Math.floor(at / columns) * (HEIGHT + GAP);
    const group = shape('g', { transform: `translate(${x} ${y})` });
    const of = placed ? part(placed, slot.slot) : null;
    group.append(
      shape('title', {}, [`slot ${slot.slot}`, slot.worker || 'no worker', slot.machine].filter(Boolean).join(', ')),
      shape('rect', { class: of ? 'slot has' : 'slot', width: WIDTH, height: HEIGHT, rx: 6 }),
      shape('text', { class: 'name', x: 12, y: 18 }, `${slot.slot}  ${slot.worker || '–'}`.slice(0, 16)),
      shape('text', { class: 'small', x: 12, y: 34 }, `${bytes(held)}${slot.machine ? `, ${slot.machine}` : ''}`.slice(0, 19)),
    );
    if (of) {
      group.append(
        shape('rect', { class: 'whole', ...TENSOR }),
        shape('rect', {
          class: placed.placement.includes('Partial') ? 'block partial' : 'block',
          x: TENSOR.x + within(of.x, TENSOR.width),
          y: TENSOR.y + within(of.y, TENSOR.height),
          width: Math.max(of.width * TENSOR.width, LEAST),
          height: Math.max(of.height * TENSOR.height, LEAST),
        }),
      );
    }
    return group;
  }

  function draw(explained, step, width) {
    const held = new Map(explained.memory.map((of) => [of.slot, of.bytes]));
    const fitting = Math.max(1, Math.floor((width + GAP) / (WIDTH + GAP)));
    const columns = Math.min(fitting, explained.slots.length);
    const rows = Math.ceil(explained.slots.length / columns);
    node.setAttribute('viewBox', `-1 -1 ${columns * (WIDTH + GAP) - GAP + 2} ${rows * (HEIGHT + GAP) - GAP + 2}`);
    node.setAttribute('width', columns * (WIDTH + GAP) - GAP);
    const boxes = explained.slots.map((slot, at) => box(slot, at, columns, step?.output, held.get(slot.slot) ?? 0));
    node.replaceChildren(...boxes);
    const output = step ? `${step.output.placement} on ${ranges(step.output.slots)}` : '';
    const where = step ? `; the output of ${step.operation}: ${output}` : '';
    node.setAttribute('aria-label', `${explained.slots.length} slots${where}`);
  }

  return { node, draw };
}
