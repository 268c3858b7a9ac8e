//! How workers are connected: their fabrics, machines and links.

use std::collections::BTreeSet;
use std::sync::Arc;

use gt_ir::WorkerId;
use gt_ir::explain::Explanation;
use gt_ir::message::LinkRate;

use super::{RegisteredWorker, Workers};
use crate::peer::PeerId;
use crate::planner::{Fabrics, Network, Place, Slots, Topology};

impl Workers {
    /// Returns how the workers are connected.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Updates how the workers are connected, after a change of them or of their links.
    pub(super) fn update_network(&mut self) {
        let (mut fabrics, mut topology) = (Fabrics::default(), Topology::default());
        for worker in &self.workers {
            let RegisteredWorker { id, name, machine, host, rack, endpoint, .. } = worker;
            topology.add(*id, &Place { token: machine, host, rack, endpoint });
            if let Some(fabric) = &worker.fabric {
                fabrics.add(*id, name, machine, fabric);
            }
        }
        for worker in &self.workers {
            worker.links.values().for_each(|link| topology.add_rate(worker.id, *link));
        }
        let is_numbered = |worker: &RegisteredWorker| worker.name == worker.number.to_string();
        topology.is_numbered = self.workers.iter().all(is_numbered);
        // What has not changed stays the same, as plans depend on it.
        if fabrics != *self.network.fabrics {
            self.network.fabrics = Arc::new(fabrics);
        }
        self.network.topology = Arc::new(topology);
    }

    /// Completes an explanation: which workers have the session's slots, and on which machines.
    pub fn explain(&self, slots: &Slots, planned: Explanation) -> Explanation {
        let topology = &self.network.topology;
        let hosts = slots.numbers().into_iter().map(|(_, slot)| slots.host(slot));
        let machine = |host: Option<WorkerId>| host.map(|host| topology.machine(host));
        Explanation {
            slots: self.workers_by_slot(slots),
            machines: hosts.map(|host| machine(host).unwrap_or_default()).collect(),
            slow_links: topology.slow_links(&slots.hosts()),
            ..planned
        }
    }

    /// Notes what a worker has measured of its links to others. Returns whether that is news.
    pub fn note_links(&mut self, from: PeerId, links: &[LinkRate]) -> bool {
        let Some(index) = self.ids.get(&from).and_then(|id| self.index(*id)) else { return false };
        let is_known = |link: &&LinkRate| self.by_id(link.to).is_some();
        let links: Vec<LinkRate> = links.iter().filter(is_known).copied().collect();
        let known = &mut self.workers[index].links;
        let mut is_news = false;
        for link in links {
            is_news |= known.insert(link.to, link) != Some(link);
        }
        if is_news {
            self.update_network();
        }
        is_news
    }

    /// Chooses the worker that holds the second copy of another's values: one that is not to end, on
    /// another machine if there is one, over the link that is the least slow, the next by id.
    pub fn keeper(
        &self,
        host: WorkerId,
        unreachable: &BTreeSet<(WorkerId, WorkerId)>,
    ) -> Option<WorkerId> {
        let topology = &self.network.topology;
        let others = self
            .iter()
            .filter(|other| other.id != host && !unreachable.contains(&(host, other.id)));
        let order = |other: &&RegisteredWorker| {
            let is_on_same_machine = topology.distance(host, other.id) == 0;
            let slowness = topology.slowness(host, other.id);
            (other.drain.is_some(), is_on_same_machine, slowness, other.id < host, other.id)
        };
        others.min_by_key(order).map(|other| other.id)
    }
}
