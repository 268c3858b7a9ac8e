//! A plan prepared for a Python engine. It runs operation by operation until its compiled code is
//! ready.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gt::compiled::Reports;
use gt::environment;
use gt::ir::operation::ResultKind;
use gt::ir::statistics::Compilation;
use gt::ir::trace::{Trace, TraceStep};
use gt::ir::{Operand, Scalar};
use gt::worker::EngineError;
use gt::worker::plan::{InputValue, Plan};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::compiler;
use super::convert::{Classes, Translation, number};
use super::tally::Tally;
use super::watchdog::Cost;
use super::{EngineTensor, PythonEngine, SharedObject, explain};

/// How long a compilation may take if GT_COMPILE_TIMEOUT is not set.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How many runs of a plan a compilation in the background may take.
const WARMUP: u32 = 8;

/// Which plans are compiled, when, and how long that may take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompileSettings {
    mode: CompileMode,
    timeout: Duration,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum CompileMode {
    Never,
    /// Plans for which a user requested compilation.
    Asked,
    /// Every plan, in the background.
    Background,
    /// Every plan, before its first run.
    First,
}

impl CompileSettings {
    /// Reads the settings from the environment: GT_COMPILE=1 compiles every plan before its first
    /// run; GT_AUTO_COMPILE decides about plans for which no user requested it, by default the
    /// engine does.
    pub fn new(engine: &Bound<'_, PyAny>) -> PyResult<CompileSettings> {
        let helps: bool = engine.getattr("compiles_by_default")?.extract()?;
        let switches = ["GT_COMPILE", "GT_AUTO_COMPILE"].map(environment::switch);
        let mode = match switches {
            [Some(true), _] => CompileMode::First,
            [_, Some(false)] => CompileMode::Never,
            [_, Some(true)] => CompileMode::Background,
            _ if helps => CompileMode::Background,
            _ => CompileMode::Asked,
        };
        let timeout = environment::seconds("GT_COMPILE_TIMEOUT").unwrap_or(TIMEOUT);
        Ok(CompileSettings { mode, timeout })
    }

    /// Returns how many times a lane runs a plan operation by operation before it uses compiled
    /// code. It is a number of runs, so that the stream decides which code runs, and not the time
    /// that the compiler takes.
    pub fn warmup(&self) -> u32 {
        match self.mode {
            CompileMode::First => 0,
            _ => WARMUP,
        }
    }
}

/// The result of a compilation, which the compiler thread passes to the waiting worker.
#[derive(Default)]
struct CompilationResult {
    /// The compiled code (`None` if the engine compiles nothing) or an error message, and the time
    /// that the compilation took.
    made: Mutex<Option<(Result<Option<Py<PyAny>>, String>, Duration)>>,
    is_done: Condvar,
}

enum CompileState {
    Plain,
    Compiling {
        outcome: Arc<CompilationResult>,
        queued: Instant,
        /// When the compilation began; it may wait for others first.
        begun: Arc<OnceLock<Instant>>,
    },
    /// Compiled, and not yet compared with the run operation by operation.
    Fresh(SharedObject),
    Compiled(SharedObject),
}

/// A prepared plan.
pub struct PreparedPlan {
    plan: Plan,
    last_uses: Vec<Option<u32>>,
    /// The cost of a run of compiled code.
    cost: Cost,
    /// The plan as Python objects, if it is compiled.
    translation: Option<Translation>,
    /// The engine's name, and the statistics of its compilations.
    name: String,
    tally: Arc<Tally>,
    state: CompileState,
    settings: CompileSettings,
    /// The error of the last run of compiled code, until it is known whether the code or the values
    /// are to blame.
    failure: Option<EngineError>,
}

impl PreparedPlan {
    pub fn new(
        name: &str,
        tally: &Arc<Tally>,
        plan: &Plan,
        settings: CompileSettings,
    ) -> PreparedPlan {
        let trace = &plan.trace;
        PreparedPlan {
            plan: plan.clone(),
            last_uses: trace.last_uses(),
            cost: trace
                .steps
                .iter()
                .map(|step| Cost::of(step.operation, &trace.metas(&step.operands), step.output))
                .fold(Cost::Work(0), Cost::and),
            translation: None,
            name: name.to_string(),
            tally: Arc::clone(tally),
            state: CompileState::Plain,
            settings,
            failure: None,
        }
    }

    /// Returns the cost of a run of compiled code.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the plan's trace, and the step that uses each of its values last.
    pub fn trace(&self) -> (&Trace, &[Option<u32>]) {
        (&self.plan.trace, &self.last_uses)
    }

    /// Starts the compilation if the settings require it. A plan with a custom operation is not
    /// compiled, as its function is opaque to a compiler.
    ///
    /// # Errors
    /// The plan cannot be converted to Python objects.
    pub fn start_compiling(&mut self, engine: &SharedObject, classes: &Classes) -> PyResult<()> {
        let wanted = match self.settings.mode {
            CompileMode::Never => false,
            CompileMode::Asked => self.plan.compile,
            CompileMode::Background | CompileMode::First => true,
        };
        if !wanted
            || self
                .plan
                .trace
                .steps
                .iter()
                .any(|step| step.operation.facts.result == ResultKind::UserCode)
        {
            return Ok(());
        }
        let is_random = |step: &TraceStep| PythonEngine::is_random(step.operation);
        let translation = Python::attach(|py| classes.translate(py, &self.plan.trace, is_random))?;
        if translation.steps == 0 {
            return Ok(());
        }
        let outcome: Arc<CompilationResult> = Arc::default();
        let (engine, result) = (Arc::clone(engine), Arc::clone(&outcome));
        let plan = Python::attach(|py| translation.plan.clone_ref(py));
        self.translation = Some(translation);
        let begun = Arc::new(OnceLock::new());
        let begins = Arc::clone(&begun);
        let compile = move || {
            let since = *begins.get_or_init(Instant::now);
            let made = Python::attach(|py| {
                let compiled = engine.bind(py).call_method1("compile", (plan,));
                let compiled = compiled.map_err(|error| explain(error).to_string())?;
                Ok((!compiled.is_none()).then(|| compiled.unbind()))
            });
            *result.made.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((made, since.elapsed()));
            result.is_done.notify_all();
        };
        self.state = CompileState::Compiling { outcome, queued: Instant::now(), begun };
        if !compiler::enqueue(Box::new(compile)) {
            self.state = CompileState::Plain;
        }
        Ok(())
    }

    /// Waits for the compilation; returns whether it has ended or was abandoned.
    pub fn settle(&mut self, at_most: Duration) -> bool {
        let CompileState::Compiling { outcome, queued, begun } = &self.state else { return true };
        let made = outcome.made.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = outcome.is_done.wait_timeout_while(made, at_most, |made| made.is_none());
        let made = waited.unwrap_or_else(PoisonError::into_inner).0.take();
        let taken = begun.get().unwrap_or(queued).elapsed();
        let is_begun = begun.get().is_some();
        self.state = match made {
            None if taken < self.settings.timeout => return false,
            None => {
                if is_begun {
                    compiler::abandon_thread();
                }
                self.failed();
                let limit = self.settings.timeout.as_secs_f64();
                let how =
                    if is_begun { "takes longer" } else { "waits for other compilations longer" };
                self.warn(&format!("{how} than {limit:.0} s"));
                CompileState::Plain
            }
            Some((Err(reason), _)) => {
                self.failed();
                self.warn(&format!("failed: {reason}"));
                CompileState::Plain
            }
            Some((Ok(None), _)) => CompileState::Plain,
            Some((Ok(Some(code)), taken)) => {
                self.tally.add(Compilation {
                    operations: self.plan.trace.summary(),
                    reason: self.reason(),
                    time: taken,
                });
                self.report(&code, taken);
                CompileState::Fresh(Arc::new(code))
            }
        };
        true
    }

    /// Returns why the plan is compiled, for statistics.
    fn reason(&self) -> String {
        match self.settings.mode {
            CompileMode::First => "GT_COMPILE=1".to_string(),
            _ if self.plan.compile => "asked for by a scope".to_string(),
            _ => format!("came {WARMUP} times"),
        }
    }

    fn failed(&self) {
        self.tally.add_failure();
    }

    /// Returns whether the plan runs compiled code.
    pub fn is_compiled(&self) -> bool {
        matches!(self.state, CompileState::Fresh(_) | CompileState::Compiled(_))
    }

    /// Reports a compilation to GT's reports. The compiled object's `code` is its source text, or a
    /// function that returns it.
    fn report(&self, compiled: &Py<PyAny>, taken: Duration) {
        let reports = Reports::from_env();
        if !reports.are_wanted() {
            return;
        }
        let code: Option<String> = Python::attach(|py| {
            let code = compiled.bind(py).getattr("code").ok()?;
            let code = if code.is_callable() { code.call0().ok()? } else { code };
            code.extract().ok()
        });
        let kind = if self.name == "pytorch" { "py" } else { "txt" };
        reports.tell(&self.name, &self.plan, &code.unwrap_or_default(), kind, taken);
    }

    fn warn(&self, what: &str) {
        tracing::warn!(
            "compiling {} {what}\n  it is run operation by operation",
            self.plan.trace.summary()
        );
    }

    /// Returns whether the plan is compiled, and not compared yet.
    pub fn is_fresh(&self) -> bool {
        matches!(self.state, CompileState::Fresh(_))
    }

    /// Receives the result of the comparison; `wrong` describes a difference.
    pub fn judge(&mut self, wrong: Option<&str>) {
        let state = std::mem::replace(&mut self.state, CompileState::Plain);
        match (state, wrong) {
            (CompileState::Fresh(code), None) => self.state = CompileState::Compiled(code),
            (_, Some(text)) => self.warn(&format!("gave {text}")),
            (state, None) => self.state = state,
        }
    }

    /// Returns the steps whose random numbers compiled code takes as inputs, with their scalar
    /// operands.
    pub fn random(&self, inputs: &[InputValue<EngineTensor>]) -> Vec<(&TraceStep, Vec<Scalar>)> {
        let Some(translation) = &self.translation else { return Vec::new() };
        let numbers = |&index: &usize| {
            let step = &self.plan.trace.steps[index];
            let number = |source: &Operand<u32>| match source {
                Operand::Scalar(scalar) => *scalar,
                Operand::Tensor(value) => inputs[*value as usize].number(),
            };
            (step, step.operands.iter().map(number).collect())
        };
        translation.random.iter().map(numbers).collect()
    }

    /// Runs compiled code on the plan's inputs followed by the random tensors. Returns `None` if
    /// there is no code or it fails: the caller then runs the plan operation by operation, which
    /// fails, too, if the values are to blame.
    ///
    /// # Errors
    /// Code that was not compared yet fails.
    pub fn launch<'py>(
        &mut self,
        py: Python<'py>,
        given: &[InputValue<EngineTensor>],
    ) -> Result<Option<Vec<Bound<'py, PyAny>>>, EngineError> {
        let code = match &self.state {
            CompileState::Fresh(code) | CompileState::Compiled(code) => Arc::clone(code),
            _ => return Ok(None),
        };
        let Some(translation) = &self.translation else { return Ok(None) };
        let values = self.values(py, translation, given);
        let made = code.bind(py).call1((values,)).and_then(|made| made.try_iter()?.collect());
        match made {
            Ok(outputs) => Ok(Some(outputs)),
            Err(error) if self.is_fresh() => Err(explain(error)),
            Err(error) => {
                self.failure = Some(explain(error));
                Ok(None)
            }
        }
    }

    /// Discards compiled code that failed where the run operation by operation succeeded.
    pub fn blame_code(&mut self) {
        if let Some(error) = self.failure.take() {
            self.failed();
            self.warn(&format!("gave code that fails: {error}"));
            self.state = CompileState::Plain;
        }
    }

    /// Returns all arguments of compiled code as a list.
    fn values<'py>(
        &self,
        py: Python<'py>,
        translation: &Translation,
        given: &[InputValue<EngineTensor>],
    ) -> Bound<'py, PyList> {
        let object = |given: &InputValue<EngineTensor>| match given {
            InputValue::Tensor(tensor) => tensor.object.bind(py).clone(),
            InputValue::Number(scalar) => number(py, *scalar),
            InputValue::Taken => unreachable!("nothing was taken"),
        };
        let list = PyList::empty(py);
        let constant = |scalar: &Scalar| number(py, *scalar);
        let (inputs, random) = given.split_at(self.plan.trace.inputs.len());
        let values = inputs
            .iter()
            .map(object)
            .chain(translation.constants.iter().map(constant))
            .chain(random.iter().map(object));
        for value in values {
            list.append(value).expect("a list takes anything");
        }
        list
    }

    /// Returns the name of the operation that computes a value of the plan.
    pub fn producer(&self, value: u32) -> &'static str {
        let trace = &self.plan.trace;
        trace.step_of(value).map_or("an input", |step| trace.steps[step].operation.name)
    }
}
