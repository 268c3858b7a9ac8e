//! The events of a session, and their encoding.
//!
//! Events are encoded where they occur, into a buffer that the writing thread takes. Each has its
//! length and the number of its data frames in front, so that it can be decoded alone.

use bytes::Bytes;
use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{ClientCommand, Content, Operation, RequestId, SessionId, TensorId, record};

use crate::outcome::Outcome;
use crate::substitute::CommandSubstitution;

/// What a session did.
#[derive(Clone, PartialEq, Debug)]
pub enum SessionEvent {
    /// It submitted commands. `to_read` is whether its thread then read a value without a request;
    /// `work` is the estimated cost.
    Batch { to_read: bool, work: u64, commands: Vec<ClientCommand> },
    /// It received the answer to a request.
    Answered { request: RequestId, outcome: Outcome },
    /// It read a value without a request.
    Read { tensor: TensorId, outcome: Outcome },
    /// The values of a tensor of a publication that it reads.
    Published { publication: SessionId, index: TensorId, values: Content },
}

record!(enum SessionEvent {
    0 => Batch { to_read, work, commands },
    1 => Answered { request, outcome },
    2 => Read { tensor, outcome },
    3 => Published { publication, index, values },
});

/// The bytes in front of an event: its length, and the number of its data frames.
const PREFIX: usize = 8;

/// Encoded events, and the data that they refer to.
#[derive(Default)]
pub struct EventBuffer {
    pub bytes: Vec<u8>,
    pub data: Vec<Bytes>,
    /// The bytes of `data`.
    pub data_bytes: usize,
    /// The base of differences between tensors, which begins at 0 in each event.
    last: u64,
}

impl Sink for EventBuffer {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn data(&mut self, data: &Bytes) {
        self.data_bytes += data.len();
        self.data.push(data.clone());
    }

    #[inline]
    fn last(&mut self) -> &mut u64 {
        &mut self.last
    }
}

impl EventBuffer {
    /// Returns whether it has no event.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes all events, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.data.clear();
        self.data_bytes = 0;
    }

    /// Appends an [`SessionEvent::Batch`].
    pub fn batch(
        &mut self,
        commands: &[ClientCommand],
        work: u64,
        to_read: bool,
        substitution: CommandSubstitution,
    ) {
        self.append(|to| {
            to.byte(0);
            to_read.write(to);
            work.write(to);
            to.varint(commands.len() as u64);
            for command in commands {
                match substitution.instead(command) {
                    Some(instead) => instead.write(to),
                    None => command.write(to),
                }
            }
        });
    }

    /// Appends another event.
    pub fn event(&mut self, event: &SessionEvent) {
        self.append(|to| event.write(to));
    }

    fn append(&mut self, write: impl FnOnce(&mut EventBuffer)) {
        let (at, data) = (self.bytes.len(), self.data.len());
        self.bytes.extend_from_slice(&[0; PREFIX]);
        self.last = 0;
        write(self);
        let length = (self.bytes.len() - at - PREFIX) as u32;
        let frames = (self.data.len() - data) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.bytes[at + 4..at + PREFIX].copy_from_slice(&frames.to_le_bytes());
    }
}

/// The operations that an event's numbers stand for.
pub type OperationTable = [Option<&'static Operation>];

/// Encoded events that are decoded one by one.
pub struct EventReader<'a> {
    rest: &'a [u8],
    data: &'a [Bytes],
    operations: &'a OperationTable,
}

impl<'a> EventReader<'a> {
    /// Returns a reader of events with these data frames.
    pub fn new(
        events: &'a [u8],
        data: &'a [Bytes],
        operations: &'a OperationTable,
    ) -> EventReader<'a> {
        EventReader { rest: events, data, operations }
    }
}

impl Iterator for EventReader<'_> {
    type Item = Decoded<SessionEvent>;

    fn next(&mut self) -> Option<Decoded<SessionEvent>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut prefix = Source::new(self.rest, &[]);
        let mut read = || -> Decoded<SessionEvent> {
            let length = u32::from_le_bytes(prefix.array()?) as usize;
            let frames = u32::from_le_bytes(prefix.array()?) as usize;
            let bytes = prefix.take(length)?;
            let missing = gt_ir::wire::DecodeError::BadData;
            let (data, other) = self.data.split_at_checked(frames).ok_or(missing)?;
            self.rest = &self.rest[PREFIX + length..];
            self.data = other;
            let mut source = Source::new(bytes, data).with_operations(self.operations);
            let event = SessionEvent::read(&mut source)?;
            source.finish()?;
            Ok(event)
        };
        let event = read();
        if event.is_err() {
            self.rest = &[];
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::{Create, DType, Scalar, Shape, SourceId, TensorData, ops};

    use super::*;
    use crate::anonymous::hidden_meta;

    const AS_IT_IS: CommandSubstitution =
        CommandSubstitution { is_anonymous: false, read: |_| None };

    fn create(id: u64, length: usize) -> ClientCommand {
        let bytes = Bytes::from(vec![7; length]);
        let data = TensorData::new(DType::U8, Shape::new(&[length]).unwrap(), bytes).unwrap();
        let (output, content) = (TensorId(id), Content::Data(data));
        ClientCommand::Create(Create { output, content, signal: 0, source: SourceId(2) })
    }

    fn read(buffer: &EventBuffer) -> Vec<SessionEvent> {
        let numbers = 0..=ops::ALL.iter().map(|of| of.id).max().unwrap();
        let operations: Vec<_> = numbers.map(Operation::from_id).collect();
        let read = EventReader::new(&buffer.bytes, &buffer.data, &operations);
        read.collect::<Decoded<Vec<_>>>().unwrap()
    }

    #[test]
    fn events_are_read_back_one_by_one() {
        let commands = vec![create(40, 3), create(41, 100_000), ClientCommand::Free(TensorId(40))];
        let batch = SessionEvent::Batch { to_read: true, work: 900, commands: commands.clone() };
        let outcome = Outcome::Failed {
            operation: "add".into(),
            reason: format!("{}", Scalar::Int(3)),
            line: SourceId(4),
        };
        let read_value = SessionEvent::Read { tensor: TensorId(41), outcome: outcome.clone() };
        let answered = SessionEvent::Answered { request: RequestId(5), outcome };
        let mut buffer = EventBuffer::default();
        buffer.batch(&commands, 900, true, AS_IT_IS);
        buffer.event(&read_value);
        buffer.event(&answered);
        buffer.event(&batch);
        assert_eq!((buffer.data.len(), buffer.data_bytes), (2, 200_000));
        assert_eq!(read(&buffer), [batch.clone(), read_value, answered, batch]);
        let cut = EventReader::new(&buffer.bytes[..20], &buffer.data, &[]);
        assert!(cut.collect::<Decoded<Vec<_>>>().is_err());
    }

    #[test]
    fn an_anonymous_batch_has_neither_data_nor_names() {
        let signal = ClientCommand::Signal { number: 1, name: "secret".into(), shard: None };
        let mut buffer = EventBuffer::default();
        let hidden = CommandSubstitution { is_anonymous: true, ..AS_IT_IS };
        buffer.batch(&[create(1, 64), create(2, 9000), signal], 0, false, hidden);
        assert!(buffer.data.is_empty());
        let has = |part: &[u8]| buffer.bytes.windows(part.len()).any(|bytes| bytes == part);
        assert!(!has(b"secret") && !has(&[7; 8]));
        let [SessionEvent::Batch { commands, .. }] = &read(&buffer)[..] else { panic!("a batch") };
        let ClientCommand::Create(create) = &commands[1] else { panic!("a create") };
        assert_eq!(hidden_meta(&create.content).unwrap().bytes(), 9000);
    }
}
