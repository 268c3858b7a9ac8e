//! The log of a lineage: the batches that a client has sent since the base, as received, and
//! digests of the answers that it got.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use gt_ir::message::ClientToServer;
use gt_ir::{ClientCommand, Content, RequestId, SessionId, TensorId, codec};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::journal::{JournalRecord, StoredBatch};
use crate::planner::Slots;
use crate::queue::{Pruned, SlotCount};

/// The size of the largest value of which a digest is stored.
const SMALL: usize = 4 << 10;

/// A hash of an answer's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Returns the digest of a small value; `None` for large ones.
    pub fn of(content: &Content) -> Option<Digest> {
        match content {
            Content::Data(data) if data.bytes.len() <= SMALL => {
                let mut hasher = DefaultHasher::new();
                (data.dtype.name(), data.shape.dims(), &data.bytes[..]).hash(&mut hasher);
                Some(Digest(hasher.finish()))
            }
            _ => None,
        }
    }
}

/// Returns the requests of a batch, without those that concern only the moment, such as status
/// requests.
pub(crate) fn requests(commands: &[ClientCommand]) -> Vec<RequestId> {
    let lasting = commands.iter().filter(|command| !command.is_momentary());
    lasting.filter_map(ClientCommand::request).collect()
}

/// Returns the bytes of the client's shared memory that commands refer to.
pub(crate) fn shared_bytes(commands: &[ClientCommand]) -> u64 {
    let shared = commands.iter().map(|command| match command {
        ClientCommand::Create(create) => match &create.content {
            Content::Shared { block, .. } => block.length,
            _ => 0,
        },
        _ => 0,
    });
    shared.sum()
}

/// Returns the commands of a batch.
///
/// # Errors
/// The frames are not those of a stream.
fn commands_in(frames: &[Bytes]) -> Result<Vec<ClientCommand>, String> {
    match codec::decode(frames) {
        Ok(ClientToServer::Stream(commands)) => Ok(commands),
        Ok(_) => Err("a message of the journal is not a stream".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A batch, as the client sent it.
struct LoggedBatch {
    frames: Vec<Bytes>,
    /// The bytes that it occupies, including the client's shared memory that it refers to.
    bytes: u64,
    /// The weight that the client gets back when the batch is done; 0 if it was returned already.
    weight: u64,
    requests: Vec<RequestId>,
    /// The number of slots when it was planned first, if it was.
    slots: Option<SlotCount>,
    /// The unwanted commands that were not planned.
    pruned: Pruned,
}

/// A batch that is replayed.
pub(crate) struct ReplayedBatch {
    pub number: u64,
    pub commands: Vec<ClientCommand>,
    pub weight: u64,
    /// The number of slots when it was planned first.
    pub slots: Option<SlotCount>,
    /// Unwanted iterations, by their first name and step.
    pub skipped: Vec<(TensorId, u32)>,
}

/// The batches since the base, by number.
#[derive(Default)]
pub(crate) struct BatchLog {
    entries: VecDeque<LoggedBatch>,
    /// The number of the first batch.
    first: u64,
    /// The number of the next batch to replay, if any is left.
    next: Option<u64>,
    bytes: u64,
    /// The answers to requests: `None` until answered, then the digest of a small value.
    requests: FxHashMap<RequestId, Option<KnownAnswer>>,
    /// The unanswered requests of batches that were dropped while the session had no base: they are
    /// in flight, and no replay asks for them.
    dropped: FxHashSet<RequestId>,
    /// The requests that failed: a replay publishes nothing for them.
    failed: FxHashSet<RequestId>,
    /// The messages that the client sends again.
    resent: Option<Resent>,
}

/// The messages that a client sends again after the server was restarted.
struct Resent {
    /// The number of messages that it had sent.
    sent: u64,
    /// The unanswered requests among these messages and the log's.
    waits: FxHashSet<RequestId>,
}

/// The digest of a request's answer, if its value is small.
type KnownAnswer = Option<Digest>;

impl BatchLog {
    /// Adds a batch that refers to `shared` bytes of the client's memory; returns its number.
    pub fn add(
        &mut self,
        frames: Vec<Bytes>,
        shared: u64,
        weight: u64,
        requests: Vec<RequestId>,
    ) -> u64 {
        // 96 bytes stand for the lists themselves.
        let own = 96 + frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        let (bytes, pruned) = (own + shared, Pruned::default());
        self.requests.extend(requests.iter().map(|request| (*request, None)));
        let entry = LoggedBatch { frames, bytes, weight, requests, slots: None, pruned };
        self.bytes += bytes;
        self.entries.push_back(entry);
        self.end() - 1
    }

    /// Sets the number of the next batch of an empty log.
    pub fn begin_at(&mut self, number: u64) {
        self.first = number;
    }

    /// Adds a batch of a journal; returns its commands.
    ///
    /// # Errors
    /// It cannot be decoded.
    pub fn restore(&mut self, batch: StoredBatch) -> Result<Vec<ClientCommand>, String> {
        let StoredBatch { number, frames, pruned, slots } = batch;
        debug_assert_eq!(number, self.end(), "batches are restored in order");
        let commands = commands_in(&frames)?;
        let number = self.add(frames, shared_bytes(&commands), 0, requests(&commands));
        if let Some(entry) = self.entry(number) {
            entry.slots = slots;
        }
        self.mark_pruned(number, pruned);
        Ok(commands)
    }

    /// Returns the frames of a batch.
    pub fn frames(&self, number: u64) -> Option<&Vec<Bytes>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get(index).map(|entry| &entry.frames)
    }

    /// Returns the number of the first batch that has never been planned.
    pub fn first_unplanned(&self) -> u64 {
        let planned = self.entries.iter().rposition(|entry| entry.slots.is_some());
        self.first + planned.map_or(0, |index| index as u64 + 1)
    }

    /// Returns the journal records of all batches.
    pub fn records(&self, session: SessionId, received: u64, slots: &Slots) -> Vec<JournalRecord> {
        let (mut all, mut shown) = (Vec::new(), None);
        for (number, entry) in (self.first..).zip(&self.entries) {
            if let Some(SlotCount::Known(count)) = entry.slots
                && shown != Some(count)
            {
                shown = Some(count);
                let slots = slots.of(count);
                all.push(JournalRecord::Slots { session, from: number, slots });
            }
            let frames = entry.frames.clone();
            all.push(JournalRecord::Batch { session, number, received, frames });
            if entry.pruned != Pruned::default() {
                let pruned = entry.pruned.clone();
                all.push(JournalRecord::Pruned { session, number, pruned });
            }
        }
        if slots.count() > 0 {
            let (from, slots) = (self.first_unplanned(), slots.clone());
            all.push(JournalRecord::Slots { session, from, slots });
        }
        all
    }

    /// Returns the number of the first batch.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number that the next batch gets.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Returns the number of the next batch that is not in the queue.
    pub fn next(&self) -> u64 {
        self.next.unwrap_or_else(|| self.end())
    }

    /// Returns the bytes that all batches occupy.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether batches wait to be replayed: later ones wait behind them.
    pub fn is_replaying(&self) -> bool {
        self.next.is_some()
    }

    fn entry(&mut self, number: u64) -> Option<&mut LoggedBatch> {
        self.entries.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Marks a batch as planned, with this number of slots at its beginning.
    pub fn mark_planned(&mut self, number: u64, slots: usize) {
        if let Some(entry) = self.entry(number)
            && !matches!(entry.slots, Some(SlotCount::Known(_)))
        {
            entry.slots = Some(SlotCount::Known(slots));
        }
    }

    /// Notes commands of a batch that are not planned.
    pub fn mark_pruned(&mut self, number: u64, pruned: Pruned) {
        if let Some(entry) = self.entry(number) {
            entry.pruned.add(pruned);
        }
    }

    /// Marks a request as answered, with the digest of a small value.
    pub fn mark_answered(&mut self, request: RequestId, digest: Option<Digest>) {
        self.dropped.remove(&request);
        if let Some(answer) = self.requests.get_mut(&request) {
            answer.get_or_insert(digest);
        }
    }

    /// Marks a request as failed or cancelled.
    pub fn mark_failed(&mut self, request: RequestId) {
        if self.requests.contains_key(&request) {
            self.failed.insert(request);
        }
    }

    /// Returns whether it has a request.
    pub fn has_request(&self, request: RequestId) -> bool {
        self.requests.contains_key(&request)
    }

    /// Returns the digest of a request's answer, if it is known.
    pub fn digest(&self, request: RequestId) -> Option<Digest> {
        self.requests.get(&request).copied().flatten().flatten()
    }

    pub fn is_answered(&self, request: RequestId) -> bool {
        self.requests.get(&request).is_some_and(Option::is_some)
    }

    /// Returns the requests that are not answered.
    pub fn unanswered(&self) -> Vec<RequestId> {
        let all = self.entries.iter().flat_map(|entry| &entry.requests).copied();
        all.filter(|request| !self.is_answered(*request)).collect()
    }

    /// Forgets the client that sent the batches: it gets neither credit nor answers.
    pub fn forget_client(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.weight = 0);
        for answer in self.requests.values_mut() {
            answer.get_or_insert(None);
        }
        self.dropped.clear();
        self.resent = None;
    }

    /// Handles the return of the client, which has sent `sent` messages in all and waits for the
    /// answers to `waits`: it has received all others.
    pub fn resume(&mut self, sent: u64, waits: FxHashSet<RequestId>) {
        for (request, answer) in &mut self.requests {
            if !waits.contains(request) {
                answer.get_or_insert(None);
            }
        }
        self.resent = Some(Resent { sent, waits });
    }

    /// Removes the requests that the client had answers to before it sent them again from the batch
    /// added last; `received` counts the client's messages up to and including it.
    pub fn remove_answered(&mut self, received: u64, batch: &mut Vec<ClientCommand>) {
        let Some(resent) = self.resent.take_if(|resent| received <= resent.sent) else {
            self.resent = None;
            return;
        };
        batch.retain(|command| {
            let Some(request) = command.request().filter(|_| !command.is_momentary()) else {
                return true;
            };
            let is_awaited = resent.waits.contains(&request);
            if !is_awaited {
                self.mark_answered(request, None);
            }
            is_awaited || matches!(command, ClientCommand::Publish(_))
        });
        self.resent = Some(resent);
    }

    /// Returns whether all requests before a batch are answered.
    pub fn is_answered_before(&self, number: u64) -> bool {
        let count = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut before = self.entries.iter().take(count).flat_map(|entry| &entry.requests);
        self.dropped.is_empty() && before.all(|request| self.is_answered(*request))
    }

    /// Drops the batches before this one.
    pub fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some(entry) = self.entries.pop_front()
        {
            self.first += 1;
            self.bytes -= entry.bytes;
            for request in entry.requests {
                self.failed.remove(&request);
                if self.requests.remove(&request) == Some(None) {
                    self.dropped.insert(request);
                }
            }
        }
    }

    /// Begins to replay all batches. Their weight was returned to the client.
    pub fn rewind(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.weight = 0);
        self.next = (!self.entries.is_empty()).then_some(self.first);
    }

    /// Returns the next batch to replay, without requests whose answers are known and are not
    /// compared.
    ///
    /// # Errors
    /// It cannot be decoded any more.
    pub fn replay(&mut self) -> Option<Result<ReplayedBatch, String>> {
        let number = self.next?;
        self.next = (number + 1 < self.end()).then_some(number + 1);
        let index = usize::try_from(number - self.first).ok()?;
        let entry = self.entries.get(index)?;
        let mut commands = match commands_in(&entry.frames) {
            Ok(commands) => commands,
            Err(reason) => return Some(Err(reason)),
        };
        entry.pruned.remove_from(&mut commands);
        commands.retain(|command| match command {
            command if command.is_momentary() => false,
            ClientCommand::Fetch { request, .. } => {
                !self.is_answered(*request) || self.digest(*request).is_some()
            }
            // Its values may not be stored yet.
            ClientCommand::Publish(publish) => !self.failed.contains(&publish.request),
            other => other.request().is_none_or(|request| !self.is_answered(request)),
        });
        let (weight, slots) = (entry.weight, entry.slots);
        let skipped = entry.pruned.skipped.clone();
        Some(Ok(ReplayedBatch { number, commands, weight, slots, skipped }))
    }
}

#[cfg(test)]
mod tests;
