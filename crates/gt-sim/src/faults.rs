//! Fault injection: the failures of links and processes that real drivers may see.
//!
//! The semantics are those of `gt::drivers::network`, except that a client does not reconnect. A
//! link with the dispatcher is never renewed: once it is broken, the dispatcher disconnects the
//! peer, a client's session ends, and a worker's process ends. A link between workers is one-way:
//! when its sender notices that it is broken, it reports all pieces ever sent on it as undelivered,
//! and later ones at once. A silent peer is disconnected after [`SILENCE`]; a link that is slow for
//! less than that only delays messages.

use std::time::Duration;

use gt_dispatcher::PeerId;
use gt_ir::message::{Goodbye, WorkerToServer};

use crate::links::{End, Flight, Load};
use crate::world::World;

/// The time after which a silent link is considered lost, as in `gt_net`.
pub const SILENCE: Duration = Duration::from_secs(6);

/// How long a drain may take, and after which time a drained worker is started again.
const DRAIN: Duration = Duration::from_secs(25);
pub(crate) const START_AGAIN: Duration = Duration::from_millis(300);

/// How soon the ends of a broken link notice.
#[derive(Clone, Copy, Debug)]
pub enum NoticeDelay {
    /// Soon: a process died, and its machine closed the connection.
    Soon,
    /// Only after [`SILENCE`].
    Late,
}

/// A fault. Workers are numbered in the order in which they started.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A worker's process dies; with `restart`, a process with the same name starts after that
    /// time.
    Crash {
        worker: usize,
        notice: NoticeDelay,
        restart: Option<Duration>,
    },
    /// A worker disconnects properly.
    Leave {
        worker: usize,
    },
    /// A worker is to be stopped, and asks to be drained first. One that has a folder for its state is
    /// started again.
    Drain {
        worker: usize,
    },
    /// The link between the dispatcher and a worker breaks.
    CutWorker {
        worker: usize,
        notice: NoticeDelay,
    },
    CutClient {
        client: usize,
        notice: NoticeDelay,
    },
    /// The link from one worker to another breaks.
    CutPeers {
        from: usize,
        to: usize,
        notice: NoticeDelay,
    },
    /// Some workers are unreachable for a while; after [`SILENCE`] they are considered lost.
    Partition {
        workers: [bool; 4],
        length: Duration,
    },
    /// The link from a worker to the dispatcher is slow for a while.
    SlowWorker {
        worker: usize,
        length: Duration,
    },
    SlowPeers {
        from: usize,
        to: usize,
        length: Duration,
    },
    /// Another worker starts.
    Start,
    /// The dispatcher is killed and restarted.
    Restart,
    /// The dispatcher and all workers are killed at once, and restarted.
    PowerCut,
}

impl World {
    /// Schedules a fault for when `after` messages have arrived.
    pub fn plan_fault(&mut self, delivered: u64, fault: Fault) {
        self.planned.push((delivered, fault));
        self.planned.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    }

    /// Injects the faults that are due.
    pub(crate) fn inject(&mut self) {
        while let Some((at, _)) = self.planned.last()
            && *at <= self.delivered
            && let Some((_, fault)) = self.planned.pop()
        {
            self.happen(fault);
        }
    }

    fn happen(&mut self, fault: Fault) {
        let worker = |index: usize| self.came.get(index).copied();
        match fault {
            Fault::Crash { worker: index, notice, restart } => {
                let Some(peer) = worker(index) else { return };
                self.crash(peer, notice);
                if let Some(after) = restart {
                    let load = Load::Start(peer, format!("w{index}"));
                    let (from, to) = (peer.into(), End::Server);
                    self.links.put(self.now + after, Flight { from, to, load });
                }
            }
            Fault::Leave { worker: index } => {
                let Some(peer) = worker(index) else { return };
                if self.workers.contains_key(&peer) {
                    let reason = "the worker was stopped".into();
                    self.send_to_server(peer, Goodbye { reason });
                    self.stop(peer, NoticeDelay::Soon);
                }
            }
            Fault::Drain { worker: index } => {
                let Some(peer) = worker(index) else { return };
                if self.workers.contains_key(&peer) {
                    self.send_to_server(peer, WorkerToServer::Drain { within: DRAIN });
                }
            }
            Fault::CutWorker { worker: index, notice } => {
                let Some(peer) = worker(index) else { return };
                self.cut_off(peer, notice);
            }
            Fault::CutClient { client, notice } => {
                let Some(peer) = self.clients.get(&client).copied() else { return };
                self.cut_off(peer, notice);
            }
            Fault::CutPeers { from, to, notice } => {
                let (Some(from), Some(to)) = (worker(from), worker(to)) else { return };
                self.cut_peers(from, to, notice);
            }
            Fault::Partition { workers, length } => self.part(workers, length),
            Fault::SlowWorker { worker: index, length } => {
                let Some(peer) = worker(index) else { return };
                self.links.hold(peer, End::Server, self.now + length);
            }
            Fault::SlowPeers { from, to, length } => {
                let (Some(from), Some(to)) = (worker(from), worker(to)) else { return };
                self.links.hold(from, to, self.now + length);
            }
            Fault::Restart => self.restart(),
            Fault::PowerCut => self.cut_power(),
            Fault::Start => {
                let name = format!("w{}", self.came.len());
                self.start_worker(name);
            }
        }
    }

    /// When an end will notice a broken link.
    fn noticed(&mut self, notice: NoticeDelay) -> Duration {
        let chance = &mut self.links.chance;
        self.now
            + match notice {
                NoticeDelay::Soon => Duration::from_micros(1 + chance.below(50_000)),
                NoticeDelay::Late => SILENCE - Duration::from_micros(chance.below(3_000_000)),
            }
    }

    fn notify(&mut self, from: impl Into<End>, to: impl Into<End>, notice: NoticeDelay) {
        let (at, from, to) = (self.noticed(notice), from.into(), to.into());
        self.links.put(at, Flight { from, to, load: Load::NoticeDelay });
    }

    /// Breaks the link of a client or a worker with the dispatcher.
    fn cut_off(&mut self, peer: PeerId, notice: NoticeDelay) {
        if self.links.is_broken(peer, End::Server) {
            return;
        }
        self.links.cut(peer, End::Server);
        self.links.cut(End::Server, peer);
        self.notify(peer, End::Server, notice);
        self.notify(End::Server, peer, notice);
    }

    fn cut_peers(&mut self, from: PeerId, to: PeerId, notice: NoticeDelay) {
        if from != to && !self.links.is_broken(from, to) {
            self.links.cut(from, to);
            self.notify(to, from, notice);
        }
    }

    /// Kills a worker's process.
    pub(crate) fn crash(&mut self, worker: PeerId, notice: NoticeDelay) {
        if !self.workers.contains_key(&worker) {
            return;
        }
        if !self.links.is_broken(worker, End::Server) {
            self.links.cut(worker, End::Server);
            self.notify(worker, End::Server, notice);
        }
        self.stop(worker, notice);
    }

    /// Removes a worker's process; messages that it has sent to the dispatcher may still arrive.
    fn stop(&mut self, worker: PeerId, notice: NoticeDelay) {
        self.links.cut(End::Server, worker);
        for other in self.came.clone() {
            self.cut_peers(other, worker, notice);
            self.cut_peers(worker, other, notice);
        }
        self.workers.remove(&worker);
        self.waiting.remove(&worker);
        self.let_meet(false);
    }

    /// Separates some workers from the dispatcher and the other workers.
    fn part(&mut self, inside: [bool; 4], length: Duration) {
        let (now, came) = (self.now, self.came.clone());
        let is_inside = |index: usize| inside.get(index).copied().unwrap_or(false);
        let is_too_long = length >= SILENCE;
        for (index, peer) in came.iter().enumerate().filter(|(index, _)| is_inside(*index)) {
            let outside = came.iter().enumerate().filter(|(other, _)| !is_inside(*other));
            if is_too_long {
                self.cut_off(*peer, NoticeDelay::Late);
            }
            self.links.hold(*peer, End::Server, now + length);
            self.links.hold(End::Server, *peer, now + length);
            for (other, to) in outside {
                debug_assert_ne!(index, other);
                if is_too_long {
                    self.cut_peers(*peer, *to, NoticeDelay::Late);
                    self.cut_peers(*to, *peer, NoticeDelay::Late);
                }
                self.links.hold(*peer, *to, now + length);
                self.links.hold(*to, *peer, now + length);
            }
        }
    }

    /// One end of a broken link notices.
    pub(crate) fn notice(&mut self, from: End, to: End) {
        let reason = "the connection was lost";
        match (from, to) {
            (End::Peer(from), End::Server) => {
                self.dispatcher.disconnect(self.now, from, reason);
                self.send_outbox();
            }
            (End::Server, End::Peer(to)) if self.mailboxes.contains_key(&to) => {
                self.credit.remove(&to);
                let reason = format!("{reason}: the server died or closed it");
                self.mailboxes.entry(to).or_default().push(Goodbye { reason }.into());
            }
            (End::Server, End::Peer(to)) => self.crash(to, NoticeDelay::Soon),
            (End::Peer(from), End::Peer(to)) if self.workers.contains_key(&to) => {
                self.failed.insert((to, from));
                for message in self.sent.remove(&(to, from)).unwrap_or_default() {
                    self.send_to_server(to, message);
                }
            }
            _ => {}
        }
    }
}
