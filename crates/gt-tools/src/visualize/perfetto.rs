//! A timeline as Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing show.
//!
//! Each part is a process and each row a thread of it. A row's spans are nested by their times;
//! waiting batches overlap each other, so they are asynchronous; transfers are flows.

use std::io::{Result, Write};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::timeline::{Colour, Move, Party, Span, Timeline};

/// Writes the JSON.
pub fn write(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let mut writer = TraceWriter { out, is_first: true };
    write!(writer.out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    for part in [Party::Client, Party::Dispatcher, Party::Worker] {
        let name = format!("{}s", part.name()).replace("dispatchers", "dispatcher");
        let process = process(part);
        let args = json!({ "name": name });
        writer
            .event(&json!({ "ph": "M", "name": "process_name", "pid": process, "args": args }))?;
        let order = json!({ "sort_index": process });
        writer.event(
            &json!({ "ph": "M", "name": "process_sort_index", "pid": process, "args": order }),
        )?;
    }
    for (thread, row) in timeline.rows.iter().enumerate() {
        let (process, args) = (process(row.part), json!({ "name": row.name }));
        let name = "thread_name";
        writer.event(
            &json!({ "ph": "M", "name": name, "pid": process, "tid": thread, "args": args }),
        )?;
    }
    let mut nesting = vec![Nesting::default(); timeline.rows.len()];
    // The slices of transfers, by row and beginning.
    let mut placed: FxHashMap<(usize, u64), u64> = FxHashMap::default();
    for (number, span) in timeline.spans.iter().enumerate() {
        let process = process(timeline.rows[span.row].part);
        let times = if is_slice(span) {
            let times = nesting[span.row].place(span);
            if span.colour == Colour::Move {
                placed.insert((span.row, nanos(span.begin)), times.0);
            }
            times
        } else {
            (nanos(span.begin), nanos(span.end))
        };
        let events = span_events(span, times, process, number);
        events.iter().try_for_each(|event| writer.event(event))?;
    }
    for (number, moved) in timeline.moves.iter().enumerate() {
        let place = |row, time| placed.get(&(row, nanos(time))).copied().unwrap_or(nanos(time));
        let sent = place(moved.from, moved.sent);
        // If a clock was set meanwhile, a block still arrives after it was sent.
        let times = (sent, place(moved.to, moved.received).max(sent));
        flow_events(moved, times, number).iter().try_for_each(|event| writer.event(event))?;
    }
    writeln!(writer.out, "\n]}}")
}

struct TraceWriter<'a, W> {
    out: &'a mut W,
    is_first: bool,
}

impl<W: Write> TraceWriter<'_, W> {
    fn event(&mut self, event: &Value) -> Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        write!(self.out, "{separator}{event}")
    }
}

fn process(part: Party) -> u32 {
    match part {
        Party::Client => 1,
        Party::Dispatcher => 2,
        Party::Worker => 3,
    }
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Returns whether a span is drawn as a slice of its row.
fn is_slice(span: &Span) -> bool {
    match span.colour {
        Colour::Queue => false,
        Colour::Link => span.end > span.begin,
        _ => true,
    }
}

/// The slices of a row that have not ended yet: each is within the one before it.
#[derive(Clone, Default)]
struct Nesting {
    ends: Vec<u64>,
    /// When the last one begins.
    last: u64,
}

impl Nesting {
    /// Places a slice that begins after all before it. Of two that overlap in part, as when a clock
    /// was set between them, the second begins where the first ends. No slice is empty, as an empty
    /// one cannot hold the end of a flow.
    fn place(&mut self, span: &Span) -> (u64, u64) {
        let mut begin = nanos(span.begin).max(self.last);
        let mut end = nanos(span.end).max(begin + 1);
        while let Some(&open) = self.ends.last() {
            if end <= open && begin < open {
                break;
            }
            begin = begin.max(open.min(end));
            end = end.max(begin + 1);
            self.ends.pop();
        }
        self.ends.push(end);
        self.last = begin;
        (begin, end)
    }
}

fn span_events(span: &Span, (begin, end): (u64, u64), process: u32, number: usize) -> Vec<Value> {
    let session = span.session_name.as_deref().map(str::to_string);
    let session = session.or_else(|| Some(format!("#{}", span.session?)));
    let args = json!({
        "instruction": span.id,
        "count": span.count,
        "bytes": span.bytes,
        "session": session,
        "steps": span.steps.as_deref(),
        "lines": span.lines.as_deref(),
        "failed": span.failed,
    });
    let length = micros(end - begin);
    let (begin, end) = (micros(begin), micros(end));
    let (name, kind, thread) = (&*span.name, span.colour.name(), span.row);
    let base = json!({ "name": name, "cat": kind, "pid": process, "tid": thread, "ts": begin });
    let with = |more: Value| {
        let mut event = base.clone();
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        event
    };
    match span.colour {
        Colour::Queue => vec![
            with(json!({ "ph": "b", "id": number, "args": args })),
            with(json!({ "ph": "e", "id": number, "ts": end })),
        ],
        Colour::Link if end <= begin => vec![with(json!({ "ph": "i", "s": "t", "args": args }))],
        _ => vec![with(json!({ "ph": "X", "dur": length, "args": args }))],
    }
}

/// Writes the flow of a transfer, from the slice that sent it to the slice that received it.
fn flow_events(moved: &Move, (sent, received): (u64, u64), number: usize) -> [Value; 2] {
    let worker = process(Party::Worker);
    let (sent, received) = (micros(sent), micros(received));
    let base = |phase: &str, thread: usize, time: f64| {
        json!({ "ph": phase, "name": "move", "cat": "move", "id": number, "pid": worker,
                "tid": thread, "ts": time, "bp": "e" })
    };
    [base("s", moved.from, sent), base("f", moved.to, received)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Row;

    fn span(begin: f64, end: f64) -> Span {
        Span {
            row: 0,
            begin,
            end,
            colour: Colour::Matmul,
            name: "matmul".into(),
            id: None,
            count: 1,
            bytes: 0,
            session: None,
            session_name: None,
            steps: None,
            lines: None,
            failed: false,
        }
    }

    /// Returns the slices of a row, in nanoseconds.
    fn slices(spans: Vec<Span>) -> Vec<(i64, i64)> {
        let rows = vec![Row { part: Party::Worker, name: "w".into() }];
        let timeline = Timeline { rows, spans, ..Timeline::default() };
        let mut out = Vec::new();
        write(&timeline, &mut out).expect("writing to memory works");
        let read: Value = serde_json::from_slice(&out).expect("it is JSON");
        let events = read["traceEvents"].as_array().expect("a list").iter();
        let nanos = |value: &Value| (value.as_f64().expect("a number") * 1e3).round() as i64;
        let slices = events.filter(|event| event["ph"] == "X");
        slices
            .map(|slice| (nanos(&slice["ts"]), nanos(&slice["ts"]) + nanos(&slice["dur"])))
            .collect()
    }

    #[test]
    fn slices_follow_or_hold_each_other() {
        let spans = [(0.0, 5e-6), (1e-6, 2e-6), (4e-6, 7e-6), (6.5e-6, 6.5e-6), (7e-6, 9e-6)];
        let found = slices(spans.map(|(begin, end)| span(begin, end)).to_vec());
        assert_eq!(found, [(0, 5000), (1000, 2000), (5000, 7000), (6500, 6501), (7000, 9000)]);
    }

    #[test]
    fn any_slices_nest() {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % 40
        };
        for _ in 0..200 {
            let mut spans: Vec<Span> = (0..12)
                .map(|_| {
                    let begin = random();
                    span(begin as f64 * 1e-9, (begin + random() / 4) as f64 * 1e-9)
                })
                .collect();
            spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
            let found = slices(spans);
            for (place, a) in found.iter().enumerate() {
                for b in &found[place + 1..] {
                    let apart = b.0 >= a.1;
                    let within = a.0 <= b.0 && b.1 <= a.1;
                    assert!(a.0 <= b.0 && (apart || within), "{a:?} {b:?} in {found:?}");
                }
            }
        }
    }
}
