//! A log as a timeline: spans on rows.
//!
//! - [`mod@line`]: one line of a log; [`read`]: all lines of a log file; [`TimelineBuilder`]: lines as
//!   they come.

mod build;
pub mod line;
mod read;

use std::sync::Arc;

use gt_ir::event::Activity;

pub use build::TimelineBuilder;
pub use read::read;

/// A timeline: rows, spans and moves of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    pub rows: Vec<Row>,
    pub spans: Vec<Span>,
    pub moves: Vec<Move>,
    /// The incomplete last line of a log, if any.
    pub cut_off: bool,
}

/// A client, the dispatcher or a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub part: Party,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Client,
    Dispatcher,
    Worker,
}

impl Party {
    pub const fn name(self) -> &'static str {
        match self {
            Party::Client => "client",
            Party::Dispatcher => "dispatcher",
            Party::Worker => "worker",
        }
    }
}

/// A span of time, or a moment. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The row's index.
    pub row: usize,
    pub begin: f64,
    pub end: f64,
    pub colour: Colour,
    /// The operation, or another kind of event.
    pub name: Arc<str>,
    /// The instruction: its result, as its client names it.
    pub id: Option<u64>,
    /// The number of instructions that it stands for.
    pub count: u64,
    pub bytes: u64,
    pub session: Option<u64>,
    /// The name of the session, if the log has it.
    pub session_name: Option<Arc<str>>,
    /// The operations of a hot path, and the user's lines, as the log lists them.
    pub steps: Option<Arc<str>>,
    pub lines: Option<Arc<str>>,
    pub failed: bool,
}

/// The transfer of a block from one worker to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub from: usize,
    pub sent: f64,
    pub to: usize,
    pub received: f64,
    pub bytes: u64,
    pub transfer: u64,
}

/// Kinds of work, each drawn in its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Colour {
    Create,
    Elementwise,
    Reduce,
    Matmul,
    Shape,
    Index,
    HotPath,
    Move,
    Compile,
    Read,
    Issue,
    Plan,
    Queue,
    Link,
}

impl Colour {
    pub const ALL: [Colour; 14] = [
        Colour::Create,
        Colour::Elementwise,
        Colour::Reduce,
        Colour::Matmul,
        Colour::Shape,
        Colour::Index,
        Colour::HotPath,
        Colour::Move,
        Colour::Compile,
        Colour::Read,
        Colour::Issue,
        Colour::Plan,
        Colour::Queue,
        Colour::Link,
    ];

    /// The colour of what a worker does.
    pub const fn of(activity: Activity) -> Colour {
        match activity {
            Activity::Create => Colour::Create,
            Activity::Elementwise => Colour::Elementwise,
            Activity::Reduce => Colour::Reduce,
            Activity::Matmul => Colour::Matmul,
            Activity::Shape => Colour::Shape,
            Activity::Index => Colour::Index,
            Activity::Move => Colour::Move,
            Activity::Compile => Colour::Compile,
            Activity::Read => Colour::Read,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Colour::Create => "create",
            Colour::Elementwise => "elementwise",
            Colour::Reduce => "reduce",
            Colour::Matmul => "matmul",
            Colour::Shape => "shape",
            Colour::Index => "index",
            Colour::HotPath => "hot path",
            Colour::Move => "move",
            Colour::Compile => "compile",
            Colour::Read => "read",
            Colour::Issue => "issue",
            Colour::Plan => "plan",
            Colour::Queue => "queue",
            Colour::Link => "message",
        }
    }

    /// Returns red, green and blue: neighbouring hues that colour-blind readers can distinguish,
    /// after Okabe and Ito's palette.
    pub const fn rgb(self) -> [u8; 3] {
        match self {
            Colour::Create => [0x94, 0x94, 0x94],
            Colour::Elementwise => [0x00, 0x9e, 0x73],
            Colour::Reduce => [0x56, 0xb4, 0xe9],
            Colour::Matmul => [0x00, 0x72, 0xb2],
            Colour::Shape => [0xb3, 0xa3, 0x69],
            Colour::Index => [0x8c, 0x6b, 0xb1],
            Colour::HotPath => [0xec, 0xd4, 0x3c],
            Colour::Move => [0xd5, 0x5e, 0x00],
            Colour::Compile => [0xcc, 0x79, 0xa7],
            Colour::Read => [0x66, 0xa6, 0x1e],
            Colour::Issue => [0x5e, 0x81, 0xac],
            Colour::Plan => [0x4c, 0x56, 0x6a],
            Colour::Queue => [0xd8, 0xd8, 0xd8],
            Colour::Link => [0xbf, 0xbf, 0xbf],
        }
    }
}

impl Timeline {
    /// Returns the time from the first event to the end of the last, in seconds.
    pub fn extent(&self) -> (f64, f64) {
        let begin = self.spans.iter().map(|span| span.begin).fold(f64::INFINITY, f64::min);
        let end = self.spans.iter().map(|span| span.end).fold(0.0, f64::max);
        if begin.is_finite() { (begin, end) } else { (0.0, 0.0) }
    }

    /// Returns the number of instructions that spans on workers stand for.
    pub fn instructions(&self) -> u64 {
        let on_workers = |span: &&Span| self.rows[span.row].part == Party::Worker;
        let counts = self.spans.iter().filter(on_workers).map(|span| span.count);
        counts.fold(0, u64::saturating_add)
    }
}
