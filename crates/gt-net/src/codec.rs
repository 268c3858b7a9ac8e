//! Messages as frames.
//!
//! The first frame holds the records: magic, version, kind, then the fields in order. Large
//! tensor data follows in frames of its own. Decoding checks everything: any bytes give a message
//! or an error. Recursion and unbounded counts do not occur.

use bytes::{Bytes, BytesMut};
use gt_ir::data::SharedBlock;
use gt_ir::instruction::Operands;
use gt_ir::message::{Failure, Hello, Message, Role, Welcome, WorkerStats};
use gt_ir::{
    Attribute, Attributes, Command, Content, DType, Instruction, Meta, Operand, Operation, Piece,
    RequestId, Scalar, Shape, SourceId, TensorData, TensorId, TransferId, WorkerId,
};
use thiserror::Error;

use crate::codec_exchange::{
    decode_exchange, decode_meta, decode_shard, encode_exchange, encode_meta, encode_shard,
};
use crate::codec_explain::{decode_explanation, decode_placed, encode_explanation, encode_placed};
use crate::wire::{Reader, Writer};

const MAGIC: u16 = u16::from_le_bytes(*b"GT");
/// The version of this layout.
const LAYOUT: u8 = 1;

/// Data up to this length stands in the first frame, among the records.
const INLINE: usize = 4096;
/// Longer data is cut into frames of this length.
pub const DATA_FRAME: usize = 32 << 20;
/// The most frames that a message may have.
pub const MAX_FRAMES: usize = 4096;

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DecodeError {
    #[error("{wanted} bytes expected, {left} are left")]
    Short { wanted: usize, left: usize },
    #[error("{left} bytes too many")]
    Long { left: usize },
    #[error("not a GT message")]
    BadMagic,
    #[error("layout version {0}, expected {LAYOUT}")]
    BadLayout(u8),
    #[error("{what} has no code {code}")]
    BadCode { what: &'static str, code: u64 },
    #[error("a shape is not valid")]
    BadShape,
    #[error("a number is too long")]
    BadNumber,
    #[error("a text is not UTF-8")]
    BadText,
    #[error("data does not fit its shape")]
    BadData,
}

type Result<T> = std::result::Result<T, DecodeError>;

/// The frames of a message.
pub fn encode(message: &Message) -> Vec<Bytes> {
    let mut encoder = Encoder { head: Writer::default(), data: Vec::new(), last: 0 };
    encoder.head.u16(MAGIC);
    encoder.head.u8(LAYOUT);
    encoder.message(message);
    let mut frames = vec![Bytes::from(encoder.head.bytes)];
    frames.append(&mut encoder.data);
    frames
}

/// The message of some frames.
///
/// # Errors
/// Anything that [`encode`] would not have made.
pub fn decode(frames: &[Bytes]) -> Result<Message> {
    let (head, data) = frames.split_first().ok_or(DecodeError::BadMagic)?;
    let mut decoder = Decoder { head: Reader::new(head), data, last: 0 };
    if decoder.head.u16()? != MAGIC {
        return Err(DecodeError::BadMagic);
    }
    let layout = decoder.head.u8()?;
    if layout != LAYOUT {
        return Err(DecodeError::BadLayout(layout));
    }
    let message = decoder.message()?;
    decoder.head.finish()?;
    if !decoder.data.is_empty() {
        return Err(DecodeError::Long { left: decoder.data.iter().map(Bytes::len).sum() });
    }
    Ok(message)
}

struct Encoder {
    head: Writer,
    data: Vec<Bytes>,
    /// The last output: ids stand as differences from it, since most are near.
    last: u64,
}

impl Encoder {
    fn message(&mut self, message: &Message) {
        match message {
            Message::Hello(hello) => {
                self.head.u8(1);
                self.head.u32(hello.version);
                self.head.u64(hello.schema);
                self.head.u8(role_code(hello.role));
                self.head.text(&hello.name);
                self.head.text(&hello.machine);
                self.head.text(&hello.endpoint);
            }
            Message::Welcome(welcome) => {
                self.head.u8(2);
                self.head.u32(welcome.session);
                self.head.text(&welcome.name);
                self.head.u64(welcome.window);
                self.head.text(&welcome.machine);
            }
            Message::Stream(commands) => {
                self.head.u8(3);
                self.head.u32(commands.len() as u32);
                self.head.bytes.reserve(commands.len() * 16);
                commands.iter().for_each(|command| self.command(command));
            }
            Message::Done(weight) => {
                self.head.u8(4);
                self.head.u64(*weight);
            }
            Message::Value { request, result } => {
                self.head.u8(5);
                self.head.u64(request.0);
                self.result(result);
            }
            Message::Release { token } => {
                self.head.u8(6);
                self.head.u128(*token);
            }
            Message::Statistics { request, workers } => {
                self.head.u8(7);
                self.head.u64(request.0);
                self.head.u32(workers.len() as u32);
                workers.iter().for_each(|worker| self.stats(worker));
            }
            Message::Described { session, tensors } => {
                self.head.u8(12);
                self.head.u32(*session);
                self.head.u32(tensors.len() as u32);
                for (id, meta) in tensors {
                    self.head.u64(id.0);
                    match meta {
                        Ok(meta) => {
                            self.head.u8(0);
                            encode_meta(&mut self.head, meta);
                        }
                        Err(failure) => {
                            self.head.u8(1);
                            self.failure(failure);
                        }
                    }
                }
            }
            Message::Piece(piece) => {
                self.head.u8(10);
                self.head.u64(piece.transfer.0);
                self.head.u32(piece.from.0);
                self.result(&piece.result);
            }
            Message::Explained { request, explanation } => {
                self.head.u8(15);
                self.head.u64(request.0);
                encode_explanation(&mut self.head, explanation);
            }
            Message::Located { request, result } => {
                self.head.u8(16);
                self.head.u64(request.0);
                match result {
                    Ok(copies) => {
                        self.head.u8(0);
                        self.head.u32(copies.len() as u32);
                        copies.iter().for_each(|copy| encode_placed(&mut self.head, copy));
                    }
                    Err(failure) => {
                        self.head.u8(1);
                        self.failure(failure);
                    }
                }
            }
            Message::Neighbour { worker, name, endpoint, machine } => {
                self.head.u8(13);
                self.head.u32(worker.0);
                self.head.text(name);
                self.head.text(endpoint);
                self.head.text(machine);
            }
            Message::Undelivered { transfer, to, reason } => {
                self.head.u8(14);
                self.head.u64(transfer.0);
                self.head.u32(to.0);
                self.head.text(reason);
            }
            Message::WorkerLost { worker, name } => {
                self.head.u8(11);
                self.head.u32(worker.0);
                self.head.text(name);
            }
            Message::Goodbye { reason } => {
                self.head.u8(9);
                self.head.text(reason);
            }
        }
    }

    fn result(&mut self, result: &std::result::Result<Content, Failure>) {
        match result {
            Ok(content) => {
                self.head.u8(0);
                self.content(content);
            }
            Err(failure) => {
                self.head.u8(1);
                self.failure(failure);
            }
        }
    }

    fn failure(&mut self, failure: &Failure) {
        self.head.text(&failure.operation);
        self.head.text(&failure.reason);
        self.head.text(&failure.worker);
        self.head.u32(failure.line.0);
    }

    fn stats(&mut self, stats: &WorkerStats) {
        self.head.text(&stats.name);
        self.head.text(&stats.engine);
        for number in [
            stats.operations_total,
            stats.operations_failed,
            stats.tensors,
            stats.bytes,
            stats.bytes_peak,
        ] {
            self.head.u64(number);
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Run(instruction) => {
                self.head.u8(1);
                self.instruction(instruction);
            }
            Command::Create { output, content, signal } => {
                self.head.u8(2);
                self.head.near(output.0, self.last);
                self.last = output.0;
                self.head.varint(u64::from(*signal));
                self.content(content);
            }
            Command::Fetch { request, tensor, shared, line } => {
                self.head.u8(3);
                self.head.u64(request.0);
                self.head.near(tensor.0, self.last);
                self.head.u8(u8::from(*shared));
                self.head.u32(line.0);
            }
            Command::Free(tensor) => {
                self.head.u8(4);
                self.head.near(tensor.0, self.last);
            }
            Command::EndSession { session } => {
                self.head.u8(5);
                self.head.u32(*session);
            }
            Command::Signal { number, name, shard } => {
                self.head.u8(6);
                self.head.u32(*number);
                self.head.text(name);
                self.head.u8(u8::from(shard.is_some()));
                if let Some(shard) = shard {
                    encode_shard(&mut self.head, shard);
                }
            }
            Command::Stats { request } => {
                self.head.u8(7);
                self.head.u64(request.0);
            }
            Command::Explain { request, begin } => {
                self.head.u8(10);
                self.head.u64(request.0);
                self.head.u8(u8::from(*begin));
            }
            Command::Locate { request, tensor } => {
                self.head.u8(11);
                self.head.u64(request.0);
                self.head.near(tensor.0, self.last);
            }
            Command::Strict { limit } => {
                self.head.u8(12);
                self.head.u8(u8::from(limit.is_some()));
                if let Some(limit) = limit {
                    self.head.u64(*limit);
                }
            }
            Command::Describe { session } => {
                self.head.u8(9);
                self.head.u32(*session);
            }
            Command::Exchange(exchange) => {
                self.head.u8(8);
                encode_exchange(&mut self.head, exchange);
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let output = instruction.output.0;
        let head = &mut self.head;
        head.varint(u64::from(instruction.operation.id));
        head.near(output, self.last);
        self.last = output;
        head.varint(u64::from(instruction.source.0));
        head.varint(u64::from(instruction.signal));
        head.varint(instruction.operands.len() as u64);
        head.u8(instruction.attributes.len() as u8);
        for operand in &instruction.operands {
            match operand {
                Operand::Tensor(id) => {
                    head.u8(0);
                    head.near(id.0, output);
                }
                Operand::Scalar(Scalar::Bool(value)) => {
                    head.u8(1);
                    head.u8(u8::from(*value));
                }
                Operand::Scalar(Scalar::Int(value)) => {
                    head.u8(2);
                    head.near(*value as u64, 0);
                }
                Operand::Scalar(Scalar::Float(value)) => {
                    head.u8(3);
                    head.u64(value.to_bits());
                }
            }
        }
        for attribute in &instruction.attributes {
            match attribute {
                Attribute::None => head.u8(0),
                Attribute::Int(value) => {
                    head.u8(1);
                    head.near(*value as u64, 0);
                }
                Attribute::Float(value) => {
                    head.u8(2);
                    head.u64(value.to_bits());
                }
                Attribute::Bool(value) => {
                    head.u8(3);
                    head.u8(u8::from(*value));
                }
                Attribute::DType(dtype) => {
                    head.u8(4);
                    head.u8(*dtype as u8);
                }
                Attribute::Ints(values) => {
                    head.u8(5);
                    head.u8(values.len() as u8);
                    values.iter().for_each(|&value| head.near(value as u64, 0));
                }
            }
        }
    }

    fn content(&mut self, content: &Content) {
        let meta = content.meta();
        let kind = match content {
            Content::Data(data) if data.bytes.len() <= INLINE => 0,
            Content::Data(_) => 1,
            Content::Shared { .. } => 2,
        };
        self.head.u8(kind);
        self.head.u8(meta.dtype as u8);
        self.head.u8(meta.shape.rank() as u8);
        meta.shape.iter().for_each(|&dim| self.head.u64(dim as u64));
        match content {
            Content::Data(data) => {
                self.head.u64(data.bytes.len() as u64);
                if kind == 0 {
                    self.head.bytes.extend_from_slice(&data.bytes);
                } else {
                    let starts = (0..data.bytes.len()).step_by(DATA_FRAME);
                    self.data.extend(starts.map(|start| {
                        data.bytes.slice(start..data.bytes.len().min(start + DATA_FRAME))
                    }));
                }
            }
            Content::Shared { block, .. } => {
                self.head.u32(block.pid);
                self.head.u32(block.fd as u32);
                self.head.u64(block.length);
                self.head.u128(block.token);
            }
        }
    }
}

struct Decoder<'a> {
    head: Reader<'a>,
    /// The data frames that are not used yet.
    data: &'a [Bytes],
    /// The last output, as in the encoder.
    last: u64,
}

impl Decoder<'_> {
    fn message(&mut self) -> Result<Message> {
        Ok(match self.head.u8()? {
            1 => Message::Hello(Hello {
                version: self.head.u32()?,
                schema: self.head.u64()?,
                role: role_from_code(self.head.u8()?)?,
                name: self.head.text()?,
                machine: self.head.text()?,
                endpoint: self.head.text()?,
            }),
            2 => Message::Welcome(Welcome {
                session: self.head.u32()?,
                name: self.head.text()?,
                window: self.head.u64()?,
                machine: self.head.text()?,
            }),
            3 => {
                let count = self.head.u32()? as usize;
                let count = self.head.count(count, 2)?;
                let mut commands = Vec::with_capacity(count);
                for _ in 0..count {
                    commands.push(self.command()?);
                }
                Message::Stream(commands)
            }
            4 => Message::Done(self.head.u64()?),
            5 => {
                let request = RequestId(self.head.u64()?);
                Message::Value { request, result: self.result()? }
            }
            6 => Message::Release { token: self.head.u128()? },
            7 => {
                let request = RequestId(self.head.u64()?);
                let count = self.head.u32()? as usize;
                let count = self.head.count(count, 48)?;
                let workers = (0..count).map(|_| self.stats()).collect::<Result<_>>()?;
                Message::Statistics { request, workers }
            }
            9 => Message::Goodbye { reason: self.head.text()? },
            10 => Message::Piece(Piece {
                transfer: TransferId(self.head.u64()?),
                from: WorkerId(self.head.u32()?),
                result: self.result()?,
            }),
            12 => {
                let session = self.head.u32()?;
                let count = self.head.u32()? as usize;
                let count = self.head.count(count, 11)?;
                let mut tensors = Vec::with_capacity(count);
                for _ in 0..count {
                    let id = TensorId(self.head.u64()?);
                    tensors.push((
                        id,
                        match self.head.u8()? {
                            0 => Ok(decode_meta(&mut self.head)?),
                            1 => Err(self.failure()?),
                            code => return Err(bad("a result", code)),
                        },
                    ));
                }
                Message::Described { session, tensors }
            }
            15 => Message::Explained {
                request: RequestId(self.head.u64()?),
                explanation: decode_explanation(&mut self.head)?,
            },
            16 => {
                let request = RequestId(self.head.u64()?);
                let result = match self.head.u8()? {
                    0 => {
                        let count = self.head.u32()? as usize;
                        let count = self.head.count(count, 10)?;
                        let copies = (0..count).map(|_| decode_placed(&mut self.head));
                        Ok(copies.collect::<Result<_>>()?)
                    }
                    1 => Err(self.failure()?),
                    code => return Err(bad("a result", code)),
                };
                Message::Located { request, result }
            }
            13 => Message::Neighbour {
                worker: WorkerId(self.head.u32()?),
                name: self.head.text()?,
                endpoint: self.head.text()?,
                machine: self.head.text()?,
            },
            14 => Message::Undelivered {
                transfer: TransferId(self.head.u64()?),
                to: WorkerId(self.head.u32()?),
                reason: self.head.text()?,
            },
            11 => {
                Message::WorkerLost { worker: WorkerId(self.head.u32()?), name: self.head.text()? }
            }
            code => return Err(bad("a message", code)),
        })
    }

    fn result(&mut self) -> Result<std::result::Result<Content, Failure>> {
        Ok(match self.head.u8()? {
            0 => Ok(self.content()?),
            1 => Err(self.failure()?),
            code => return Err(bad("a result", code)),
        })
    }

    fn failure(&mut self) -> Result<Failure> {
        Ok(Failure {
            operation: self.head.text()?,
            reason: self.head.text()?,
            worker: self.head.text()?,
            line: SourceId(self.head.u32()?),
        })
    }

    fn stats(&mut self) -> Result<WorkerStats> {
        Ok(WorkerStats {
            name: self.head.text()?,
            engine: self.head.text()?,
            operations_total: self.head.u64()?,
            operations_failed: self.head.u64()?,
            tensors: self.head.u64()?,
            bytes: self.head.u64()?,
            bytes_peak: self.head.u64()?,
        })
    }

    fn command(&mut self) -> Result<Command> {
        Ok(match self.head.u8()? {
            1 => Command::Run(self.instruction()?),
            2 => {
                self.last = self.head.near(self.last)?;
                let output = TensorId(self.last);
                let signal = self.small()?;
                Command::Create { output, content: self.content()?, signal }
            }
            3 => Command::Fetch {
                request: RequestId(self.head.u64()?),
                tensor: TensorId(self.head.near(self.last)?),
                shared: self.bool()?,
                line: SourceId(self.head.u32()?),
            },
            4 => Command::Free(TensorId(self.head.near(self.last)?)),
            5 => Command::EndSession { session: self.head.u32()? },
            6 => Command::Signal {
                number: self.head.u32()?,
                name: self.head.text()?,
                shard: if self.bool()? { Some(decode_shard(&mut self.head)?) } else { None },
            },
            7 => Command::Stats { request: RequestId(self.head.u64()?) },
            10 => Command::Explain { request: RequestId(self.head.u64()?), begin: self.bool()? },
            11 => Command::Locate {
                request: RequestId(self.head.u64()?),
                tensor: TensorId(self.head.near(self.last)?),
            },
            12 => {
                Command::Strict { limit: if self.bool()? { Some(self.head.u64()?) } else { None } }
            }
            9 => Command::Describe { session: self.head.u32()? },
            8 => Command::Exchange(Box::new(decode_exchange(&mut self.head)?)),
            code => return Err(bad("a command", code)),
        })
    }

    fn bool(&mut self) -> Result<bool> {
        match self.head.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            code => Err(bad("a bool", code)),
        }
    }

    /// A number of 32 bits at most.
    fn small(&mut self) -> Result<u32> {
        u32::try_from(self.head.varint()?).map_err(|_| DecodeError::BadNumber)
    }

    fn dtype(&mut self) -> Result<DType> {
        let code = self.head.u8()?;
        DType::from_code(code).ok_or_else(|| bad("a dtype", code))
    }

    fn instruction(&mut self) -> Result<Instruction> {
        let id = self.head.varint()?;
        let operation = u16::try_from(id)
            .ok()
            .and_then(Operation::from_id)
            .ok_or(DecodeError::BadCode { what: "an operation", code: id })?;
        self.last = self.head.near(self.last)?;
        let output = TensorId(self.last);
        let source = SourceId(self.small()?);
        let signal = self.small()?;
        let operand_count = self.small()? as usize;
        let attribute_count = self.head.u8()? as usize;
        let operand_count = self.head.count(operand_count, 2)?;
        let mut operands = Operands::with_capacity(operand_count);
        for _ in 0..operand_count {
            operands.push(match self.head.u8()? {
                0 => Operand::Tensor(TensorId(self.head.near(output.0)?)),
                1 => Operand::Scalar(Scalar::Bool(self.bool()?)),
                2 => Operand::Scalar(Scalar::Int(self.head.near(0)? as i64)),
                3 => Operand::Scalar(Scalar::Float(f64::from_bits(self.head.u64()?))),
                code => return Err(bad("an operand", code)),
            });
        }
        let attribute_count = self.head.count(attribute_count, 1)?;
        let mut attributes = Attributes::with_capacity(attribute_count);
        for _ in 0..attribute_count {
            attributes.push(match self.head.u8()? {
                0 => Attribute::None,
                1 => Attribute::Int(self.head.near(0)? as i64),
                2 => Attribute::Float(f64::from_bits(self.head.u64()?)),
                3 => Attribute::Bool(self.bool()?),
                4 => Attribute::DType(self.dtype()?),
                5 => {
                    let count = self.head.u8()? as usize;
                    let count = self.head.count(count, 1)?;
                    let values = (0..count).map(|_| Ok(self.head.near(0)? as i64));
                    Attribute::Ints(values.collect::<Result<_>>()?)
                }
                code => return Err(bad("an attribute", code)),
            });
        }
        Ok(Instruction { operation, output, operands, attributes, source, signal })
    }

    fn content(&mut self) -> Result<Content> {
        let kind = self.head.u8()?;
        let dtype = self.dtype()?;
        let rank = self.head.u8()? as usize;
        let rank = self.head.count(rank, 8)?;
        let dims = (0..rank).map(|_| Ok(self.head.u64()? as usize)).collect::<Result<Vec<_>>>()?;
        let shape = Shape::new(&dims).map_err(|_| DecodeError::BadShape)?;
        if kind == 2 {
            let block = SharedBlock {
                pid: self.head.u32()?,
                fd: self.head.u32()? as i32,
                length: self.head.u64()?,
                token: self.head.u128()?,
            };
            let meta = Meta::new(dtype, shape);
            if block.length != meta.bytes() as u64 {
                return Err(DecodeError::BadData);
            }
            return Ok(Content::Shared { meta, block });
        }
        let length = self.head.u64()? as usize;
        let bytes = match kind {
            0 => Bytes::copy_from_slice(self.head.take(length)?),
            1 => self.gather(length)?,
            code => return Err(bad("content", code)),
        };
        TensorData::new(dtype, shape, bytes).map(Content::Data).ok_or(DecodeError::BadData)
    }

    /// `length` bytes from the data frames; only as much memory as really came is taken.
    fn gather(&mut self, length: usize) -> Result<Bytes> {
        let (first, rest) = self.data.split_first().ok_or(DecodeError::BadData)?;
        self.data = rest;
        if first.len() == length {
            return Ok(first.clone());
        }
        let mut whole = BytesMut::from(&first[..]);
        while whole.len() < length {
            let (next, rest) = self.data.split_first().ok_or(DecodeError::BadData)?;
            self.data = rest;
            if next.is_empty() {
                return Err(DecodeError::BadData);
            }
            whole.extend_from_slice(next);
        }
        if whole.len() == length { Ok(whole.freeze()) } else { Err(DecodeError::BadData) }
    }
}

fn bad(what: &'static str, code: u8) -> DecodeError {
    DecodeError::BadCode { what, code: u64::from(code) }
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::Client => 0,
        Role::Worker => 1,
        Role::Watcher => 2,
    }
}

fn role_from_code(code: u8) -> Result<Role> {
    [Role::Client, Role::Worker, Role::Watcher]
        .get(code as usize)
        .copied()
        .ok_or_else(|| bad("a role", code))
}
