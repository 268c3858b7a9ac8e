//! Memory: what a lane may hold, and what happens where there is no room.
//!
//! What a tensor is charged is the buffer that it holds ([`charge`]).
//!
//! Before a command is run, the bytes that it will need are known ([`need`]), and so are those that
//! its lane may hold ([`limits`]): the quotas of its user, and the memory of the worker. If there is
//! no room, the lane's turn is over ([`shortage`]):
//!
//! 1. Tensors that nothing in its queue uses before their free are freed.
//! 2. If it is the worker that has no more memory, tensors are moved elsewhere ([`spill`]), and
//!    come back when they are used.
//! 3. The lane waits for others to free memory. If nobody will, the command fails, and no other.

mod charge;
mod failure;
mod limits;
mod need;
mod shortage;
mod spill;

pub(crate) use limits::{LaneMemory, Limits, Need, records};
pub(crate) use need::{Peak, bytes_of, made_by, need_of, of_command, peak};
pub(crate) use shortage::Shortages;
