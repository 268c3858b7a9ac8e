//! The end of a step: what it has changed takes place together, or not at all.
//!
//! A step, as that of an optimizer, gives tensors new values by ordinary instructions. `commit` ends
//! it: it has the new value and the old one of each tensor that was changed. Where none of the new ones
//! has failed it does nothing at all. Where one has, each *new* tensor has the value of the old one from
//! there on: it is the one instruction that gives a tensor another value. Its own result is 0, or the
//! first failure.
//!
//! Where the tensors of a step lie on several slots, the planner has each of these run a `commit` of
//! guards alone, whose results are added up over the slots: one number, or a failure.

use smallvec::{SmallVec, smallvec};

use super::create::FULL;
use super::sample::{sample, tensor};
use crate::dtype::DType;
use crate::error::Error;
use crate::instruction::{Attribute, Attributes, Instruction, TensorId};
use crate::operation::Body::Composite;
use crate::operation::facts::says::*;
use crate::operation::{ComplexRule, Family, Meta, Operation, takes};
use crate::shape::Shape;

/// Shape and dtype of its result.
pub const RESULT: Meta = Meta { dtype: DType::F32, shape: Shape::SCALAR };

/// The end of a step.
pub static COMMIT: Operation = Operation {
    id: 313,
    name: "commit",
    family: Family::Reshape,
    doc: "ends a step: guards, then the new and the old value of each tensor that it changes; if one has failed, each new one is the old one; 0, or the failure",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensors("tensors"), takes::int("guards"), takes::flag("is_replicated")],
    infer: |call| {
        let tensors = call.operands.len();
        let guards = usize::try_from(call.int(0)).unwrap_or(usize::MAX);
        if guards > tensors || !(tensors - guards).is_multiple_of(2) {
            let (attribute, expected) = ("guards", "so many that pairs are left");
            let given = format!("{guards} of {tensors} tensors");
            return Err(Error::BadAttribute { operation: "commit", attribute, given, expected });
        }
        for index in (guards..tensors).step_by(2) {
            let (new, old) = (call.tensor(index)?, call.tensor(index + 1)?);
            if new != old {
                let expected = format!("that of the old value, {}", old.shape);
                let given = new.shape;
                return Err(Error::ShapeMismatch { operation: "commit", given, expected });
            }
        }
        (0..guards).try_for_each(|index| call.tensor(index).map(|_| ()))?;
        Ok(RESULT)
    },
    body: Composite(|g, _, _| {
        let attributes = smallvec![Attribute::dims(&[]), Attribute::DType(DType::F32)];
        g.emit(&FULL, &[0.0.into()], attributes)
    }),
    samples: || {
        let x = |dims: &[usize]| tensor(DType::F32, dims, -1.0, 1.0);
        let pairs = [x(&[2, 3]), x(&[2, 3]), x(&[4]), x(&[4])];
        vec![
            sample(&pairs, &[Attribute::Int(0), Attribute::Bool(false)]),
            sample(&pairs[1..], &[Attribute::Int(1), Attribute::Bool(true)]),
        ]
    },
    ..Operation::base().with(facts(Unchanged, OfBody, Committed))
};

/// Returns the attributes of a commit with `guards` guards. With `is_replicated`, other slots run
/// the same on equal values, and do not report their outcome to this one.
pub fn attributes(guards: usize, is_replicated: bool) -> Attributes {
    smallvec![Attribute::Int(guards as i64), Attribute::Bool(is_replicated)]
}

/// Whether an operation is `commit`.
#[inline]
pub fn is_commit(operation: &Operation) -> bool {
    operation.facts.result == Committed
}

/// What a commit is about, of tensors as its caller names them.
pub struct CommitParts<T> {
    pub guards: SmallVec<[T; 4]>,
    /// The new and the old value of each tensor.
    pub pairs: SmallVec<[(T, T); 4]>,
}

impl<T: Copy> CommitParts<T> {
    /// The parts of a commit with these tensors and attributes.
    pub fn of(tensors: impl Iterator<Item = T>, attributes: &Attributes) -> CommitParts<T> {
        let mut guards: SmallVec<[T; 4]> = tensors.collect();
        // What a client sends is not checked yet: without a number there are no guards.
        let count = match attributes.first() {
            Some(Attribute::Int(count)) => usize::try_from(*count).unwrap_or(0).min(guards.len()),
            _ => 0,
        };
        let pairs = guards[count..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        guards.truncate(count);
        CommitParts { guards, pairs }
    }

    /// The tensors whose failure undoes the step.
    pub fn watched(&self) -> impl Iterator<Item = T> + '_ {
        self.guards.iter().copied().chain(self.news())
    }

    /// The tensors that it may give another value.
    pub fn news(&self) -> impl Iterator<Item = T> + '_ {
        self.pairs.iter().map(|(new, _)| *new)
    }
}

impl Instruction {
    /// What it is about, if it is a commit.
    #[inline]
    pub fn commit(&self) -> Option<CommitParts<TensorId>> {
        is_commit(self.operation).then(|| CommitParts::of(self.reads(), &self.attributes))
    }
}
