//! What workers answer, on its way to the clients that asked.

use std::time::Duration;

use gt_ir::message::{Failure, Message, WorkerStats};
use gt_ir::{Command, Content, RequestId, SourceId};

use crate::dispatcher::{Dispatcher, PeerId};
use crate::log::Event;

impl Dispatcher {
    /// Passes a worker's answer on to the client that asked.
    pub(crate) fn answer(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: RequestId,
        result: Result<Content, Failure>,
    ) {
        // Only the worker that was asked may answer.
        if self.requests.get(&request).is_none_or(|open| open.worker != peer) {
            return;
        }
        let request = self.requests.remove(&request).expect("it was there a line ago");
        if let Some(log) = &mut self.log {
            let bytes = result.as_ref().map_or(0, |content| content.meta().bytes());
            let success = result.is_ok();
            let details = format_args!("success={success}");
            if let Some(worker) = self.pool.get(peer) {
                log.write(now, Event::WorkerRecv, &worker.name, "WorkerGetData", bytes, details);
            }
            if let Some(session) = self.sessions.get(&request.client) {
                log.write(now, Event::Send, &session.label, "GetData", bytes, details);
            }
        }
        if let Ok(Content::Shared { block, .. }) = &result {
            self.blocks.insert(block.token, (peer, request.client));
        }
        self.outbox.push((request.client, Message::Value { request: request.original, result }));
    }

    /// One more worker's statistics for a survey; answered when all are in.
    pub(crate) fn survey(
        &mut self,
        _now: Duration,
        request: RequestId,
        stats: Option<WorkerStats>,
    ) {
        let Some(survey) = self.surveys.get_mut(&request) else { return };
        survey.workers.extend(stats);
        survey.open = survey.open.saturating_sub(1);
        if survey.open == 0 {
            let mut survey = self.surveys.remove(&request).expect("it was there a line ago");
            survey.workers.sort_by(|a, b| a.name.cmp(&b.name));
            let answer = Message::Statistics { request: survey.original, workers: survey.workers };
            self.outbox.push((survey.client, answer));
        }
    }

    /// Answers the requests of a session that has waited too long for a worker.
    pub(crate) fn fail_waiting(&mut self, now: Duration, peer: PeerId) {
        let seconds = self.limits.worker_wait.as_secs_f64();
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        let reason = format!(
            "no worker is connected to the server, and none came within {seconds} s\n  hint: start one with `python -m gt.worker --host HOST --port PORT`"
        );
        session.waiting_since = Some(now);
        for batch in &mut session.queue {
            batch.retain(|command| {
                let (Command::Fetch { request, .. } | Command::Stats { request }) = command else {
                    return true;
                };
                let failure = Failure {
                    operation: "fetch".into(),
                    reason: reason.clone(),
                    worker: String::new(),
                    line: SourceId::default(),
                };
                let answer = Message::Value { request: *request, result: Err(failure) };
                self.outbox.push((peer, answer));
                false
            });
        }
        session.queue.retain(|batch| !batch.is_empty());
        if session.queue.is_empty() {
            session.waiting_since = None;
        }
    }
}
