//! Records plans for `gt.debug.explain`.

use gt_ir::explain::{Explanation, PlacedTensor, PlannedRedistribution, PlannedStep};
use gt_ir::layout::Layout;
use gt_ir::{Instruction, Meta, SlotId, SourceId};

use super::redistribution::{RedistributionStage, StageKind};
use super::slots::Slots;

/// The steps planned since the recording began.
#[derive(Clone, Default)]
pub struct PlanRecorder {
    steps: Vec<PlannedStep>,
    /// The redistributions of the step that is being planned.
    redistributions: Vec<PlannedRedistribution>,
}

/// Why a tensor is redistributed.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// An instruction needs it, in the scope of a signal if there is one.
    Needed {
        operation: &'static str,
        /// The operand's index.
        operand: usize,
        scope: Option<&'a str>,
    },
    Fetched,
    Created,
}

/// The most steps recorded; later ones are ignored.
const LIMIT: usize = 100_000;

impl PlanRecorder {
    /// Returns the number of recorded steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Drops the steps after the first `most`. Returns whether there were any.
    pub fn limit(&mut self, most: usize) -> bool {
        let is_longer = self.steps.len() > most;
        self.steps.truncate(most);
        is_longer
    }

    /// Records a stage of a redistribution, if it sends data between slots.
    pub fn add_redistribution(
        &mut self,
        slots: &Slots,
        meta: Meta,
        from: &Layout,
        stage: &RedistributionStage,
        reason: Reason,
    ) {
        let collective = match stage.kind {
            StageKind::Blocks(collective) | StageKind::Combine { collective, .. } => collective,
            StageKind::Slice | StageKind::Zeros { .. } => return,
        };
        self.redistributions.push(PlannedRedistribution {
            collective,
            bytes: stage.bytes,
            from: placed(slots, meta, from),
            to: placed(slots, meta, &stage.layout),
            reason: reason_text(from, stage, reason),
        });
    }

    /// Records a planned instruction, with the redistributions since the last step.
    pub fn step(
        &mut self,
        instruction: &Instruction,
        operands: Vec<PlacedTensor>,
        output: PlacedTensor,
    ) {
        let redistributions = std::mem::take(&mut self.redistributions);
        if self.steps.len() < LIMIT {
            let operation = instruction.title().into_owned();
            let (line, data_dependent) = (instruction.source, instruction.operation.data_dependent);
            self.steps.push(PlannedStep {
                operation,
                line,
                operands,
                output,
                redistributions,
                data_dependent,
            });
        }
    }

    /// Records a step that is no instruction, such as a fetch, if it redistributes data.
    pub fn other(
        &mut self,
        name: &str,
        line: SourceId,
        operand: PlacedTensor,
        output: PlacedTensor,
    ) {
        let redistributions = std::mem::take(&mut self.redistributions);
        if !redistributions.is_empty() && self.steps.len() < LIMIT {
            let (operation, operands, data_dependent) = (name.to_string(), vec![operand], false);
            self.steps.push(PlannedStep {
                operation,
                line,
                operands,
                output,
                redistributions,
                data_dependent,
            });
        }
    }

    /// Returns the recorded steps, with the bytes that each slot holds.
    pub fn explanation(self, slots: &Slots, memory: &[(SlotId, u64)]) -> Explanation {
        let memory = memory.iter().filter_map(|(slot, bytes)| Some((slots.number(*slot)?, *bytes)));
        Explanation { steps: self.steps, memory: memory.collect(), ..Explanation::default() }
    }
}

/// Returns a tensor's placement, with workers by their configuration numbers.
pub fn placed(slots: &Slots, meta: Meta, layout: &Layout) -> PlacedTensor {
    let workers = layout.mesh.slots.iter();
    PlacedTensor {
        meta,
        dims: layout.mesh.dims.clone(),
        placements: layout.placements.clone(),
        workers: workers.filter_map(|slot| slots.number(*slot)).collect(),
    }
}

fn reason_text(from: &Layout, stage: &RedistributionStage, reason: Reason) -> String {
    let (operation, operand, scope) = match reason {
        Reason::Fetched => return "its value was asked for".into(),
        Reason::Created => return "it was made in a scope".into(),
        Reason::Needed { operation, operand, scope } => (operation, operand + 1, scope),
    };
    if matches!(stage.kind, StageKind::Combine { .. }) {
        return format!("'{operation}' needs the sum, not its parts, of operand {operand}");
    }
    if from.mesh != stage.layout.mesh {
        return match scope {
            Some(scope) => format!("'{operation}' is computed on the workers of '{scope}'"),
            None => format!("'{operation}' is computed where its other operand is"),
        };
    }
    let how = if stage.layout.is_replicated() { "replicated" } else { "sharded differently" };
    format!("'{operation}' needs operand {operand} {how}")
}
