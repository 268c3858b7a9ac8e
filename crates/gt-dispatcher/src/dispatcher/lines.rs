//! Asks clients for the lines of their programs that watchers are shown.

use gt_ir::SourceId;
use gt_ir::message::ServerToClient;

use super::Dispatcher;
use crate::peer::PeerId;

impl Dispatcher {
    /// Asks a client for the lines of its templates, of the value that it waits for and of its last
    /// error, unless it was asked before.
    pub(super) fn ask_lines(&mut self, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let (planning, lines) = (&session.planning, &mut session.lines);
        let mut missing = Vec::new();
        let definitions = planning.templates.definitions();
        if lines.definitions != definitions {
            missing = lines.missing(planning.templates.lines());
            // The rest is asked for next time.
            if missing.is_empty() {
                lines.definitions = definitions;
            }
            self.observability.forget_hot_paths(session.identity.number);
        }
        if let Some(fetch) = self.answers.oldest(peer) {
            let of_tensor = fetch.source.map(|source| source.line);
            missing.extend(lines.missing(of_tensor.into_iter().chain([fetch.line])));
        }
        if let Some(error) = &session.last_error {
            missing.extend(lines.missing([error.1.line].into_iter()));
        }
        if !missing.is_empty() {
            self.outbox.push(peer, ServerToClient::Lines { lines: missing });
        }
    }

    /// Asks all clients.
    pub(super) fn ask_all_lines(&mut self) {
        self.peers.sessions.peers().into_iter().for_each(|peer| self.ask_lines(peer));
    }

    /// Records the lines that a client was asked for.
    pub(super) fn take_lines(&mut self, peer: PeerId, lines: Vec<(SourceId, String)>) {
        if let Some(session) = self.peers.sessions.get_mut(peer) {
            session.lines.answer(lines);
            self.observability.forget_hot_paths(session.identity.number);
        }
    }
}
