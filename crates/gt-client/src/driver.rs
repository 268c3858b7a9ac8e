//! The driver interface: it carries a session's stream to a dispatcher, and answers back.

use std::sync::Weak;

use gt_ir::message::Answer;
use gt_ir::status::inspection::HeldTensors;
use gt_ir::{ClientCommand, RequestId, SessionId, StreamNumbers, TensorData, TensorId};

use crate::error::Result;

/// Polled during a wait; `true` ends the wait.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> bool;

/// A session's unsent commands, which its driver can flush.
pub trait Outbox: Send + Sync {
    /// Submits the unsent commands to the driver; an iteration of a hot path only once it is
    /// complete and nothing was added since the last call.
    fn flush(&self);

    /// Returns whether commands wait.
    fn has_waiting(&self) -> bool;
}

/// How a program lists the tensors of a session that it holds. It is called while a message is
/// handled: it must not wait, and another thread answers ([`Driver::answer_held`]).
#[derive(Clone, Copy)]
pub struct HeldLister {
    pub list: fn(u64),
    /// The session's number within the process, with which `list` is called.
    pub session: u64,
}

impl HeldLister {
    pub fn call(self) {
        (self.list)(self.session);
    }
}

/// When a session submits a batch of commands to its driver, unless a wait submits it earlier.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// At this many commands,
    pub commands: usize,
    /// or at this much work, in bytes read and written.
    pub work: u64,
}

impl Default for Batches {
    /// Small batches, for drivers with a low cost per batch.
    fn default() -> Batches {
        Batches { commands: 128, work: 128 << 10 }
    }
}

/// Connects a session to a dispatcher, in this process or another.
pub trait Driver: Send + Sync {
    /// Has the driver flush the session by itself when commands have waited for a while.
    fn attach(&self, outbox: Weak<dyn Outbox>);

    /// Returns the batch limits that suit it.
    fn batches(&self) -> Batches {
        Batches::default()
    }

    /// Reports that a first command waits in the outbox.
    fn nudge(&self);

    /// Takes the commands of `batch` in order, leaving it empty. Never waits. `work` estimates
    /// their cost: the bytes that they read and write, or an equivalent.
    fn submit(&self, batch: &mut Vec<ClientCommand>, work: u64);

    /// Like [`Driver::submit`], for a thread that reads a value next ([`Driver::read`]).
    fn submit_to_read(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        self.submit(batch, work);
    }

    /// Returns the value of a tensor without a request, if possible: if it is in this process, and
    /// running the submitted commands takes less time than handing them to another thread.
    fn read(&self, _tensor: TensorId) -> Option<TensorData> {
        None
    }

    /// Returns whether [`Driver::read`] can ever return a value.
    fn can_read(&self) -> bool {
        false
    }

    /// Returns whether the window is full: then the next instruction should wait.
    fn is_full(&self) -> bool;

    /// Waits until there is room in the window.
    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()>;

    /// Waits for the answer to a request that was submitted.
    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Answer>;

    /// Drops the answer to a request that no thread waits for, also if it has not arrived yet.
    fn abandon(&self, request: RequestId);

    /// Ends the session; all waits get an error. A session with a name continues without this client.
    fn close(&self);

    /// Waits until the server needs no memory of this process any more.
    ///
    /// # Errors
    /// The session cannot go on without this process; the connection was lost; interrupted.
    fn settle(&self, _interrupt: Interrupt) -> Result<()> {
        Ok(())
    }

    /// Ends the session, also if it has a name.
    fn end(&self) {
        self.close();
    }

    /// Sets how the program answers a dispatcher that asks which tensors it holds. Only the first
    /// call has an effect.
    fn list_held_by(&self, _lister: HeldLister) {}

    /// Sends the list of tensors that the dispatcher has asked for.
    fn answer_held(&self, _held: HeldTensors) {}

    /// Returns whether it records the values of publications that the session reads.
    fn records_published(&self) -> bool {
        false
    }

    /// Records the values of a tensor of a publication.
    fn record_published(&self, _publication: SessionId, _index: TensorId, _values: TensorData) {}

    /// Returns the numbers with which the session's stream begins.
    fn numbers(&self) -> StreamNumbers {
        StreamNumbers::default()
    }

    /// Returns the folders in which its workers may read and write files; `None` if they may access
    /// what this process may.
    fn data_roots(&self) -> Option<Vec<String>>;

    /// Returns what it is connected to, for display.
    fn describe(&self) -> String;

    /// Returns the name under which the dispatcher shows the session, such as
    /// `train.py ada@box #3`.
    fn name(&self) -> String;
}
