//! What a pass of a template touches: worked out once, for all passes of the same steps.

use gt_ir::template::{Freed, Pass, Place, varying_numbers};
use gt_ir::{Bindings, Template, TensorId};
use rustc_hash::FxHashSet;

use super::passes::PassAtHand;

/// Which steps and frees of which template a pass is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub template: u32,
    pub first: usize,
    pub last: usize,
    pub freed: usize,
    pub frees: usize,
}

/// What a pass finds, by places in the template.
pub struct Touches {
    /// The tensors that it uses, without those it makes.
    used: Vec<Place>,
    /// What it frees of others.
    freed: Vec<usize>,
    /// The numbers that are attributes: they decide how an instruction is planned.
    fixed: Vec<usize>,
}

impl Touches {
    pub fn of(at_hand: &PassAtHand) -> Touches {
        let PassAtHand { template, ref pass, .. } = *at_hand;
        let Pass { first, last, .. } = *pass;
        let is_made = |own: u32| own as usize >= first && template.steps[own as usize].is_some();
        let mut known = FxHashSet::default();
        let (mut used, mut fixed) = (Vec::new(), Vec::new());
        for step in template.steps[first..last].iter().flatten() {
            for &place in &step.operands {
                let is_touched = match place {
                    Place::Own(own) => !is_made(own),
                    Place::Outside(_) => true,
                    Place::Number(_) => false,
                };
                if is_touched && known.insert(place) {
                    used.push(place);
                }
            }
            let count = varying_numbers(step.operation, &step.attributes).len();
            fixed.extend(step.varying as usize..step.varying as usize + count);
        }
        let freed = freed(template, pass, |own| (own as usize) < last && is_made(own));
        Touches { used, freed, fixed }
    }

    /// The tensors that a pass uses or frees, as clients name them, each once.
    pub fn tensors(&self, at_hand: &PassAtHand) -> Vec<TensorId> {
        let used = self.used.iter().map(|place| at_hand.bindings.tensor_at(*place));
        let freed = self.freed.iter().map(|free| at_hand.template.freed(*free, at_hand.bindings));
        let mut known = FxHashSet::default();
        used.chain(freed).filter(|id| known.insert(*id)).collect()
    }

    /// The numbers that are attributes, by slot.
    pub fn fixed(&self, bindings: &Bindings) -> Vec<(usize, i64)> {
        self.fixed.iter().map(|&slot| (slot, bindings.number(slot).as_i64())).collect()
    }
}

/// The frees of a pass, without those of what it makes.
fn freed(template: &Template, pass: &Pass, is_made: impl Fn(u32) -> bool) -> Vec<usize> {
    let of_others = |free: &usize| match template.frees[*free] {
        Freed::Own(own) => !is_made(own),
        Freed::Outside(_) | Freed::Previous(_) => true,
    };
    (pass.freed..pass.frees).filter(of_others).collect()
}
