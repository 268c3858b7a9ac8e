//! Sends a session's planned commands to its workers, and accounts for the credit in flight.

use std::time::Duration;

use gt_ir::message::ServerToWorker;
use gt_ir::{LaneId, SlotId, WorkerCommand};

use crate::observability::Observability;
use crate::peer::PeerOutbox;
use crate::sessions::ClientSession;
use crate::shares::DeviceShares;
use crate::workers::Workers;

/// The dispatcher state that sending a session's commands touches.
pub(crate) struct Delivery<'a> {
    pub now: Duration,
    pub session: &'a mut ClientSession,
    pub workers: &'a mut Workers,
    pub shares: &'a mut DeviceShares,
    pub observability: &'a mut Observability,
    pub outbox: &'a mut PeerOutbox,
}

impl Delivery<'_> {
    /// Sends each lane its commands, `of` a client's batch. The client's credit grows by `weight`
    /// when all lanes have completed theirs.
    pub fn send(self, mut lists: Vec<(SlotId, Vec<WorkerCommand>)>, weight: u64, of: Option<u64>) {
        let Delivery { now, session, workers, shares, observability, outbox } = self;
        let (number, incarnation, takes_events) =
            (session.identity.number, session.identity.incarnation, observability.takes_events());
        let slots = &session.planning.catalogue.slots;
        // Slots beyond those that plans use count as well: they may hold tensors.
        if slots.all().count() > 1 {
            for (slot, commands) in &mut lists {
                if session.flow.needs_slot_hosts(*slot, slots.hosts_version()) {
                    commands.insert(0, WorkerCommand::Slots(slots.hosts()));
                }
            }
        }
        let weigh = |commands: &[WorkerCommand]| commands.iter().map(WorkerCommand::weight).sum();
        let weights = lists.iter().map(|(slot, commands)| (*slot, weigh(commands)));
        let mut returned = session.flow.send(weight, of, weights);
        for (slot, commands) in lists {
            let host = slots.host(slot).and_then(|worker| workers.by_id_mut(worker));
            let Some(worker) = host else {
                returned += session.flow.lose(slot);
                continue;
            };
            worker.add_in_flight(now, weigh(&commands));
            if session.flow.in_flight(slot).0 > 0 {
                let of = (number, &session.identity.entitlement);
                shares.set_active(now, worker.id, of, true);
            }
            if takes_events {
                observability.dispatched(now, (worker.id, worker.name.as_str()), number, &commands);
            }
            let lane = LaneId { incarnation, slot };
            outbox.push(worker.peer, ServerToWorker::Work { lane, commands });
        }
        session.return_credit(outbox, returned);
    }
}
