//! The recording of the plan of one step of a program, for a watcher. The session does not notice: an
//! iteration of a hot path is planned once more, on a copy of the catalogue.

use std::time::Duration;

use gt_ir::ClientCommand;
use gt_ir::ops::commit::is_commit;
use gt_ir::template::expand;

use super::Planning;
use crate::planner::{Catalogue, PlanRecorder, Planner};
use crate::templates::ClientTemplates;

/// How long the beginning of a step is awaited before any instructions are recorded, and how long a
/// recording lasts.
const BEGIN_WITHIN: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(1);
/// The most operations of an explanation.
const MOST_STEPS: usize = 1000;
/// The most batches that are planned once more: each takes a copy of the catalogue.
const MOST_COPIES: u32 = 16;

/// A recording of what is planned for a session.
pub(crate) struct StepRecording {
    asked: Duration,
    /// When the first recorded batch was planned.
    begun: Option<Duration>,
    /// Whether the last batch ended a step of the program.
    is_at_end: bool,
    recorder: PlanRecorder,
    copies: u32,
    /// Whether the session's own plan of the present batch is being recorded.
    is_lent: bool,
}

/// A complete recording.
pub(crate) struct RecordedStep {
    pub at: Duration,
    pub recorder: PlanRecorder,
    /// Whether the program's step was longer.
    pub is_cut: bool,
}

/// What a batch is to a recording.
struct BatchKind {
    /// Whether it has parts of iterations, and the first begins one.
    is_hot: bool,
    begins_iteration: bool,
    /// Whether it ends an iteration or commits new values.
    ends_step: bool,
    /// Whether it changes what commands mean, or is explained to the program itself.
    is_special: bool,
}

impl StepRecording {
    pub fn new(now: Duration) -> StepRecording {
        StepRecording {
            asked: now,
            begun: None,
            is_at_end: false,
            recorder: PlanRecorder::default(),
            copies: 0,
            is_lent: false,
        }
    }

    /// Records the plan of a batch that is planned next, if the step that is recorded has begun.
    pub fn before(
        &mut self,
        now: Duration,
        batch: &[ClientCommand],
        planning: &mut Planning,
        planner: &mut Planner,
    ) {
        let kind = BatchKind::of(batch, &planning.templates);
        let begins = if kind.is_hot { kind.begins_iteration } else { self.is_at_end };
        let is_late = now >= self.asked + BEGIN_WITHIN;
        if self.begun.is_none() && (begins || is_late) {
            self.begun = Some(now);
        }
        self.is_at_end = kind.ends_step;
        if self.begun.is_none() || kind.is_special || planning.catalogue.recorder.is_some() {
            return;
        }
        if kind.is_hot {
            self.copies += 1;
            let commands = expanded(batch, &planning.templates);
            let recorder = std::mem::take(&mut self.recorder);
            self.recorder = planner.rehearse(&planning.catalogue, recorder, commands);
        } else {
            planning.catalogue.recorder = Some(std::mem::take(&mut self.recorder));
            self.is_lent = true;
        }
    }

    /// Ends the recording of a batch that was planned. Returns whether the recording is complete.
    pub fn after(&mut self, now: Duration, catalogue: &mut Catalogue) -> bool {
        if std::mem::take(&mut self.is_lent) {
            self.recorder = catalogue.recorder.take().unwrap_or_default();
        }
        let Some(begun) = self.begun else { return false };
        let is_complete = self.is_at_end && self.recorder.steps() > 0;
        let is_long = now >= begun + LONGEST && self.recorder.steps() > 0;
        is_complete || is_long || self.recorder.steps() > MOST_STEPS || self.copies >= MOST_COPIES
    }

    /// Returns what was recorded.
    pub fn finish(mut self) -> RecordedStep {
        let is_longer = self.recorder.limit(MOST_STEPS);
        let is_cut = is_longer || !self.is_at_end;
        RecordedStep { at: self.begun.unwrap_or(self.asked), recorder: self.recorder, is_cut }
    }
}

/// Returns the commands of a batch, with those of iterations in place of invocations.
fn expanded(batch: &[ClientCommand], templates: &ClientTemplates) -> Vec<ClientCommand> {
    let mut commands = Vec::new();
    for command in batch {
        let ClientCommand::Invoke(invocation) = command else {
            commands.push(command.clone());
            continue;
        };
        // The planner reports an invocation that does not fit its template.
        let instance = templates.instance(invocation.template).cloned();
        let Some(mut instance) = instance else { break };
        let Ok(freed) = instance.take(invocation) else { break };
        commands.extend(expand(&instance, invocation, freed));
        commands.extend(invocation.others.iter().copied().map(ClientCommand::Free));
    }
    commands
}

impl BatchKind {
    fn of(batch: &[ClientCommand], templates: &ClientTemplates) -> BatchKind {
        let mut kind = BatchKind {
            is_hot: false,
            begins_iteration: false,
            ends_step: false,
            is_special: false,
        };
        for command in batch {
            match command {
                ClientCommand::Invoke(invocation) => {
                    let length = templates.get(invocation.template).map(|of| of.steps.len());
                    kind.begins_iteration |= !kind.is_hot && invocation.part.first == 0;
                    kind.is_hot = true;
                    kind.ends_step |= length == Some(invocation.part.last as usize);
                }
                ClientCommand::Run(run) => kind.ends_step |= is_commit(run.operation),
                ClientCommand::Create(_) | ClientCommand::Free(_) | ClientCommand::Fetch { .. } => {
                }
                ClientCommand::Explain { .. }
                | ClientCommand::Define(_)
                | ClientCommand::Forget { .. }
                | ClientCommand::Signal { .. }
                | ClientCommand::Strict { .. }
                | ClientCommand::Rescale(_)
                | ClientCommand::Abandon => kind.is_special = true,
                _ => {}
            }
        }
        kind
    }
}
