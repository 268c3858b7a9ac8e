//! A pass as the ordinary commands that it stands for.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Bindings, Place, Template};
use crate::instruction::{Command, TensorId};

/// A pass of a template, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass<'a> {
    /// These steps are run,
    pub first: usize,
    pub last: usize,
    /// these of the template's frees done,
    pub freed: usize,
    pub frees: usize,
    /// and these tensors freed.
    pub others: &'a [TensorId],
}

/// The instructions of a pass, and the frees, each after the last use of its tensor.
pub fn expand(template: &Template, bindings: &Bindings, pass: Pass) -> Vec<Command> {
    let Pass { first, last, freed, frees, others } = pass;
    // What is freed after each step, and what of no step's.
    let mut after: Vec<SmallVec<[TensorId; 2]>> = vec![SmallVec::new(); last - first];
    let mut rest: Vec<TensorId> = Vec::new();
    let uses = LastUses::new(template, bindings, first, last);
    let mut put = |id: TensorId, step: Option<usize>| match step {
        Some(step) => after[step - first].push(id),
        None => rest.push(id),
    };
    for index in freed..frees {
        let id = template.freed(index, bindings);
        put(id, uses.of(id));
    }
    others.iter().for_each(|&id| put(id, uses.of(id)));
    let mut commands = Vec::with_capacity(last - first + frees - freed + others.len());
    for (step, gone) in (first..last).zip(after) {
        commands.extend(template.instruction(step, bindings).map(Command::Run));
        commands.extend(gone.into_iter().map(Command::Free));
    }
    commands.extend(rest.into_iter().map(Command::Free));
    commands
}

/// The last steps of a range that use, or make, each tensor.
struct LastUses {
    base: u64,
    own: Vec<u32>,
    outside: FxHashMap<TensorId, usize>,
}

const NEVER: u32 = u32::MAX;

impl LastUses {
    fn new(template: &Template, bindings: &Bindings, first: usize, last: usize) -> LastUses {
        let (base, own) = (bindings.base().0, vec![NEVER; last]);
        let mut uses = LastUses { base, own, outside: FxHashMap::default() };
        for index in first..last {
            let Some(step) = &template.steps[index] else { continue };
            uses.own[index] = index as u32;
            for place in &step.operands {
                match place {
                    Place::Own(own) => uses.own[*own as usize] = index as u32,
                    // Two slots may hold one tensor.
                    Place::Outside(slot) => {
                        uses.outside.insert(bindings.tensor(*slot as usize), index);
                    }
                    Place::Number(_) => {}
                }
            }
        }
        uses
    }

    fn of(&self, id: TensorId) -> Option<usize> {
        match self.own.get(id.0.wrapping_sub(self.base) as usize) {
            Some(&used) => (used != NEVER).then_some(used as usize),
            None => self.outside.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{Instruction, Operand, SourceId};
    use crate::ops::binary;
    use crate::template::Definition;
    use smallvec::smallvec;

    fn add(output: u64, left: u64, right: u64) -> Instruction {
        Instruction {
            operation: &binary::ADD,
            output: TensorId(output),
            operands: smallvec![Operand::Tensor(TensorId(left)), Operand::Tensor(TensorId(right))],
            attributes: smallvec![],
            source: SourceId::default(),
            signal: 0,
        }
    }

    #[test]
    fn frees_follow_the_last_use() {
        let steps = [add(20, 5, 17), add(21, 20, 20), add(22, 21, 5)];
        let definition = Definition {
            number: 0,
            base: TensorId(20),
            steps: steps.iter().cloned().map(Some).collect(),
            frees: [21, 17, 20, 18].map(TensorId).to_vec(),
            compile: false,
        };
        let (template, bindings) = Template::new(&definition).unwrap();
        let free = |id| Command::Free(TensorId(id));
        let others = [TensorId(99), TensorId(5)];
        let pass = Pass { first: 0, last: 3, freed: 0, frees: 4, others: &others };
        let [one, two, three] = steps.map(Command::Run);
        let want = [one, free(17), two, free(20), three.clone(), free(21), free(5)];
        let whole = expand(&template, &bindings, pass);
        assert_eq!(whole[..7], want[..]);
        assert_eq!(whole[7..], [free(18), free(99)]);
        // A part knows nothing of what is used by others.
        let part = expand(&template, &bindings, Pass { first: 2, freed: 1, ..pass });
        assert_eq!(part, [three, free(5), free(17), free(20), free(18), free(99)]);
    }
}
