//! Incoming messages of a client.

use std::time::Duration;

use gt_ir::event::EmitLevel;
use gt_ir::message::{Answer, ClientToServer, Failure, LARGE_VALUE, Reply, ServerToClient};
use gt_ir::{Content, RequestId, SourceId};
use gt_net::dealer::Wakeup;

use super::super::blocks;
use super::{ClientShared, ClientState};
use crate::drivers::issues;

impl ClientShared {
    /// Handles all messages that have arrived, after waiting for at most `limit`.
    pub(super) fn receive_all(&self, state: &mut ClientState, mut limit: Duration) {
        while state.ended.is_none() {
            let fd = (!limit.is_zero()).then(|| self.wake.fd());
            let wake = Wakeup { fd, ..Wakeup::default() };
            let received = state.link.receive(limit, wake);
            if let Some(weight) = state.link.take_renewed() {
                // The old server knew how much of the rest was complete; the new one does not.
                self.ahead.renew(weight);
            }
            match received {
                Ok(Some(message)) => self.handle(state, message),
                Ok(None) => break,
                Err(error) => state.ended = Some(error.to_string()),
            }
            limit = Duration::ZERO;
        }
        if !limit.is_zero() {
            self.wake.clear();
        }
    }

    fn handle(&self, state: &mut ClientState, message: ServerToClient) {
        match message {
            ServerToClient::Credit(weight) => {
                self.ahead.done(weight);
            }
            ServerToClient::Answer(Answer { request, result }) => {
                let result = match result {
                    Ok(Reply::Value(content)) => self.map(state, request, content),
                    other => other,
                };
                state.answers.put(Answer { request, result });
            }
            ServerToClient::StepUndone(failure) => self.undone.tell(&failure),
            ServerToClient::Notice { text } => tracing::warn!("{text}"),
            ServerToClient::Release { token } => state.blocks.release(token),
            ServerToClient::Observe { level, sent } => {
                let here = self.started.elapsed();
                self.issues.observe(level);
                if level != EmitLevel::Events {
                    state.events.clear();
                }
                self.send(state, &ClientToServer::Observed { sent, here });
            }
            ServerToClient::Lines { lines } => self.send(state, &issues::lines(lines)),
            ServerToClient::ListHeld => {
                if let Some(lister) = self.lister.get() {
                    lister.call();
                }
            }
            // The link has answered it.
            ServerToClient::Confirm { .. } => {}
        }
    }

    /// Maps a value that has arrived, and reports its receipt.
    fn map(
        &self,
        state: &mut ClientState,
        request: RequestId,
        content: Content,
    ) -> std::result::Result<Reply, Failure> {
        // Also for a value that cannot be mapped: it is no longer in flight.
        if content.meta().bytes() as u64 >= LARGE_VALUE {
            self.send(state, &ClientToServer::Received { request });
        }
        match blocks::receive(content) {
            Ok((content, token)) => {
                if let Some(token) = token {
                    self.send(state, &ClientToServer::Release { token });
                }
                Ok(Reply::Value(content))
            }
            Err(reason) => Err(Failure::new("fetch", reason, String::new(), SourceId::default())),
        }
    }
}
