//! What is collected of a session while watchers ask for its details.

use std::time::Duration;

use gt_ir::SourceId;
use gt_ir::status::inspection::{ExplainedSteps, HeldTensor, HeldTensors};

use super::explaining::StepRecording;
use super::stream_counts::StreamCounts;
use crate::peer::short;

/// How long it is kept after the last question.
const KEPT: Duration = Duration::from_secs(10);
/// How often its client is asked for the tensors of its program, and how long an answer is awaited:
/// the program may be computing something else.
const LIST_EVERY: Duration = Duration::from_secs(2);
const LIST_WITHIN: Duration = Duration::from_secs(30);
/// How often a step is explained: an iteration of a hot path is planned once more for it.
const EXPLAIN_EVERY: Duration = Duration::from_secs(1);
/// The most tensors that a client may list.
const MOST_HELD: usize = 50;

/// The details of a session, as far as they are collected.
pub(crate) struct InspectedSession {
    pub since: Duration,
    /// When a watcher asked last.
    asked: Duration,
    pub counts: StreamCounts,
    /// The explanation that is being recorded, and the last complete one.
    pub recording: Option<StepRecording>,
    pub explained: Option<Box<ExplainedSteps>>,
    explain_asked: Option<Duration>,
    /// When the client was asked for the tensors that its program holds, and whether it has answered.
    list_asked: Option<(Duration, bool)>,
    pub held: Option<HeldTensors>,
}

impl InspectedSession {
    pub fn new(now: Duration) -> InspectedSession {
        InspectedSession {
            since: now,
            asked: now,
            counts: StreamCounts::default(),
            recording: None,
            explained: None,
            explain_asked: None,
            list_asked: None,
            held: None,
        }
    }

    /// Notes that a watcher asks, and begins an explanation, unless one is being recorded or was
    /// just before.
    pub fn note_question(&mut self, now: Duration, explain: bool) {
        self.asked = now;
        let is_soon = self.explain_asked.is_some_and(|asked| now < asked + EXPLAIN_EVERY);
        if explain && self.recording.is_none() && !is_soon {
            self.explain_asked = Some(now);
            self.recording = Some(StepRecording::new(now));
        }
    }

    /// Returns whether the client is to be asked for its tensors, and notes that it is.
    pub fn is_list_due(&mut self, now: Duration) -> bool {
        let is_due = match self.list_asked {
            None => true,
            Some((asked, true)) => now >= asked + LIST_EVERY,
            Some((asked, false)) => now >= asked + LIST_WITHIN,
        };
        if is_due {
            self.list_asked = Some((now, false));
        }
        is_due
    }

    /// Returns whether the last question is long ago.
    pub fn is_over(&self, now: Duration) -> bool {
        now > self.asked + KEPT
    }

    /// Takes the client's answer; one that it was not asked for is ignored.
    pub fn take_held(&mut self, now: Duration, mut held: HeldTensors) {
        let Some((_, is_answered @ false)) = &mut self.list_asked else { return };
        *is_answered = true;
        held.at = now;
        held.largest.truncate(MOST_HELD);
        for HeldTensor { variable, line, purpose, .. } in &mut held.largest {
            for text in [variable, line, purpose] {
                *text = short(text);
            }
        }
        self.held = Some(held);
    }

    /// Returns the lines of what is shown.
    pub fn lines(&self, shown: usize) -> Vec<SourceId> {
        let (kinds, _) = self.counts.most_frequent(shown);
        let steps = self.explained.iter().flat_map(|explained| &explained.explanation.steps);
        kinds.iter().map(|(kind, _)| kind.line).chain(steps.map(|step| step.line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_client_is_asked_again_once_it_has_answered() {
        let mut inspected = InspectedSession::new(at(1));
        inspected.note_question(at(9), false);
        assert!(inspected.is_list_due(at(1)));
        assert!(!inspected.is_list_due(at(9)), "it has not answered");
        inspected.take_held(at(9), HeldTensors { others: 3, ..HeldTensors::default() });
        assert_eq!(inspected.held.as_ref().map(|held| (held.at, held.others)), Some((at(9), 3)));
        inspected.take_held(at(9), HeldTensors::default());
        assert_eq!(inspected.held.as_ref().map(|held| held.others), Some(3), "it was not asked");
        assert!(inspected.is_list_due(at(9)));
        assert!(inspected.is_list_due(at(40)), "it does not answer");
        inspected.note_question(at(40), false);
        assert!(!inspected.is_over(at(50)) && inspected.is_over(at(51)));
    }
}
