//! An engine whose compiled code does what no compiled code should.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::trace::Trace;
use gt_ir::{Attributes, Meta, Operand, Operation, TensorData};
use gt_worker::engine::launch_plainly;
use gt_worker::plan::{InputValue, Plan};
use gt_worker::{Engine, EngineError};

/// A tensor that can be written to, as those of engines with memory of their own.
pub type Cell = Arc<Mutex<Tensor>>;

/// What is done to the outputs of a run: it is given the inputs, what the outputs should be, and
/// the outputs of the run before.
pub type Fault =
    Box<dyn FnMut(&mut NativeEngine, &[InputValue<Cell>], &[Cell], &[Cell]) -> Vec<Cell> + Send>;

/// Computes as the native engine does, and compiled code as the fault says.
pub struct Faulty {
    pub native: NativeEngine,
    /// Runs instead of the trace.
    pub other: Option<Trace>,
    pub fault: Fault,
    pub before: Vec<Cell>,
}

pub fn cell(tensor: Tensor) -> Cell {
    Arc::new(Mutex::new(tensor))
}

/// Changes what an output holds.
pub fn changed(engine: &mut NativeEngine, of: &Cell, change: impl FnOnce(&mut Vec<u8>)) -> Cell {
    let data = engine.read(&of.lock().unwrap()).unwrap();
    let mut bytes = data.bytes.to_vec();
    change(&mut bytes);
    let data = TensorData::new(data.dtype, data.shape, bytes.into()).unwrap();
    cell(engine.create(data).unwrap())
}

impl Engine for Faulty {
    type Tensor = Cell;
    type Program = Trace;

    fn name(&self) -> &str {
        "faulty"
    }

    fn lowers(&self, operation: &'static Operation) -> bool {
        self.native.lowers(operation)
    }

    fn create(&mut self, data: TensorData) -> Result<Cell, EngineError> {
        self.native.create(data).map(cell)
    }

    fn read(&mut self, tensor: &Cell) -> Result<TensorData, EngineError> {
        self.native.read(&tensor.lock().unwrap())
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Cell>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Cell, EngineError> {
        self.native.run(operation, opened(operands), attributes, output).map(cell)
    }

    fn run_several(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Cell>,
        attributes: &Attributes,
        outputs: &[Meta],
    ) -> Result<Vec<Cell>, EngineError> {
        let made = self.native.run_several(operation, opened(operands), attributes, outputs)?;
        Ok(made.into_iter().map(cell).collect())
    }

    fn prepare(&mut self, plan: &Plan) -> Result<Trace, EngineError> {
        Ok(plan.trace.clone())
    }

    fn launch(
        &mut self,
        trace: &mut Trace,
        inputs: &mut [InputValue<Cell>],
    ) -> Result<Vec<Cell>, EngineError> {
        let trace = self.other.clone().unwrap_or(trace.clone());
        let right = launch_plainly(self, &trace, &trace.last_uses(), inputs)?;
        let made = (self.fault)(&mut self.native, inputs, &right, &self.before);
        self.before.clone_from(&made);
        Ok(made)
    }

    fn is_unchecked(&mut self, _: &mut Trace) -> bool {
        true
    }

    fn judge(&mut self, _: &mut Trace, _: Option<&str>) {}

    fn now(&self) -> Duration {
        self.native.now()
    }
}

fn opened(operands: Operands<Cell>) -> Operands<Tensor> {
    let open = |operand: Operand<Cell>| operand.map(|cell| cell.lock().unwrap().clone());
    operands.into_iter().map(open).collect()
}
