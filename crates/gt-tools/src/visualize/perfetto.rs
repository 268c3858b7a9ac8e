//! A timeline as Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing show.
//!
//! Each part is a process and each lane a thread of it. What a lane does is nested by its times;
//! batches that wait overlap each other, so they are asynchronous; moves are flows.

use std::io::{Result, Write};

use serde_json::{Value, json};

use crate::timeline::{Colour, Move, Part, Span, Timeline};

/// Writes the JSON.
pub fn write(timeline: &Timeline, out: &mut impl Write) -> Result<()> {
    let mut writer = Writer { out, is_first: true };
    write!(writer.out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    for part in [Part::Client, Part::Dispatcher, Part::Worker] {
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
    for (thread, lane) in timeline.lanes.iter().enumerate() {
        let (process, args) = (process(lane.part), json!({ "name": lane.name }));
        let name = "thread_name";
        writer.event(
            &json!({ "ph": "M", "name": name, "pid": process, "tid": thread, "args": args }),
        )?;
    }
    for (number, span) in timeline.spans.iter().enumerate() {
        let process = process(timeline.lanes[span.lane].part);
        span_events(span, process, number).iter().try_for_each(|event| writer.event(event))?;
    }
    for (number, moved) in timeline.moves.iter().enumerate() {
        flow_events(moved, number).iter().try_for_each(|event| writer.event(event))?;
    }
    writeln!(writer.out, "\n]}}")
}

struct Writer<'a, W> {
    out: &'a mut W,
    is_first: bool,
}

impl<W: Write> Writer<'_, W> {
    fn event(&mut self, event: &Value) -> Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        write!(self.out, "{separator}{event}")
    }
}

fn process(part: Part) -> u32 {
    match part {
        Part::Client => 1,
        Part::Dispatcher => 2,
        Part::Worker => 3,
    }
}

/// Microseconds, to a nanosecond.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}

fn span_events(span: &Span, process: u32, number: usize) -> Vec<Value> {
    let args = json!({
        "instruction": span.id,
        "count": span.count,
        "bytes": span.bytes,
        "session": span.session,
        "failed": span.failed,
    });
    let (begin, end) = (micros(span.begin), micros(span.end));
    let (name, kind, thread) = (&span.name, span.colour.name(), span.lane);
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
        _ => {
            // A slice of no length holds no end of a flow.
            let length = ((end - begin).max(1e-3) * 1e3).round() / 1e3;
            vec![with(json!({ "ph": "X", "dur": length, "args": args }))]
        }
    }
}

/// A move's flow, from the slice in which it was sent to the one in which it was taken.
fn flow_events(moved: &Move, number: usize) -> [Value; 2] {
    let worker = process(Part::Worker);
    let (sent, received) = (micros(moved.sent), micros(moved.received));
    let base = |phase: &str, thread: usize, time: f64| {
        json!({ "ph": phase, "name": "move", "cat": "move", "id": number, "pid": worker,
                "tid": thread, "ts": time, "bp": "e" })
    };
    [base("s", moved.from, sent), base("f", moved.to, received)]
}
