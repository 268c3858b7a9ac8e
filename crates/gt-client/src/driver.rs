//! What carries a session's stream to a dispatcher and answers back.

use std::sync::Weak;

use gt_ir::message::Message;
use gt_ir::{ClientCommand, RequestId, TensorData, TensorId};

use crate::error::Result;

/// Asked now and then during a wait; `true` gives up waiting.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> bool;

/// Where commands wait until a driver takes them.
pub trait Outbox: Send + Sync {
    /// Hands what waits to the driver; an iteration of a hot path only once it is complete and nothing
    /// has been added since the last call.
    fn flush(&self);

    /// Whether anything waits.
    fn has_waiting(&self) -> bool;
}

/// When a session hands a batch of commands to its driver, unless somebody waits for it sooner.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// At so many commands,
    pub commands: usize,
    /// or at so much work, in bytes read and written.
    pub work: u64,
}

impl Default for Batches {
    /// Small ones, for drivers to which a batch costs little.
    fn default() -> Batches {
        Batches { commands: 128, work: 128 << 10 }
    }
}

/// Joins a session to a dispatcher, in this process or elsewhere.
pub trait Driver: Send + Sync {
    /// Lets the driver flush the session by itself when commands have waited for a while.
    fn attach(&self, outbox: Weak<dyn Outbox>);

    /// The batches that suit it.
    fn batches(&self) -> Batches {
        Batches::default()
    }

    /// A first command waits in the outbox.
    fn nudge(&self);

    /// Takes the commands of `batch` in order, leaving it empty. Never waits. `work` estimates
    /// what they cost to run: the bytes they read and write, or as many that take as long.
    fn submit(&self, batch: &mut Vec<ClientCommand>, work: u64);

    /// As [`Driver::submit`], for a thread that reads a value next ([`Driver::read`]).
    fn submit_to_read(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        self.submit(batch, work);
    }

    /// The value of a tensor, if it can be had without a request: where it is in this process, and
    /// what is submitted takes less time than to hand it to another thread.
    fn read(&self, _tensor: TensorId) -> Option<TensorData> {
        None
    }

    /// Whether it can ever give a value by [`Driver::read`].
    fn can_read(&self) -> bool {
        false
    }

    /// Whether the window is used up: then the next instruction should wait.
    fn is_full(&self) -> bool;

    /// Waits until there is room in the window.
    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()>;

    /// Waits for the answer to a request that was submitted.
    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Message>;

    /// Drops the answer to a request that nobody waits for, also if it has yet to come.
    fn abandon(&self, request: RequestId);

    /// Ends the session; all that waits gets an error.
    fn close(&self);

    /// The folders in which its workers may read and write files; `None` if that is wherever this
    /// process may.
    fn data_roots(&self) -> Option<Vec<String>>;

    /// What it is connected to, for people.
    fn describe(&self) -> String;
}
