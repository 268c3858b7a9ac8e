//! Bindings: the tensors and numbers of an iteration, predicted from the iterations so far.
//!
//! A slot holds a rule, not a value: its value follows from the rule, the base of the iteration's
//! names, and the number of iterations. An iteration that matches its prediction therefore costs
//! nothing per slot.

use super::{Invocation, Name, TemplateError};
use crate::instruction::TensorId;
use crate::record;
use crate::scalar::Scalar;
use crate::wire::{Decoded, MadeTensor, Record, Sink, Source};

/// Resolves the names and number slots of an iteration.
pub trait Values {
    fn tensor(&self, name: Name) -> TensorId;

    fn number(&self, slot: u32) -> Scalar;
}

/// The initial bindings of a template: the bases of its names, and the values of its slots.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    pub bases: [TensorId; 2],
    pub tensors: Vec<TensorId>,
    pub numbers: Vec<Scalar>,
}

impl Record for Start {
    fn write<S: Sink>(&self, to: &mut S) {
        MadeTensor(self.bases[0]).write(to);
        self.bases[1].write(to);
        self.tensors.write(to);
        self.numbers.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Start> {
        let bases = [MadeTensor::read(from)?.0, TensorId::read(from)?];
        Ok(Start { bases, tensors: Record::read(from)?, numbers: Record::read(from)? })
    }
}

/// The rule of a tensor slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TensorRule {
    /// A tensor that the previous iteration made, in this name space, such as a parameter.
    Carried { space: u8, place: u64 },
    /// The same tensor in each iteration, such as a data set.
    Constant(TensorId),
    /// A tensor at this distance before the iteration's first name, such as a result of another
    /// template.
    Distance(u64),
}

record!(enum TensorRule { 0 => Carried { space, place }, 1 => Constant(id), 2 => Distance(distance) });

/// The rule of a number slot: its value at iteration `since`, and the increment per iteration, as
/// integers often count iterations.
#[derive(Clone, Copy, PartialEq, Debug)]
struct NumberRule {
    value: Scalar,
    step: i64,
    since: u64,
}

record!(struct NumberRule { value, step, since });

impl NumberRule {
    fn at(&self, iteration: u64) -> Scalar {
        let passed = iteration.wrapping_sub(self.since) as i64;
        match self.value {
            Scalar::Int(value) => Scalar::Int(value.wrapping_add(self.step.wrapping_mul(passed))),
            other => other,
        }
    }
}

/// A name space: the base and count of an iteration's names, and the bases of the two iterations
/// before.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct NameSpace {
    base: u64,
    previous: u64,
    before: u64,
    width: u64,
}

record!(struct NameSpace { base, previous, before, width });

/// The bindings of a template's current iteration. Sender and receiver of invocations keep equal
/// bindings, and compare their [digests](Bindings::digest).
#[derive(Clone, PartialEq, Debug)]
pub struct Bindings {
    /// The client's names, and planner-made names.
    spaces: [NameSpace; 2],
    tensors: Vec<TensorRule>,
    numbers: Vec<NumberRule>,
    iteration: u64,
    /// The sum of all slots' hashes.
    sum: u64,
}

record!(struct Bindings { spaces, tensors, numbers, iteration, sum });

/// Undoes [`Bindings::begin`].
pub struct BindingsUndo([NameSpace; 2]);

impl Values for Bindings {
    #[inline]
    fn tensor(&self, name: Name) -> TensorId {
        match name {
            Name::Own(place) => TensorId(self.spaces[0].base.wrapping_add(u64::from(place))),
            Name::Made(place) => TensorId(self.spaces[1].base.wrapping_add(u64::from(place))),
            Name::Outside(slot) => self.outside(slot),
        }
    }

    #[inline]
    fn number(&self, slot: u32) -> Scalar {
        self.numbers[slot as usize].at(self.iteration)
    }
}

impl Bindings {
    /// Returns the initial bindings of a template.
    pub fn new(widths: [u32; 2], start: &Start) -> Bindings {
        let space = |index: usize| {
            let (base, width) = (start.bases[index].0, u64::from(widths[index]));
            let previous = base.wrapping_sub(width);
            NameSpace { base, previous, before: previous.wrapping_sub(width), width }
        };
        let spaces = [space(0), space(1)];
        let (tensors, numbers) = (Vec::new(), Vec::new());
        let mut bindings = Bindings { spaces, tensors, numbers, iteration: 0, sum: 0 };
        bindings.tensors = start.tensors.iter().map(|id| bindings.rule(*id)).collect();
        let number = |&value: &Scalar| NumberRule { value, step: 0, since: 0 };
        bindings.numbers = start.numbers.iter().map(number).collect();
        let tensors = (0..bindings.tensors.len()).map(|slot| bindings.tensor_hash(slot));
        let numbers = (0..bindings.numbers.len()).map(|slot| bindings.number_hash(slot));
        bindings.sum = tensors.chain(numbers).fold(0, u64::wrapping_add);
        bindings
    }

    /// Returns the current values, as the start of a new definition.
    pub fn start(&self) -> Start {
        let tensors = (0..self.tensors.len() as u32).map(|slot| self.outside(slot)).collect();
        let numbers = (0..self.numbers.len() as u32).map(|slot| self.number(slot)).collect();
        Start { bases: self.bases(), tensors, numbers }
    }

    /// The bases of this iteration's names: the client's, and planner-made ones.
    pub fn bases(&self) -> [TensorId; 2] {
        self.spaces.map(|space| TensorId(space.base))
    }

    /// Returns whether a tensor is in the client's name space of this iteration.
    pub fn is_own(&self, id: TensorId) -> bool {
        id.0.wrapping_sub(self.spaces[0].base) < self.spaces[0].width
    }

    /// Begins another iteration, as predicted.
    pub fn begin(&mut self, bases: [TensorId; 2]) -> BindingsUndo {
        let before = BindingsUndo(self.spaces);
        for (space, base) in self.spaces.iter_mut().zip(bases) {
            space.before = space.previous;
            space.previous = std::mem::replace(&mut space.base, base.0);
        }
        self.iteration += 1;
        before
    }

    /// Undoes `begin`, if no slot was bound since.
    pub fn take_back(&mut self, before: BindingsUndo) {
        self.spaces = before.0;
        self.iteration -= 1;
    }

    #[inline]
    fn outside(&self, slot: u32) -> TensorId {
        match self.tensors[slot as usize] {
            TensorRule::Carried { space, place } => {
                TensorId(self.spaces[usize::from(space)].previous.wrapping_add(place))
            }
            TensorRule::Constant(id) => id,
            TensorRule::Distance(distance) => TensorId(self.spaces[0].base.wrapping_sub(distance)),
        }
    }

    /// A slot's value in the previous iteration, by its current rule.
    fn outside_before(&self, slot: usize) -> TensorId {
        match self.tensors[slot] {
            TensorRule::Carried { space, place } => {
                TensorId(self.spaces[usize::from(space)].before.wrapping_add(place))
            }
            TensorRule::Constant(id) => id,
            TensorRule::Distance(distance) => {
                TensorId(self.spaces[0].previous.wrapping_sub(distance))
            }
        }
    }

    /// Returns the rule inferred from one value: carried if the previous iteration made it, else
    /// constant.
    fn rule(&self, id: TensorId) -> TensorRule {
        for (index, space) in self.spaces.iter().enumerate() {
            let place = id.0.wrapping_sub(space.previous);
            if place < space.width {
                return TensorRule::Carried { space: index as u8, place };
            }
        }
        TensorRule::Constant(id)
    }

    /// Binds a slot to a tensor that was not predicted, and infers a new rule.
    pub fn bind_tensor(&mut self, slot: u32, id: TensorId) {
        let slot = slot as usize;
        let mut rule = self.rule(id);
        let distance = self.spaces[0].base.wrapping_sub(id.0);
        let last = self.spaces[0].previous.wrapping_sub(self.outside_before(slot).0);
        if matches!(rule, TensorRule::Constant(_)) && distance == last {
            rule = TensorRule::Distance(distance);
        }
        self.sum = self.sum.wrapping_sub(self.tensor_hash(slot));
        self.tensors[slot] = rule;
        self.sum = self.sum.wrapping_add(self.tensor_hash(slot));
    }

    /// Binds a slot to a number that was not predicted, and infers a new increment.
    pub fn bind_number(&mut self, slot: u32, value: Scalar) {
        let slot = slot as usize;
        let last = self.numbers[slot].at(self.iteration.wrapping_sub(1));
        let step = match (last, value) {
            (Scalar::Int(old), Scalar::Int(new)) => new.wrapping_sub(old),
            _ => 0,
        };
        self.sum = self.sum.wrapping_sub(self.number_hash(slot));
        self.numbers[slot] = NumberRule { value, step, since: self.iteration };
        self.sum = self.sum.wrapping_add(self.number_hash(slot));
    }

    /// Applies an invocation, of a new iteration if it `begins`, or else of another part of the
    /// current one.
    ///
    /// # Errors
    /// It names slots that do not exist, or the sender's bindings differ.
    pub fn take(&mut self, invocation: &Invocation, begins: bool) -> Result<(), TemplateError> {
        let number = invocation.template;
        let tensors = invocation.tensors.iter().map(|(slot, _)| *slot);
        let numbers = invocation.numbers.iter().map(|(slot, _)| *slot);
        if !ascends(tensors, self.tensors.len()) || !ascends(numbers, self.numbers.len()) {
            return Err(TemplateError::Slot { number });
        }
        if begins {
            self.begin(invocation.bases);
        }
        for (slot, id) in &invocation.tensors {
            self.bind_tensor(*slot, *id);
        }
        for (slot, value) in &invocation.numbers {
            self.bind_number(*slot, *value);
        }
        let agrees = self.digest() == invocation.digest;
        if agrees { Ok(()) } else { Err(TemplateError::Digest { number }) }
    }

    /// Returns a hash of all bindings, to detect that sender and receiver differ.
    pub fn digest(&self) -> u32 {
        let mut hash = mix(self.sum, self.iteration);
        for space in &self.spaces {
            hash = mix(mix(hash, space.base), space.previous);
        }
        (hash >> 32) as u32
    }

    fn tensor_hash(&self, slot: usize) -> u64 {
        let (kind, place) = match self.tensors[slot] {
            TensorRule::Carried { space, place } => (u64::from(space), place),
            TensorRule::Constant(id) => (2, id.0),
            TensorRule::Distance(distance) => (3, distance),
        };
        mix(mix(slot as u64 * 8 + kind, place), 0)
    }

    fn number_hash(&self, slot: usize) -> u64 {
        let NumberRule { value, step, since } = self.numbers[slot];
        let (kind, bits) = match value {
            Scalar::Bool(value) => (4, u64::from(value)),
            Scalar::Int(value) => (5, value as u64),
            Scalar::Float(value) => (6, value.to_bits()),
        };
        // Without an increment, `since` does not matter.
        let since = if step == 0 { 0 } else { since };
        mix(mix(mix(slot as u64 * 8 + kind, bits), step as u64), since)
    }
}

/// Returns whether slots are strictly ascending and exist.
fn ascends(slots: impl Iterator<Item = u32>, count: usize) -> bool {
    let mut next = 0;
    for slot in slots {
        if slot < next || slot as usize >= count {
            return false;
        }
        next = slot + 1;
    }
    true
}

/// The multiply-and-fold mixer of wyhash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product =
        u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * u128::from(word ^ 0xa076_1d64_78bd_642f);
    (product >> 64) as u64 ^ product as u64
}
