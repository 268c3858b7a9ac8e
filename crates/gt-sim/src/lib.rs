//! The simulation driver: the same cores as everywhere, in virtual time.
//!
//! Every message takes a random time on its way; messages of different links overtake each
//! other, those of one link keep their order, as on a network. Workers can be killed and clients
//! can vanish at any moment. All chance comes from one seed, so that a failure can be replayed.
//!
//! - [`World`]: dispatcher, workers, links and the clock.
//! - [`driver`]: lets a real client session run in it.
//! - [`fabric`]: engines that join each other.

mod chance;
pub mod driver;
pub mod fabric;
mod world;

pub use world::{Delays, Traffic, World};
