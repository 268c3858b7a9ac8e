//! What a pass is predicted to be, from the passes so far.

use std::ops::Range;

use super::{Invocation, Place, Step, Template, TemplateError, varying_attribute};
use crate::instruction::{Attribute, Attributes, Operand, Operands, TensorId};
use crate::scalar::Scalar;
use crate::script::{Name, Play};

/// How a tensor from outside is found in the next pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// The result of the same step of the pass before, as a parameter.
    Carried,
    /// The same tensor, as a data set.
    Constant,
    /// As far back as the last time, as what another template made.
    Distance,
}

#[derive(Clone, Debug)]
struct BoundTensor {
    id: TensorId,
    rule: Rule,
    /// In which space of names it was carried,
    space: usize,
    /// from which place of the pass before.
    step: u64,
    /// How far before the base it was.
    distance: u64,
}

#[derive(Clone, Debug)]
struct BoundNumber {
    value: Scalar,
    /// What is added from pass to pass; whole numbers often count.
    step: i64,
}

/// Names that a pass gives, counted from its base.
#[derive(Clone, Copy, Default, Debug)]
struct Space {
    base: u64,
    previous: u64,
    width: u64,
}

/// The tensors and numbers of a template's last pass, from which those of the next are predicted.
/// Whoever sends invocations and whoever takes them keep equal ones.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// The client's names, and the planner's own.
    spaces: [Space; 2],
    tensors: Vec<BoundTensor>,
    numbers: Vec<BoundNumber>,
}

impl Bindings {
    /// Those of a pass of `count` steps that follows directly on another one.
    pub(super) fn new(
        base: TensorId,
        count: usize,
        tensors: &[TensorId],
        numbers: &[Scalar],
    ) -> Bindings {
        let none = TensorId(u64::MAX);
        Bindings::of_script([base, none], [count as u64, 0], tensors, numbers)
    }

    /// Those of a pass that uses so many names of each kind, and follows directly on another one.
    pub fn of_script(
        bases: [TensorId; 2],
        widths: [u64; 2],
        tensors: &[TensorId],
        numbers: &[Scalar],
    ) -> Bindings {
        let space = |index: usize| {
            let (base, width) = (bases[index].0, widths[index]);
            Space { base, previous: base.wrapping_sub(width), width }
        };
        let spaces = [space(0), space(1)];
        let mut bindings = Bindings { spaces, tensors: Vec::new(), numbers: Vec::new() };
        for &id in tensors {
            let bound = bindings.bound(id);
            bindings.tensors.push(bound);
        }
        let number = |&value: &Scalar| BoundNumber { value, step: 0 };
        bindings.numbers = numbers.iter().map(number).collect();
        bindings
    }

    /// A tensor that is carried, if it is of the pass before, and else always the same.
    fn bound(&self, id: TensorId) -> BoundTensor {
        let distance = self.spaces[0].base.wrapping_sub(id.0);
        let carried = self.spaces.iter().enumerate().find_map(|(index, space)| {
            let step = id.0.wrapping_sub(space.previous);
            (step < space.width).then_some((index, step))
        });
        let (space, step) = carried.unwrap_or_default();
        let rule = if carried.is_some() { Rule::Carried } else { Rule::Constant };
        BoundTensor { id, rule, space, step, distance }
    }

    /// Where the client's names of this pass begin.
    pub fn base(&self) -> TensorId {
        TensorId(self.spaces[0].base)
    }

    /// Where those of the pass before began.
    pub fn previous(&self) -> TensorId {
        TensorId(self.spaces[0].previous)
    }

    /// A new pass begins.
    pub fn begin(&mut self, base: TensorId) {
        self.begin_with([base, TensorId(self.spaces[1].base)]);
    }

    /// A new pass begins, with names of both kinds.
    pub fn begin_with(&mut self, bases: [TensorId; 2]) {
        for (space, base) in self.spaces.iter_mut().zip(bases) {
            space.previous = std::mem::replace(&mut space.base, base.0);
        }
    }

    /// As if the pass that has just begun had not.
    pub fn take_back(&mut self, base: TensorId, previous: TensorId) {
        (self.spaces[0].base, self.spaces[0].previous) = (base.0, previous.0);
    }

    /// The tensor of a name.
    pub fn named(&self, name: Name) -> TensorId {
        match name {
            Name::Own(step) => TensorId(self.spaces[0].base.wrapping_add(u64::from(step))),
            Name::Made(step) => TensorId(self.spaces[1].base.wrapping_add(u64::from(step))),
            Name::Outside(slot) => self.tensors[slot as usize].id,
        }
    }

    /// How many tensors from outside there are, and numbers.
    pub fn lengths(&self) -> (usize, usize) {
        (self.tensors.len(), self.numbers.len())
    }

    pub fn tensor(&self, slot: usize) -> TensorId {
        self.tensors[slot].id
    }

    pub fn number(&self, slot: usize) -> Scalar {
        self.numbers[slot].value
    }

    /// What a slot is in this pass if nothing else is said.
    pub fn predict_tensor(&self, slot: usize) -> TensorId {
        let bound = &self.tensors[slot];
        self.by_rule(bound, bound.rule)
    }

    fn by_rule(&self, bound: &BoundTensor, rule: Rule) -> TensorId {
        match rule {
            Rule::Carried => TensorId(self.spaces[bound.space].previous.wrapping_add(bound.step)),
            Rule::Constant => bound.id,
            Rule::Distance => TensorId(self.spaces[0].base.wrapping_sub(bound.distance)),
        }
    }

    /// Binds a slot, and learns how it could have been predicted.
    #[inline]
    pub fn bind_tensor(&mut self, slot: usize, id: TensorId) {
        let bound = &self.tensors[slot];
        if self.by_rule(bound, bound.rule) == id {
            let distance = self.spaces[0].base.wrapping_sub(id.0);
            let bound = &mut self.tensors[slot];
            (bound.id, bound.distance) = (id, distance);
            return;
        }
        let mut new = self.bound(id);
        if new.rule == Rule::Constant && self.by_rule(bound, Rule::Distance) == id {
            new.rule = Rule::Distance;
        }
        self.tensors[slot] = new;
    }

    /// What a number is in this pass if nothing else is said.
    pub fn predict_number(&self, slot: usize) -> Scalar {
        let bound = &self.numbers[slot];
        match bound.value {
            Scalar::Int(value) => Scalar::Int(value.wrapping_add(bound.step)),
            other => other,
        }
    }

    /// Binds a number.
    pub fn bind_number(&mut self, slot: usize, value: Scalar) {
        let bound = &mut self.numbers[slot];
        if let (Scalar::Int(old), Scalar::Int(new)) = (bound.value, value) {
            bound.step = new.wrapping_sub(old);
        }
        bound.value = value;
    }

    /// Takes an invocation: the slots of its steps are bound as it says, or as predicted.
    ///
    /// # Errors
    /// The invocation does not fit the template.
    pub fn take(
        &mut self,
        template: &Template,
        invocation: &Invocation,
    ) -> Result<(), TemplateError> {
        let Invocation { template: number, base, first, last, .. } = *invocation;
        let steps = template.len();
        let in_order = first < last || first == last && first > 0;
        if !in_order || last as usize > steps || (first > 0 && base != self.base()) {
            return Err(TemplateError::Range { number, steps, first, last });
        }
        if invocation.frees as usize > template.frees.len() {
            return Err(TemplateError::Slot { number });
        }
        if first == 0 {
            self.begin(base);
        }
        let (first, last) = (first as usize, last as usize);
        let (tensors, numbers) =
            (template.new_tensors(first, last), template.new_numbers(first, last));
        self.bind(tensors, &invocation.tensors, numbers, &invocation.numbers)
            .ok_or(TemplateError::Slot { number })
    }

    /// The tensor at a place that is not a number's.
    pub fn tensor_at(&self, place: Place) -> TensorId {
        match place {
            Place::Own(step) => self.named(Name::Own(step)),
            Place::Outside(slot) => self.named(Name::Outside(slot)),
            Place::Number(_) => unreachable!("a number is no tensor"),
        }
    }

    /// Takes another pass of a script: slots are bound as it says, or as predicted.
    ///
    /// # Errors
    /// It names slots that there are not.
    pub fn play(&mut self, play: &Play) -> Result<(), TemplateError> {
        self.begin_with(play.bases);
        let (tensors, numbers) = self.lengths();
        self.bind(0..tensors, &play.tensors, 0..numbers, &play.numbers)
            .ok_or(TemplateError::Slot { number: play.script })
    }

    /// Binds slots as given, or as predicted; `None` if others are given.
    fn bind(
        &mut self,
        tensors: Range<usize>,
        given_tensors: &[(u32, TensorId)],
        numbers: Range<usize>,
        given_numbers: &[(u32, Scalar)],
    ) -> Option<()> {
        let mut given = given_tensors.iter().peekable();
        for slot in tensors {
            let id = match given.next_if(|(given, _)| *given as usize == slot) {
                Some((_, id)) => *id,
                None => self.predict_tensor(slot),
            };
            self.bind_tensor(slot, id);
        }
        let mut numbered = given_numbers.iter().peekable();
        for slot in numbers {
            let value = match numbered.next_if(|(given, _)| *given as usize == slot) {
                Some((_, value)) => *value,
                None => self.predict_number(slot),
            };
            self.bind_number(slot, value);
        }
        (given.next().is_none() && numbered.next().is_none()).then_some(())
    }

    /// An operand with these bindings.
    pub fn operand(&self, place: Place) -> Operand {
        match place {
            Place::Number(slot) => Operand::Scalar(self.numbers[slot as usize].value),
            place => Operand::Tensor(self.tensor_at(place)),
        }
    }

    /// A step's operands with these bindings.
    pub fn operands(&self, step: &Step) -> Operands {
        step.operands.iter().map(|place| self.operand(*place)).collect()
    }

    /// A step's attributes with these bindings.
    pub fn attributes(&self, step: &Step) -> Attributes {
        let mut attributes = step.attributes.clone();
        if let Some(index) = varying_attribute(step.operation)
            && let Some(Attribute::Ints(values)) = attributes.get_mut(index)
        {
            for (offset, value) in values.iter_mut().enumerate() {
                *value = self.numbers[step.varying as usize + offset].value.as_i64();
            }
        }
        attributes
    }
}
