// An index of a row's spans, by which drawing costs what is seen, whatever the number of spans.
//
// Spans are sorted by their beginnings. A tree has the longest duration and the latest end of each
// block of spans, so that those which are wide enough to be seen are found without the others. Sums
// of durations by colour, from the row's beginning to each block, are subtracted from one another.

/** The spans of a block of the tree, and of one of the sums, which are needed for each column. */
const BLOCK = 32;
const SUMMED = 8;

export class RowIndex {
  constructor(recording, from, to) {
    this.recording = recording;
    this.from = from;
    this.to = to;
    this.levels = [];
    const { begin, end } = recording.spans;
    let count = to - from;
    while (count > 1 || this.levels.length === 0) {
      const below = this.levels.at(-1);
      const blocks = Math.ceil(count / BLOCK);
      const level = { longest: new Float64Array(blocks), latest: new Float64Array(blocks).fill(-Infinity) };
      for (let at = 0; at < count; at += 1) {
        const block = Math.floor(at / BLOCK);
        const longest = below ? below.longest[at] : end[from + at] - begin[from + at];
        const latest = below ? below.latest[at] : end[from + at];
        if (longest > level.longest[block]) level.longest[block] = longest;
        if (latest > level.latest[block]) level.latest[block] = latest;
      }
      this.levels.push(level);
      count = blocks;
    }
  }

  /** Adds up durations by colour, after spans have other colours. */
  addUp() {
    const { colour, colours, spans: { begin, end } } = this.recording;
    const width = colours.length;
    const blocks = Math.ceil((this.to - this.from) / SUMMED);
    this.sums = new Float64Array((blocks + 1) * width);
    const sum = new Float64Array(width);
    for (let block = 0; block < blocks; block += 1) {
      this.sums.set(sum, block * width);
      const last = Math.min(this.from + (block + 1) * SUMMED, this.to);
      for (let at = this.from + block * SUMMED; at < last; at += 1) sum[colour[at]] += end[at] - begin[at];
    }
    this.sums.set(sum, blocks * width);
  }

  /** Returns the first span from `low` on that begins at a time or later, or else `high`. */
  firstFrom(time, low = this.from, high = this.to) {
    const { begin } = this.recording.spans;
    // It is often among the next ones.
    for (let step = 1; low + step < high; step *= 4) {
      if (begin[low + step] >= time) {
        high = low + step;
        break;
      }
      low += step;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (begin[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The seconds of its spans, other than those that wait. */
  busy() {
    const { colours } = this.recording;
    const sums = this.sums.subarray(-colours.length);
    return sums.reduce((sum, seconds, of) => (colours[of].name === 'queue' ? sum : sum + seconds), 0);
  }

  /** The number of instructions that its spans stand for. */
  instructions() {
    return this.recording.spans.count.subarray(this.from, this.to).reduce((sum, count) => sum + count, 0);
  }

  /** Adds the durations of spans from `first` to before `last` to the sums of their colours. */
  addDurations(first, last, sums) {
    const low = Math.ceil((first - this.from) / SUMMED);
    const high = Math.floor((last - this.from) / SUMMED);
    if (high <= low) {
      this.addEach(first, last, sums);
      return;
    }
    const width = sums.length;
    for (let of = 0; of < width; of += 1) sums[of] += this.sums[high * width + of] - this.sums[low * width + of];
    this.addEach(first, this.from + low * SUMMED, sums);
    this.addEach(this.from + high * SUMMED, last, sums);
  }

  addEach(first, last, sums) {
    const { colour, spans: { begin, end } } = this.recording;
    for (let at = first; at < last; at += 1) sums[colour[at]] += end[at] - begin[at];
  }

  /**
   * Calls `visit` with the spans that are seen between two times and that last for `least` or longer,
   * in the order of their beginnings.
   */
  forEach(from, to, least, visit) {
    this.descend(this.levels.length - 1, 0, this.firstFrom(to) - this.from, from, least, visit);
  }

  descend(level, place, limit, from, least, visit) {
    const first = place * BLOCK;
    const { begin, end } = this.recording.spans;
    if (level < 0) return;
    const { longest, latest } = this.levels[level];
    if (place >= longest.length || longest[place] < least || latest[place] < from) return;
    for (let at = first; at < first + BLOCK && at * BLOCK ** level < limit; at += 1) {
      if (level > 0) {
        this.descend(level - 1, at, limit, from, least, visit);
      } else {
        const span = this.from + at;
        if (end[span] - begin[span] >= least && end[span] >= from) visit(span);
      }
    }
  }

  /** Returns the longest spans that are seen between two times, the longest first. */
  longest(from, to, count) {
    const limit = this.firstFrom(to) - this.from;
    const { begin, end } = this.recording.spans;
    const found = [];
    const duration = (span) => end[span] - begin[span];
    const add = (span) => {
      let place = found.length;
      while (place > 0 && duration(found[place - 1]) < duration(span)) place -= 1;
      found.splice(place, 0, span);
      if (found.length > count) found.pop();
    };
    // The best blocks come first, so that most of the others are not looked at.
    const search = (level, place) => {
      const least = () => (found.length < count ? -1 : duration(found.at(-1)));
      const places = [];
      for (let at = place * BLOCK; at < (place + 1) * BLOCK && at * BLOCK ** level < limit; at += 1) places.push(at);
      if (level === 0) {
        for (const at of places) {
          const span = this.from + at;
          if (end[span] >= from && duration(span) > least()) add(span);
        }
        return;
      }
      const { longest, latest } = this.levels[level - 1];
      places.sort((a, b) => longest[b] - longest[a]);
      for (const at of places) {
        if (longest[at] > least() && latest[at] >= from) search(level - 1, at);
      }
    };
    search(this.levels.length - 1, 0);
    return found;
  }
}
