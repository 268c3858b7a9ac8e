//! The tensors that an iteration uses or frees without having made them; computed once per span.

use gt_ir::template::{Name, Step, Values};
use gt_ir::{Template, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::iteration::{IterationSpan, TemplateIteration};

/// The names of the tensors that an iteration uses or frees, without those it makes, each once.
pub struct TouchedNames(Vec<Name>);

impl TouchedNames {
    /// Returns the names that an iteration touches.
    pub fn of(iteration: &TemplateIteration) -> TouchedNames {
        let template: &Template = &iteration.instance.template;
        let IterationSpan { part, freed, .. } = iteration.span;
        let mut made: FxHashSet<Name> = FxHashSet::default();
        let mut known: FxHashSet<Name> = FxHashSet::default();
        let mut touched = Vec::new();
        for step in &template.steps[part.first as usize..part.last as usize] {
            let new = step.reads().filter(|name| !made.contains(name) && known.insert(*name));
            touched.extend(new);
            // Tensors created from data exist before the iteration.
            if let Step::Run(_) = step {
                made.extend(step.makes().into_iter().map(|(name, _)| name));
            }
        }
        let frees = &template.frees[freed as usize..part.frees as usize];
        let new = frees.iter().filter(|name| !made.contains(name) && known.insert(**name));
        touched.extend(new);
        TouchedNames(touched)
    }

    /// Returns the tensors bound to these names, each once, with its first name; and for each name,
    /// the index of its tensor.
    pub fn tensors(&self, iteration: &TemplateIteration) -> (Vec<(Name, TensorId)>, Vec<usize>) {
        let mut places: FxHashMap<TensorId, usize> = FxHashMap::default();
        let bindings = &iteration.instance.bindings;
        let mut tensors = Vec::with_capacity(self.0.len());
        let place = |name: &Name| {
            let id = bindings.tensor(*name);
            *places.entry(id).or_insert_with(|| {
                tensors.push((*name, id));
                tensors.len() - 1
            })
        };
        let same = self.0.iter().map(place).collect();
        (tensors, same)
    }
}
