//! Hot paths: finds what a session's stream repeats, and sends it as invocations of templates.
//!
//! - [`token`]: what makes two commands alike; [`history`]: with which period they repeat.
//! - [`recording`]: one round of a loop, from which its template is made.
//! - [`following`]: an iteration of a template, command by command.
//!
//! A command that is the next step of a template is not sent: the invocation at the end of the
//! iteration stands for it. When the stream leaves the template, or somebody waits, what has matched
//! so far is sent as a part of an iteration, and ordinary commands follow. So a template changes how
//! much is sent, never what is computed.

mod following;
mod history;
mod recording;
mod token;

use bytes::Bytes;
use gt_ir::template::{MAX_ALL_STEPS, MAX_STEPS, MAX_TEMPLATES};
use gt_ir::{ClientCommand, Content, Create, TensorData, TensorId};
use rustc_hash::FxHashMap;

use crate::environment;
use following::{Following, Known};
use history::History;
use recording::{Recording, Round};

/// How often a sequence comes at least before it is hot: to see that it repeats takes as many.
const FEWEST: u64 = 3;
/// After so many broken iterations in a row a template is forgotten,
const BROKEN: u32 = 4;
/// and after so many that free other tensors than it says.
const ODD: u32 = 4;
/// A template has so many steps at least, where its loop is not left before.
const SHORTEST: u64 = 16;
/// A longer loop takes the place of the shorter ones inside it if it has at most so many steps,
const ROUND: usize = 2048;
/// or if more than one in so many of its commands belongs to none of them.
const COLD: u64 = 20;

/// When sequences become hot paths.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether they are looked for at all.
    pub enabled: bool,
    /// How often a sequence comes before it is hot.
    pub threshold: u32,
    /// Whether engines are to compile them even if that may not help.
    pub compile: bool,
}

impl Settings {
    /// As GT_AUTO_COMPILE, GT_COMPILE and GT_HOTPATH_THRESHOLD say.
    pub fn from_env() -> Settings {
        let compile = environment::switch("GT_COMPILE") == Some(true);
        let enabled = compile || environment::switch("GT_AUTO_COMPILE") != Some(false);
        let threshold = environment::count("GT_HOTPATH_THRESHOLD").unwrap_or(FEWEST);
        let threshold = threshold.clamp(FEWEST, u64::from(u32::MAX)) as u32;
        Settings { enabled, threshold, compile }
    }
}

/// Turns a stream of commands into one with invocations.
pub struct HotPathDetector {
    settings: Settings,
    history: History,
    recording: Option<Recording>,
    following: Option<Following>,
    /// By number; some are free.
    known: Vec<Option<Box<Known>>>,
    /// The templates that begin with a token, the longest first.
    starts: FxHashMap<u64, Vec<u32>>,
    /// Where the last command made its tensor: see [`Made`].
    region: u32,
    /// Whether the region has begun with an earlier command.
    in_region: bool,
    /// Its first tensor.
    oldest: TensorId,
    /// How many tokens have come, and how many of them as ordinary commands.
    total: u64,
    cold: u64,
    alive: i32,
    /// Whether all was sent since the last token.
    flushed: bool,
    /// No recording begins before this many tokens,
    quiet_until: u64,
    /// and as many more after the next that comes to nothing.
    patience: u64,
    stats: Stats,
}

/// What the detector has done.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Instructions so far, and those sent by invocations.
    pub total_instructions: u64,
    pub hot_instructions: u64,
    /// Templates that were made, and that there are now.
    pub unique_sequences: u64,
    pub hot_sequences: u64,
    /// Complete iterations.
    pub repetitions: u64,
    pub hot_threshold: u32,
}

impl HotPathDetector {
    pub fn new(settings: Settings) -> HotPathDetector {
        HotPathDetector {
            settings,
            history: History::new(),
            recording: None,
            following: None,
            known: Vec::new(),
            starts: FxHashMap::default(),
            region: 0,
            in_region: false,
            oldest: TensorId(0),
            total: 0,
            cold: 0,
            alive: 0,
            flushed: false,
            quiet_until: 0,
            patience: 16,
            stats: Stats { hot_threshold: settings.threshold, ..Stats::default() },
        }
    }

    /// What it has done so far.
    pub fn get_stats(&self) -> Stats {
        let hot_sequences = self.known.iter().flatten().count() as u64;
        Stats {
            total_instructions: self.total,
            hot_instructions: self.total - self.cold,
            hot_sequences,
            ..self.stats
        }
    }

    /// Takes a command, and puts onto `out` what it becomes: itself, or nothing as long as it is a step
    /// of a hot path. `region` is the scope in which it is issued, if what is issued there is to be
    /// compiled as one; else 0.
    #[inline]
    pub fn process(&mut self, command: ClientCommand, region: u32, out: &mut Vec<ClientCommand>) {
        if !self.settings.enabled {
            return out.push(command);
        }
        match &command {
            ClientCommand::Free(id) => {
                self.alive -= 1;
                if let Some(recording) = &mut self.recording {
                    recording.free(*id);
                }
                match &mut self.following {
                    Some(pass) => pass.free(known(&self.known, pass.number), *id),
                    None => out.push(command),
                }
            }
            ClientCommand::Run(_) | ClientCommand::Create(_) => {
                if region != self.region {
                    self.leave_region(region, out);
                }
                if self.step(&command, out) {
                    out.push(command);
                }
            }
            _ => {
                // Whatever else it is, it comes after all that was issued before it.
                self.flush(out);
                out.push(command);
            }
        }
    }

    /// Sends what is held back.
    pub fn flush(&mut self, out: &mut Vec<ClientCommand>) {
        self.flushed = true;
        if let Some(pass) = &mut self.following {
            pass.send(known(&self.known, pass.number), out);
        }
    }

    /// Whether anything is held back.
    pub fn is_pending(&self) -> bool {
        self.following.as_ref().is_some_and(Following::is_pending)
    }

    /// Whether what is held back is the beginning of an iteration.
    pub fn is_midway(&self) -> bool {
        self.following
            .as_ref()
            .is_some_and(|pass| !pass.is_complete(known(&self.known, pass.number)))
    }

    /// Takes a command that makes a tensor; says whether it is sent itself.
    #[inline]
    fn step(&mut self, command: &ClientCommand, out: &mut Vec<ClientCommand>) -> bool {
        if self.region == 0 {
            self.oldest = TensorId(0);
        } else if !self.in_region {
            self.oldest = command.made().expect("it makes a tensor");
        }
        let token = self.follow(command, out);
        let is_hot = token.is_some();
        let token = token.unwrap_or_else(|| {
            token::token(command, self.oldest).expect("it makes a tensor, and so has a token")
        });
        // A round best begins where the fewest tensors are alive, and where somebody has waited.
        let weight = 2 * self.alive + i32::from(!std::mem::take(&mut self.flushed));
        self.history.push(token, weight, self.cold);
        self.total += 1;
        self.alive += 1;
        if self.recording.as_ref().is_some_and(Recording::is_complete) {
            self.learn(out);
        }
        let is_hot = is_hot || self.start(token, command);
        self.cold += u64::from(!is_hot);
        if self.recording.is_none() && self.region != 0 && !self.in_region && !is_hot {
            self.recording = Some(Recording::of_region());
        }
        self.in_region = self.region != 0;
        match &mut self.recording {
            Some(recording) => {
                recording.step(token, command, &self.history);
            }
            None => self.look_for_period(),
        }
        if self.recording.as_ref().is_some_and(Recording::is_too_long) {
            self.recording = None;
        }
        // Data goes by itself, before the iteration that uses it.
        !is_hot || matches!(command, ClientCommand::Create(_))
    }

    /// A region ends, and another may begin: what was recorded of it is a template.
    fn leave_region(&mut self, next: u32, out: &mut Vec<ClientCommand>) {
        if self.recording.as_ref().is_some_and(Recording::is_region) {
            self.learn(out);
        }
        (self.region, self.in_region) = (next, false);
    }

    /// Goes on with the iteration under way; gives the step's token if it does go on.
    fn follow(&mut self, command: &ClientCommand, out: &mut Vec<ClientCommand>) -> Option<u64> {
        let pass = self.following.as_mut()?;
        let known = self.known[pass.number as usize].as_mut().expect("it is being followed");
        if pass.step(known, command) {
            return Some(known.tokens[pass.position() - 1]);
        }
        let complete = pass.is_complete(known);
        pass.send(known, out);
        if complete {
            self.stats.repetitions += 1;
            known.broken = 0;
            known.odd = if pass.is_usual(known) { 0 } else { known.odd + 1 };
            if known.odd < ODD
                && let Some(next) = Following::begin(known, command)
            {
                self.following = Some(next);
                return Some(known.tokens[0]);
            }
        } else {
            known.broken += 1;
        }
        let (number, is_bad) = (known.number, known.broken >= BROKEN || known.odd >= ODD);
        self.following = None;
        if is_bad {
            self.forget(number, out);
            self.be_patient();
        }
        None
    }

    /// Begins an iteration of the template that starts with a command, if there is one.
    fn start(&mut self, token: u64, command: &ClientCommand) -> bool {
        if self.starts.is_empty() || self.following.is_some() {
            return false;
        }
        let Some(numbers) = self.starts.get(&token) else { return false };
        for &number in numbers {
            let known = self.known[number as usize].as_mut().expect("listed by its start");
            if let Some(pass) = Following::begin(known, command) {
                known.used = self.total;
                self.following = Some(pass);
                return true;
            }
        }
        false
    }

    /// Begins to record when a loop has come round often enough.
    #[inline]
    fn look_for_period(&mut self) {
        // The round that is recorded is the last of those that make it hot.
        let rounds = u64::from(self.settings.threshold).max(FEWEST) - 2;
        let Some(period) = self.history.period(rounds, SHORTEST) else { return };
        if self.total < self.quiet_until || period > MAX_STEPS {
            return;
        }
        if let Some(pass) = &self.following {
            let length = known(&self.known, pass.number).len();
            if period <= length || period % length == 0 {
                return;
            }
            let cold = self.history.cold_in_last(period);
            if period > ROUND && cold * COLD < period as u64 {
                return;
            }
        }
        self.recording = Some(Recording::new(self.history.tokens_to_start(period), period));
    }

    /// Makes a template of the round that was recorded.
    fn learn(&mut self, out: &mut Vec<ClientCommand>) {
        let Some(recording) = self.recording.take() else { return };
        self.make_room(recording.len(), out);
        let free = self.known.iter().position(Option::is_none);
        let number = free.unwrap_or(self.known.len()) as u32;
        let Some(round) = recording.finish(number, self.settings.compile) else {
            return self.be_patient();
        };
        let Round { tokens, definition } = round;
        // An iteration that is under way ends here; the command at hand is the first of the next.
        if let Some(mut iteration) = self.following.take() {
            iteration.send(known(&self.known, iteration.number), out);
        }
        out.push(ClientCommand::Define(Box::new(definition.clone())));
        let start = tokens[0];
        let known = Known::new(definition, tokens, self.total);
        if free.is_none() {
            self.known.push(None);
        }
        self.known[number as usize] = Some(Box::new(known));
        let lengths = &self.known;
        let numbers = self.starts.entry(start).or_default();
        numbers.push(number);
        numbers.sort_by_key(|number| {
            std::cmp::Reverse(lengths[*number as usize].as_ref().map_or(0, |k| k.len()))
        });
        self.stats.unique_sequences += 1;
    }

    /// Forgets the templates that were not used for longest, until one of so many steps has room.
    fn make_room(&mut self, steps: usize, out: &mut Vec<ClientCommand>) {
        loop {
            let all: usize = self.known.iter().flatten().map(|known| known.len()).sum();
            let count = self.known.iter().flatten().count();
            if count < MAX_TEMPLATES as usize && all + steps <= MAX_ALL_STEPS {
                return;
            }
            let followed = self.following.as_ref().map(|pass| pass.number);
            let oldest = self
                .known
                .iter()
                .flatten()
                .filter(|known| Some(known.number) != followed)
                .min_by_key(|known| known.used);
            let Some(number) = oldest.map(|known| known.number) else { return };
            self.forget(number, out);
        }
    }

    /// Forgets a template, here and where it was sent to: there is room for so many steps in all.
    fn forget(&mut self, number: u32, out: &mut Vec<ClientCommand>) {
        let Some(known) = self.known[number as usize].take() else { return };
        out.push(ClientCommand::Forget { template: number });
        if let Some(numbers) = self.starts.get_mut(&known.tokens[0]) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.starts.remove(&known.tokens[0]);
            }
        }
    }

    /// Something came to nothing: the next try waits, longer each time.
    fn be_patient(&mut self) {
        self.quiet_until = self.total + self.patience;
        self.patience = (self.patience * 2).min(1 << 20);
    }
}

fn known(all: &[Option<Box<Known>>], number: u32) -> &Known {
    all[number as usize].as_ref().expect("a template that is followed is known")
}

/// A tensor from data, without the data.
fn without_data(create: &Create) -> Create {
    let meta = create.content.meta();
    let data = TensorData { dtype: meta.dtype, shape: meta.shape, bytes: Bytes::new() };
    Create { content: Content::Data(data), ..*create }
}
