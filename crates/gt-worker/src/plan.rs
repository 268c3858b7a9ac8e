//! Plans: traces that an engine prepares and runs as one. Programs are cached by their keys.

use std::fmt;

use gt_ir::Scalar;
use gt_ir::event::{Activity, Mix};
use gt_ir::trace::Trace;

/// A trace, and what an engine needs to know of its use.
#[derive(Clone, Debug)]
pub struct Plan {
    pub trace: Trace,
    /// By input, whether it is not used after the run, so that its memory may be reused.
    pub dies: Vec<bool>,
    /// Whether the user requested compilation; otherwise the engine decides.
    pub compile: bool,
}

/// An input in one run.
#[derive(Clone, Debug)]
pub enum InputValue<T> {
    Tensor(T),
    Number(Scalar),
    /// A dying tensor that the engine has taken.
    Taken,
}

impl<T> InputValue<T> {
    /// Returns the number; panics on a tensor.
    pub fn number(&self) -> Scalar {
        match self {
            InputValue::Number(scalar) => *scalar,
            _ => unreachable!("the plan says where there are numbers"),
        }
    }
}

/// Returns the numbers among the inputs of a run, by value.
pub fn numbers<T>(inputs: &[InputValue<T>]) -> impl Fn(u32) -> Scalar {
    |value| inputs[value as usize].number()
}

impl Plan {
    /// Returns a plan none of whose inputs dies, and that no user asked to compile.
    pub fn new(trace: Trace) -> Plan {
        let dies = vec![false; trace.inputs.len()];
        Plan { trace, dies, compile: false }
    }

    /// Returns the cache key: equal for equal plans.
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.trace.key();
        key.extend(self.dies.iter().map(|&dies| u8::from(dies)));
        key.push(u8::from(self.compile));
        key
    }

    /// Returns the estimated work of its steps.
    pub fn work(&self) -> u64 {
        let steps = self.trace.steps.iter();
        steps.map(|step| step.operation.work(&self.trace.metas(&step.operands), step.output)).sum()
    }

    /// Returns the mix of its steps' activities, weighted by work.
    pub fn mix(&self) -> Mix {
        Mix::new(self.trace.steps.iter().map(|step| {
            let work = step.operation.work(&self.trace.metas(&step.operands), step.output);
            (Activity::of(step.operation.family), work)
        }))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trace)?;
        if self.dies.contains(&true) {
            let dying = (0..).zip(&self.dies).filter(|(_, dies)| **dies);
            let dying: String = dying.map(|(input, _): (u32, _)| format!(" %{input}")).collect();
            writeln!(f, "given away:{dying}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::trace::Input;
    use gt_ir::{DType, Meta, Shape};

    use super::*;

    #[test]
    fn plans_that_differ_in_their_use_have_different_keys() {
        let meta = Meta::new(DType::F32, Shape::new(&[2]).unwrap());
        let trace = Trace { outputs: vec![1], ..Trace::new(vec![Input::Tensor(meta); 2]) };
        let plan = Plan::new(trace);
        let dying = |dies: [bool; 2]| Plan { dies: dies.to_vec(), ..plan.clone() };
        let compiled = Plan { compile: true, ..plan.clone() };
        let all = [plan.clone(), dying([true, false]), dying([false, true]), compiled];
        let keys: Vec<Vec<u8>> = all.iter().map(Plan::key).collect();
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{}", all[index]);
        }
        assert!(dying([true, false]).to_string().ends_with("given away: %0\n"));
    }
}
