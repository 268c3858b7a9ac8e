//! The gradients of one recorded operation, by its rule.

use std::panic::Location;
use std::sync::Arc;

use gt_ir::operation::{ComplexRule, Gradient, Saved};
use gt_ir::{Attributes, Graph, Meta, Operand, Operation, Var};
use smallvec::SmallVec;

use super::BackwardOptions;
use super::function::already_freed;
use crate::context::lines::of_gradient;
use crate::context::scopes::Scope;
use crate::context::{CallSite, Context};
use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::tensor::Tensor;
use crate::tensor::node::{OperationRecord, TapeNode, lock};
use crate::vmap::without_ended;

impl OperationRecord {
    /// Returns the gradients of the operands that have a node, issued for the line of the
    /// operation.
    pub fn gradients(
        &self,
        context: &Context,
        node: &Arc<TapeNode>,
        grads: &[Option<Tensor>],
        options: BackwardOptions,
    ) -> Result<SmallVec<[(usize, Tensor); 3]>> {
        self.check_derived()?;
        context.within_line(of_gradient(self.source), || {
            self.gradients_here(context, node, grads, options)
        })
    }

    fn gradients_here(
        &self,
        context: &Context,
        node: &Arc<TapeNode>,
        grads: &[Option<Tensor>],
        options: BackwardOptions,
    ) -> Result<SmallVec<[(usize, Tensor); 3]>> {
        let given = grads.iter().flatten().next().expect("a gradient has arrived");
        // Waits before the lock is taken, and outside of the rules, which cannot return errors.
        given.session().make_room()?;
        let mut guard = lock(&self.saved);
        let Some(saved) = guard.as_ref() else {
            return Err(already_freed(self.operation.name));
        };
        let holomorphic = self.operation.complex == ComplexRule::Holomorphic;
        let site = context.site(Location::caller());
        let mut graph = RuleGraph { site, session: given.session(), vars: Vec::with_capacity(12) };
        let first = match &grads[0] {
            Some(grad) => grad.clone(),
            None => {
                let Meta { shape, dtype } = self.results[0];
                Tensor::full(&graph.session, shape, 0.0, dtype)?
            }
        };
        let grad = graph.push(first);
        let grad = if holomorphic { conjugate(&mut graph, grad) } else { grad };
        let further_grads: SmallVec<[Option<Var>; 2]> =
            grads[1..].iter().map(|grad| Some(graph.push(grad.clone()?))).collect();
        let mut operands: SmallVec<[Option<Operand<Var>>; 3]> = SmallVec::new();
        for (index, operand) in saved.operands.iter().enumerate() {
            let parent = &self.parents[index];
            operands.push(operand.as_ref().map(|operand| {
                operand.map(|value| graph.push(Tensor::from_parts(value.clone(), parent.clone())))
            }));
        }
        let several = self.results.len() > 1;
        let outputs = saved.outputs.iter().enumerate().map(|(index, value)| {
            let on_tape = value.meta.dtype.has_gradients();
            let own = if several { TapeNode::output(node, index) } else { Arc::clone(node) };
            graph.push(Tensor::from_parts(Arc::clone(value), on_tape.then_some(own)))
        });
        let outputs: SmallVec<[Var; 2]> = outputs.collect();
        if saved.holds_any() && !options.retain_graph && !options.create_graph {
            *guard = None;
        }
        drop(guard);
        let saved = Saved {
            grad,
            operands: &operands,
            metas: &self.metas,
            further_grads: &further_grads,
            output: outputs.first().copied(),
            further: outputs.get(1..).unwrap_or_default(),
            output_meta: self.results[0],
            attributes: &self.attributes,
        };
        let scope = Scope { signal: self.scope.of_gradients(), ..Scope::default() };
        let gradients = context.within_scope(scope, || self.apply_rules(&mut graph, &saved));
        let Some(levels) = &self.levels else { return Ok(gradients) };
        let own = gradients.into_iter();
        own.map(|(index, grad)| Ok((index, without_ended(grad, &levels[index])?))).collect()
    }

    /// Returns an error if a required gradient has no formula.
    fn check_derived(&self) -> Result<()> {
        let underived = |index: usize| self.operation.underived >> index & 1 == 1;
        let mut wanted = self.parents.iter().enumerate();
        let Some((index, _)) = wanted.find(|(at, of)| of.is_some() && underived(*at)) else {
            return Ok(());
        };
        let operands = self.operation.parameters.iter().filter(|of| of.attribute().is_none());
        let name = operands.map(|of| of.name).nth(index).unwrap_or("input");
        Err(ClientError::usage(format!(
            "{}: the derivative by '{name}' is not implemented\n  hint: detach() it",
            self.operation.name
        )))
    }

    fn apply_rules(&self, graph: &mut RuleGraph, saved: &Saved) -> SmallVec<[(usize, Tensor); 3]> {
        let mut gradients: SmallVec<[(usize, Var); 3]> = SmallVec::new();
        let wanted: SmallVec<[bool; 8]> = self.parents.iter().map(Option::is_some).collect();
        let all_gradients = match self.operation.gradient {
            Gradient::AllOperands(rule) => rule(graph, saved, &wanted),
            _ => SmallVec::new(),
        };
        for (index, parent) in self.parents.iter().enumerate() {
            if parent.is_none() {
                continue;
            }
            let raw = match self.operation.gradient {
                Gradient::Each(rules) => rules[index](graph, saved),
                Gradient::Any(rule) => rule(graph, saved, index),
                Gradient::AllOperands(_) => {
                    all_gradients[index].expect("a gradient for each that is wanted")
                }
                Gradient::None => unreachable!("such operations are not recorded"),
            };
            let meta = saved.meta(index);
            let holomorphic = self.operation.complex == ComplexRule::Holomorphic;
            let raw = if holomorphic { conjugate(graph, raw) } else { raw };
            let graph: &mut dyn Graph = graph;
            let reduced = graph.unbroadcast(raw, meta.shape);
            let reduced = graph.cast(reduced, meta.dtype);
            gradients.push((index, reduced));
        }
        gradients.into_iter().map(|(index, var)| (index, graph.take(var))).collect()
    }
}

/// Returns the complex conjugate; of a real value, the value.
fn conjugate(graph: &mut dyn Graph, var: Var) -> Var {
    if graph.meta(var).dtype.is_complex() { graph.conj(var) } else { var }
}

/// A graph that issues the instructions of gradient rules.
struct RuleGraph<'a> {
    site: CallSite<'a>,
    session: Session,
    vars: Vec<Tensor>,
}

impl RuleGraph<'_> {
    fn push(&mut self, tensor: Tensor) -> Var {
        self.vars.push(tensor);
        Var(self.vars.len() as u32 - 1)
    }

    fn take(&self, var: Var) -> Tensor {
        self.vars[var.0 as usize].clone()
    }
}

impl Graph for RuleGraph<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let first = Var(self.vars.len() as u32);
        let results: Result<SmallVec<[Tensor; 1]>> = {
            let operands: SmallVec<[Operand<&Tensor>; 3]> = operands
                .iter()
                .map(|operand| operand.map(|var| &self.vars[var.0 as usize]))
                .collect();
            if operation.further.is_some() {
                Tensor::compute_several_at(
                    self.site,
                    &self.session,
                    operation,
                    &operands,
                    attributes,
                )
                .map(SmallVec::from_vec)
            } else {
                Tensor::compute_at(self.site, &self.session, operation, &operands, attributes)
                    .map(|one| SmallVec::from_buf([one]))
            }
        };
        self.vars.extend(results.expect("gradient rules build valid operations"));
        first
    }

    fn meta(&self, var: Var) -> Meta {
        self.vars[var.0 as usize].meta()
    }

    fn is_transposed(&self, var: Var) -> bool {
        self.vars[var.0 as usize].node().is_some_and(|node| node.is_transpose())
    }
}
