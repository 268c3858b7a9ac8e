//! The worker's events and reports: how it spends its time, emitted while there is a watcher.
//!
//! All time within a turn belongs to some event. A run of small instructions of one kind is one
//! event, so that the clock need not be read for each.

use std::time::Duration;

use gt_ir::event::{Activity, EmitLevel, Event, EventKind, Mix, Subject, Track, What};
use gt_ir::gpu::GpuStatus;
use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::statistics::WorkerStats;
use gt_ir::status::{HotPathReport, Report};
use gt_ir::{Content, Meta};
use gt_ir::{Incarnation, SessionId, WorkerId};

/// An event that has read and written this many bytes is not extended.
const LARGE: u64 = 32 << 10;
/// The most events kept until they are sent; the rest are dropped and counted.
const MOST: usize = 1 << 12;
/// The minimum interval between sends of events, unless there are [`MANY`] or the worker is idle.
const EVERY: Duration = Duration::from_millis(20);
/// The minimum interval between reports without events: at first, for those who look once, and at
/// most. It is doubled with each report after the first.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVAL: Duration = Duration::from_millis(500);
/// This many events are sent at once.
const MANY: usize = 1 << 10;

/// What a report interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// The worker computes.
    Busy,
    /// It has nothing to do: events need not wait for more.
    Idle,
    /// A watcher asks for the status.
    Asked,
}

/// The events of one worker.
pub(crate) struct Emitter {
    level: EmitLevel,
    /// How far the clock of the events is ahead of the engine's, in nanoseconds.
    ahead: i64,
    open: Option<OpenEvent>,
    /// The session that events belong to.
    incarnation: Incarnation,
    events: Vec<(Incarnation, Event)>,
    dropped: u64,
    busy: [Duration; Activity::ALL.len()],
    /// When it was turned on, by the clock of the events.
    since: Duration,
    /// When a report was sent last, if one was, and whether there are events since.
    sent: Option<Duration>,
    is_new: bool,
    /// The minimum interval between reports without events, as it is now.
    interval: Duration,
    /// The amounts that were reported last: sessions end, and tensors are freed, without an event.
    reported: HeldAmounts,
    /// The GPU as it was reported last.
    reported_gpu: Option<GpuStatus>,
}

/// The tensors and the bytes that a worker holds: in memory, spilled, and of snapshots.
type HeldAmounts = [u64; 6];

fn amounts(stats: &WorkerStats) -> HeldAmounts {
    [
        stats.tensors,
        stats.bytes,
        stats.spilled_tensors,
        stats.spilled_bytes,
        stats.snapshot_bytes,
        stats.snapshot_disk_bytes,
    ]
}

/// An event that has not ended.
struct OpenEvent {
    incarnation: Incarnation,
    event: Event,
    /// The bytes that it has read and written.
    work: u64,
    /// `operations_failed` when it began.
    failed_before: u64,
}

impl Emitter {
    pub fn new() -> Emitter {
        Emitter {
            level: EmitLevel::Nothing,
            ahead: 0,
            open: None,
            incarnation: Incarnation::NONE,
            events: Vec::new(),
            dropped: 0,
            busy: Default::default(),
            since: Duration::ZERO,
            sent: None,
            is_new: false,
            interval: FIRST_INTERVAL,
            reported: HeldAmounts::default(),
            reported_gpu: None,
        }
    }

    /// Whether it measures events, for reports at least.
    pub fn is_on(&self) -> bool {
        self.level != EmitLevel::Nothing
    }

    /// Sets what is emitted. The clock of events shows `there` when the engine's shows `here`.
    pub fn observe(&mut self, level: EmitLevel, here: Duration, there: Duration) {
        self.ahead = there.as_nanos() as i64 - here.as_nanos() as i64;
        let was_on = self.is_on();
        self.level = level;
        if self.is_on() && !was_on {
            (self.is_new, self.since, self.sent) = (true, there, None);
            self.busy = Default::default();
            self.interval = FIRST_INTERVAL;
        }
        if !self.is_on() {
            self.open = None;
        }
        if level != EmitLevel::Events {
            (self.events, self.dropped) = (Vec::new(), 0);
        }
    }

    /// Converts a time of the engine's clock to the clock of the events.
    fn there(&self, here: Duration) -> Duration {
        Duration::from_nanos(here.as_nanos().saturating_add_signed(self.ahead.into()) as u64)
    }

    /// Extends the open event by a command with this subject, if that is possible.
    pub fn goes_on(&mut self, subject: Subject) -> bool {
        let Some(open) = &mut self.open else { return false };
        let Event { what, signal, .. } = open.event;
        let same = (what, signal) == (subject.what, subject.signal)
            && open.incarnation == self.incarnation;
        let is_one_of_many = matches!(what, What::Operation(_) | What::Create);
        if !(same && is_one_of_many && open.work < LARGE) {
            return false;
        }
        open.event.count += 1;
        true
    }

    /// Begins an event and ends the one before it; `now` is the engine's time.
    pub fn begin(&mut self, kind: EventKind, subject: Subject, now: Duration, stats: &WorkerStats) {
        self.end(now, stats);
        let begin = self.there(now);
        let Subject { what, signal, tensor } = subject;
        let incarnation = self.incarnation;
        // Placeholders: the dispatcher fills in the worker and the session.
        let track = Track::Worker(WorkerId(0));
        let (count, failed, bytes) = (1, 0, 0);
        let event = Event {
            begin,
            end: begin,
            kind,
            track,
            session: SessionId::NONE,
            signal,
            what,
            count,
            failed,
            tensor,
            bytes,
        };
        self.open =
            Some(OpenEvent { incarnation, event, work: 0, failed_before: stats.operations_failed });
    }

    /// The kind and the subject of the open event.
    pub fn open_subject(&self) -> Option<(EventKind, Subject)> {
        let Event { kind, what, signal, tensor, .. } = self.open.as_ref()?.event;
        Some((kind, Subject { what, signal, tensor }))
    }

    /// Begins another event of an instruction, or a program, that was paused, unless its event is
    /// still open.
    pub fn resume(
        &mut self,
        kind: EventKind,
        subject: Subject,
        now: Duration,
        stats: &WorkerStats,
    ) {
        if self.open.is_none() {
            self.begin(kind, subject, now, stats);
            // It is counted once.
            self.open.iter_mut().for_each(|open| open.event.count = 0);
        }
    }

    /// Sets the number of instructions, and their mix of activities, of the open event, an
    /// iteration or a batch.
    pub fn spans(&mut self, instructions: u64, parts: Mix) {
        if let Some(OpenEvent { event, .. }) = &mut self.open {
            event.count = instructions.try_into().unwrap_or(u32::MAX);
            if let What::HotPath { mix, .. } | What::Batch { mix } = &mut event.what {
                *mix = parts;
            }
        }
    }

    /// The open event reads a tensor.
    pub fn reads(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.work += meta.bytes() as u64;
        }
    }

    /// The open event makes a tensor.
    pub fn makes(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.work += meta.bytes() as u64;
            // The tensor that a move assembles is larger than what was moved.
            if open.event.kind != EventKind::Move {
                open.event.bytes += meta.bytes() as u64;
            }
        }
    }

    /// The open event reads a value for a client.
    pub fn fetches(&mut self, result: &Result<Content, Failure>) {
        if let Some(OpenEvent { event, .. }) = &mut self.open {
            match result {
                Ok(content) => event.bytes = content.meta().bytes() as u64,
                Err(_) => event.failed = 1,
            }
        }
    }

    /// The open event moves a block.
    pub fn moves(&mut self, meta: &Meta) {
        if let Some(open) = &mut self.open {
            open.event.bytes = meta.bytes() as u64;
        }
    }

    /// Ends the open event.
    pub fn end(&mut self, now: Duration, stats: &WorkerStats) {
        let Some(OpenEvent { incarnation, mut event, failed_before, .. }) = self.open.take() else {
            return;
        };
        // Without a program, the instructions have emitted events of their own.
        if let What::HotPath { mix, .. } | What::Batch { mix } = event.what
            && mix == Mix::default()
        {
            return;
        }
        event.end = self.there(now);
        let failed = u32::try_from(stats.operations_failed - failed_before).unwrap_or(u32::MAX);
        event.failed = event.failed.saturating_add(failed);
        self.add(incarnation, event);
    }

    /// Emits the preparation of a plan of `steps` steps; the open event starts when it ends.
    pub fn compiled(&mut self, begin: Duration, end: Duration, steps: usize) {
        let (begin, end) = (self.there(begin), self.there(end));
        let Some(OpenEvent { incarnation, event, .. }) = &mut self.open else { return };
        event.begin = end;
        let count = steps.try_into().unwrap_or(u32::MAX);
        let compiled = Event { begin, end, kind: EventKind::Compile, count, ..*event };
        let incarnation = *incarnation;
        self.add(incarnation, compiled);
    }

    /// Accounts for a finished event and queues it.
    fn add(&mut self, incarnation: Incarnation, event: Event) {
        self.is_new = true;
        let time = event.end.saturating_sub(event.begin);
        match event.what {
            What::HotPath { mix, .. } | What::Batch { mix } if event.kind == EventKind::Run => {
                for (activity, share) in mix.shares() {
                    self.busy[activity as usize] += time.mul_f64(share);
                }
            }
            what => self.busy[activity(event.kind, what) as usize] += time,
        }
        // Control commands count as busy time only.
        if event.what == What::Control || self.level != EmitLevel::Events {
            return;
        }
        if self.events.len() < MOST {
            self.events.push((incarnation, event));
        } else {
            self.dropped += 1;
        }
    }

    /// Attributes the events that follow to a session.
    pub fn turn_to(&mut self, incarnation: Incarnation) {
        self.incarnation = incarnation;
    }

    /// Whether a report is due at the engine's time `now`, if there is anything new.
    pub fn is_due(&self, now: Duration, urgency: Urgency) -> bool {
        let is_after =
            |pause: Duration| self.sent.is_none_or(|sent| self.there(now) >= sent + pause);
        match self.level {
            EmitLevel::Nothing => false,
            EmitLevel::Reports => urgency == Urgency::Asked || is_after(self.interval),
            EmitLevel::Events => {
                urgency != Urgency::Busy || is_after(EVERY) || self.events.len() >= MANY
            }
        }
    }

    /// How long it takes from the engine's time `now` until a report without events is due.
    pub fn due_in(&self, now: Duration) -> Duration {
        let due = self.sent.map_or(Duration::ZERO, |sent| sent + self.interval);
        due.saturating_sub(self.there(now))
    }

    /// The messages with new events and a report, if there is anything new and they are due; `now` is
    /// the engine's time.
    pub fn send(
        &mut self,
        now: Duration,
        urgency: Urgency,
        stats: &WorkerStats,
    ) -> Vec<WorkerToServer> {
        let is_due = self.is_due(now, urgency);
        let now = self.there(now);
        let held = amounts(stats);
        let is_new = self.is_new || held != self.reported || stats.gpu != self.reported_gpu;
        if !(is_new && is_due) {
            return Vec::new();
        }
        if self.sent.is_some() {
            self.interval = (2 * self.interval).min(MOST_INTERVAL);
        }
        (self.sent, self.is_new, self.reported) = (Some(now), false, held);
        self.reported_gpu.clone_from(&stats.gpu);
        let report = Report {
            at: now,
            since: self.since,
            engine: stats.engine.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            memory_limit: stats.memory_limit,
            operations: stats.operations_total,
            failed: stats.operations_failed,
            tensors: stats.tensors,
            bytes: stats.bytes,
            bytes_peak: stats.bytes_peak,
            spilled_tensors: stats.spilled_tensors,
            spilled_bytes: stats.spilled_bytes,
            snapshot_bytes: stats.snapshot_bytes,
            snapshot_disk_bytes: stats.snapshot_disk_bytes,
            busy: self.busy,
            gpu: stats.gpu.clone(),
            hot_paths: HotPathReport {
                instructions: stats.hot_instructions,
                sequences: stats.hot_sequences,
                compilation: stats.compilation,
                top: stats.top_sequences.clone(),
            },
        };
        let (events, dropped) =
            (std::mem::take(&mut self.events), std::mem::take(&mut self.dropped));
        let mut messages = vec![WorkerToServer::Report(Box::new(report))];
        if !events.is_empty() || dropped > 0 {
            messages.push(WorkerToServer::Events { events, dropped });
        }
        messages
    }
}

/// The activity of an event without a mix.
fn activity(kind: EventKind, what: What) -> Activity {
    match (kind, what) {
        (EventKind::Compile, _) => Activity::Compile,
        (EventKind::Move, _) => Activity::Move,
        (_, What::Operation(operation)) => Activity::of(operation.family),
        (_, What::Create | What::Free | What::Control) => Activity::Create,
        (_, What::Batch { .. } | What::HotPath { .. }) => Activity::Compile,
        (_, What::Fetch) => Activity::Read,
        (_, What::Send { .. } | What::Receive { .. } | What::Join { .. }) => Activity::Move,
    }
}

#[cfg(test)]
mod tests;
