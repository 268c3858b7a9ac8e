//! Sessions without a worker: fails the requests that can be answered without one.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Answer, Failure};
use gt_ir::ops::commit::is_commit;
use gt_ir::{ClientCommand, SourceId};
use rustc_hash::FxHashSet;

use crate::peer::PeerOutbox;
use crate::sessions::ClientSession;

/// Answers queued fetches of lost tensors, and fails the instructions that read them. Returns the
/// weight that this completes.
///
/// # Errors
/// A command is not valid.
pub(crate) fn fail_lost(
    now: Duration,
    session: &mut ClientSession,
    outbox: &mut PeerOutbox,
) -> Result<u64, String> {
    let (catalogue, peer) = (&mut session.planning.catalogue, session.identity.peer);
    let (mut done, mut last) = (0, None);
    for batch in &mut session.queue.batches {
        // Dependencies are known between single instructions only.
        let expanded =
            session.planning.templates.expand_all(&mut batch.commands, &mut session.planning.plans);
        expanded.map_err(|error| error.to_string())?;
        let mut lost_here = 0;
        batch.commands.retain(|command| {
            let lost = match command {
                // A commit may have old values to go back to.
                ClientCommand::Run(instruction) if is_commit(instruction.operation) => None,
                ClientCommand::Run(instruction) => {
                    let lost = instruction.reads().find_map(|id| catalogue.failure(id));
                    if let Some(failure) = &lost {
                        for (id, _) in instruction.outputs() {
                            catalogue.fail(id, Arc::clone(failure));
                        }
                    }
                    lost
                }
                ClientCommand::Fetch { request, tensor, .. } => {
                    let lost = catalogue.failure(*tensor);
                    if let Some(failure) = &lost {
                        let result = Err((**failure).clone());
                        outbox.push(peer, Answer { request: *request, result });
                        last = Some(Arc::clone(failure));
                    }
                    lost
                }
                _ => None,
            };
            lost_here += if lost.is_some() { command.weight() } else { 0 };
            lost.is_none()
        });
        done += batch.give_up(lost_here);
    }
    session.queue.batches.retain(|batch| !batch.commands.is_empty());
    if let Some(failure) = last {
        session.note_error(now, &failure);
    }
    Ok(done)
}

/// Fails the requests of a session that has waited too long for a worker. Returns the weight that
/// this completes.
pub(crate) fn fail_all(
    now: Duration,
    session: &mut ClientSession,
    outbox: &mut PeerOutbox,
    limit: Duration,
) -> u64 {
    let seconds = limit.as_secs_f64();
    let reason = format!(
        "no worker is connected to the server, and none connected within {seconds} s\n  hint: start one with `gt worker --address HOST:PORT`"
    );
    let failure = Failure::new("fetch", reason, "", SourceId::default());
    let mut done = 0;
    let mut asked = FxHashSet::default();
    for batch in &mut session.queue.batches {
        let mut given_up = 0;
        batch.commands.retain(|command: &ClientCommand| {
            let Some(request) = command.request() else { return true };
            asked.insert(request);
            let result = Err(failure.clone());
            outbox.push(session.identity.peer, Answer { request, result });
            given_up += command.weight();
            false
        });
        done += batch.give_up(given_up);
    }
    session.queue.batches.retain(|batch| !batch.commands.is_empty());
    // Requests in the log that are to be replayed fail now, and are not requested by the replay.
    if let Some(lineage) = &mut session.lineage
        && lineage.log.is_replaying()
    {
        for request in lineage.log.unanswered() {
            if asked.insert(request) {
                let result = Err(failure.clone());
                outbox.push(session.identity.peer, Answer { request, result });
            }
        }
    }
    if !asked.is_empty() {
        session.note_error(now, &failure);
    }
    done
}
