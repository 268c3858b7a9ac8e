//! What a pass is predicted to be, from the passes so far.

use super::{Invocation, Place, Step, Template, TemplateError, varying_attribute};
use crate::instruction::{Attribute, Attributes, Operand, Operands, TensorId};
use crate::scalar::Scalar;

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
    /// How far before the base it was.
    distance: u64,
    /// The base of the pass before the one in which it was bound.
    before: u64,
}

#[derive(Clone, Debug)]
struct BoundNumber {
    value: Scalar,
    /// What is added from pass to pass; whole numbers often count.
    step: i64,
}

/// The tensors and numbers of a template's last pass, from which those of the next are predicted.
/// Whoever sends invocations and whoever takes them keep equal ones.
#[derive(Clone, Debug)]
pub struct Bindings {
    pub base: TensorId,
    pub previous: TensorId,
    width: u64,
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
        let width = count as u64;
        let previous = base.0.wrapping_sub(width);
        let tensor = |&id: &TensorId| {
            let carried = id.0.wrapping_sub(previous) < width;
            let rule = if carried { Rule::Carried } else { Rule::Constant };
            BoundTensor { id, rule, distance: base.0.wrapping_sub(id.0), before: previous }
        };
        let number = |&value: &Scalar| BoundNumber { value, step: 0 };
        Bindings {
            base,
            previous: TensorId(previous),
            width,
            tensors: tensors.iter().map(tensor).collect(),
            numbers: numbers.iter().map(number).collect(),
        }
    }

    /// A new pass begins.
    pub fn begin(&mut self, base: TensorId) {
        self.previous = std::mem::replace(&mut self.base, base);
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
            Rule::Carried => {
                let step = bound.id.0.wrapping_sub(bound.before);
                TensorId(self.previous.0.wrapping_add(step))
            }
            Rule::Constant => bound.id,
            Rule::Distance => TensorId(self.base.0.wrapping_sub(bound.distance)),
        }
    }

    /// Binds a slot, and learns how it could have been predicted.
    pub fn bind_tensor(&mut self, slot: usize, id: TensorId) {
        let bound = &self.tensors[slot];
        let step = bound.id.0.wrapping_sub(bound.before);
        let fits = |rule: Rule| {
            (rule != Rule::Carried || step < self.width) && self.by_rule(bound, rule) == id
        };
        let rule = [bound.rule, Rule::Carried, Rule::Constant, Rule::Distance]
            .into_iter()
            .find(|&rule| fits(rule))
            .unwrap_or_else(|| {
                let step = id.0.wrapping_sub(self.previous.0);
                if step < self.width { Rule::Carried } else { Rule::Constant }
            });
        let distance = self.base.0.wrapping_sub(id.0);
        self.tensors[slot] = BoundTensor { id, rule, distance, before: self.previous.0 };
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
        if !in_order || last as usize > steps || (first > 0 && base != self.base) {
            return Err(TemplateError::Range { number, steps, first, last });
        }
        if invocation.frees as usize > template.frees.len() {
            return Err(TemplateError::Slot { number });
        }
        if first == 0 {
            self.begin(base);
        }
        let (first, last) = (first as usize, last as usize);
        let mut given = invocation.tensors.iter().peekable();
        for slot in template.new_tensors(first, last) {
            let id = match given.next_if(|(given, _)| *given as usize == slot) {
                Some((_, id)) => *id,
                None => self.predict_tensor(slot),
            };
            self.bind_tensor(slot, id);
        }
        let mut numbers = invocation.numbers.iter().peekable();
        for slot in template.new_numbers(first, last) {
            let value = match numbers.next_if(|(given, _)| *given as usize == slot) {
                Some((_, value)) => *value,
                None => self.predict_number(slot),
            };
            self.bind_number(slot, value);
        }
        if given.next().is_some() || numbers.next().is_some() {
            return Err(TemplateError::Slot { number });
        }
        Ok(())
    }

    /// The tensor at a place that is not a number's.
    pub fn tensor_at(&self, place: Place) -> TensorId {
        match place {
            Place::Own(step) => TensorId(self.base.0 + u64::from(step)),
            Place::Outside(slot) => self.tensors[slot as usize].id,
            Place::Number(_) => unreachable!("a number is no tensor"),
        }
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
