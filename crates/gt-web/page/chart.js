// Charts of the last minutes, and of the last hour.

import uPlot from './vendor/uplot/uPlot.esm.js';
import { element, setText } from './elements.js';
import { colour, onResize, onScheme } from './observe.js';

const HEIGHT = 150;
/** The seconds between the times that are written below a chart. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800];

/** 14:05:30 */
export function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString('en-GB');
}

/**
 * Makes a chart of one value, until a signal is aborted. `value` returns it from a sample of the
 * history, or null; `text` shows one. The caption says what the chart shows, for those who do not see it.
 */
export function chart(ends, title, value, text, most = null) {
  const plotted = element('div', { class: 'plot', 'aria-hidden': 'true' });
  const summary = element('span', { class: 'summary' });
  const node = element('figure', {}, element('figcaption', {}, `${title} `, summary), plotted);
  let plot = null;
  let samples = [];

  function data() {
    return [samples.map((sample) => sample.time), samples.map((sample) => value(sample) ?? null)];
  }

  function draw() {
    plot?.destroy();
    const line = colour('--line');
    const axis = { stroke: colour('--dim'), grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    plot = new uPlot({
      width: Math.max(plotted.clientWidth, 120),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, __, max) => [0, most ?? Math.max(max * 1.1, 10)] } },
      axes: [{ ...axis, space: 90, incrs: STEPS, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 76, values: (_, ticks) => ticks.map(text) }],
      series: [{}, { stroke: colour('--accent'), fill: colour('--accent-faint'), width: 1.5, points: { show: false } }],
    }, data(), plotted);
  }

  onResize(plotted, () => {
    if (plot && plotted.clientWidth > 0) plot.setSize({ width: plotted.clientWidth, height: HEIGHT });
  }, ends);
  onScheme(() => plot && draw(), ends);
  // It listens to the window.
  ends.addEventListener('abort', () => plot?.destroy());

  function update(history) {
    samples = history.samples;
    const known = samples.map(value).filter((of) => of !== null && of !== undefined);
    const said = known.length === 0 ? '–' : `now ${text(known.at(-1))}, at most ${text(Math.max(...known))}`;
    setText(summary, said);
    if (plot) plot.setData(data());
    else if (plotted.isConnected) draw();
  }

  return { node, update };
}
