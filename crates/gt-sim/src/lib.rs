//! The simulation driver: the cores in virtual time, with fault injection.
//!
//! Every message takes a random time; as on a network, messages of one link keep their order, and
//! those of different links overtake each other. Workers and clients can die at any moment. All
//! randomness comes from one seed, so that a failure can be replayed.
//!
//! - [`World`]: dispatcher, workers and the clock; `clients`: their hellos and ends; `links`: messages in flight; `delivery`: their
//!   receipt; `meetings`: engines' collective calls; `accounts`: counters.
//! - [`faults`]: links that break, are slow or silent; workers that crash and restart.
//! - [`driver`]: runs a real client session in a world.
//! - [`fabric`]: engines with collectives; `slow`: engines with calls that are
//!   paused; `timed`: engines with virtual time; `forwarding`: what they share.
//! - [`chaos`]: random worlds, and the invariants that hold in all of them.
//! - [`deaths`]: repeated deaths, after which every bit is that of an undisturbed run.
//! - `power`: all processes die at once, and resume from their disks.
//! - [`killers`]: sessions whose operations kill workers, beside others.
//! - [`hostile`]: fuzzing with an [`honest`] stream, [`mutate`]d; [`journal`]: fuzzing of journals.

mod accounts;
mod chance;
pub mod chaos;
mod clients;
pub mod deaths;
mod delivery;
pub mod driver;
pub mod fabric;
pub mod faults;
mod forwarding;
mod honest;
pub mod hostile;
pub mod journal;
pub mod killers;
mod links;
mod meetings;
mod mutate;
mod power;
mod published;
mod restart;
mod slow;
mod timed;
mod world;

pub use accounts::Traffic;
pub use chance::Chance;
pub use links::Delays;
pub use world::World;
