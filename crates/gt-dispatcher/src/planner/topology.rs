//! Where workers are, and how fast the links between their machines are: which workers are near each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use gt_ir::WorkerId;
use gt_ir::explain::SlowLink;
use gt_ir::message::LinkRate;

/// The machines of the workers, and the links between them.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Topology {
    machines: Vec<Machine>,
    of: BTreeMap<WorkerId, usize>,
    /// The bytes per second from one machine to another: of the fastest of their links.
    rates: BTreeMap<(usize, usize), u64>,
    /// The fastest of these.
    fastest: u64,
    /// Whether the workers' names are numbers, so that an operator has chosen the order.
    pub is_numbered: bool,
}

#[derive(Clone, PartialEq, Debug)]
struct Machine {
    /// Equal for workers that share memory; empty if its first worker shares none.
    token: String,
    host: String,
    rack: String,
    /// Where other workers reach its first worker.
    endpoint: String,
}

impl Machine {
    fn address(&self) -> Option<&str> {
        address(&self.endpoint)
    }
}

/// Returns the address of a machine in an endpoint, without the port.
fn address(endpoint: &str) -> Option<&str> {
    let (address, _) = endpoint.strip_prefix("tcp://")?.rsplit_once(':')?;
    Some(address)
}

/// The place of a worker, as its hello says.
pub struct Place<'a> {
    /// Equal for workers that share memory; empty for one that shares none.
    pub token: &'a str,
    pub host: &'a str,
    pub rack: &'a str,
    /// The address at which other workers reach it; empty for none.
    pub endpoint: &'a str,
}

/// The distance of machines between which nothing is known.
const FAR: u32 = 10;
/// The distance of machines in one rack.
const IN_RACK: u32 = 8;
/// What is added to the distance for each halving of the rate.
const FOR_HALF: u32 = 10;
/// A link is slow if the fastest carries at least this many times as much.
const SLOW: u64 = 8;

impl Topology {
    /// Adds a worker.
    pub fn add(&mut self, worker: WorkerId, place: &Place) {
        let Place { token, host, rack, endpoint } = *place;
        let is_own = |machine: &Machine| {
            let shares_memory = !token.is_empty() && machine.token == token;
            let address = address(endpoint);
            shares_memory || address.is_some() && machine.address() == address
        };
        let known = self.machines.iter().position(is_own);
        let index = known.unwrap_or_else(|| {
            let [token, host, rack, endpoint] = [token, host, rack, endpoint].map(str::to_string);
            self.machines.push(Machine { token, host, rack, endpoint });
            self.machines.len() - 1
        });
        self.of.insert(worker, index);
    }

    /// Adds what a worker has measured. Both workers have been added before.
    pub fn add_rate(&mut self, from: WorkerId, link: LinkRate) {
        let (Some(&from), Some(&to)) = (self.of.get(&from), self.of.get(&link.to)) else { return };
        if from == to {
            return;
        }
        let known = self.rates.entry((from, to)).or_default();
        *known = link.bytes_per_second.max(*known);
        self.fastest = self.fastest.max(*known);
    }

    /// Returns the items in an order in which neighbours are near: machine by machine, along a path
    /// through the machines that avoids slow links. It begins with the first item. Items on one
    /// machine, and machines between which nothing is known, keep their order; so do all if the
    /// workers are named by numbers.
    pub fn order<T: Copy>(&self, items: &[(T, Option<WorkerId>)]) -> Vec<T> {
        if self.is_numbered {
            return items.iter().map(|(item, _)| *item).collect();
        }
        let mut groups: Vec<(Option<usize>, Vec<T>)> = Vec::new();
        for (item, worker) in items {
            let machine = worker.and_then(|worker| self.of.get(&worker).copied());
            let own = groups.iter_mut().find(|(of, _)| machine.is_some() && *of == machine);
            match own {
                Some((_, group)) => group.push(*item),
                None => groups.push((machine, vec![*item])),
            }
        }
        let machines: Vec<Option<usize>> = groups.iter().map(|(machine, _)| *machine).collect();
        let path = shortest_path(machines.len(), |a, b| self.between(machines[a], machines[b]));
        path.into_iter().flat_map(|at| groups[at].1.iter().copied()).collect()
    }

    /// Returns how far two workers are from each other; 0 on one machine.
    pub fn distance(&self, a: WorkerId, b: WorkerId) -> u32 {
        match (self.of.get(&a), self.of.get(&b)) {
            (Some(a), Some(b)) if a == b => 0,
            (a, b) => self.between(a.copied(), b.copied()),
        }
    }

    /// Returns how many times slower, as a power of two, the link between the machines of two workers
    /// is than the fastest; 0 if it is not much slower.
    pub fn slowness(&self, a: WorkerId, b: WorkerId) -> u32 {
        let machines = self.of.get(&a).zip(self.of.get(&b));
        machines.map_or(0, |(a, b)| self.slowness_between(*a, *b))
    }

    fn slowness_between(&self, a: usize, b: usize) -> u32 {
        let times = self.slow_rate(a, b).map_or(1, |rate| self.fastest / rate.max(1));
        times.checked_ilog2().unwrap_or(0)
    }

    fn between(&self, a: Option<usize>, b: Option<usize>) -> u32 {
        let (Some(a), Some(b)) = (a, b) else { return FAR };
        let (first, second) = (&self.machines[a], &self.machines[b]);
        let is_near = !first.rack.is_empty() && first.rack == second.rack;
        let base = if is_near { IN_RACK } else { FAR };
        base + FOR_HALF * self.slowness_between(a, b)
    }

    /// Returns the rate between two machines, in the slower direction, if it is much lower than that
    /// between others.
    fn slow_rate(&self, a: usize, b: usize) -> Option<u64> {
        let rates = [(a, b), (b, a)].into_iter().filter_map(|pair| self.rates.get(&pair).copied());
        rates.min().filter(|rate| rate.saturating_mul(SLOW) <= self.fastest)
    }

    /// Returns the name of a worker's machine; empty if it is unknown.
    pub fn machine(&self, worker: WorkerId) -> String {
        self.of.get(&worker).map_or_else(String::new, |index| self.name(*index))
    }

    /// Returns the name of a machine, with its address if others have the same name.
    fn name(&self, index: usize) -> String {
        let machine = &self.machines[index];
        let alike = self.machines.iter().filter(|other| other.host == machine.host);
        match machine.address() {
            Some(address) if alike.count() > 1 => format!("{} ({address})", machine.host),
            _ => machine.host.clone(),
        }
    }

    /// Returns the links that are much slower than others, between the machines of these workers.
    pub fn slow_links(&self, workers: &[WorkerId]) -> Vec<SlowLink> {
        let machines: BTreeSet<usize> =
            workers.iter().filter_map(|worker| self.of.get(worker).copied()).collect();
        let pairs = machines.iter().flat_map(|a| machines.range(a + 1..).map(|b| (*a, *b)));
        let slow = pairs.filter_map(|(a, b)| {
            let bytes_per_second = self.slow_rate(a, b)?;
            Some(SlowLink { one: self.name(a), other: self.name(b), bytes_per_second })
        });
        slow.collect()
    }
}

/// Returns a short path through all of `count` points, which begins with the first one: that of
/// nearest neighbours, improved by reversing parts of it (2-opt) while that makes it shorter.
fn shortest_path(count: usize, distance: impl Fn(usize, usize) -> u32) -> Vec<usize> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut path: Vec<usize> = left.drain(..count.min(1)).collect();
    while let Some(last) = path.last().filter(|_| !left.is_empty()) {
        let nearest = (0..left.len()).min_by_key(|&at| distance(*last, left[at]));
        path.push(left.remove(nearest.expect("one is left")));
    }
    // Each pass makes the path shorter, so there is a last one.
    let mut is_shorter = true;
    while std::mem::take(&mut is_shorter) {
        for start in 1..count {
            for end in start + 1..count {
                let after = path.get(end + 1);
                let to_after = |from: usize| after.map_or(0, |&after| distance(from, after));
                let before = path[start - 1];
                let old = distance(before, path[start]) + to_after(path[end]);
                let new = distance(before, path[end]) + to_after(path[start]);
                if new < old {
                    path[start..=end].reverse();
                    is_shorter = true;
                }
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Workers 0, 1, ... on the machines of these names, each of which is in the rack of its first
    /// letter.
    fn topology(machines: &[&str]) -> Topology {
        let mut topology = Topology::default();
        for (worker, machine) in machines.iter().enumerate() {
            let place = Place { token: machine, host: machine, rack: &machine[..1], endpoint: "" };
            topology.add(WorkerId(worker as u32), &place);
        }
        topology
    }

    fn order(topology: &Topology) -> Vec<u32> {
        let items: Vec<_> = topology.of.keys().map(|worker| (worker.0, Some(*worker))).collect();
        topology.order(&items)
    }

    fn rate(to: u32, bytes_per_second: u64) -> LinkRate {
        LinkRate { to: WorkerId(to), bytes_per_second }
    }

    #[test]
    fn workers_of_a_machine_and_machines_of_a_rack_are_neighbours() {
        assert_eq!(order(&topology(&["a1", "b1", "a1", "a2", "b1", "a2"])), [0, 2, 3, 5, 1, 4]);
        let unknown = Topology::default();
        let items = [(7, None), (3, Some(WorkerId(1))), (5, None)];
        assert_eq!(unknown.order(&items), [7, 3, 5]);
        assert_eq!(unknown.order::<u32>(&[]), []);
    }

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_addresses() {
        let mut topology = Topology::default();
        for (worker, endpoint) in ["tcp://10.0.0.1:4000", "tcp://[fe80::2]:4000"].iter().enumerate()
        {
            let place = Place { token: endpoint, host: "box", rack: "", endpoint };
            topology.add(WorkerId(worker as u32), &place);
        }
        assert_eq!(topology.machine(WorkerId(0)), "box (10.0.0.1)");
        assert_eq!(topology.machine(WorkerId(1)), "box ([fe80::2])");
        assert_eq!(topology.machine(WorkerId(2)), "");
        // Containers with one address do not share memory, and are on one machine.
        let place = Place { token: "c", host: "box", rack: "", endpoint: "tcp://10.0.0.1:5000" };
        topology.add(WorkerId(2), &place);
        assert_eq!(topology.distance(WorkerId(0), WorkerId(2)), 0);
        assert_eq!(topology.distance(WorkerId(0), WorkerId(1)), FAR);
    }

    #[test]
    fn workers_with_chosen_numbers_keep_their_order() {
        let mut topology = topology(&["a", "b", "a"]);
        assert_eq!(order(&topology), [0, 2, 1]);
        topology.is_numbered = true;
        assert_eq!(order(&topology), [0, 1, 2]);
    }

    #[test]
    fn a_slow_link_is_avoided() {
        let mut topology = topology(&["x", "y", "z"]);
        assert_eq!(order(&topology), [0, 1, 2]);
        topology.add_rate(WorkerId(0), rate(1, 2_000_000));
        assert_eq!(order(&topology), [0, 1, 2], "nothing is known to be faster");
        topology.add_rate(WorkerId(1), rate(2, 900_000_000));
        assert_eq!(order(&topology), [0, 2, 1]);
        let all: Vec<WorkerId> = topology.of.keys().copied().collect();
        let (one, other) = ("x".into(), "y".into());
        let slow = SlowLink { one, other, bytes_per_second: 2_000_000 };
        assert_eq!(topology.slow_links(&all), [slow]);
        assert_eq!(topology.slow_links(&all[1..]), []);
        // The slower direction counts.
        topology.add_rate(WorkerId(1), rate(0, 900_000_000));
        assert_eq!(order(&topology), [0, 2, 1]);
        // Rates that no link has are no reason to fail.
        for rate_given in [0, 1, u64::MAX] {
            let mut strange = self::topology(&["x", "y", "z"]);
            strange.add_rate(WorkerId(0), rate(1, rate_given));
            assert_eq!(order(&strange).len(), 3);
            strange.add_rate(WorkerId(1), rate(2, u64::MAX));
            assert_eq!(order(&strange).len(), 3);
            assert!(strange.slowness(WorkerId(0), WorkerId(1)) < 64);
        }
        // Another link between the two machines shows that they are not far from each other.
        topology.add_rate(WorkerId(0), rate(1, 800_000_000));
        assert_eq!(order(&topology), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn every_item_has_a_place_and_no_reversal_is_shorter(
            distances in prop::collection::vec(prop::collection::vec(0..100_u32, 9), 9),
        ) {
            let between = |a: usize, b: usize| distances[a.min(b)][a.max(b)];
            let path = shortest_path(9, between);
            prop_assert_eq!(path[0], 0);
            let mut sorted = path.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..9));
            let length = |path: &[usize]| -> u32 {
                path.windows(2).map(|pair| between(pair[0], pair[1])).sum()
            };
            for start in 1..9 {
                for end in start..9 {
                    let mut other = path.clone();
                    other[start..=end].reverse();
                    prop_assert!(length(&path) <= length(&other));
                }
            }
        }
    }
}
