//! Templates and their invocations as bytes. Names stand as differences from the first.

use gt_ir::{Definition, Invocation, Scalar, TensorId};

use super::Result;
use super::decode::{Decoder, bad};
use super::encode::Encoder;

type Changes = (Vec<(u32, TensorId)>, Vec<(u32, Scalar)>);

impl Encoder {
    pub(super) fn definition(&mut self, definition: &Definition) {
        let base = definition.base.0;
        self.head.varint(u64::from(definition.number));
        self.head.u8(u8::from(definition.compile));
        self.head.near(base, self.last);
        self.last = base;
        self.head.varint(definition.steps.len() as u64);
        for step in &definition.steps {
            self.head.u8(u8::from(step.is_some()));
            if let Some(instruction) = step {
                self.instruction(instruction);
            }
        }
        self.head.varint(definition.frees.len() as u64);
        definition.frees.iter().for_each(|id| self.head.near(id.0, base));
    }

    pub(super) fn invocation(&mut self, invocation: &Invocation) {
        let base = invocation.base.0;
        self.head.varint(u64::from(invocation.template));
        self.head.near(base, self.last);
        self.last = base;
        self.head.varint(u64::from(invocation.first));
        self.head.varint(u64::from(invocation.last));
        self.head.varint(u64::from(invocation.frees));
        self.changes(&invocation.tensors, &invocation.numbers, base);
        self.head.varint(invocation.others.len() as u64);
        invocation.others.iter().for_each(|id| self.head.near(id.0, base));
    }

    /// Tensors and numbers that are others than predicted, by slot.
    pub(super) fn changes(
        &mut self,
        tensors: &[(u32, TensorId)],
        numbers: &[(u32, Scalar)],
        base: u64,
    ) {
        self.head.varint(tensors.len() as u64);
        for (slot, id) in tensors {
            self.head.varint(u64::from(*slot));
            self.head.near(id.0, base);
        }
        self.head.varint(numbers.len() as u64);
        for (slot, value) in numbers {
            self.head.varint(u64::from(*slot));
            self.scalar(*value);
        }
    }

    /// A number, after its kind.
    pub(super) fn scalar(&mut self, scalar: Scalar) {
        match scalar {
            Scalar::Bool(value) => {
                self.head.u8(1);
                self.head.u8(u8::from(value));
            }
            Scalar::Int(value) => {
                self.head.u8(2);
                self.head.near(value as u64, 0);
            }
            Scalar::Float(value) => {
                self.head.u8(3);
                self.head.u64(value.to_bits());
            }
        }
    }
}

impl Decoder<'_> {
    pub(super) fn definition(&mut self) -> Result<Definition> {
        let (number, compile) = (self.small()?, self.bool()?);
        self.last = self.head.near(self.last)?;
        let base = TensorId(self.last);
        let count = self.length(1)?;
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            steps.push(if self.bool()? { Some(self.instruction()?) } else { None });
        }
        Ok(Definition { number, base, steps, frees: self.names(base)?, compile })
    }

    pub(super) fn invocation(&mut self) -> Result<Invocation> {
        let template = self.small()?;
        self.last = self.head.near(self.last)?;
        let base = TensorId(self.last);
        let (first, last, frees) = (self.small()?, self.small()?, self.small()?);
        let (tensors, numbers) = self.changes(base)?;
        let others = self.names(base)?;
        Ok(Invocation { template, base, first, last, tensors, numbers, frees, others })
    }

    /// Tensors and numbers that are others than predicted, by slot.
    pub(super) fn changes(&mut self, base: TensorId) -> Result<Changes> {
        let count = self.length(2)?;
        let mut tensors = Vec::with_capacity(count);
        for _ in 0..count {
            tensors.push((self.small()?, TensorId(self.head.near(base.0)?)));
        }
        let count = self.length(3)?;
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = self.small()?;
            let kind = self.head.u8()?;
            numbers.push((slot, self.scalar(kind)?));
        }
        Ok((tensors, numbers))
    }

    /// How many records of at least `size` bytes follow.
    pub(super) fn length(&mut self, size: usize) -> Result<usize> {
        let count = self.small()? as usize;
        self.head.count(count, size)
    }

    fn names(&mut self, base: TensorId) -> Result<Vec<TensorId>> {
        let count = self.length(1)?;
        (0..count).map(|_| Ok(TensorId(self.head.near(base.0)?))).collect()
    }

    /// A number of a kind.
    pub(super) fn scalar(&mut self, kind: u8) -> Result<Scalar> {
        Ok(match kind {
            1 => Scalar::Bool(self.bool()?),
            2 => Scalar::Int(self.head.near(0)? as i64),
            3 => Scalar::Float(f64::from_bits(self.head.u64()?)),
            code => return Err(bad("a number", code)),
        })
    }
}
