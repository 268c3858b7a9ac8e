//! What a client has sent since the base, as it came, and the answers that it has got.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use gt_ir::message::Message;
use gt_ir::{ClientCommand, Content, RequestId, TensorId, codec};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::journal::{JournalRecord, StoredBatch};
use crate::planner::Slots;
use crate::queue::{Pruned, SlotCount};

/// The longest value of which a digest is kept.
const SMALL: usize = 4 << 10;

/// A hash of an answer's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// That of a small value; none of others and of failures.
    pub fn of(message: &Message) -> Option<Digest> {
        match message {
            Message::Value { result: Ok(Content::Data(data)), .. } if data.bytes.len() <= SMALL => {
                let mut hasher = DefaultHasher::new();
                (data.dtype.name(), data.shape.dims(), &data.bytes[..]).hash(&mut hasher);
                Some(Digest(hasher.finish()))
            }
            _ => None,
        }
    }
}

/// The requests of a batch, without those about the moment.
pub(crate) fn requests(commands: &[ClientCommand]) -> Vec<RequestId> {
    let lasting = commands.iter().filter(|command| !command.is_momentary());
    lasting.filter_map(ClientCommand::request).collect()
}

/// The bytes of a client's memory that commands refer to.
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

/// A batch, as the client sent it.
struct Entry {
    frames: Vec<Bytes>,
    /// What it takes up, with the client's shared memory that it refers to.
    bytes: u64,
    /// What the client gets back when it is done: nothing if it got that already.
    weight: u64,
    requests: Vec<RequestId>,
    /// How many slots there were when it was planned, if it was.
    slots: Option<SlotCount>,
    /// What was not planned of it, as nobody wanted it.
    pruned: Pruned,
}

/// A batch that is planned anew.
pub(crate) struct Replayed {
    pub number: u64,
    pub commands: Vec<ClientCommand>,
    pub weight: u64,
    /// How many slots plans had.
    pub slots: Option<SlotCount>,
    /// Unwanted iterations, by their first name and step.
    pub skipped: Vec<(TensorId, u32)>,
}

/// The batches since the base, by number.
#[derive(Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The number of the first.
    first: u64,
    /// The number of the next that is to be planned anew, while any are.
    next: Option<u64>,
    bytes: u64,
    /// The requests: whether each is answered, with the digest of a small value.
    requests: FxHashMap<RequestId, Option<Answer>>,
    /// What a client sends again.
    resent: Option<Resent>,
}

/// What a client sends again after the server was started again.
struct Resent {
    /// How many messages it had sent.
    sent: u64,
    /// The requests of them, and of the log, that were not answered.
    waits: FxHashSet<RequestId>,
}

/// What is known of a request's answer.
type Answer = Option<Digest>;

impl Log {
    /// Adds a batch that refers to so many bytes of the client's memory; returns its number.
    pub fn add(
        &mut self,
        frames: Vec<Bytes>,
        shared: u64,
        weight: u64,
        requests: Vec<RequestId>,
    ) -> u64 {
        // With what the lists themselves take up.
        let own = 96 + frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        let (bytes, pruned) = (own + shared, Pruned::default());
        self.requests.extend(requests.iter().map(|request| (*request, None)));
        let entry = Entry { frames, bytes, weight, requests, slots: None, pruned };
        self.bytes += bytes;
        self.entries.push_back(entry);
        self.end() - 1
    }

    /// The next batch gets this number.
    pub fn begin_at(&mut self, number: u64) {
        self.first = number;
    }

    /// Adds a batch of a journal.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn restore(&mut self, batch: StoredBatch) -> Result<(), String> {
        let StoredBatch { number, frames, pruned, slots } = batch;
        debug_assert_eq!(number, self.end(), "batches come in order");
        let message = codec::decode(&frames).map_err(|error| error.to_string())?;
        let Message::Stream(commands) = message else {
            return Err(format!("{} is no stream", message.name()));
        };
        let number = self.add(frames, shared_bytes(&commands), 0, requests(&commands));
        if let Some(entry) = self.entry(number) {
            entry.slots = slots;
        }
        self.pruned(number, pruned);
        Ok(())
    }

    /// The frames of a batch.
    pub fn frames(&self, number: u64) -> Option<&Vec<Bytes>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get(index).map(|entry| &entry.frames)
    }

    /// The first batch that has never been planned.
    pub fn first_unplanned(&self) -> u64 {
        let planned = self.entries.iter().rposition(|entry| entry.slots.is_some());
        self.first + planned.map_or(0, |index| index as u64 + 1)
    }

    /// The records of all batches in a journal.
    pub fn records(&self, session: u32, received: u64, slots: &Slots) -> Vec<JournalRecord> {
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

    /// The number of the first batch.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next batch gets.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The number of the next batch that is not in the queue.
    pub fn next(&self) -> u64 {
        self.next.unwrap_or_else(|| self.end())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether batches wait to be planned anew: later ones wait behind them.
    pub fn is_replayed(&self) -> bool {
        self.next.is_some()
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// A batch is planned, by a session with so many slots at its beginning.
    pub fn planned(&mut self, number: u64, slots: usize) {
        if let Some(entry) = self.entry(number)
            && !matches!(entry.slots, Some(SlotCount::Known(_)))
        {
            entry.slots = Some(SlotCount::Known(slots));
        }
    }

    /// Something of a batch is not planned.
    pub fn pruned(&mut self, number: u64, pruned: Pruned) {
        if let Some(entry) = self.entry(number) {
            entry.pruned.add(pruned);
        }
    }

    /// A request is answered, with a value of this digest if it is a small one.
    pub fn answered(&mut self, request: RequestId, digest: Option<Digest>) {
        if let Some(answer) = self.requests.get_mut(&request) {
            answer.get_or_insert(digest);
        }
    }

    pub fn digest(&self, request: RequestId) -> Option<Digest> {
        self.requests.get(&request).copied().flatten().flatten()
    }

    fn is_answered(&self, request: RequestId) -> bool {
        self.requests.get(&request).is_some_and(Option::is_some)
    }

    /// The requests that are not answered.
    pub fn unanswered(&self) -> Vec<RequestId> {
        let all = self.entries.iter().flat_map(|entry| &entry.requests).copied();
        all.filter(|request| !self.is_answered(*request)).collect()
    }

    /// The client is back, has sent so many messages in all, and waits for these answers: it got
    /// all others.
    pub fn resume(&mut self, sent: u64, waits: FxHashSet<RequestId>) {
        for (request, answer) in &mut self.requests {
            if !waits.contains(request) {
                answer.get_or_insert(None);
            }
        }
        self.resent = Some(Resent { sent, waits });
    }

    /// Takes out of the batch that was added last, with which so many messages were received, what
    /// the client got the answers to before it sent it again.
    pub fn take_answered(&mut self, received: u64, batch: &mut Vec<ClientCommand>) {
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
                self.answered(request, None);
            }
            is_awaited
        });
        self.resent = Some(resent);
    }

    /// Whether all requests before a batch are answered.
    pub fn is_answered_before(&self, number: u64) -> bool {
        let count = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut before = self.entries.iter().take(count).flat_map(|entry| &entry.requests);
        before.all(|request| self.is_answered(*request))
    }

    /// Drops the batches before this one.
    pub fn forget_before(&mut self, number: u64) {
        while self.first < number
            && let Some(entry) = self.entries.pop_front()
        {
            self.first += 1;
            self.bytes -= entry.bytes;
            for request in entry.requests {
                self.requests.remove(&request);
            }
        }
    }

    /// All batches are to be planned anew. The client has got back their weight.
    pub fn rewind(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.weight = 0);
        self.next = (!self.entries.is_empty()).then_some(self.first);
    }

    /// The next batch to be planned anew, without requests whose answers are known and are not
    /// compared.
    ///
    /// # Errors
    /// It cannot be read any more.
    pub fn replay(&mut self) -> Option<Result<Replayed, String>> {
        let number = self.next?;
        self.next = (number + 1 < self.end()).then_some(number + 1);
        let index = usize::try_from(number - self.first).ok()?;
        let entry = self.entries.get(index)?;
        let mut commands = match codec::decode(&entry.frames) {
            Ok(Message::Stream(commands)) => commands,
            Ok(other) => return Some(Err(format!("{} is no stream", other.name()))),
            Err(error) => return Some(Err(error.to_string())),
        };
        entry.pruned.remove_from(&mut commands);
        commands.retain(|command| match command {
            ClientCommand::Status { .. } | ClientCommand::Cancel { .. } => false,
            ClientCommand::Fetch { request, .. } => {
                !self.is_answered(*request) || self.digest(*request).is_some()
            }
            other => other.request().is_none_or(|request| !self.is_answered(request)),
        });
        let (weight, slots) = (entry.weight, entry.slots);
        let skipped = entry.pruned.skipped.clone();
        Some(Ok(Replayed { number, commands, weight, slots, skipped }))
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::{SourceId, TensorId};

    use super::*;

    fn add(log: &mut Log, request: u64) -> u64 {
        let (request, line) = (RequestId(request), SourceId(0));
        let fetch = ClientCommand::Fetch { request, tensor: TensorId(1), line };
        let frames = codec::encode(&Message::Stream(vec![ClientCommand::Free(TensorId(2)), fetch]));
        log.add(frames, 0, 2, vec![request])
    }

    #[test]
    fn what_was_answered_is_not_asked_again() {
        let mut log = Log::default();
        assert_eq!((add(&mut log, 1), add(&mut log, 2), add(&mut log, 3)), (0, 1, 2));
        log.answered(RequestId(1), None);
        log.answered(RequestId(2), Some(Digest(7)));
        assert_eq!(log.unanswered(), [RequestId(3)]);
        assert!(log.is_answered_before(2) && !log.is_answered_before(3));
        log.planned(0, 4);
        log.rewind();
        let all: Vec<Replayed> = std::iter::from_fn(|| log.replay()).map(Result::unwrap).collect();
        let counts: Vec<usize> = all.iter().map(|batch| batch.commands.len()).collect();
        assert_eq!(counts, [1, 2, 2], "the second is compared, the third is asked");
        assert_eq!(
            (all[0].slots, all[1].slots, all[0].weight),
            (Some(SlotCount::Known(4)), None, 0)
        );
        assert!(!log.is_replayed());
    }

    #[test]
    fn what_was_answered_before_it_is_sent_again_is_taken_out() {
        let mut log = Log::default();
        add(&mut log, 1);
        log.resume(12, FxHashSet::from_iter([RequestId(3)]));
        assert!(log.unanswered().is_empty(), "the first was answered before");
        for (request, received, left) in [(2, 11, 1), (3, 12, 2), (4, 13, 2)] {
            let number = add(&mut log, request);
            let Ok(Message::Stream(mut batch)) = codec::decode(log.frames(number).unwrap()) else {
                unreachable!("it was just written");
            };
            log.take_answered(received, &mut batch);
            assert_eq!(batch.len(), left, "request {request}");
        }
        assert_eq!(log.unanswered(), [RequestId(3), RequestId(4)]);
    }

    #[test]
    fn what_is_in_the_base_is_forgotten() {
        let mut log = Log::default();
        for request in 1..4 {
            add(&mut log, request);
        }
        log.answered(RequestId(1), Some(Digest(7)));
        log.forget_before(2);
        assert_eq!((log.len(), log.digest(RequestId(1)), log.end()), (1, None, 3));
        log.forget_before(9);
        assert_eq!((log.len(), log.bytes(), add(&mut log, 9)), (0, 0, 3));
    }
}
