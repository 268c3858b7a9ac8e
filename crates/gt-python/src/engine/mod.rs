//! Engines that are Python objects: see `gt.engines.engine` for what they are asked.
//!
//! - [`plan`]: plans as Python objects; [`program`]: a plan made ready, and its compilation.
//! - [`collectives`]: what an engine does together with those of other workers.
//! - [`compiler`]: compilation in the background.
//! - [`reason`]: why an engine failed, in words for users.
//! - [`watch`]: what happens when an engine hangs, or the process ends.

mod collectives;
mod compiler;
pub mod native;
mod plan;
mod program;
mod reason;
mod watch;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt::NativeEngine;
use gt::ir::instruction::Operands;
use gt::ir::operation::{Body, ints};
use gt::ir::ops::random::{RAND, RANDINT, RANDN};
use gt::ir::{
    Attributes, DType, Fabric, Meta, Operand, Operation, Scalar, Shape, TensorData, WorkerId, ops,
};
use gt::worker::plan::{Given, Input, Plan, Step};
use gt::worker::{Engine, EngineError, Joining};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyTuple};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use collectives::Collectives;
use plan::Classes;
pub use program::Program;
use program::{Settings, Tally};
pub use reason::explain;
pub use watch::{Inside, Watch, close_engines};

use crate::array::copied;
use crate::export::to_shared_array;

/// A Python object; it may be held and dropped without Python's lock.
pub type Object = Arc<Py<PyAny>>;

/// A tensor of a Python engine's.
#[derive(Clone)]
pub struct Held {
    pub object: Object,
    pub meta: Meta,
}

/// The most plans of one operation that are kept ready.
const SINGLES: usize = 4096;

/// An engine that is a Python object.
pub struct PythonEngine {
    object: Object,
    name: String,
    /// By the operations' ids.
    lowers: Vec<bool>,
    classes: Arc<Classes>,
    /// Single operations as plans.
    singles: FxHashMap<Vec<u8>, Program>,
    settings: Settings,
    tally: Arc<Tally>,
    /// How it joins other workers' engines, if it does.
    collectives: Option<Collectives>,
    /// Whether it makes random numbers itself; else they are the native engine's, on all processors.
    draws: bool,
    native: NativeEngine,
    started: Instant,
    rate: u64,
    watch: Watch,
}

impl PythonEngine {
    /// The engine of a name, on the GPU of a number; `None` for the native one.
    pub fn load(py: Python<'_>, name: &str, index: usize) -> PyResult<Option<PythonEngine>> {
        if name == "native" {
            return Ok(None);
        }
        let engines = py.import("gt.engines")?;
        let object = engines.call_method1("load", (name, index))?;
        let called: String = object.getattr("name")?.extract()?;
        let rate: u64 = object.getattr("rate")?.extract()?;
        let draws: bool = object.getattr("draws")?.extract()?;
        let mut lowers = vec![false; 1 + ops::ALL.iter().map(|o| o.id as usize).max().unwrap_or(0)];
        for operation in ops::ALL {
            let takes = object.call_method1("lowers", (operation.name,))?;
            lowers[operation.id as usize] = takes.extract()?;
        }
        let settings = Settings::new(&object)?;
        Ok(Some(PythonEngine {
            object: Arc::new(object.unbind()),
            name: called,
            lowers,
            classes: Arc::new(Classes::new(py)?),
            singles: FxHashMap::default(),
            settings,
            tally: Arc::default(),
            collectives: None,
            draws,
            native: NativeEngine::new(thread::available_parallelism().map_or(1, usize::from)),
            started: Instant::now(),
            rate,
            watch: Watch::new(),
        }))
    }

    /// Lets it join the engines of other workers, if GT_COLLECTIVES wants that; gives where.
    pub fn join_others(&mut self, py: Python<'_>) -> PyResult<Option<Fabric>> {
        self.collectives = Collectives::agreed(py, Some(&self.object), &self.name)?;
        Ok(self.collectives.as_ref().map(|collectives| collectives.fabric().clone()))
    }

    /// Since when it is at work.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    fn is_random(operation: &Operation) -> bool {
        [RAND.id, RANDN.id, RANDINT.id].contains(&operation.id)
    }
}

/// The engine that GT_BACKEND names, or else PyTorch's where it sees a GPU.
pub fn backend(py: Python<'_>) -> PyResult<String> {
    py.import("gt.engines")?.call_method0("default")?.extract()
}

/// How many workers an embedded session has that was not told: one for each GPU, or one.
pub fn default_workers(py: Python<'_>) -> PyResult<usize> {
    if backend(py)? != "pytorch" {
        return Ok(1);
    }
    let gpus: usize = py.import("gt.engines")?.call_method0("sees_gpu")?.extract()?;
    Ok(gpus.max(1))
}

/// Refuses what GT_COLLECTIVES asks of GT's own engine, which joins no others.
pub fn join_nobody(py: Python<'_>) -> PyResult<()> {
    Collectives::agreed(py, None, "native").map(drop)
}

/// The engines of embedded workers; `None` if they are native.
pub fn embedded_engines(workers: usize) -> PyResult<Option<Vec<PythonEngine>>> {
    Python::attach(|py| {
        let name = backend(py)?;
        let engine = |index| PythonEngine::load(py, &name, index);
        (0..workers).map(engine).collect()
    })
}

impl Engine for PythonEngine {
    type Tensor = Held;
    type Program = Program;

    fn name(&self) -> &str {
        &self.name
    }

    fn rate(&self) -> u64 {
        self.rate
    }

    fn lowers(&self, operation: &'static Operation) -> bool {
        // What is no composite is computed natively, if the engine has nothing for it.
        self.lowers[operation.id as usize] || matches!(operation.body, Body::Primitive)
    }

    fn create(&mut self, data: TensorData) -> Result<Held, EngineError> {
        let _at_work = self.watch.begin();
        Python::attach(|py| {
            let (dtype, meta) = (data.dtype.name(), Meta::new(data.dtype, data.shape));
            let shape = PyTuple::new(py, data.shape.dims())?;
            let values = PyMemoryView::from(&values_of(py, data.bytes)?)?;
            let given = (values, dtype, shape);
            let object = Arc::new(self.object.bind(py).call_method1("create", given)?.unbind());
            Ok(Held { object, meta })
        })
        .map_err(explain)
    }

    fn read(&mut self, tensor: &Held) -> Result<TensorData, EngineError> {
        let _at_work = self.watch.begin();
        Python::attach(|py| {
            let object = self.object.bind(py);
            let meta = tensor.meta;
            let values = object.call_method1("read", (&*tensor.object,))?;
            let bytes = bytes_of(&values)?;
            let length = bytes.len();
            TensorData::new(meta.dtype, meta.shape, bytes).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "read gave {length} bytes for {} {}, which has {}",
                    meta.dtype,
                    meta.shape,
                    meta.bytes()
                ))
            })
        })
        .map_err(explain)
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Held>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Held, EngineError> {
        if PythonEngine::is_random(operation) {
            let numbers: Vec<Scalar> = operands.iter().filter_map(Operand::scalar).collect();
            return self.draw(operation, &numbers, attributes, output);
        }
        let metas = operands.iter().map(|operand| match operand {
            Operand::Scalar(scalar) => Input::Number(*scalar),
            Operand::Tensor(tensor) => Input::Tensor { meta: tensor.meta, dies: false },
        });
        let sources = (0..operands.len() as u32).map(Operand::Tensor).collect();
        let step = Step {
            operation,
            operands: sources,
            attributes: attributes.clone(),
            varying: SmallVec::new(),
            output,
        };
        let mut plan = Plan::new(metas.collect());
        plan.outputs.push(plan.inputs.len() as u32);
        plan.steps.push(step);
        let made = self.run_single(&plan, operands)?.pop();
        made.ok_or_else(|| EngineError::Other("the engine gave nothing".into()))
    }

    fn run_several(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Held>,
        attributes: &Attributes,
        outputs: &[Meta],
    ) -> Result<Vec<Held>, EngineError> {
        let metas = operands.iter().map(|operand| match operand {
            Operand::Scalar(scalar) => Input::Number(*scalar),
            Operand::Tensor(tensor) => Input::Tensor { meta: tensor.meta, dies: false },
        });
        let sources = (0..operands.len() as u32).map(Operand::Tensor).collect();
        let mut plan = Plan::new(metas.collect());
        let (lowers, varying) = (|_: &'static Operation| true, SmallVec::new());
        let first = plan.push(&lowers, operation, sources, attributes.clone(), varying);
        let first = first.map_err(|error| EngineError::Other(error.to_string()))?;
        plan.outputs.extend(first..first + outputs.len() as u32);
        self.run_single(&plan, operands)
    }

    fn prepare(&mut self, plan: &Plan) -> Result<Program, EngineError> {
        let _at_work = self.watch.begin();
        let mut program = Program::new(&self.classes, &self.name, &self.tally, plan, self.settings)
            .map_err(explain)?;
        program.start_compiling(&self.object);
        Ok(program)
    }

    fn launch(
        &mut self,
        program: &mut Program,
        inputs: &mut [Given<Held>],
    ) -> Result<Vec<Held>, EngineError> {
        let mut given = inputs.to_vec();
        for (step, numbers) in program.random(inputs) {
            let made = self.draw(step.operation, &numbers, &step.attributes, step.output)?;
            given.push(Given::Tensor(made));
        }
        let _at_work = self.watch.begin();
        program.launch(&self.object, &self.classes, &mut given)
    }

    fn is_unchecked(&mut self, program: &mut Program) -> bool {
        program.is_fresh()
    }

    fn is_compiled(&self, program: &Program) -> bool {
        program.is_compiled()
    }

    fn background(&self) -> (Duration, u64) {
        self.tally.get()
    }

    fn judge(&mut self, program: &mut Program, wrong: Option<&str>) {
        program.judge(wrong);
    }

    fn release_memory(&mut self) {
        // What goes wrong with that is of no consequence.
        Python::attach(|py| drop(self.object.bind(py).call_method0("release_memory")));
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn join(&mut self, part: Joining<Held>) -> Result<Vec<Held>, EngineError> {
        let Some(collectives) = &self.collectives else {
            return Err(EngineError::Other(format!("the engine '{}' joins no others", self.name)));
        };
        let _at_work = self.watch.begin();
        Python::attach(|py| collectives.join(py, &self.object, &self.classes, &part))
            .map_err(explain)
    }

    fn adds(&self, dtype: DType) -> bool {
        self.collectives.as_ref().is_some_and(|collectives| collectives.adds(dtype))
    }

    fn leave(&mut self, worker: WorkerId) {
        if let Some(collectives) = &self.collectives {
            Python::attach(|py| collectives.leave(py, worker));
        }
    }
}

/// Bytes as NumPy's array: without a copy, and read-only if others have them, too.
fn values_of(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyAny>> {
    if bytes.is_empty() || bytes.is_unique() {
        return Ok(PyArray1::from_vec(py, bytes.into()).into_any());
    }
    let length = bytes.len();
    let shape = Shape::new(&[length]).map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_shared_array(py, TensorData { dtype: DType::U8, shape, bytes })
}

/// What an object with the buffer protocol has, copied once.
fn bytes_of(values: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if values.len()? == 0 {
        return Ok(Bytes::new());
    }
    let flat = values.py().import("numpy")?.call_method1("frombuffer", (values, "uint8"))?;
    Ok(Bytes::from(copied(flat.cast::<PyArray1<u8>>()?.readonly().as_slice()?)))
}

impl PythonEngine {
    /// Makes random numbers: the same ones on every engine.
    fn draw(
        &mut self,
        operation: &'static Operation,
        numbers: &[Scalar],
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Held, EngineError> {
        if !self.draws {
            let numbers = numbers.iter().map(|&number| Operand::Scalar(number)).collect();
            let made = self.native.run(operation, numbers, attributes, output)?;
            let data = self.native.read(&made)?;
            return self.create(data);
        }
        let _at_work = self.watch.begin();
        Python::attach(|py| {
            let numbers = numbers.iter().map(|number| plan::number(py, *number));
            let numbers = PyTuple::new(py, numbers.collect::<Vec<_>>())?;
            let part = PyTuple::new(py, ints(attributes, 2))?;
            let meta = self.classes.to_meta(py, &output)?;
            let made = (operation.name, numbers, meta, part);
            let object = Arc::new(self.object.bind(py).call_method1("draw", made)?.unbind());
            Ok(Held { object, meta: output })
        })
        .map_err(explain)
    }

    /// Runs a plan of one operation, which is kept for the next time.
    fn run_single(
        &mut self,
        plan: &Plan,
        operands: Operands<Held>,
    ) -> Result<Vec<Held>, EngineError> {
        let key = plan.key();
        let mut given: SmallVec<[Given<Held>; 4]> = operands
            .into_iter()
            .map(|operand| match operand {
                Operand::Tensor(tensor) => Given::Tensor(tensor),
                Operand::Scalar(scalar) => Given::Number(scalar),
            })
            .collect();
        if self.singles.len() >= SINGLES {
            self.singles.clear();
        }
        let mut program = match self.singles.remove(&key) {
            Some(program) => program,
            None => Program::new(&self.classes, &self.name, &self.tally, plan, Settings::plain())
                .map_err(explain)?,
        };
        let at_work = self.watch.begin();
        let made = program.launch(&self.object, &self.classes, &mut given);
        drop(at_work);
        self.singles.insert(key, program);
        made
    }
}
