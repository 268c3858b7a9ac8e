//! Sends a session's planned commands to its workers, and accounts for their credit.

use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::{LaneId, SlotId, WorkerCommand};

use crate::dispatcher::Outbox;
use crate::observability::Observability;
use crate::sessions::Session;
use crate::workers::Workers;

/// The dispatcher state that sending a session's commands touches.
pub(crate) struct Delivery<'a> {
    pub now: Duration,
    pub session: &'a mut Session,
    pub workers: &'a mut Workers,
    pub observability: &'a mut Observability,
    pub outbox: &'a mut Outbox,
}

impl Delivery<'_> {
    /// Sends each lane its commands, `of` a client's batch. The client gets `weight` back when all
    /// lanes have completed theirs.
    pub fn send(self, mut lists: Vec<(SlotId, Vec<WorkerCommand>)>, weight: u64, of: Option<u64>) {
        let Delivery { now, session, workers, observability, outbox } = self;
        let (number, run, is_on) = (session.number, session.run, observability.is_on());
        let slots = &session.catalogue.slots;
        // Also those that plans do not use: tensors may be there.
        if slots.every().count() > 1 {
            for (slot, commands) in &mut lists {
                if session.flow.tell_slots(*slot, slots.moves()) {
                    commands.insert(0, WorkerCommand::Slots(slots.hosts()));
                }
            }
        }
        let weigh = |commands: &[WorkerCommand]| commands.iter().map(WorkerCommand::weight).sum();
        let weights = lists.iter().map(|(slot, commands)| (*slot, weigh(commands)));
        let mut given = session.flow.send(weight, of, weights);
        for (slot, commands) in lists {
            let host = slots.host(slot).and_then(|worker| workers.get_by_id(worker));
            let Some(worker) = host else {
                given += session.flow.lose(slot);
                continue;
            };
            worker.owe(now, weigh(&commands));
            if is_on {
                observability.dispatched(now, (worker.id, worker.name.as_str()), number, &commands);
            }
            let lane = LaneId { session: run, slot };
            outbox.push(worker.peer, Message::Work { lane, commands });
        }
        session.give_back(outbox, given);
    }
}
