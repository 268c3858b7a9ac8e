//! Activities: the categories of a worker's time, and the division of one event's time into them.

use crate::operation::Family;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// A category of a worker's time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Activity {
    Create,
    Elementwise,
    Reduce,
    Matmul,
    Shape,
    Index,
    /// Sends and receives blocks, or waits in a collective.
    Move,
    Compile,
    /// Reads values for clients.
    Read,
}

impl Activity {
    pub const ALL: [Activity; 9] = [
        Activity::Create,
        Activity::Elementwise,
        Activity::Reduce,
        Activity::Matmul,
        Activity::Shape,
        Activity::Index,
        Activity::Move,
        Activity::Compile,
        Activity::Read,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Activity::Create => "create",
            Activity::Elementwise => "elementwise",
            Activity::Reduce => "reduce",
            Activity::Matmul => "matmul",
            Activity::Shape => "shape",
            Activity::Index => "index",
            Activity::Move => "move",
            Activity::Compile => "compile",
            Activity::Read => "read",
        }
    }

    pub const fn of(family: Family) -> Activity {
        match family {
            Family::Create => Activity::Create,
            Family::Unary | Family::Binary | Family::Ternary => Activity::Elementwise,
            Family::Reduce => Activity::Reduce,
            Family::Matmul | Family::Convolution => Activity::Matmul,
            Family::Reshape | Family::Slice | Family::Concat => Activity::Shape,
            Family::Index => Activity::Index,
        }
    }
}

/// Shares of each activity, in units of 1/255.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mix(pub [u8; Activity::ALL.len()]);

/// Only activities with a share are encoded; most have none.
impl Record for Mix {
    fn write<S: Sink>(&self, to: &mut S) {
        let parts = || self.0.iter().enumerate().filter(|(_, part)| **part > 0);
        to.byte(parts().count() as u8);
        for (activity, part) in parts() {
            to.byte(activity as u8);
            to.byte(*part);
        }
    }

    fn read(from: &mut Source) -> Decoded<Mix> {
        let mut mix = Mix::default();
        for _ in 0..from.byte()? {
            let activity = from.byte()?;
            let part = mix.0.get_mut(usize::from(activity));
            let code = u64::from(activity);
            *part.ok_or(DecodeError::BadCode { what: "an activity", code })? = from.byte()?;
        }
        Ok(mix)
    }
}

impl Mix {
    /// Returns a mix of activities, weighted by cost.
    pub fn new(parts: impl IntoIterator<Item = (Activity, u64)>) -> Mix {
        let mut costs = [0u64; Activity::ALL.len()];
        for (activity, cost) in parts {
            costs[activity as usize] += cost;
        }
        let all: u64 = costs.iter().sum();
        Mix(costs.map(|cost| (cost * 255).checked_div(all).unwrap_or(0) as u8))
    }

    /// The activities with a share; the shares add up to 1.
    pub fn shares(&self) -> impl Iterator<Item = (Activity, f64)> {
        let all: f64 = self.0.iter().map(|&part| f64::from(part)).sum();
        let parts = Activity::ALL.into_iter().zip(self.0);
        parts
            .filter(|(_, part)| *part > 0)
            .map(move |(activity, part)| (activity, f64::from(part) / all))
    }

    /// The activity with the largest share.
    pub fn most(&self) -> Option<Activity> {
        let largest = self.shares().max_by(|(_, a), (_, b)| a.total_cmp(b));
        largest.map(|(activity, _)| activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_divides_by_cost() {
        let parts = [(Activity::Matmul, 300), (Activity::Reduce, 50), (Activity::Matmul, 50)];
        let mix = Mix::new(parts);
        let shares: Vec<(Activity, f64)> = mix.shares().collect();
        assert_eq!(shares.len(), 2);
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(shares.iter().any(|(a, share)| *a == Activity::Matmul && *share > 0.85));
        assert_eq!(mix.most(), Some(Activity::Matmul));
    }

    #[test]
    fn a_mix_of_nothing_has_no_parts() {
        assert_eq!(Mix::new([]).shares().count(), 0);
        assert_eq!(Mix::new([(Activity::Create, 0)]).most(), None);
    }

    #[test]
    fn activities_stand_at_their_places() {
        assert!(Activity::ALL.iter().enumerate().all(|(place, of)| *of as usize == place));
    }
}
