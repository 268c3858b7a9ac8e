//! Scripts and their passes as bytes.

use gt_ir::script::{Name, Play, Script, ScriptOperand, ScriptStep};
use gt_ir::{Operation, SourceId, TensorId, TransferId};

use super::Result;
use super::decode::{Decoder, bad};
use super::encode::Encoder;
use super::exchange::{decode_exchange, encode_exchange};
use crate::wire::DecodeError;

impl Encoder {
    pub(super) fn script(&mut self, script: &Script) {
        self.head.varint(u64::from(script.session));
        self.head.varint(u64::from(script.number));
        self.head.u8(u8::from(script.compile));
        self.bases(script.bases);
        script.widths.iter().for_each(|&width| self.head.varint(width));
        self.head.varint(script.tensors.len() as u64);
        let base = script.bases[0].0;
        script.tensors.iter().for_each(|id| self.head.near(id.0, base));
        self.head.varint(script.numbers.len() as u64);
        script.numbers.iter().for_each(|number| self.scalar(*number));
        self.head.varint(script.steps.len() as u64);
        script.steps.iter().for_each(|step| self.script_step(step));
    }

    fn script_step(&mut self, step: &ScriptStep) {
        match step {
            ScriptStep::Run { operation, output, operands, attributes, source, signal } => {
                self.head.u8(0);
                self.head.varint(u64::from(operation.id));
                self.name(output);
                self.head.varint(operands.len() as u64);
                for operand in operands {
                    match operand {
                        ScriptOperand::Tensor(name) => self.name(name),
                        ScriptOperand::Number(slot) => {
                            self.head.u8(3);
                            self.head.varint(u64::from(*slot));
                        }
                        ScriptOperand::Constant(scalar) => {
                            self.head.u8(4);
                            self.scalar(*scalar);
                        }
                    }
                }
                self.attributes(attributes);
                self.head.varint(u64::from(source.0));
                self.head.varint(u64::from(*signal));
            }
            ScriptStep::Exchange { exchange, transfer, input, output } => {
                self.head.u8(1);
                encode_exchange(&mut self.head, exchange);
                self.head.varint(u64::from(*transfer));
                self.optional_name(input.as_ref());
                self.optional_name(output.as_ref());
            }
            ScriptStep::Free(name) => {
                self.head.u8(2);
                self.name(name);
            }
        }
    }

    pub(super) fn play(&mut self, play: &Play) {
        self.head.varint(u64::from(play.session));
        self.head.varint(u64::from(play.script));
        self.bases(play.bases);
        self.head.u64(play.transfer.0);
        self.changes(&play.tensors, &play.numbers, play.bases[0].0);
        self.head.varint(u64::from(play.weight));
    }

    fn bases(&mut self, [own, made]: [TensorId; 2]) {
        self.head.near(own.0, self.last);
        self.head.near(made.0, own.0);
        self.last = own.0;
    }

    fn name(&mut self, name: &Name) {
        let (kind, place) = match name {
            Name::Own(place) => (0, place),
            Name::Made(place) => (1, place),
            Name::Outside(place) => (2, place),
        };
        self.head.u8(kind);
        self.head.varint(u64::from(*place));
    }

    fn optional_name(&mut self, name: Option<&Name>) {
        self.head.u8(u8::from(name.is_some()));
        if let Some(name) = name {
            self.name(name);
        }
    }
}

impl Decoder<'_> {
    pub(super) fn script(&mut self) -> Result<Script> {
        let (session, number) = (self.small()?, self.small()?);
        let compile = self.bool()?;
        let bases = self.read_bases()?;
        let widths = [self.head.varint()?, self.head.varint()?];
        let base = bases[0].0;
        let count = self.length(1)?;
        let tensors = (0..count).map(|_| Ok(TensorId(self.head.near(base)?)));
        let tensors = tensors.collect::<Result<_>>()?;
        let count = self.length(2)?;
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            let kind = self.head.u8()?;
            numbers.push(self.scalar(kind)?);
        }
        let count = self.length(3)?;
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            steps.push(self.read_script_step()?);
        }
        Ok(Script { session, number, widths, tensors, numbers, bases, steps, compile })
    }

    fn read_script_step(&mut self) -> Result<ScriptStep> {
        Ok(match self.head.u8()? {
            0 => {
                let id = self.head.varint()?;
                let operation = u16::try_from(id)
                    .ok()
                    .and_then(Operation::from_id)
                    .ok_or(DecodeError::BadCode { what: "an operation", code: id })?;
                let output = self.read_name()?;
                let count = self.length(2)?;
                let mut operands = Vec::with_capacity(count);
                for _ in 0..count {
                    operands.push(match self.head.u8()? {
                        3 => ScriptOperand::Number(self.small()?),
                        4 => {
                            let kind = self.head.u8()?;
                            ScriptOperand::Constant(self.scalar(kind)?)
                        }
                        kind => ScriptOperand::Tensor(self.name_of_kind(kind)?),
                    });
                }
                let attributes = self.read_attributes()?;
                let source = SourceId(self.small()?);
                let signal = self.small()?;
                ScriptStep::Run { operation, output, operands, attributes, source, signal }
            }
            1 => ScriptStep::Exchange {
                exchange: Box::new(decode_exchange(&mut self.head)?),
                transfer: self.small()?,
                input: self.read_optional_name()?,
                output: self.read_optional_name()?,
            },
            2 => ScriptStep::Free(self.read_name()?),
            code => return Err(bad("a step", code)),
        })
    }

    pub(super) fn read_play(&mut self) -> Result<Play> {
        let (session, script) = (self.small()?, self.small()?);
        let bases = self.read_bases()?;
        let transfer = TransferId(self.head.u64()?);
        let (tensors, numbers) = self.changes(bases[0])?;
        let weight = self.small()?;
        Ok(Play { session, script, bases, transfer, tensors, numbers, weight })
    }

    fn read_bases(&mut self) -> Result<[TensorId; 2]> {
        self.last = self.head.near(self.last)?;
        Ok([TensorId(self.last), TensorId(self.head.near(self.last)?)])
    }

    fn read_name(&mut self) -> Result<Name> {
        let kind = self.head.u8()?;
        self.name_of_kind(kind)
    }

    fn name_of_kind(&mut self, kind: u8) -> Result<Name> {
        let place = self.small()?;
        Ok(match kind {
            0 => Name::Own(place),
            1 => Name::Made(place),
            2 => Name::Outside(place),
            code => return Err(bad("a name", code)),
        })
    }

    fn read_optional_name(&mut self) -> Result<Option<Name>> {
        Ok(if self.bool()? { Some(self.read_name()?) } else { None })
    }
}
