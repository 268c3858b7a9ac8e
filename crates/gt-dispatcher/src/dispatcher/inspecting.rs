//! Answers watchers who ask for the details of one session.

use std::time::Duration;

use gt_ir::message::{ServerToClient, ServerToWatcher};
use gt_ir::status::inspection::{
    ExplainedSteps, HeldTensors, HotPathStatus, Inspection, InstructionCount,
};
use gt_ir::template::Template;
use gt_ir::{ClientCommand, RequestId, SessionId, SourceId};

use super::Dispatcher;
use crate::peer::PeerId;
use crate::peers::Peers;
use crate::sessions::{ClientSession, InspectedSession, StepRecording};

/// The most kinds of instructions, and hot paths, that are listed.
const LISTED: usize = 200;

impl Dispatcher {
    /// Answers a watcher who asks for the details of a session, and collects them from now on.
    pub(super) fn inspect(
        &mut self,
        now: Duration,
        peer: PeerId,
        request: RequestId,
        number: SessionId,
        explain: bool,
    ) {
        let result = self.inspected(now, peer, number, explain);
        self.outbox.push(peer, ServerToWatcher::Inspected { request, result });
    }

    fn inspected(
        &mut self,
        now: Duration,
        peer: PeerId,
        number: SessionId,
        explain: bool,
    ) -> Result<Box<Inspection>, String> {
        let user = self.observability.watching_user(peer).map(str::to_string);
        let session = self.peers.sessions.iter_mut().find(|it| it.identity.number == number);
        let ended = || format!("there is no session #{number}: it has ended, or never was");
        let session = session.ok_or_else(ended)?;
        if user.is_some_and(|user| user != session.identity.entitlement.user) {
            return Err("the session is another user's: a user's key shows the details of that user's sessions\n  hint: a watcher's key of the cluster shows all (`gt key --role watcher`)".into());
        }
        let client = session.identity.peer;
        session.inspected.take_if(|inspected| inspected.is_over(now));
        let inspected =
            session.inspected.get_or_insert_with(|| Box::new(InspectedSession::new(now)));
        inspected.note_question(now, explain);
        // Without a client, its program is gone.
        if !session.identity.is_detached && inspected.is_list_due(now) {
            self.outbox.push(client, ServerToClient::ListHeld);
        }
        let lines = inspected.lines(LISTED).into_iter().chain(session.planning.templates.lines());
        let missing = session.lines.missing(lines);
        if !missing.is_empty() {
            self.outbox.push(client, ServerToClient::Lines { lines: missing });
        }
        Ok(Box::new(session.inspection()))
    }

    /// Forgets the details that have not been asked for lately.
    pub(super) fn forget_inspected(&mut self, now: Duration) {
        for session in self.peers.sessions.iter_mut() {
            session.inspected.take_if(|inspected| inspected.is_over(now));
        }
    }

    /// Takes the tensors that a client's program holds.
    pub(super) fn take_held(&mut self, now: Duration, peer: PeerId, held: HeldTensors) {
        if let Some(session) = self.peers.sessions.get_mut(peer)
            && let Some(inspected) = &mut session.inspected
        {
            inspected.take_held(now, held);
        }
    }

    /// Collects what watchers are shown of a batch that is planned next.
    #[cold]
    pub(super) fn inspect_batch(&mut self, now: Duration, peer: PeerId, batch: &[ClientCommand]) {
        let Dispatcher { peers: Peers { sessions, .. }, planner, .. } = self;
        let Some(session) = sessions.get_mut(peer) else { return };
        session.inspected.take_if(|inspected| inspected.is_over(now));
        let Some(inspected) = &mut session.inspected else { return };
        inspected.counts.add(batch, &session.planning.templates);
        if let Some(recording) = &mut inspected.recording {
            recording.before(now, batch, &mut session.planning, planner);
        }
    }

    /// Ends what [`Dispatcher::inspect_batch`] has begun: the batch is planned.
    #[cold]
    pub(super) fn end_inspecting(&mut self, now: Duration, peer: PeerId) {
        let Peers { sessions, workers, .. } = &mut self.peers;
        let Some(session) = sessions.get_mut(peer) else { return };
        let Some(inspected) = &mut session.inspected else { return };
        let catalogue = &mut session.planning.catalogue;
        let is_complete = |recording: &mut _| StepRecording::after(recording, now, catalogue);
        let Some(recording) = inspected.recording.take_if(is_complete) else { return };
        let recorded = recording.finish();
        let (slots, memory) = (&catalogue.slots, catalogue.memory());
        let planned = recorded.recorder.explanation(slots, &memory);
        let explanation = workers.explain(slots, planned);
        let (at, is_cut) = (recorded.at, recorded.is_cut);
        let lines = Vec::new();
        inspected.explained = Some(Box::new(ExplainedSteps { at, explanation, lines, is_cut }));
    }
}

impl ClientSession {
    /// Returns the details that were collected.
    fn inspection(&self) -> Inspection {
        let inspected = self.inspected.as_deref();
        let counted = inspected.map(|inspected| inspected.counts.most_frequent(LISTED));
        let (kinds, unlisted) = counted.unwrap_or_default();
        let signal = |number| self.planning.catalogue.signal(number).map(|of| of.name());
        let stream = kinds.into_iter().map(|(kind, counted)| InstructionCount {
            operation: kind.operation.to_string(),
            line: self.lines.shown(kind.line),
            signal: signal(kind.signal).unwrap_or_default().to_string(),
            count: counted.count,
            hot: counted.hot,
            bytes: counted.bytes,
        });
        let stream = merged(stream.collect());
        let (hot_paths, unlisted_hot_paths) = self.hot_paths();
        let explained = inspected.and_then(|inspected| inspected.explained.as_deref().cloned());
        Inspection {
            session: self.identity.number,
            since: inspected.map_or(self.identity.since, |inspected| inspected.since),
            stream,
            unlisted,
            hot_paths,
            unlisted_hot_paths,
            held: inspected.and_then(|inspected| inspected.held.clone()),
            explained: explained.map(|explained| self.with_lines(explained)),
        }
    }

    /// Returns the hot paths with the most instructions, and the number of others.
    fn hot_paths(&self) -> (Vec<HotPathStatus>, u64) {
        let mut all: Vec<_> = self.planning.templates.all().collect();
        all.sort_unstable_by_key(|(number, _, issued)| (std::cmp::Reverse(*issued), *number));
        let others = all.len().saturating_sub(LISTED) as u64;
        let status = |(number, template, instructions): (u32, &Template, u64)| {
            let (operations, lines) = self.operations_and_lines(&template.steps);
            let steps = template.len() as u64;
            HotPathStatus { number, steps, operations, lines, instructions }
        };
        (all.into_iter().take(LISTED).map(status).collect(), others)
    }

    fn with_lines(&self, mut explained: ExplainedSteps) -> ExplainedSteps {
        let mut lines: Vec<SourceId> =
            explained.explanation.steps.iter().map(|step| step.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let known = |line: SourceId| Some((line, self.lines.text(line)?.to_string()));
        explained.lines = lines.into_iter().filter_map(known).collect();
        explained
    }
}

/// Returns counts with those of equal texts added up, the most frequent first: a line and its gradient
/// are counted apart, as are lines that are not known yet.
fn merged(counts: Vec<InstructionCount>) -> Vec<InstructionCount> {
    let mut all: Vec<InstructionCount> = Vec::with_capacity(counts.len());
    for of in counts {
        let is_like = |other: &&mut InstructionCount| {
            (&other.operation, &other.line, &other.signal) == (&of.operation, &of.line, &of.signal)
        };
        match all.iter_mut().find(is_like) {
            Some(same) => {
                same.count += of.count;
                same.hot += of.hot;
                same.bytes += of.bytes;
            }
            None => all.push(of),
        }
    }
    all.sort_by_key(|of| std::cmp::Reverse(of.count));
    all
}
