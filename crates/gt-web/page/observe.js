// What a view follows while it is shown: sizes and colours. Its signal ends that.

/** Calls a function when the size of an element has changed, until a signal is aborted. */
export function onResize(of, call, ends) {
  const observer = new ResizeObserver(call);
  observer.observe(of);
  ends.addEventListener('abort', () => observer.disconnect());
}

/** Returns a colour of the page by its name, as `--line`, in the browser's light or dark theme. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Calls a function when the browser becomes dark or light, until a signal is aborted. */
export function onScheme(call, ends) {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', call, { signal: ends });
}
