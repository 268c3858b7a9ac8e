// Compares the index of the timeline's rows with loops over all spans, for random recordings.
// Returns the number of comparisons; a difference is an error.
async (seed) => {
  const { Recording } = await import('/timeline/recording.js');
  const random = () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
  const expect = (found, wanted, what) => {
    if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${found} instead of ${wanted}`);
  };

  function recording(counts, longOnes) {
    const [all, rows] = [[], []];
    for (const count of counts) {
      rows.push({ part: 'worker', name: 'w', start: all.length });
      const row = Array.from({ length: count }, () => {
        const begin = Math.floor(random() * 1000) / 100;
        return [begin, begin + (random() < 0.1 ? 0 : random() * (random() < longOnes ? 5 : 0.01))];
      });
      all.push(...row.sort((a, b) => a[0] - b[0] || b[1] - a[1]));
    }
    const kinds = Array.from({ length: 14 }, (_, colour) => ({ name: `k${colour}`, colour, session: colour % 3, session_name: null, failed: false }));
    const header = { spans: all.length, moves: 0, rows, kinds, colours: kinds, begin: 0, end: 15, session: null };
    return new Recording(header, {
      begin: Float64Array.from(all, ([begin]) => begin),
      end: Float64Array.from(all, ([, end]) => end),
      kind: Uint32Array.from(all, () => Math.floor(random() * kinds.length)),
      count: new Uint32Array(all.length).fill(1),
    }, { sent: new Float64Array(0), received: new Float64Array(0) });
  }

  function compare({ index }, { spans: { begin, end }, colour, colours }) {
    const [from, least] = [random() * 10, random() < 0.3 ? 0 : random() * 0.02];
    const to = from + random() * random() * 5;
    const places = Array.from({ length: index.to - index.from }, (_, at) => index.from + at);
    const duration = (span) => end[span] - begin[span];
    const seen = places.filter((span) => begin[span] < to && end[span] >= from);
    const visited = [];
    index.forEach(from, to, least, (span) => visited.push(span));
    expect(visited, seen.filter((span) => duration(span) >= least), 'forEach');
    const first = index.firstFrom(from);
    const last = index.firstFrom(to, first);
    expect([first, last], [from, to].map((time) => index.from + places.filter((span) => begin[span] < time).length), 'firstFrom');
    const sums = new Float64Array(colours.length);
    index.addDurations(first, last, sums);
    for (let span = first; span < last; span += 1) sums[colour[span]] -= duration(span);
    if (sums.some((sum) => Math.abs(sum) > 1e-9)) throw new Error(`addDurations: off by ${sums}`);
    const longest = seen.map(duration).sort((a, b) => b - a).slice(0, 20);
    expect(index.longest(from, to, 20).map(duration), longest, 'longest');
  }

  let compared = 0;
  for (const counts of [[0, 1, 31, 32, 33], [1024, 1025, 9000]]) {
    for (const longOnes of [0.01, 0.5]) {
      const made = recording(counts, longOnes);
      for (const session of [null, 1]) {
        made.highlight(session);
        for (let time = 0; time < 20; time += 1) {
          for (const row of made.rows) {
            compare(row, made);
            compared += 1;
          }
        }
      }
    }
  }
  return compared;
}
