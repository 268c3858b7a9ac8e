// Zooming and panning by wheel, pointers and keys.

/** The factor of one press of a key or a button, and the part of what is seen that one moves by. */
export const FACTOR = 0.6;
const PART = 0.15;
/** Zooming by a wheel: the exponent for each pixel that it turns, and the pixels of a line of text. */
const WHEEL = 0.002;
const LINE = 16;
/** A press that moves by fewer pixels is a click. */
const CLICK = 4;

/**
 * Has a canvas react. `area()` returns x and width of the part that has times, `range()` the range,
 * `changed()` is called after the range has changed; `point(x, y)` while a pointer is over it (null
 * when it leaves), `click(x, y)` at a click, `scroll(pixels)` for rows, and `key(name)`, which returns
 * whether it knows a key, for other keys.
 */
export function react(canvas, { area, range, changed, point, click, scroll, key }) {
  const timeAt = (x) => {
    const { x: left, width } = area();
    return range().from + ((x - left) / width) * range().width;
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const pan = (pixels) => {
    range().pan((pixels / area().width) * range().width);
    changed();
  };

  canvas.addEventListener('wheel', (event) => {
    if (!range()) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? LINE : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan((event.deltaX || event.deltaY) * unit);
    } else {
      // Pinching a touchpad sends small steps with the control key.
      range().zoom(Math.exp(event.deltaY * unit * (event.ctrlKey ? 5 : 1) * WHEEL), timeAt(place(event)[0]));
      changed();
    }
  }, { passive: false });

  const pointers = new Map();
  let begun = null;
  let moved = false;
  canvas.addEventListener('pointerdown', (event) => {
    if (!range() || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    moved = pointers.size > 1;
    begun = place(event);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!range()) return;
    const [x, y] = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      point(x, y);
      return;
    }
    if (Math.hypot(x - begun[0], y - begun[1]) > CLICK) moved = true;
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, [x, y]);
    if (other) {
      const [was, is] = [Math.abs(before[0] - other[0]), Math.abs(x - other[0])];
      if (was > 8 && is > 8) range().zoom(was / is, timeAt((x + other[0]) / 2));
      changed();
    } else if (moved) {
      pan(before[0] - x);
      scroll(before[1] - y);
    }
  });
  const end = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (event.type === 'pointerup' && !moved) click(...place(event));
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', () => point(null, null));

  const keys = {
    ArrowLeft: () => range().pan(-PART * range().width),
    ArrowRight: () => range().pan(PART * range().width),
    a: () => range().pan(-PART * range().width),
    d: () => range().pan(PART * range().width),
    '+': () => range().zoom(FACTOR),
    '=': () => range().zoom(FACTOR),
    w: () => range().zoom(FACTOR),
    '-': () => range().zoom(1 / FACTOR),
    s: () => range().zoom(1 / FACTOR),
    0: () => range().show(0, range().length),
    Home: () => range().pan(-range().length),
    End: () => range().pan(range().length),
  };
  canvas.addEventListener('keydown', (event) => {
    if (!range() || event.ctrlKey || event.metaKey || event.altKey) return;
    const does = keys[event.key];
    if (does) {
      does();
      changed();
    }
    if (does || key(event.key)) event.preventDefault();
  });
}
