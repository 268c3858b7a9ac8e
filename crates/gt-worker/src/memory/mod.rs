//! What commands need in memory, and what lanes may hold.
//!
//! Before a command runs, the worker computes the bytes that it needs ([`need`]) and the bytes that
//! its lane may hold ([`limits`]): the quotas of its user, and the memory of the worker. If the
//! command does not fit, the lane's turn ends, and the worker finds memory for it or has it wait
//! (`worker/shortage.rs`); a command for which there will be none fails ([`failure`]).

mod failure;
mod limits;
mod need;

pub(crate) use failure::{ExceededLimit, NoRoom, bytes};
pub(crate) use limits::{Grant, LaneMemory, Need, records};
pub(crate) use need::{Peak, bytes_of, dying, made_by, need_of, of_command, peak};
