//! Hot paths: detects repetition in a session's stream, and sends it as invocations of templates.
//!
//! - [`token`]: hashes of commands; [`history`]: the period with which tokens repeat.
//! - [`recording`]: one round of a loop, from which its template is made; [`sections`]: loops with
//!   data-dependent shapes.
//! - [`iteration`]: matching the stream against a template, one iteration at a time.
//! - [`waits`]: when the program waited for values; [`settings`]: settings and counters.
//!
//! A command that matches the next step of a template is not sent: one invocation at the end of the
//! iteration replaces all its steps. In a loop that waits for values, a long iteration is sent in a
//! few parts, so that workers start while the rest is issued. When the stream leaves the template,
//! or the program waits for a value, the steps matched so far are sent as a part, and ordinary
//! commands follow. So a template changes how much is sent, never what is computed.

mod history;
mod iteration;
mod recording;
mod sections;
mod settings;
mod token;
mod waits;

use gt_ir::template::{MAX_ALL_STEPS, MAX_STEPS, MAX_TEMPLATES};
use gt_ir::{ClientCommand, Meta, Operand, TensorId};
use rustc_hash::FxHashMap;

use history::TokenHistory;
pub use iteration::UninferredInstruction;
use iteration::{IterationInProgress, SessionTemplate};
use recording::{RecordedRound, RoundRecording};
use sections::Sections;
use settings::MIN_REPETITIONS;
pub use settings::{HotPathStats, Settings};
use waits::WaitHistory;

/// A template is dropped after this many consecutive incomplete iterations,
const MAX_BROKEN: u32 = 4;
/// or this many consecutive ones that free other tensors.
const MAX_ODD: u32 = 4;
/// The least number of steps of a loop's template; a shorter loop is unrolled.
const MIN_STEPS: u64 = 16;
/// A longer loop around the followed template replaces it if it has at most this many steps,
const MAX_OUTER_STEPS: usize = 2048;
/// or if at least one in this many of the loop's commands is part of no template.
const COLD_ONE_IN: u64 = 20;
/// Data of this many bytes is not sent before steps with older data: their frees make room for it.
const LARGE_DATA: u64 = 64 << 10;
/// How strongly starting a round with large data is preferred to starting with few live tensors.
const DATA_WEIGHT: i32 = 1 << 20;

/// Turns a stream of commands into one with invocations.
pub struct HotPathDetector {
    settings: Settings,
    history: TokenHistory,
    sections: Sections,
    recording: Option<RoundRecording>,
    following: Option<IterationInProgress>,
    /// The templates by number; `None` where a number is free.
    templates: Vec<Option<Box<SessionTemplate>>>,
    /// The numbers of the templates that start with a token, the longest first.
    starts: FxHashMap<u64, Vec<u32>>,
    /// The compiled region of the last command that made a tensor; 0 for none.
    region: u32,
    /// Whether a tensor was made in the region already.
    in_region: bool,
    /// The region's first tensor; outside of one, tensor 0.
    oldest: TensorId,
    /// The number of tokens so far.
    total: u64,
    /// The number of them that were sent as ordinary commands.
    cold: u64,
    /// The number of live tensors.
    alive: i32,
    /// Whether the detector was flushed since the last token.
    flushed: bool,
    /// Whether the last token was of large data.
    is_in_data: bool,
    waits: WaitHistory,
    /// No recording of a loop begins until `total` has reached this.
    backoff_until: u64,
    /// By how many tokens the next failed recording delays the one after it; doubles each time.
    backoff: u64,
    stats: HotPathStats,
}

impl HotPathDetector {
    pub fn new(settings: Settings) -> HotPathDetector {
        HotPathDetector {
            settings,
            history: TokenHistory::new(),
            sections: Sections::default(),
            recording: None,
            following: None,
            templates: Vec::new(),
            starts: FxHashMap::default(),
            region: 0,
            in_region: false,
            oldest: TensorId(0),
            total: 0,
            cold: 0,
            alive: 0,
            flushed: false,
            is_in_data: false,
            waits: WaitHistory::default(),
            backoff_until: 0,
            backoff: 16,
            stats: HotPathStats { hot_threshold: settings.threshold, ..HotPathStats::default() },
        }
    }

    /// Returns the counters so far.
    pub fn get_stats(&self) -> HotPathStats {
        let hot_sequences = self.templates.iter().flatten().count() as u64;
        HotPathStats {
            total_instructions: self.total,
            hot_instructions: self.total - self.cold,
            hot_sequences,
            ..self.stats
        }
    }

    /// Processes a command and appends what to send to `out`: the command itself, or nothing while
    /// it matches a template. `region` is the scope that it is issued in, if the scope is compiled
    /// as a whole; otherwise 0.
    #[inline]
    pub fn process(&mut self, command: ClientCommand, region: u32, out: &mut Vec<ClientCommand>) {
        if !self.settings.enabled {
            return out.push(command);
        }
        match &command {
            ClientCommand::Free(id) => {
                self.alive -= 1;
                self.sections.free(*id);
                if let Some(recording) = &mut self.recording {
                    recording.free(*id);
                }
                match &mut self.following {
                    Some(iteration) => {
                        iteration.free(template(&self.templates, iteration.number), *id)
                    }
                    None => out.push(command),
                }
            }
            ClientCommand::Run(_) | ClientCommand::Create(_) => {
                if region != self.region {
                    self.leave_region(region, out);
                }
                // Usually the command stays there: it is large, and must not be moved twice.
                out.push(command);
                let mut before = Vec::new();
                let is_sent = out.last().is_some_and(|command| self.step(command, &mut before));
                if !is_sent {
                    out.pop();
                }
                if !before.is_empty() {
                    let place = out.len() - usize::from(is_sent);
                    out.splice(place..place, before);
                }
            }
            _ => {
                // Any other command must stay behind everything issued before it.
                self.flush(out);
                if command.request().is_some() {
                    self.waits.note(self.total);
                }
                out.push(command);
            }
        }
    }

    /// Records the operands that the last command's results were inferred from, if it has matched.
    #[inline]
    pub fn note(&mut self, inputs: &[Operand<Meta>], work: u64) {
        if let Some(iteration) = &mut self.following {
            let known = self.templates[iteration.number as usize].as_mut();
            iteration.note(known.expect("the template exists"), inputs, work);
        }
    }

    /// Processes an instruction that repeats one of the previous iteration, without inference or a
    /// command. Returns its result and cost; `None` if it must be processed as a command.
    #[inline]
    pub fn repeat(
        &mut self,
        issue: &UninferredInstruction,
        region: u32,
        inputs: impl Iterator<Item = Option<Meta>>,
    ) -> Option<(Meta, u64)> {
        let iteration = self.following.as_mut()?;
        let is_plain = region == self.region
            && (region == 0 || self.in_region)
            && self.recording.is_none()
            && !issue.operation.data_dependent
            && self.sections.is_outside();
        if !is_plain || iteration.ends_part() {
            return None;
        }
        let known =
            self.templates[iteration.number as usize].as_mut().expect("the template exists");
        let made = iteration.repeat_step(known, issue, inputs)?;
        let token = known.tokens[iteration.position() - 1];
        self.advance(token, 0);
        self.look_for_period();
        Some(made)
    }

    /// Sends the held-back commands.
    pub fn flush(&mut self, out: &mut Vec<ClientCommand>) {
        self.flushed = true;
        if let Some(iteration) = &mut self.following {
            iteration.flush(template(&self.templates, iteration.number), out);
        }
    }

    /// Records that the program waits for a value.
    pub fn note_wait(&mut self) {
        self.waits.note(self.total);
    }

    /// Returns whether the program waits after every few commands: a part of an iteration costs
    /// more than they do. Ignored in a scope that is compiled.
    #[inline]
    fn waits_often(&self) -> bool {
        self.region == 0 && self.waits.are_close(self.total)
    }

    /// Returns whether commands are held back.
    pub fn is_pending(&self) -> bool {
        let pending =
            |of: &IterationInProgress| of.is_pending(template(&self.templates, of.number));
        self.following.as_ref().is_some_and(pending)
    }

    /// Returns whether an iteration is unfinished, so that its remaining steps may follow.
    pub fn is_midway(&self) -> bool {
        self.following.as_ref().is_some_and(|iteration| {
            !iteration.is_complete(template(&self.templates, iteration.number))
        })
    }

    /// Processes a command that makes a tensor; returns whether to send it as an ordinary command.
    #[inline]
    fn step(&mut self, command: &ClientCommand, out: &mut Vec<ClientCommand>) -> bool {
        if self.region == 0 {
            self.oldest = TensorId(0);
        } else if !self.in_region {
            self.oldest = command.made().expect("it makes a tensor");
        }
        let token = self.follow(command, out);
        let is_hot = token.is_some();
        if !is_hot
            && Sections::begins(command)
            && self.recording.as_ref().is_some_and(|of| of.is_section() && !of.is_complete())
        {
            // The section is shorter than the last time.
            self.recording = None;
        }
        let token = token.unwrap_or_else(|| {
            token::token(command, self.oldest).expect("it makes a tensor, and so has a token")
        });
        self.advance(token, data_in(command));
        if self.recording.as_ref().is_some_and(RoundRecording::is_complete) {
            self.learn(out);
        }
        let is_hot = is_hot || self.start(token, command);
        let run = match self.region {
            0 => self.sections.step(token, command, u64::from(self.settings.threshold)),
            _ => None,
        };
        if let Some(length) = run
            && self.recording.is_none()
            && !is_hot
            && !self.waits_often()
        {
            self.recording = Some(RoundRecording::of_section(length));
        }
        self.cold += u64::from(!is_hot);
        if self.recording.is_none() && self.region != 0 && !self.in_region && !is_hot {
            self.recording = Some(RoundRecording::of_region());
        }
        self.in_region = self.region != 0;
        match &mut self.recording {
            Some(recording) => {
                recording.step(token, command, &self.history);
                if recording.is_too_long() {
                    self.recording = None;
                }
            }
            None => self.look_for_period(),
        }
        // Data is always sent by itself, before the iteration that uses it.
        !is_hot || matches!(command, ClientCommand::Create(_))
    }

    /// Counts a token that makes a tensor, with its bytes of data.
    #[inline]
    fn advance(&mut self, token: u64, data: u64) {
        // The best step to start a round with: one with much data, as that is sent before the
        // round's other steps; otherwise one with the fewest live tensors, just after a flush.
        let mut weight = 2 * self.alive + i32::from(!std::mem::take(&mut self.flushed));
        let was_in_data = std::mem::replace(&mut self.is_in_data, data >= LARGE_DATA);
        if self.is_in_data && !was_in_data {
            weight -= DATA_WEIGHT;
        }
        self.history.push(token, weight, self.cold);
        self.total += 1;
        self.alive += 1;
    }

    /// Ends a region, after which region `next` follows: its recording becomes a template.
    fn leave_region(&mut self, next: u32, out: &mut Vec<ClientCommand>) {
        if self.recording.as_ref().is_some_and(RoundRecording::is_region) {
            self.learn(out);
        }
        self.sections.leave();
        (self.region, self.in_region) = (next, false);
    }

    /// Matches a command against the iteration in progress, or against the first step of the next
    /// one. Returns the step's token if it matches; otherwise stops following the template.
    fn follow(&mut self, command: &ClientCommand, out: &mut Vec<ClientCommand>) -> Option<u64> {
        let waits_often = self.waits_often();
        let iteration = self.following.as_mut()?;
        let known =
            self.templates[iteration.number as usize].as_mut().expect("the template exists");
        if data_in(command) > 0 && iteration.is_behind_data(LARGE_DATA) {
            iteration.send(known, out);
        }
        if iteration.step(known, command) {
            let token = known.tokens[iteration.position() - 1];
            let is_awaited =
                self.waits.since(self.total).is_some_and(|since| known.is_recent(since));
            if is_awaited && iteration.is_part(known) {
                iteration.send(known, out);
            }
            return Some(token);
        }
        let complete = iteration.is_complete(known);
        iteration.send(known, out);
        if complete {
            self.stats.repetitions += 1;
            known.broken = 0;
            let is_usual = known.of_section || iteration.is_usual(known);
            known.odd = if is_usual { 0 } else { known.odd + 1 };
            if known.odd < MAX_ODD
                && !waits_often
                && let Some(next) = IterationInProgress::begin(known, command)
            {
                self.following = Some(next);
                return Some(known.tokens[0]);
            }
        } else {
            known.broken += 1;
        }
        let (number, is_bad) = (known.number, known.broken >= MAX_BROKEN || known.odd >= MAX_ODD);
        self.following = None;
        if is_bad {
            self.forget(number, out);
            self.back_off();
        }
        None
    }

    /// Starts an iteration of a template whose first step matches the command, if any.
    fn start(&mut self, token: u64, command: &ClientCommand) -> bool {
        if self.starts.is_empty() || self.following.is_some() || self.waits_often() {
            return false;
        }
        let Some(numbers) = self.starts.get(&token) else { return false };
        for &number in numbers {
            let known = self.templates[number as usize].as_mut().expect("listed by its start");
            if let Some(iteration) = IterationInProgress::begin(known, command) {
                known.used = self.total;
                self.following = Some(iteration);
                return true;
            }
        }
        false
    }

    /// Starts recording once a loop has repeated often enough.
    #[inline]
    fn look_for_period(&mut self) {
        // The recorded round is the last of the `threshold` rounds; the first one sets the period.
        let rounds = u64::from(self.settings.threshold).max(MIN_REPETITIONS) - 2;
        let Some(period) = self.history.period(rounds, MIN_STEPS) else { return };
        if self.total < self.backoff_until || period > MAX_STEPS || self.waits_often() {
            return;
        }
        if let Some(iteration) = &self.following {
            let length = template(&self.templates, iteration.number).len();
            if period <= length || period % length == 0 {
                return;
            }
            let cold = self.history.cold_in_last(period);
            if period > MAX_OUTER_STEPS && cold * COLD_ONE_IN < period as u64 {
                return;
            }
        }
        self.recording = Some(RoundRecording::new(self.history.tokens_to_start(period), period));
    }

    /// Makes a template of the recorded round.
    fn learn(&mut self, out: &mut Vec<ClientCommand>) {
        let Some(recording) = self.recording.take() else { return };
        let of_section = recording.is_section();
        self.make_room(recording.len(), out);
        let free = self.templates.iter().position(Option::is_none);
        let number = free.unwrap_or(self.templates.len()) as u32;
        let Some(round) = recording.finish(number, self.settings.compile) else {
            return self.back_off();
        };
        let RecordedRound { tokens, definition } = round;
        // The iteration in progress ends here; the current command is the first of the next one.
        if let Some(mut iteration) = self.following.take() {
            iteration.send(template(&self.templates, iteration.number), out);
        }
        out.push(ClientCommand::Define(Box::new(definition.clone())));
        let start = tokens[0];
        let known = SessionTemplate::new(definition, tokens, of_section, self.total);
        if free.is_none() {
            self.templates.push(None);
        }
        self.templates[number as usize] = Some(Box::new(known));
        let lengths = &self.templates;
        let numbers = self.starts.entry(start).or_default();
        numbers.push(number);
        numbers.sort_by_key(|number| {
            std::cmp::Reverse(lengths[*number as usize].as_ref().map_or(0, |k| k.len()))
        });
        self.stats.unique_sequences += 1;
    }

    /// Drops the least recently used templates until one of `steps` steps fits.
    fn make_room(&mut self, steps: usize, out: &mut Vec<ClientCommand>) {
        loop {
            let all: usize = self.templates.iter().flatten().map(|known| known.len()).sum();
            let count = self.templates.iter().flatten().count();
            if count < MAX_TEMPLATES as usize && all + steps <= MAX_ALL_STEPS {
                return;
            }
            let followed = self.following.as_ref().map(|iteration| iteration.number);
            let oldest = self
                .templates
                .iter()
                .flatten()
                .filter(|known| Some(known.number) != followed)
                .min_by_key(|known| known.used);
            let Some(number) = oldest.map(|known| known.number) else { return };
            self.forget(number, out);
        }
    }

    /// Drops a template, here and at the receiver, whose memory for templates is limited.
    fn forget(&mut self, number: u32, out: &mut Vec<ClientCommand>) {
        let Some(known) = self.templates[number as usize].take() else { return };
        out.push(ClientCommand::Forget { template: number });
        if let Some(numbers) = self.starts.get_mut(&known.tokens[0]) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.starts.remove(&known.tokens[0]);
            }
        }
    }

    /// Delays the next recording after a failure, exponentially.
    fn back_off(&mut self) {
        self.backoff_until = self.total + self.backoff;
        self.backoff = (self.backoff * 2).min(1 << 20);
    }
}

/// Returns the bytes of a command's data.
fn data_in(command: &ClientCommand) -> u64 {
    match command {
        ClientCommand::Create(create) => create.content.meta().bytes() as u64,
        _ => 0,
    }
}

fn template(all: &[Option<Box<SessionTemplate>>], number: u32) -> &SessionTemplate {
    all[number as usize].as_ref().expect("the template exists")
}
