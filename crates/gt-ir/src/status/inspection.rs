//! What a session does, and what it holds: the details of one session, which are collected while a
//! watcher asks for them.

use std::time::Duration;

use crate::explain::Explanation;
use crate::ids::SessionId;
use crate::instruction::SourceId;
use crate::operation::Meta;
use crate::record;

/// The details of one session. Times are since the dispatcher started.
#[derive(Clone, PartialEq, Debug)]
pub struct Inspection {
    pub session: SessionId,
    /// Since when its instructions are counted.
    pub since: Duration,
    /// The instructions that were planned since, the most frequent kinds first.
    pub stream: Vec<InstructionCount>,
    /// The number of instructions of kinds that are not listed.
    pub unlisted: u64,
    /// The hot paths that its client has defined, those with the most instructions first.
    pub hot_paths: Vec<HotPathStatus>,
    /// The number of hot paths that are not listed.
    pub unlisted_hot_paths: u64,
    /// The tensors that its program holds; `None` until the program has answered.
    pub held: Option<HeldTensors>,
    /// The latest explanation that was asked for; `None` until it is complete.
    pub explained: Option<ExplainedSteps>,
}

record!(struct Inspection {
    session, since, stream, unlisted, hot_paths, unlisted_hot_paths, held, explained,
});

/// How often an operation was run by a line of the user's program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstructionCount {
    pub operation: String,
    /// The line; empty if it is not known.
    pub line: String,
    /// The signal scope; empty for none.
    pub signal: String,
    pub count: u64,
    /// How many of these were parts of iterations of hot paths.
    pub hot: u64,
    /// The bytes of the results.
    pub bytes: u64,
}

record!(struct InstructionCount { operation, line, signal, count, hot, bytes });

/// A hot path of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotPathStatus {
    pub number: u32,
    /// The number of its instructions, and some of them and of their lines, as text.
    pub steps: u64,
    pub operations: String,
    pub lines: String,
    /// The instructions that were issued as parts of its iterations.
    pub instructions: u64,
}

record!(struct HotPathStatus { number, steps, operations, lines, instructions });

/// The largest tensors that a program holds, the largest first, as the program lists them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeldTensors {
    /// When the program listed them.
    pub at: Duration,
    pub largest: Vec<HeldTensor>,
    /// The number of others, and their bytes.
    pub others: u64,
    pub other_bytes: u64,
}

record!(struct HeldTensors { at, largest, others, other_bytes });

/// A tensor that a program holds.
#[derive(Clone, PartialEq, Debug)]
pub struct HeldTensor {
    /// The variable that refers to it, such as `model.fc1.weight`; empty if none does.
    pub variable: String,
    /// The line that made it; empty if it is not known.
    pub line: String,
    pub meta: Meta,
    /// Why it is held besides, such as for a gradient; empty if a variable holds it.
    pub purpose: String,
}

record!(struct HeldTensor { variable, line, meta, purpose });

/// The plan of a part of a session's stream: from one step of the program to the next, if it is short
/// enough.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ExplainedSteps {
    /// When its first instruction was planned.
    pub at: Duration,
    pub explanation: Explanation,
    /// The lines that are known.
    pub lines: Vec<(SourceId, String)>,
    /// Whether the program's step was longer than what is explained.
    pub is_cut: bool,
}

record!(struct ExplainedSteps { at, explanation, lines, is_cut });
