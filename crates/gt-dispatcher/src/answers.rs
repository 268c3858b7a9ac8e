//! What workers answer, on its way to the clients that asked.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::event::{Event, Kind, Lane, What};
use gt_ir::message::{Failure, Message, WorkerStats};
use gt_ir::{Command, Content, Operand, RequestId, SourceId};

use crate::dispatcher::{Dispatcher, PeerId};
use crate::log::Entry;
use crate::session::Request;
use crate::watch::of_batch;

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
            let success = if result.is_ok() { "True" } else { "False" };
            let details = format_args!("success={success}");
            if let Some(worker) = self.pool.get(peer) {
                log.write(now, Entry::WorkerRecv, &worker.name, "WorkerGetData", bytes, details);
            }
            if let Some(session) = self.sessions.get(&request.client) {
                log.write(now, Entry::Send, &session.label, "GetData", bytes, details);
            }
        }
        if self.watch.wants_events() {
            self.tell_answer(now, &request, &result);
        }
        if let Ok(Content::Shared { block, .. }) = &result {
            self.blocks.insert(block.token, (peer, request.client));
        }
        self.outbox.push((request.client, Message::Value { request: request.original, result }));
    }

    /// Tells watchers that a value goes to its client.
    fn tell_answer(&mut self, now: Duration, request: &Request, result: &Result<Content, Failure>) {
        let Some(session) = self.sessions.get(&request.client) else { return };
        let at = self.watch.time(now);
        let event = Event {
            lane: Lane::Client,
            what: What::Fetch,
            tensor: request.tensor,
            failed: u32::from(result.is_err()),
            bytes: result.as_ref().map_or(0, |content| content.meta().bytes() as u64),
            ..of_batch(Kind::Answer, session, 1, at, at)
        };
        self.watch.add(event);
    }

    /// Answers a question for the status.
    pub(crate) fn answer_status(&mut self, now: Duration, peer: PeerId, request: RequestId) {
        let status = Box::new(self.status(now, peer));
        self.outbox.push((peer, Message::Status { request, status }));
    }

    /// Answers what a watcher asks, which can only be for the status, and once in a message.
    pub(crate) fn answer_watcher(&mut self, now: Duration, peer: PeerId, questions: &[Command]) {
        match questions {
            [Command::Status { request }] => self.answer_status(now, peer, *request),
            _ => self.refuse(now, peer, "a watcher may only ask for the status".into()),
        }
    }

    /// One more worker's statistics for a survey, or none of one that is gone; answered when all
    /// are in.
    pub(crate) fn survey(
        &mut self,
        request: RequestId,
        worker: PeerId,
        stats: Option<WorkerStats>,
    ) {
        let Some(survey) = self.surveys.get_mut(&request) else { return };
        if !survey.open.remove(&worker) {
            return;
        }
        survey.workers.extend(stats);
        if survey.open.is_empty() {
            let mut survey = self.surveys.remove(&request).expect("it was there a line ago");
            survey.workers.sort_by(|a, b| a.name.cmp(&b.name));
            let answer = Message::Statistics { request: survey.original, workers: survey.workers };
            self.outbox.push((survey.client, answer));
        }
    }

    /// While a session has no worker: answers what asks for lost tensors, which none will bring
    /// back, and fails what is made of them.
    pub(crate) fn fail_lost(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        let (tensors, outbox) = (&mut session.tensors, &mut self.outbox);
        let mut done = 0;
        for batch in &mut session.queue {
            // What depends on what is only known of single instructions.
            if let Err(error) = session.templates.expand_all(&mut batch.commands) {
                return self.refuse(now, peer, error.to_string());
            }
            let mut lost_here = 0;
            batch.commands.retain(|command| {
                let lost = match command {
                    Command::Run(instruction) => {
                        let mut operands = instruction.operands.iter().filter_map(Operand::tensor);
                        let lost = operands.find_map(|id| tensors.failure(*id));
                        if let Some(failure) = &lost {
                            tensors.fail(instruction.output, Arc::clone(failure));
                        }
                        lost
                    }
                    Command::Fetch { request, tensor, .. } => {
                        let lost = tensors.failure(*tensor);
                        if let Some(failure) = &lost {
                            let result = Err((**failure).clone());
                            outbox.push((peer, Message::Value { request: *request, result }));
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
        session.queue.retain(|batch| !batch.commands.is_empty());
        self.give_back(peer, done);
    }

    /// Answers the requests of a session that has waited too long for a worker.
    pub(crate) fn fail_waiting(&mut self, now: Duration, peer: PeerId) {
        let seconds = self.limits.worker_wait.as_secs_f64();
        let Some(session) = self.sessions.get_mut(&peer) else { return };
        let reason = format!(
            "no worker is connected to the server, and none came within {seconds} s\n  hint: start one with `python -m gt.worker --host HOST --port PORT`"
        );
        let failure = Failure {
            operation: "fetch".into(),
            reason,
            worker: String::new(),
            line: SourceId::default(),
        };
        session.waiting_since = Some(now);
        let outbox = &mut self.outbox;
        let mut done = 0;
        for batch in &mut session.queue {
            let mut given_up = 0;
            batch.commands.retain(|command| {
                let (Command::Fetch { request, .. }
                | Command::Stats { request }
                | Command::Explain { request, .. }
                | Command::Locate { request, .. }) = command
                else {
                    return true;
                };
                let answer = Message::Value { request: *request, result: Err(failure.clone()) };
                outbox.push((peer, answer));
                given_up += command.weight();
                false
            });
            done += batch.give_up(given_up);
        }
        session.queue.retain(|batch| !batch.commands.is_empty());
        if session.queue.is_empty() {
            session.waiting_since = None;
        }
        self.give_back(peer, done);
    }
}
