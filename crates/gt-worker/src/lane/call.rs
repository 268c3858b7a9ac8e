//! A long call that a lane has begun, and what it computes.

use std::time::Duration;

use gt_ir::event::{EventKind, Subject};
use gt_ir::{Instruction, Meta, Operand, SourceId, TensorId};
use smallvec::SmallVec;

use crate::engine::pausable::PausableCall;

/// Shapes and dtypes of operands.
pub(crate) type Metas = SmallVec<[Operand<Meta>; 3]>;

/// The program to run.
pub(crate) struct Launch {
    pub program: u64,
    /// Whether the lane has run it often enough for compiled code.
    pub is_warm: bool,
    /// The number of its operations.
    pub operations: u64,
}

/// A tensor input of a launch.
pub(crate) struct GivenTensor {
    pub id: TensorId,
    pub meta: Meta,
    /// Whether it is not used afterwards.
    pub dies: bool,
}

/// A call of a lane that has begun.
pub(crate) struct LaneCall<T> {
    pub call: Box<dyn PausableCall<T>>,
    pub purpose: Purpose,
    pub state: PauseState,
    /// The bytes that it has allocated, counted as granted.
    pub held: u64,
    /// The time up to which it is charged.
    pub charged: Duration,
    /// The time that it has computed until then, in all and since it was resumed.
    pub taken: Duration,
    pub ran: Duration,
    /// The event that it belongs to.
    pub event: Option<(EventKind, Subject)>,
}

/// Whether a call computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PauseState {
    Running,
    /// It has not reached a cut point yet.
    Pausing,
    Paused,
}

/// What a call computes.
pub(crate) enum Purpose {
    Instruction(Box<(Instruction, Metas)>),
    Launch(Box<BegunLaunch>),
}

/// A program that is being launched.
pub(crate) struct BegunLaunch {
    pub launch: Launch,
    pub given: Vec<GivenTensor>,
    pub kept: Vec<(TensorId, Meta, SourceId)>,
    /// The tensors that are freed after it.
    pub freed: Vec<TensorId>,
    /// The number of commands that it stands for; `None` for a part of an iteration.
    pub commands: Option<usize>,
}

impl<T> LaneCall<T> {
    /// Returns the time that it has computed since it was resumed.
    pub fn ran_at(&self, now: Duration) -> Duration {
        match self.state {
            PauseState::Paused => self.ran,
            _ => self.ran + now.saturating_sub(self.charged),
        }
    }

    /// Counts the time that it has computed since it was last charged; returns that.
    pub fn charge(&mut self, now: Duration) -> Duration {
        let computed = now.saturating_sub(self.charged);
        self.charged = now;
        (self.taken, self.ran) = (self.taken + computed, self.ran + computed);
        computed
    }

    /// Records that it is a batch of this many commands.
    pub fn stands_for(&mut self, commands: usize) {
        if let Purpose::Launch(begun) = &mut self.purpose {
            begun.commands = Some(commands);
        }
    }
}
