//! Memory: the limits of a lane, and what happens when they are reached.
//!
//! A tensor is charged for its buffer ([`charge`]).
//!
//! Before a command runs, the worker computes the bytes that it needs ([`need`]) and the bytes that
//! its lane may hold ([`limits`]): the quotas of its user, and the memory of the worker. If the
//! command does not fit, the lane's turn ends ([`shortage`]):
//!
//! 1. Tensors that no queued command uses before their free are freed.
//! 2. If the worker's memory is exhausted, tensors are spilled ([`spill`]), and unspilled when they
//!    are used.
//! 3. The lane waits for other lanes to free memory. If none will, this command fails.

mod charge;
mod failure;
mod limits;
mod need;
mod shortage;
mod spill;

pub(crate) use limits::{LaneLimits, LaneMemory, Need, records};
pub(crate) use need::{Peak, bytes_of, made_by, need_of, of_command, peak};
pub(crate) use shortage::Shortages;
