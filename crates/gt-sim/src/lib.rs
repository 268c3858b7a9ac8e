//! The simulation driver: the same cores as everywhere, in virtual time.
//!
//! Every message takes a random time on its way; messages of different links overtake each
//! other, those of one link keep their order, as on a network. Workers can be killed and clients
//! can vanish at any moment. All chance comes from one seed, so that a failure can be replayed.
//!
//! - [`World`]: dispatcher, workers and the clock; `links`: what is under way between them;
//!   `delivery`: who gets it; `meetings`: engines that wait for each other; `accounts`: what is counted.
//! - [`faults`]: links that break, are slow or silent; workers that crash and start again.
//! - [`driver`]: lets a real client session run in it.
//! - [`fabric`]: engines that join each other.
//! - [`chaos`]: worlds made of a seed alone, and what must hold in all of them.
//! - [`hostile`]: a client that sends what none does: an [`honest`] stream, [`mutate`]d.

mod accounts;
mod chance;
pub mod chaos;
mod delivery;
pub mod driver;
pub mod fabric;
pub mod faults;
mod honest;
pub mod hostile;
mod links;
mod meetings;
mod mutate;
mod world;

pub use accounts::Traffic;
pub use links::Delays;
pub use world::World;
