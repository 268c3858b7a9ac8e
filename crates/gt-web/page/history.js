// The last minutes, as this page has seen them.

const MOST = 1200;

/** Samples of rates and memory, the newest last. */
export class History {
  samples = [];

  /** Adds a status. The first one after a pause has no rates. */
  add(status) {
    const time = Date.now() / 1000;
    const isFirst = this.samples.length === 0 || time - this.samples.at(-1).time > 5;
    const busy = status.workers.reduce((sum, worker) => sum + 1 - worker.idle, 0);
    this.samples.push({
      time,
      rate: isFirst ? null : status.sessions.reduce((sum, session) => sum + session.rate, 0),
      busy: isFirst || status.workers.length === 0 ? null : busy / status.workers.length,
      bytes: status.workers.reduce((sum, worker) => sum + (worker.bytes ?? 0), 0),
      sessions: new Map(status.sessions.map(({ number, rate, used, bytes }) => [number, { rate, used, bytes }])),
    });
    if (this.samples.length > MOST) this.samples.shift();
  }

  /** Draws a gap: what happened meanwhile is not known. */
  addGap() {
    const last = this.samples.at(-1);
    if (last && last.rate !== null) {
      this.samples.push({ time: Date.now() / 1000, rate: null, busy: null, bytes: null, sessions: new Map() });
    }
  }
}
