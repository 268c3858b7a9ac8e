//! Engines that are implemented in Python; see `gt.engines.engine` for their interface.
//!
//! - [`choice`]: the default engine and number of workers; [`load`]: loading an engine by its name.
//! - [`lowerings`]: the functions that compute single operations.
//! - [`values`]: copying values in and out; [`checked`]: comparing results with what was planned;
//!   [`draws`]: random numbers.
//! - [`prepared_plan`]: a plan and its compiled code; [`compiler`]: the thread that compiles;
//!   [`tally`]: statistics of compilations; [`convert`]: operations and plans as Python objects.
//! - [`collectives`]: collectives with the engines of other workers.
//! - [`native`]: the native engine, for operations that a Python engine does not implement.
//! - [`reason`]: errors of engines; [`lost_device`]: the end of a worker whose device fails;
//!   [`watchdog`]: of one whose engine hangs, and process exit.

mod checked;
mod choice;
mod collectives;
mod compiler;
mod convert;
mod draws;
mod load;
mod lost_device;
mod lowerings;
pub mod native;
mod prepared_plan;
mod reason;
mod tally;
mod values;
mod watchdog;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gt::NativeEngine;
use gt::drivers::gpu::GpuMonitor;
use gt::ir::gpu::GpuStatus;
use gt::ir::instruction::Operands;
use gt::ir::operation::{Body, Family};
use gt::ir::ops::custom;
use gt::ir::statistics::Compilation;
use gt::ir::{
    Attributes, DType, Fabric, Meta, Operand, Operation, Scalar, Shape, TensorData, WorkerId,
};
use gt::worker::engine::{Notifier, launch_plainly};
use gt::worker::mismatch::Mismatch;
use gt::worker::plan::{InputValue, Plan};
use gt::worker::{CollectivePart, Engine, EngineError, SharedBuffer};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub use choice::{backend, default_workers, embedded_engines, engines};
use collectives::EngineCollectives;
use convert::Classes;
use lowerings::{LoweringCache, OperationCall, ResultChecker};
use prepared_plan::CompileSettings;
pub use prepared_plan::PreparedPlan;
pub use reason::{answer, explain};
use tally::Tally;
use watchdog::Cost;
pub use watchdog::{ExitGuard, Watchdog, close_engines};

/// A Python object that may be cloned and dropped without the GIL.
pub type SharedObject = Arc<Py<PyAny>>;

/// A tensor of a Python engine.
#[derive(Clone)]
pub struct EngineTensor {
    pub object: SharedObject,
    pub meta: Meta,
    /// The memory that it shares if it is a view.
    pub buffer: Option<SharedBuffer>,
}

impl EngineTensor {
    /// Returns a tensor with memory of its own.
    pub fn new(object: SharedObject, meta: Meta) -> EngineTensor {
        EngineTensor { object, meta, buffer: None }
    }
}

/// An engine that is a Python object.
pub struct PythonEngine {
    object: SharedObject,
    name: String,
    /// Whether the engine implements each operation, by id.
    lowers: Vec<bool>,
    classes: Arc<Classes>,
    lowerings: LoweringCache,
    checker: ResultChecker,
    settings: CompileSettings,
    tally: Arc<Tally>,
    /// Its collectives with other workers' engines, if enabled.
    collectives: Option<EngineCollectives>,
    /// Whether it generates random numbers itself; otherwise `native` does, on all processors.
    draws: bool,
    native: NativeEngine,
    started: Instant,
    rate: u64,
    /// The dtype to which it rounds float32 factors of matrix products, if it does.
    factors: Option<DType>,
    /// The size of its device's memory in bytes; `None` if it computes in host memory.
    memory: Option<u64>,
    /// Reads the use of its GPU, if it has named one.
    gpu: Option<GpuMonitor>,
    makes_views: bool,
    runs_ahead: bool,
    watchdog: Watchdog,
}

impl PythonEngine {
    /// Enables collectives with other workers' engines if GT_COLLECTIVES allows them, and returns
    /// their endpoint.
    pub fn enable_collectives(&mut self, py: Python<'_>) -> PyResult<Option<Fabric>> {
        self.collectives = EngineCollectives::negotiate(py, Some(&self.object), &self.name)?;
        Ok(self.collectives.as_ref().map(|collectives| collectives.fabric().clone()))
    }

    /// Returns a description of the hardware and libraries that determine the bits of its results.
    pub fn arithmetic(&self, py: Python<'_>) -> PyResult<String> {
        self.object.bind(py).getattr("arithmetic")?.extract()
    }

    /// Returns the watchdog of its calls.
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }

    /// Ends the process, the worker `worker`, once an error shows that the engine's device fails all
    /// calls.
    pub fn end_process_if_device_is_lost(&self, worker: &str) {
        lost_device::end_process_of(&self.object, format!("gt worker: {worker}: {}", self.name));
    }
}

/// Returns an error if GT_COLLECTIVES requests collectives for the native engine, which has none.
pub fn refuse_collectives(py: Python<'_>) -> PyResult<()> {
    EngineCollectives::negotiate(py, None, "native").map(drop)
}

impl Engine for PythonEngine {
    type Tensor = EngineTensor;
    type Program = PreparedPlan;

    fn name(&self) -> &str {
        &self.name
    }

    fn rate(&self) -> u64 {
        self.rate
    }

    fn lowers(&self, operation: &'static Operation) -> bool {
        // Primitives that the engine lacks are computed by the native engine.
        self.lowers[operation.id as usize] || matches!(operation.body, Body::Primitive)
    }

    fn create(&mut self, data: TensorData) -> Result<EngineTensor, EngineError> {
        let meta = Meta::new(data.dtype, data.shape);
        let _at_work = self.watchdog.begin(Cost::Work(meta.bytes() as u64));
        let made = Python::attach(|py| values::create(self.object.bind(py), data));
        Ok(EngineTensor::new(Arc::new(made.map_err(explain)?), meta))
    }

    fn read(&mut self, tensor: &EngineTensor) -> Result<TensorData, EngineError> {
        let _at_work = self.watchdog.begin(Cost::Work(tensor.meta.bytes() as u64));
        let read = Python::attach(|py| values::read(self.object.bind(py), tensor));
        self.watchdog.caught_up();
        read.map_err(explain)
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<EngineTensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<EngineTensor, EngineError> {
        if PythonEngine::is_random(operation) {
            let numbers: Vec<Scalar> = operands.iter().filter_map(Operand::scalar).collect();
            return self.draw(operation, &numbers, attributes, output);
        }
        let _at_work = self.watchdog.begin(Cost::of_call(operation, &operands, &[output]));
        Python::attach(|py| {
            let call = OperationCall { operation, operands: &operands, attributes, output };
            let made = self.lowerings.call(py, self.object.bind(py), &self.classes, &call)?;
            let held = self.checked_tensor(made, output, operation.name)?;
            let may_be_view = matches!(operation.family, Family::Reshape | Family::Slice);
            let buffer = if may_be_view { self.buffer(py, &held) } else { None };
            Ok(EngineTensor { buffer, ..held })
        })
    }

    fn run_several(
        &mut self,
        operation: &'static Operation,
        operands: Operands<EngineTensor>,
        attributes: &Attributes,
        outputs: &[Meta],
    ) -> Result<Vec<EngineTensor>, EngineError> {
        let _at_work = self.watchdog.begin(Cost::of_call(operation, &operands, outputs));
        Python::attach(|py| {
            let call =
                OperationCall { operation, operands: &operands, attributes, output: outputs[0] };
            let made = self.lowerings.call(py, self.object.bind(py), &self.classes, &call)?;
            let name = custom::title(operation, attributes);
            let expected = |given: String| {
                let count = outputs.len();
                EngineError::Other(format!(
                    "the engine gave {given} for {name}, expected a tuple of {count} results"
                ))
            };
            let kind = || made.get_type().name().map_or_else(|_| "?".into(), |it| it.to_string());
            let made = made.cast::<PyTuple>().map_err(|_| expected(format!("a {}", kind())))?;
            if made.len() != outputs.len() {
                return Err(expected(format!("{} results", made.len())));
            }
            made.into_iter()
                .zip(outputs)
                .map(|(made, output)| self.checked_tensor(made, *output, &name))
                .collect()
        })
    }

    fn hold(calls: &mut dyn FnMut()) {
        Python::attach(|_| calls());
    }

    fn prepare(&mut self, plan: &Plan) -> Result<PreparedPlan, EngineError> {
        let _at_work = self.watchdog.begin(Cost::Work(0));
        let mut program = PreparedPlan::new(&self.name, &self.tally, plan, self.settings);
        program.start_compiling(&self.object, &self.classes).map_err(explain)?;
        Ok(program)
    }

    fn warmup(&self) -> u32 {
        self.settings.warmup()
    }

    fn settle(&mut self, program: &mut PreparedPlan, at_most: Duration) -> bool {
        // The compiler thread needs the GIL.
        Python::attach(|py| py.detach(|| program.settle(at_most)))
    }

    fn launch(
        &mut self,
        program: &mut PreparedPlan,
        inputs: &mut [InputValue<EngineTensor>],
    ) -> Result<Vec<EngineTensor>, EngineError> {
        if !program.is_compiled() {
            return self.launch_cold(program, inputs);
        }
        let mut given = inputs.to_vec();
        for (step, numbers) in program.random(inputs) {
            let made = self.draw(step.operation, &numbers, &step.attributes, step.output)?;
            given.push(InputValue::Tensor(made));
        }
        let at_work = self.watchdog.begin(program.cost());
        let held = Python::attach(|py| {
            let Some(outputs) = program.launch(py, &given)? else { return Ok(None) };
            self.checked_outputs(program, outputs).map(Some)
        })?;
        drop(at_work);
        if let Some(held) = held {
            return Ok(held);
        }
        self.launch_cold(program, inputs).inspect(|_| program.blame_code())
    }

    fn launch_cold(
        &mut self,
        program: &mut PreparedPlan,
        inputs: &mut [InputValue<EngineTensor>],
    ) -> Result<Vec<EngineTensor>, EngineError> {
        let (trace, last_uses) = program.trace();
        let mut launched = Err(EngineError::Other(String::new()));
        PythonEngine::hold(&mut || launched = launch_plainly(self, trace, last_uses, inputs));
        launched
    }

    fn is_unchecked(&mut self, program: &mut PreparedPlan) -> bool {
        program.is_fresh()
    }

    fn is_compiled(&self, program: &PreparedPlan) -> bool {
        program.is_compiled()
    }

    fn background(&self) -> (Duration, u64) {
        self.tally.get()
    }

    fn compilations(&self) -> Vec<Compilation> {
        Python::attach(|py| self.tally.compilations(self.object.bind(py)))
    }

    fn judge(&mut self, program: &mut PreparedPlan, wrong: Option<&str>) {
        program.judge(wrong);
    }

    fn factors(&self) -> Option<DType> {
        self.factors
    }

    fn report(&mut self, mismatch: &Mismatch) -> Option<String> {
        gt::mismatch::keep(mismatch)
    }

    fn shared_buffer(&self, tensor: &EngineTensor) -> Option<SharedBuffer> {
        tensor.buffer
    }

    fn is_in(&self, tensor: &EngineTensor, buffer: SharedBuffer) -> bool {
        let of = tensor.buffer.or_else(|| Python::attach(|py| self.buffer(py, tensor)));
        of.is_some_and(|of| of.id == buffer.id)
    }

    fn makes_views(&self) -> bool {
        self.makes_views
    }

    fn makes_view_of(&self, tensor: &EngineTensor, _: &Shape) -> bool {
        // Without an answer, assume that the view needs memory.
        Python::attach(|py| {
            let made = self.object.call_method1(py, "is_contiguous", (&*tensor.object,));
            answer(py, made.and_then(|made| made.extract(py)))
        })
    }

    fn compact(&mut self, tensor: &EngineTensor) -> Result<EngineTensor, EngineError> {
        let _at_work = self.watchdog.begin(Cost::Work(tensor.meta.bytes() as u64));
        Python::attach(|py| {
            let made = self.object.bind(py).call_method1("copy", (&*tensor.object,))?;
            Ok(EngineTensor::new(Arc::new(made.unbind()), tensor.meta))
        })
        .map_err(explain)
    }

    fn is_on_host(&self) -> bool {
        self.memory.is_none()
    }

    fn memory(&self) -> Option<u64> {
        self.memory
    }

    fn gpu(&self) -> Option<GpuStatus> {
        self.gpu.as_ref().and_then(GpuMonitor::latest)
    }

    fn notify_by(&mut self, notify: Notifier) {
        if let Some(gpu) = &self.gpu {
            gpu.notify_by(notify);
        }
    }

    fn after_fork(&mut self) {
        // The thread that reads does not exist in the child.
        self.gpu = None;
    }

    fn runs_ahead(&self) -> bool {
        self.runs_ahead
    }

    fn begin_turn(&mut self) {
        self.notify("begin_turn");
    }

    fn end_turn(&mut self) -> bool {
        self.notify("end_turn")
    }

    fn turns_done(&mut self, under_way: usize) -> Vec<u64> {
        let _at_work = self.watchdog.begin(Cost::Work(0));
        Python::attach(|py| {
            let done = self.object.bind(py).call_method1("turns_done", (under_way,));
            answer(py, done.and_then(|done| done.extract()))
        })
    }

    fn release_memory(&mut self) {
        self.notify("release_memory");
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn run_collective(
        &mut self,
        part: CollectivePart<EngineTensor>,
    ) -> Result<Vec<EngineTensor>, EngineError> {
        let Some(collectives) = &self.collectives else {
            return Err(EngineError::Other(format!("the engine '{}' has no fabric", self.name)));
        };
        let _at_work = self.watchdog.begin(Cost::Unknown);
        Python::attach(|py| collectives.join(py, &self.object, &self.classes, &part))
            .map_err(explain)
    }

    fn can_reduce(&self, dtype: DType) -> bool {
        self.collectives.as_ref().is_some_and(|collectives| collectives.can_reduce(dtype))
    }

    fn close_groups(&mut self, worker: WorkerId) {
        if let Some(collectives) = &self.collectives {
            Python::attach(|py| collectives.close_groups(py, worker));
        }
    }
}

impl PythonEngine {
    /// Calls a method without arguments or result; returns whether it succeeded.
    fn notify(&self, method: &str) -> bool {
        let _at_work = self.watchdog.begin(Cost::Work(0));
        Python::attach(|py| answer(py, self.object.call_method0(py, method).map(|_| true)))
    }

    /// Returns the memory of a tensor, as reported by the engine.
    fn buffer(&self, py: Python<'_>, tensor: &EngineTensor) -> Option<SharedBuffer> {
        // Without an answer, assume that the tensor has memory of its own.
        let made = self.object.bind(py).call_method1("buffer", (&*tensor.object,));
        let known = made.and_then(|made| made.extract::<Option<(u64, u64)>>());
        answer(py, known).map(|(id, bytes)| SharedBuffer { id, bytes })
    }
}
