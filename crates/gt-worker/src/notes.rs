//! What a worker does with its time, noted while somebody watches.
//!
//! Everything between the beginning of a batch and its end belongs to some event. Small
//! instructions of one kind that follow one another are one event: then there is no need to look at
//! the clock for each.

use std::time::Duration;

use gt_ir::event::{Activity, Event, Kind, Lane, Mix, What};
use gt_ir::exchange::{Exchange, Piece, WorkerId};
use gt_ir::message::{Failure, Message, WorkerStats};
use gt_ir::sharding::Block;
use gt_ir::status::{Report, Share};
use gt_ir::{Command, Content, Meta, TensorId};

use crate::engine::Engine;
use crate::executor::{Out, Worker};

/// An event that reads and writes so many bytes is not extended.
const LARGE: u64 = 32 << 10;
/// How many events are kept until they are sent; the rest is counted.
const MOST: usize = 1 << 12;
/// How often they are sent at most,
const EVERY: Duration = Duration::from_millis(20);
/// unless there are so many.
const MANY: usize = 1 << 10;

/// What is noted of one worker.
pub(crate) struct Notes {
    pub is_on: bool,
    /// How far the clock that events are told by is ahead of the engine's, in nanoseconds.
    ahead: i64,
    open: Option<Open>,
    events: Vec<Event>,
    dropped: u64,
    busy: [Duration; Activity::ALL.len()],
    sessions: Vec<Share>,
    /// When it was turned on, by that clock.
    since: Duration,
    /// When notes were sent last, and whether there was anything since.
    sent: Duration,
    is_new: bool,
}

/// An event that goes on.
struct Open {
    event: Event,
    /// How many bytes it has read and written.
    work: u64,
    /// How many operations had failed before.
    failed_before: u64,
}

/// What an event is about, as far as it is known at its beginning.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub what: What,
    pub session: u32,
    pub signal: u32,
    pub tensor: TensorId,
}

impl Notes {
    pub fn new() -> Notes {
        Notes {
            is_on: false,
            ahead: 0,
            open: None,
            events: Vec::new(),
            dropped: 0,
            busy: Default::default(),
            sessions: Vec::new(),
            since: Duration::ZERO,
            sent: Duration::ZERO,
            is_new: false,
        }
    }

    /// Begins to note, or ends; the clock that events are told by shows `there` when the
    /// engine's shows `here`.
    pub fn observe(&mut self, is_on: bool, here: Duration, there: Duration) {
        self.ahead = there.as_nanos() as i64 - here.as_nanos() as i64;
        if is_on && !self.is_on {
            (self.is_new, self.since) = (true, there);
            self.busy = Default::default();
            self.sessions.iter_mut().for_each(|share| share.busy = Duration::ZERO);
        }
        self.is_on = is_on;
        if !is_on {
            (self.open, self.events, self.dropped) = (None, Vec::new(), 0);
        }
    }

    /// The time that is told for one of the engine's.
    fn there(&self, here: Duration) -> Duration {
        Duration::from_nanos(here.as_nanos().saturating_add_signed(self.ahead.into()) as u64)
    }

    /// Whether what comes next goes on with the event under way.
    pub fn goes_on(&mut self, subject: Subject) -> bool {
        let Some(open) = &mut self.open else { return false };
        let Event { what, session, signal, .. } = open.event;
        let same = (what, session, signal) == (subject.what, subject.session, subject.signal);
        let is_one_of_many = matches!(what, What::Operation(_) | What::Create);
        if !(same && is_one_of_many && open.work < LARGE) {
            return false;
        }
        open.event.count += 1;
        true
    }

    /// An event begins, and the one before it ends; the engine's clock shows `now`.
    pub fn begin(&mut self, kind: Kind, subject: Subject, now: Duration, stats: &WorkerStats) {
        self.end(now, stats);
        let begin = self.there(now);
        let Subject { what, session, signal, tensor } = subject;
        let tensor = tensor.split().1;
        let lane = Lane::Worker(WorkerId(0));
        let (count, failed, bytes) = (1, 0, 0);
        let event = Event {
            begin,
            end: begin,
            kind,
            lane,
            session,
            signal,
            what,
            count,
            failed,
            tensor,
            bytes,
        };
        self.open = Some(Open { event, work: 0, failed_before: stats.operations_failed });
    }

    /// The event under way stands for so many instructions, and is a pass of these parts.
    pub fn is_pass(&mut self, instructions: u64, parts: Mix) {
        if let Some(Open { event, .. }) = &mut self.open {
            event.count = instructions.try_into().unwrap_or(u32::MAX);
            if let What::HotPath { mix, .. } | What::Batch { mix } = &mut event.what {
                *mix = parts;
            }
        }
    }

    /// The event under way reads a tensor,
    pub fn reads(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.work += meta.bytes() as u64;
        }
    }

    /// or makes one.
    pub fn makes(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.work += meta.bytes() as u64;
            // What a move makes of the blocks it has got is more than was moved.
            if open.event.kind != Kind::Move {
                open.event.bytes += meta.bytes() as u64;
            }
        }
    }

    /// The event under way reads a value for a client, if it can.
    pub fn fetches(&mut self, result: &Result<Content, Failure>) {
        if let Some(Open { event, .. }) = &mut self.open {
            match result {
                Ok(content) => event.bytes = content.meta().bytes() as u64,
                Err(_) => event.failed = 1,
            }
        }
    }

    /// The event under way moves a block.
    fn moves(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.event.bytes = meta.bytes() as u64;
        }
    }

    /// The event under way ends.
    pub fn end(&mut self, now: Duration, stats: &WorkerStats) {
        let Some(Open { mut event, failed_before, .. }) = self.open.take() else { return };
        // A pass that no program was found for is its instructions, which have noted themselves.
        if let What::HotPath { mix, .. } | What::Batch { mix } = event.what
            && mix == Mix::default()
        {
            return;
        }
        event.end = self.there(now);
        let failed = u32::try_from(stats.operations_failed - failed_before).unwrap_or(u32::MAX);
        event.failed = event.failed.saturating_add(failed);
        self.add(event);
    }

    /// A plan of so many steps was made ready just now, for the pass under way.
    pub fn compiled(&mut self, begin: Duration, end: Duration, steps: usize) {
        let (begin, end) = (self.there(begin), self.there(end));
        let Some(Open { event, .. }) = &mut self.open else { return };
        event.begin = end;
        let count = steps.try_into().unwrap_or(u32::MAX);
        let compiled = Event { begin, end, kind: Kind::Compile, count, ..*event };
        self.add(compiled);
    }

    /// Notes an event that is over.
    fn add(&mut self, event: Event) {
        self.is_new = true;
        let time = event.end.saturating_sub(event.begin);
        self.share(event.session).busy += time;
        match event.what {
            What::HotPath { mix, .. } | What::Batch { mix } if event.kind == Kind::Run => {
                for (activity, share) in mix.shares() {
                    self.busy[activity as usize] += time.mul_f64(share);
                }
            }
            what => self.busy[activity(event.kind, what) as usize] += time,
        }
        // What commands the worker for itself is nobody's.
        if event.what == What::Control {
            return;
        }
        if self.events.len() < MOST {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }

    /// A tensor of a session is kept, or let go of.
    pub fn hold(&mut self, session: u32, bytes: u64) {
        self.share(session).bytes += bytes;
    }

    pub fn release(&mut self, session: u32, bytes: u64) {
        let share = self.share(session);
        share.bytes = share.bytes.saturating_sub(bytes);
    }

    pub fn end_session(&mut self, session: u32) {
        self.sessions.retain(|share| share.session != session);
    }

    /// A session's part; mostly it is the one that was asked for last, which stands first.
    fn share(&mut self, session: u32) -> &mut Share {
        if self.sessions.first().is_none_or(|share| share.session != session) {
            match self.sessions.iter().position(|share| share.session == session) {
                Some(place) => self.sessions.swap(0, place),
                None => {
                    self.sessions.push(Share { session, bytes: 0, busy: Duration::ZERO });
                    let last = self.sessions.len() - 1;
                    self.sessions.swap(0, last);
                }
            }
        }
        &mut self.sessions[0]
    }

    /// Gives what is new, if it is time for it or `at_once`; the engine's clock shows `now`.
    pub fn send(&mut self, now: Duration, at_once: bool, stats: &WorkerStats) -> Vec<Message> {
        let now = self.there(now);
        let due = at_once || now >= self.sent + EVERY || self.events.len() >= MANY;
        if !(self.is_on && self.is_new && due) {
            return Vec::new();
        }
        (self.sent, self.is_new) = (now, false);
        let report = Report {
            at: now,
            since: self.since,
            engine: stats.engine.clone(),
            operations: stats.operations_total,
            failed: stats.operations_failed,
            tensors: stats.tensors,
            bytes: stats.bytes,
            bytes_peak: stats.bytes_peak,
            busy: self.busy,
            sessions: self.sessions.clone(),
        };
        let (events, dropped) =
            (std::mem::take(&mut self.events), std::mem::take(&mut self.dropped));
        let mut messages = vec![Message::Report(Box::new(report))];
        if !events.is_empty() || dropped > 0 {
            messages.push(Message::Events { events, dropped });
        }
        messages
    }
}

/// What a worker does in an event that is no pass.
fn activity(kind: Kind, what: What) -> Activity {
    match (kind, what) {
        (Kind::Compile, _) => Activity::Compile,
        (Kind::Move, _) => Activity::Move,
        (_, What::Operation(operation)) => Activity::of(operation.family),
        (_, What::Create | What::Free | What::Control) => Activity::Create,
        (_, What::Batch { .. } | What::HotPath { .. }) => Activity::Compile,
        (_, What::Fetch) => Activity::Read,
        (_, What::Send { .. } | What::Receive { .. } | What::Join { .. }) => Activity::Move,
    }
}

impl<E: Engine> Worker<E> {
    /// Notes that a command begins.
    pub(crate) fn note(&mut self, command: &Command) {
        let Some((kind, subject)) = subject(command) else { return };
        if !self.notes.goes_on(subject) {
            self.notes.begin(kind, subject, self.engine.now(), &self.stats);
        }
    }

    /// Notes that a pass begins which makes or needs a tensor: of a hot path's number, or of a batch.
    pub(crate) fn note_pass(&mut self, tensor: TensorId, number: Option<u32>) {
        let mix = Mix::default();
        let what = number.map_or(What::Batch { mix }, |number| What::HotPath { number, mix });
        let subject = Subject { what, session: tensor.split().0, signal: 0, tensor };
        self.notes.begin(Kind::Run, subject, self.engine.now(), &self.stats);
    }

    /// Notes that a block goes to another worker.
    pub(crate) fn note_send(&mut self, exchange: &Exchange, to: WorkerId, block: &Block) {
        let Exchange { collective, transfer, .. } = *exchange;
        let what = What::Send { collective, transfer, to };
        let tensor = exchange.input.unwrap_or(TensorId(0));
        let subject = Subject { what, session: transfer.session(), signal: 0, tensor };
        self.notes.begin(Kind::Move, subject, self.engine.now(), &self.stats);
        let meta = exchange.input.and_then(|input| self.meta(input));
        if let Some(meta) = meta {
            self.notes.moves(&Meta::new(meta.dtype, block.shape));
        }
    }

    /// Notes that the engine carries out an exchange together with others.
    pub(crate) fn note_join(&mut self, exchange: &Exchange) {
        let what = What::Join { collective: exchange.collective };
        let output = exchange.output.as_ref();
        let tensor = output.map(|(id, _)| *id).or(exchange.input).unwrap_or(TensorId(0));
        let subject = Subject { what, session: exchange.transfer.session(), signal: 0, tensor };
        self.notes.begin(Kind::Move, subject, self.engine.now(), &self.stats);
        let input = exchange.input.and_then(|input| self.meta(input));
        if let Some(meta) = output.map(|(_, meta)| *meta).or(input) {
            self.notes.moves(&meta);
        }
    }

    /// Notes that a block has come from another worker.
    pub(crate) fn note_piece(&mut self, piece: &Piece) {
        let Piece { transfer, from, .. } = *piece;
        let what = What::Receive { transfer, from };
        let session = transfer.session();
        let subject = Subject { what, session, signal: 0, tensor: TensorId(0) };
        self.notes.begin(Kind::Move, subject, self.engine.now(), &self.stats);
        if let Ok(content) = &piece.result {
            self.notes.moves(&content.meta());
        }
    }

    /// The worker has nothing to do for now: what it was at has ended.
    pub(crate) fn pause(&mut self, out: &mut Vec<Out>) {
        if self.notes.is_on {
            self.notes.end(self.engine.now(), &self.stats);
            self.send_notes(false, out);
        }
    }

    /// Sends what is noted, if it is time for it or `at_once`.
    pub(crate) fn send_notes(&mut self, at_once: bool, out: &mut Vec<Out>) {
        let messages = self.notes.send(self.engine.now(), at_once, &self.stats);
        out.extend(messages.into_iter().map(Out::Dispatcher));
    }
}

/// What a command is about; `None` for those whose parts note themselves, and for frees, which take
/// no time and stand between the instructions that use their tensors.
fn subject(command: &Command) -> Option<(Kind, Subject)> {
    if let Command::Free(_) | Command::Invoke(_) | Command::Play(_) = command {
        return None;
    }
    let kind = if let Command::Exchange(_) = command { Kind::Move } else { Kind::Run };
    let (what, signal, tensor) = What::of(command);
    Some((kind, Subject { what, session: tensor.split().0, signal, tensor }))
}
