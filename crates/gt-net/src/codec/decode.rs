//! Frames read as messages.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gt_ir::data::SharedBlock;
use gt_ir::instruction::Operands;
use gt_ir::message::{Failure, Hello, Message, Role, Welcome};
use gt_ir::{
    Attribute, Attributes, Command, Content, DType, Instruction, Meta, Operand, Operation, Piece,
    RequestId, Shape, SourceId, TensorData, TensorId, TransferId, WorkerId,
};

use super::Result;
use super::events::{decode_events, decode_names, decode_report, decode_status, read_time};
use super::exchange::{decode_exchange, decode_fabric, decode_meta, decode_shard};
use super::explain::{decode_explanation, decode_placed};
use crate::wire::{DecodeError, Reader};

pub(super) struct Decoder<'a> {
    pub head: Reader<'a>,
    /// The data frames that are not used yet.
    pub data: &'a [Bytes],
    /// The last output, as in the encoder.
    pub last: u64,
}

impl Decoder<'_> {
    pub fn message(&mut self) -> Result<Message> {
        Ok(match self.head.u8()? {
            1 => Message::Hello(Hello {
                version: self.head.u32()?,
                schema: self.head.u64()?,
                role: role_from_code(self.head.u8()?)?,
                name: self.head.text()?,
                machine: self.head.text()?,
                endpoint: self.head.text()?,
                fabric: if self.bool()? { Some(decode_fabric(&mut self.head)?) } else { None },
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
                let count = self.head.count(count, 140)?;
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
            17 => Message::Status {
                request: RequestId(self.head.u64()?),
                status: Box::new(decode_status(&mut self.head)?),
            },
            18 => Message::Observe { on: self.bool()?, sent: read_time(&mut self.head)? },
            19 => Message::Observed {
                sent: read_time(&mut self.head)?,
                here: read_time(&mut self.head)?,
            },
            20 => Message::Report(Box::new(decode_report(&mut self.head)?)),
            21 => Message::Events {
                dropped: self.head.varint()?,
                events: decode_events(&mut self.head)?,
            },
            22 => Message::Watch { limit: self.head.u32()? },
            23 => Message::Names(decode_names(&mut self.head)?),
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
            13 => Command::Define(Box::new(self.definition()?)),
            14 => Command::Invoke(Box::new(self.invocation()?)),
            15 => Command::Script(Box::new(self.script()?)),
            16 => Command::Play(Arc::new(self.read_play()?)),
            17 => Command::Status { request: RequestId(self.head.u64()?) },
            code => return Err(bad("a command", code)),
        })
    }

    pub(super) fn bool(&mut self) -> Result<bool> {
        match self.head.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            code => Err(bad("a bool", code)),
        }
    }

    /// A number of 32 bits at most.
    pub(super) fn small(&mut self) -> Result<u32> {
        u32::try_from(self.head.varint()?).map_err(|_| DecodeError::BadNumber)
    }

    fn dtype(&mut self) -> Result<DType> {
        let code = self.head.u8()?;
        DType::from_code(code).ok_or_else(|| bad("a dtype", code))
    }

    pub(super) fn instruction(&mut self) -> Result<Instruction> {
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
        let operand_count = self.head.count(operand_count, 2)?;
        let mut operands = Operands::with_capacity(operand_count);
        for _ in 0..operand_count {
            operands.push(match self.head.u8()? {
                0 => Operand::Tensor(TensorId(self.head.near(output.0)?)),
                kind => Operand::Scalar(self.scalar(kind)?),
            });
        }
        let attributes = self.read_attributes()?;
        Ok(Instruction { operation, output, operands, attributes, source, signal })
    }

    pub(super) fn read_attributes(&mut self) -> Result<Attributes> {
        let attribute_count = self.head.u8()? as usize;
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
        Ok(attributes)
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

pub(super) fn bad(what: &'static str, code: u8) -> DecodeError {
    DecodeError::BadCode { what, code: u64::from(code) }
}

fn role_from_code(code: u8) -> Result<Role> {
    [Role::Client, Role::Worker, Role::Watcher]
        .get(code as usize)
        .copied()
        .ok_or_else(|| bad("a role", code))
}
