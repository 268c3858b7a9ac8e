//! Loops with data-dependent shapes. After an awaited count, as for `x[mask]`, shapes may differ
//! from round to round, so the loop never repeats as a whole.
//!
//! The commands between two such counts are a *section*. A section is compared with the same one of
//! the previous round, command by command: sequences of commands that are equal each time, and read
//! only results of such commands, can be hot paths by themselves.

use gt_ir::{ClientCommand, Operand, SourceId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Longer sections are not compared; inner loops of theirs are found by their period.
const MAX_STEPS: usize = 2048;
/// The shortest run for which a template pays.
const MIN_RUN: usize = 8;
/// The most sections that are remembered.
const MAX_SECTIONS: usize = 64;

/// The sections of a stream so far.
#[derive(Default)]
pub struct Sections {
    /// By their first instruction, and the length of the previous section: a line may start
    /// several.
    sections: FxHashMap<SectionKey, Section>,
    /// The current section, and the number of its commands so far.
    current: Option<(SectionKey, usize)>,
    /// The live tensors of varying shapes.
    varied: FxHashSet<TensorId>,
}

/// The operation and line of an instruction, and the length of the section before it.
type SectionKey = (u16, SourceId, usize);

/// A section, as in its last round.
#[derive(Default)]
struct Section {
    steps: Vec<SectionStep>,
    /// The number of its steps the last time.
    length: usize,
    /// How often it has had this number of steps.
    times: u64,
}

/// A command of a section.
struct SectionStep {
    /// Its token the last time.
    token: u64,
    /// Whether its token has ever differed.
    varies: bool,
    /// Whether it has ever read a tensor of varying shape.
    reads: bool,
}

impl SectionStep {
    fn new(token: u64) -> SectionStep {
        SectionStep { token, varies: false, reads: false }
    }

    /// Returns whether it has been the same each time.
    fn is_stable(&self) -> bool {
        !self.varies && !self.reads
    }
}

impl Sections {
    /// Returns whether a command starts a section.
    #[inline]
    pub fn begins(command: &ClientCommand) -> bool {
        matches!(command, ClientCommand::Run(instruction) if instruction.operation.data_dependent)
    }

    /// Processes a command that makes tensors. Returns the number of steps of the run that starts
    /// with it, if one does in a section that has occurred `threshold` times.
    #[inline]
    pub fn step(&mut self, token: u64, command: &ClientCommand, threshold: u64) -> Option<usize> {
        if Sections::begins(command) {
            self.begin(command);
        }
        let (key, at) = self.current?;
        if at >= MAX_STEPS {
            self.leave();
            return None;
        }
        self.current = Some((key, at + 1));
        let section = self.sections.get_mut(&key)?;
        if at == section.steps.len() {
            section.steps.push(SectionStep { varies: at == 0, ..SectionStep::new(token) });
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
        (length >= MIN_RUN).then_some(length)
    }

    /// Returns whether the stream is outside sections.
    #[inline]
    pub fn is_outside(&self) -> bool {
        self.current.is_none()
    }

    /// Removes a tensor from those of varying shape.
    #[inline]
    pub fn free(&mut self, id: TensorId) {
        if !self.varied.is_empty() {
            self.varied.remove(&id);
        }
    }

    /// Ends the section that the stream is in.
    pub fn leave(&mut self) {
        if let Some((key, length)) = self.current.take()
            && let Some(section) = self.sections.get_mut(&key)
        {
            // If the number of steps has changed, as in a loop's first round, different steps were
            // compared.
            if length != std::mem::replace(&mut section.length, length) {
                section.times = 1;
                section.steps.truncate(length);
                self.varied.clear();
                for (at, step) in section.steps.iter_mut().enumerate() {
                    *step = SectionStep { varies: at == 0, ..SectionStep::new(step.token) };
                }
            }
        }
    }

    fn begin(&mut self, command: &ClientCommand) {
        let ClientCommand::Run(instruction) = command else { return };
        let before = self.current.map_or(0, |(_, length)| length);
        self.leave();
        let key = (instruction.operation.id, instruction.source, before);
        if self.sections.len() >= MAX_SECTIONS && !self.sections.contains_key(&key) {
            self.sections.clear();
        }
        self.sections.entry(key).or_default().times += 1;
        self.current = Some((key, 0));
    }
}
