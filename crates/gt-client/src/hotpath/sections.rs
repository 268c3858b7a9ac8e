//! Loops in which shapes depend on data. Where a count was awaited, as for `x[mask]`, the shapes of
//! what follows may differ from round to round, so that the loop never repeats as a whole.
//!
//! What is between one such place and the next is a *section*. A section is compared with the same one
//! of the round before, command by command: those that are alike each time, and read nothing
//! that is not, are runs that can be hot by themselves.

use gt_ir::{ClientCommand, Operand, SourceId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Longer sections are not compared; inner loops of theirs are found by their period.
const LONGEST: usize = 2048;
/// Shorter runs are not worth a template.
const SHORTEST: usize = 8;
/// The most sections that are remembered.
const MOST: usize = 64;

/// The sections of a stream so far.
#[derive(Default)]
pub struct Sections {
    /// By the instruction that they begin with, and the length of the section before: a line may
    /// begin several.
    known: FxHashMap<Key, Section>,
    /// The section that the stream is in, and how many of its commands have come.
    current: Option<(Key, usize)>,
    /// The tensors alive that commands of varying shapes have made.
    varied: FxHashSet<TensorId>,
}

/// The operation and line of an instruction, and the length of the section before it.
type Key = (u16, SourceId, usize);

/// What is remembered of a section.
#[derive(Default)]
struct Section {
    steps: Vec<Step>,
    /// How many steps it had the last time.
    length: usize,
    /// How often it has come with as many steps.
    times: u64,
}

/// A command of a section.
struct Step {
    /// Its token the last time.
    token: u64,
    /// Whether its token has ever been another one.
    varies: bool,
    /// Whether it has ever read a tensor of varying shape.
    reads: bool,
}

impl Step {
    fn new(token: u64) -> Step {
        Step { token, varies: false, reads: false }
    }

    /// Whether it has been the same each time.
    fn is_stable(&self) -> bool {
        !self.varies && !self.reads
    }
}

impl Sections {
    /// Whether a command begins a section.
    #[inline]
    pub fn begins(command: &ClientCommand) -> bool {
        matches!(command, ClientCommand::Run(instruction) if instruction.operation.data_dependent)
    }

    /// Takes a command that makes tensors. Gives the number of steps of the run that begins with it,
    /// if one does in a section that has come `threshold` times.
    #[inline]
    pub fn step(&mut self, token: u64, command: &ClientCommand, threshold: u64) -> Option<usize> {
        if Sections::begins(command) {
            self.begin(command);
        }
        let (key, at) = self.current?;
        if at >= LONGEST {
            self.leave();
            return None;
        }
        self.current = Some((key, at + 1));
        let section = self.known.get_mut(&key)?;
        if at == section.steps.len() {
            section.steps.push(Step { varies: at == 0, ..Step::new(token) });
        }
        let step = &mut section.steps[at];
        step.varies |= std::mem::replace(&mut step.token, token) != token;
        if let ClientCommand::Run(instruction) = command {
            let mut read = instruction.operands.iter().filter_map(Operand::tensor);
            step.reads |= read.any(|id| self.varied.contains(id));
            if step.varies {
                let outputs = 0..instruction.results.len() as u64;
                self.varied.extend(outputs.map(|index| TensorId(instruction.output.0 + index)));
            }
        }
        let is_new_run = section.steps[at].is_stable() && !section.steps[at - 1].is_stable();
        if section.times < threshold || !is_new_run {
            return None;
        }
        let length = section.steps[at..].iter().take_while(|step| step.is_stable()).count();
        (length >= SHORTEST).then_some(length)
    }

    /// Whether the stream is in no section.
    #[inline]
    pub fn are_out(&self) -> bool {
        self.current.is_none()
    }

    /// Forgets that a tensor is of varying shape.
    #[inline]
    pub fn free(&mut self, id: TensorId) {
        if !self.varied.is_empty() {
            self.varied.remove(&id);
        }
    }

    /// Ends the section that the stream is in.
    pub fn leave(&mut self) {
        if let Some((key, length)) = self.current.take()
            && let Some(section) = self.known.get_mut(&key)
        {
            // With another number of steps than before, as in a loop's first round, it was not the
            // same steps that were compared.
            if length != std::mem::replace(&mut section.length, length) {
                section.times = 1;
                section.steps.truncate(length);
                self.varied.clear();
                for (at, step) in section.steps.iter_mut().enumerate() {
                    *step = Step { varies: at == 0, ..Step::new(step.token) };
                }
            }
        }
    }

    fn begin(&mut self, command: &ClientCommand) {
        let ClientCommand::Run(instruction) = command else { return };
        let before = self.current.map_or(0, |(_, length)| length);
        self.leave();
        let key = (instruction.operation.id, instruction.source, before);
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            self.known.clear();
        }
        self.known.entry(key).or_default().times += 1;
        self.current = Some((key, 0));
    }
}
