//! Builds a timeline from the lines of a log.
//!
//! Lines with a beginning and an end are spans. In logs without such lines, a command lasts from
//! when it was sent to a worker until the worker has answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gt_ir::event::Activity;
use gt_ir::operation::Operation;
use rustc_hash::{FxHashMap, FxHashSet};

use super::line::Line;
use super::{Colour, Move, Party, Row, Span, Timeline};

/// A timeline under construction.
#[derive(Default)]
pub struct TimelineBuilder {
    pub(super) timeline: Timeline,
    texts: Texts,
    rows: BTreeMap<Row, usize>,
    /// The commands that each worker has not answered yet, in logs without durations.
    open: FxHashMap<usize, VecDeque<Span>>,
    /// When each worker answered last: it runs commands in order.
    answered: FxHashMap<usize, f64>,
    /// Sent blocks, by transfer, session and workers: row, time and size.
    sent: FxHashMap<(u64, String), (usize, f64, u64)>,
    /// Received blocks: row, time and size. Either end may be logged first.
    received: Vec<((u64, String), (usize, f64, u64))>,
    /// The spans of answered commands, in logs without durations.
    paired: Vec<Span>,
    /// The names of sessions, by number: a client's name ends with it.
    sessions: FxHashMap<u64, Arc<str>>,
    has_times: bool,
}

impl TimelineBuilder {
    /// Returns the bytes of the different names and texts so far: they are stored once each.
    pub fn text_bytes(&self) -> usize {
        self.texts.bytes
    }

    fn row(&mut self, part: Party, name: &str) -> usize {
        let row = Row { part, name: name.to_string() };
        let next = self.rows.len();
        *self.rows.entry(row).or_insert(next)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Its values are inconsistent, such as an end before its beginning.
    pub fn add(&mut self, line: &Line) -> Result<(), String> {
        let row = match line.event {
            // The log names the client of the batch.
            "PLAN" | "QUEUE" => self.row(Party::Dispatcher, "dispatcher"),
            _ if line.is_worker => self.row(Party::Worker, line.party),
            _ => self.row(Party::Client, &session_name(line.party)),
        };
        if !line.is_worker
            && let Some((_, number)) = line.party.rsplit_once('#')
            && let Ok(number) = number.parse()
        {
            self.sessions.entry(number).or_insert_with(|| session_name(line.party).into());
        }
        let times = line.number::<f64>("begin").zip(line.number::<f64>("end"));
        let (begin, end) = times.unwrap_or((line.elapsed, line.elapsed));
        if !(begin >= 0.0 && end >= begin && end.is_finite()) {
            return Err(format!("begin={begin} and end={end} are no times of one event"));
        }
        let span = Span {
            row,
            begin,
            end,
            colour: colour(line),
            name: self.texts.intern(&name(line)),
            id: line.number("result").or_else(|| line.number("tensor")),
            count: line.number("count").unwrap_or(1),
            bytes: line.bytes,
            session: line.number("session"),
            session_name: None,
            steps: line.detail("steps").map(|text| self.texts.intern(text)),
            lines: line.detail("lines").map(|text| self.texts.intern(text)),
            failed: line.detail("success") == Some("False") || line.event == "ERROR",
        };
        if times.is_some() {
            self.has_times = true;
            self.note_move(line, &span);
            self.timeline.spans.push(span);
            return Ok(());
        }
        match line.event {
            "WORKER_SEND" | "WORKER_RECV" if self.has_times => {}
            "WORKER_SEND" => self.open.entry(row).or_default().push_back(span),
            "WORKER_RECV" if line.command != "Link" => {
                let sent = self.open.get_mut(&row).and_then(VecDeque::pop_front);
                if let Some(sent) = sent {
                    let (end, failed) = (line.elapsed, span.failed);
                    let before = self.answered.insert(row, end).unwrap_or(0.0);
                    let begin = sent.begin.max(before).min(end);
                    self.paired.push(Span { begin, end, failed, ..sent });
                }
            }
            // A message without a duration is a moment on its client's row.
            "RECV" | "SEND" | "ERROR" => self.timeline.spans.push(span),
            _ => {}
        }
        Ok(())
    }

    /// Records one end of a transfer.
    fn note_move(&mut self, line: &Line, span: &Span) {
        let Some(transfer) = line.number::<u64>("transfer") else { return };
        let session = line.number::<u32>("session").unwrap_or_default();
        if let Some(to) = line.detail("to") {
            let sent = (span.row, span.begin, span.bytes);
            self.sent.insert((transfer, format!("{session} {} {to}", line.party)), sent);
        } else if let Some(from) = line.detail("from") {
            let way = (transfer, format!("{session} {from} {}", line.party));
            self.received.push((way, (span.row, span.begin, span.bytes)));
        }
    }

    /// Pairs the ends of transfers.
    fn join_moves(&mut self) {
        for (way, (to, received, size)) in std::mem::take(&mut self.received) {
            if let Some((from, sent, bytes)) = self.sent.remove(&way) {
                let (bytes, transfer) = (bytes.max(size), way.0);
                self.timeline.moves.push(Move { from, sent, to, received, bytes, transfer });
            }
        }
    }

    /// Returns the timeline, with sorted rows.
    pub fn finish(mut self) -> Timeline {
        self.join_moves();
        let mut places = vec![0; self.rows.len()];
        for (place, (row, number)) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            places[number] = place;
            self.timeline.rows.push(row);
        }
        if !self.has_times {
            self.timeline.spans.append(&mut self.paired);
        }
        for span in &mut self.timeline.spans {
            span.row = places[span.row];
            span.session_name =
                span.session.and_then(|session| self.sessions.get(&session).cloned());
        }
        for moved in &mut self.timeline.moves {
            (moved.from, moved.to) = (places[moved.from], places[moved.to]);
        }
        self.timeline.spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        self.timeline
    }
}

/// The different texts: the same few recur in most spans.
#[derive(Default)]
struct Texts {
    known: FxHashSet<Arc<str>>,
    bytes: usize,
}

impl Texts {
    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        self.known.insert(Arc::clone(&text));
        text
    }
}

/// Returns the title of a line's span.
fn name(line: &Line) -> String {
    let command = line.command.strip_prefix("Worker").unwrap_or(line.command);
    match (line.event, line.detail("op")) {
        ("COMPILE", _) => "compile".into(),
        ("ISSUE", _) => "issue".into(),
        ("PLAN", _) => "plan".into(),
        ("QUEUE", _) => "queue".into(),
        (_, Some(operation)) => operation.to_string(),
        _ => match command {
            "CreateTensor" => "create".into(),
            "GetData" => "fetch".into(),
            "Read" => "read".into(),
            "FreeTensor" => "free".into(),
            "HotPath" | "HotPathStart" | "HotPathEnd" => {
                match (line.detail("steps"), line.detail("number")) {
                    (Some(steps), _) => format!("hot path {steps}"),
                    (None, Some(number)) => format!("hot path {number}"),
                    (None, None) => "hot path".into(),
                }
            }
            other => other.to_string(),
        },
    }
}

fn colour(line: &Line) -> Colour {
    match line.event {
        "COMPILE" => return Colour::Compile,
        "ISSUE" => return Colour::Issue,
        "PLAN" => return Colour::Plan,
        "QUEUE" => return Colour::Queue,
        "MOVE" => return Colour::Move,
        "RECV" | "SEND" | "ERROR" | "CONNECT" | "DISCONNECT" => return Colour::Link,
        _ => {}
    }
    if let Some(operation) = line.detail("op").and_then(Operation::from_name) {
        return Colour::of(Activity::of(operation.family));
    }
    match line.command.strip_prefix("Worker").unwrap_or(line.command) {
        "GetData" | "Read" => Colour::Read,
        "HotPath" | "HotPathStart" | "HotPathEnd" | "Batch" => Colour::HotPath,
        "BinaryOp" | "UnaryOp" | "TernaryOp" => Colour::Elementwise,
        "ReshapeOp" | "SliceOp" | "ConcatOp" => Colour::Shape,
        _ => Colour::Create,
    }
}

/// Returns the name of a session from the log, which has it as one word: `train.py/ada@box/#3`.
fn session_name(party: &str) -> String {
    let mut parts = party.rsplitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(number), Some(user), Some(program)) if number.starts_with('#') => {
            format!("{program} {user} {number}")
        }
        _ => party.to_string(),
    }
}
