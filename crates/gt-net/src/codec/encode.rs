//! Messages written as frames.

use bytes::Bytes;
use gt_ir::message::{Failure, Message, Role};
use gt_ir::{Attribute, Attributes, Command, Content, Instruction, Operand};

use super::events::{encode_events, encode_names, encode_report, encode_status, write_time};
use super::exchange::{encode_exchange, encode_fabric, encode_meta, encode_shard};
use super::explain::{encode_explanation, encode_placed};
use super::{DATA_FRAME, INLINE};
use crate::wire::Writer;

pub(super) struct Encoder {
    pub head: Writer,
    pub data: Vec<Bytes>,
    /// The last output: ids stand as differences from it, since most are near.
    pub last: u64,
}

impl Encoder {
    pub fn message(&mut self, message: &Message) {
        match message {
            Message::Hello(hello) => {
                self.head.u8(1);
                self.head.u32(hello.version);
                self.head.u64(hello.schema);
                self.head.u8(role_code(hello.role));
                self.head.text(&hello.name);
                self.head.text(&hello.machine);
                self.head.text(&hello.endpoint);
                self.head.u8(u8::from(hello.fabric.is_some()));
                if let Some(fabric) = &hello.fabric {
                    encode_fabric(&mut self.head, fabric);
                }
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
            Message::Status { request, status } => {
                self.head.u8(17);
                self.head.u64(request.0);
                encode_status(&mut self.head, status);
            }
            Message::Observe { on, sent } => {
                self.head.u8(18);
                self.head.u8(u8::from(*on));
                write_time(&mut self.head, *sent);
            }
            Message::Observed { sent, here } => {
                self.head.u8(19);
                write_time(&mut self.head, *sent);
                write_time(&mut self.head, *here);
            }
            Message::Report(report) => {
                self.head.u8(20);
                encode_report(&mut self.head, report);
            }
            Message::Events { events, dropped } => {
                self.head.u8(21);
                self.head.varint(*dropped);
                encode_events(&mut self.head, events);
            }
            Message::Watch { limit } => {
                self.head.u8(22);
                self.head.u32(*limit);
            }
            Message::Names(names) => {
                self.head.u8(23);
                encode_names(&mut self.head, names);
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
            Command::Status { request } => {
                self.head.u8(17);
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
            Command::Define(definition) => {
                self.head.u8(13);
                self.definition(definition);
            }
            Command::Invoke(invocation) => {
                self.head.u8(14);
                self.invocation(invocation);
            }
            Command::Script(script) => {
                self.head.u8(15);
                self.script(script);
            }
            Command::Play(play) => {
                self.head.u8(16);
                self.play(play);
            }
        }
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction) {
        let output = instruction.output.0;
        self.head.varint(u64::from(instruction.operation.id));
        self.head.near(output, self.last);
        self.last = output;
        self.head.varint(u64::from(instruction.source.0));
        self.head.varint(u64::from(instruction.signal));
        self.head.varint(instruction.operands.len() as u64);
        for operand in &instruction.operands {
            match operand {
                Operand::Tensor(id) => {
                    self.head.u8(0);
                    self.head.near(id.0, output);
                }
                Operand::Scalar(scalar) => self.scalar(*scalar),
            }
        }
        self.attributes(&instruction.attributes);
    }

    /// A list of attributes, after its length.
    pub(super) fn attributes(&mut self, attributes: &Attributes) {
        let head = &mut self.head;
        head.u8(attributes.len() as u8);
        for attribute in attributes {
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

fn role_code(role: Role) -> u8 {
    match role {
        Role::Client => 0,
        Role::Worker => 1,
        Role::Watcher => 2,
    }
}
