//! Collective calls of engines: when all members of a group are due, each makes its call on a
//! thread of its own.

use std::thread;

use gt_dispatcher::PeerId;
use gt_ir::EngineCollective;
use gt_worker::{Out, Work};

use crate::world::World;

impl World {
    /// Makes the calls of each group whose members are all due, or one of which is dead.
    /// `given_up`: no other member will make its call.
    pub(crate) fn let_meet(&mut self, given_up: bool) {
        while let Some((members, is_complete)) = self.next_meeting(given_up) {
            if let Some(hub) = &self.hub {
                hub.set_hopeless(!is_complete);
            }
            let mut called: Vec<(PeerId, Box<dyn Work>)> = Vec::new();
            for peer in members {
                called.extend(self.workers.remove_entry(&peer));
            }
            let outs: Vec<(PeerId, Vec<Out>)> = thread::scope(|scope| {
                let calls: Vec<_> = called
                    .iter_mut()
                    .map(|(peer, worker)| {
                        scope.spawn(|| {
                            let mut out = Vec::new();
                            worker.join(&mut out);
                            (*peer, out)
                        })
                    })
                    .collect();
                calls.into_iter().map(|call| call.join().expect("calls do not panic")).collect()
            });
            self.workers.extend(called);
            for (peer, out) in outs {
                self.send_out(peer, out);
                self.schedule_turn(self.now, peer);
                for (departure, flight) in self.waiting.remove(&peer).unwrap_or_default() {
                    self.links.put_back(self.now, departure, flight);
                }
            }
        }
    }

    /// Returns the members of a group that make their call now, and whether these are all. Workers
    /// that wait for others handle no messages until the call ends.
    fn next_meeting(&mut self, given_up: bool) -> Option<(Vec<PeerId>, bool)> {
        let due: Vec<(PeerId, &EngineCollective)> =
            self.workers.iter().filter_map(|(peer, worker)| Some((*peer, worker.due()?))).collect();
        for (_, engine_collective) in &due {
            let there =
                due.iter().filter(|(_, other)| other == engine_collective).map(|(peer, _)| *peer);
            let there: Vec<PeerId> = there.collect();
            let is_dead = |member| match self.worker_peers.get(member) {
                Some(peer) => !self.workers.contains_key(peer),
                None => true,
            };
            let is_complete = there.len() == engine_collective.members.len();
            if is_complete
                || given_up
                || engine_collective.members.iter().any(|member| is_dead(&member.worker))
            {
                return Some((there, is_complete));
            }
        }
        let waiting: Vec<PeerId> = due.into_iter().map(|(peer, _)| peer).collect();
        waiting.into_iter().for_each(|peer| {
            self.waiting.entry(peer).or_default();
        });
        None
    }
}
