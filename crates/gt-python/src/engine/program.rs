//! A plan made ready for a Python engine: run plainly, or compiled once that is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gt::compiled::Reports;
use gt::environment;
use gt::ir::{Meta, Operand, Scalar};
use gt::worker::EngineError;
use gt::worker::plan::{Given, Plan, Step};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::compiler;
use super::plan::{Classes, Translation, number};
use super::{Held, Object, PythonEngine, explain};

/// How long a compilation may take if GT_COMPILE_TIMEOUT says nothing.
const TIMEOUT: Duration = Duration::from_secs(300);

/// What is compiled, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    mode: Mode,
    timeout: Duration,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    Never,
    /// What somebody has asked for.
    Asked,
    /// Every plan, in the background.
    Background,
    /// Every plan, before it is run for the first time.
    First,
}

impl Settings {
    /// As the environment says: GT_COMPILE=1 compiles everything at once, GT_AUTO_COMPILE decides
    /// about plans that nobody asked for; by default the engine does.
    pub fn new(engine: &Bound<'_, PyAny>) -> PyResult<Settings> {
        let helps: bool = engine.getattr("compiles_by_default")?.extract()?;
        let switches = ["GT_COMPILE", "GT_AUTO_COMPILE"].map(environment::switch);
        let mode = match switches {
            [Some(true), _] => Mode::First,
            [_, Some(false)] => Mode::Never,
            [_, Some(true)] => Mode::Background,
            _ if helps => Mode::Background,
            _ => Mode::Asked,
        };
        let timeout = environment::seconds("GT_COMPILE_TIMEOUT").unwrap_or(TIMEOUT);
        Ok(Settings { mode, timeout })
    }

    /// For plans of a single operation.
    pub fn plain() -> Settings {
        Settings { mode: Mode::Never, timeout: Duration::ZERO }
    }
}

/// What compilations have taken, and how often they came to nothing.
#[derive(Default)]
pub struct Tally {
    nanoseconds: AtomicU64,
    failures: AtomicU64,
}

impl Tally {
    pub fn get(&self) -> (Duration, u64) {
        let time = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        (time, self.failures.load(Ordering::Relaxed))
    }
}

/// What a compilation in another thread has come to.
type Outcome = Arc<Mutex<Option<Result<Option<Py<PyAny>>, String>>>>;

enum State {
    Plain,
    Compiling {
        outcome: Outcome,
        /// Since when; others may be compiled before it.
        begun: Arc<OnceLock<Instant>>,
    },
    /// Compiled, and not compared with the plain run yet.
    Fresh(Object),
    Compiled(Object),
}

/// A plan made ready.
pub struct Program {
    translation: Translation,
    plan: Plan,
    /// Its engine's name, and the tally of its compilations.
    name: String,
    tally: Arc<Tally>,
    state: State,
    settings: Settings,
    /// Whether its outputs were found to be what the plan says.
    is_verified: bool,
}

impl Program {
    pub fn new(
        classes: &Classes,
        name: &str,
        tally: &Arc<Tally>,
        plan: &Plan,
        settings: Settings,
    ) -> PyResult<Program> {
        let is_random = |step: &Step| PythonEngine::is_random(step.operation);
        let translation = Python::attach(|py| classes.translate(py, plan, is_random))?;
        Ok(Program {
            translation,
            plan: plan.clone(),
            name: name.to_string(),
            tally: Arc::clone(tally),
            state: State::Plain,
            settings,
            is_verified: false,
        })
    }

    /// Begins to compile, or does so at once, as the settings say.
    pub fn start_compiling(&mut self, engine: &Object) {
        let wanted = match self.settings.mode {
            Mode::Never => false,
            Mode::Asked => self.plan.compile,
            Mode::Background | Mode::First => true,
        };
        if !wanted || self.translation.steps == 0 {
            return;
        }
        let outcome: Outcome = Arc::default();
        let (engine, result) = (Arc::clone(engine), Arc::clone(&outcome));
        let plan = Python::attach(|py| self.translation.plan.clone_ref(py));
        let begun = Arc::new(OnceLock::new());
        let begins = Arc::clone(&begun);
        let compile = move || {
            let _ = begins.set(Instant::now());
            let made = Python::attach(|py| {
                let compiled = engine.bind(py).call_method1("compile", (plan,));
                let compiled = compiled.map_err(|error| explain(error).to_string())?;
                Ok((!compiled.is_none()).then(|| compiled.unbind()))
            });
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        };
        self.state = State::Compiling { outcome, begun };
        if !compiler::later(Box::new(compile)) {
            self.state = State::Plain;
        }
        self.look();
        while self.settings.mode == Mode::First && matches!(self.state, State::Compiling { .. }) {
            std::thread::sleep(Duration::from_millis(1));
            self.look();
        }
    }

    /// Looks whether the compilation is done, or has taken too long.
    fn look(&mut self) {
        let State::Compiling { outcome, begun } = &self.state else { return };
        let taken = begun.get().map_or(Duration::ZERO, Instant::elapsed);
        let made = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.state = match made {
            None if taken < self.settings.timeout => return,
            None => {
                compiler::give_up();
                self.failed();
                self.warn(&format!(
                    "takes longer than {:.0} s",
                    self.settings.timeout.as_secs_f64()
                ));
                State::Plain
            }
            Some(Err(reason)) => {
                self.failed();
                self.warn(&format!("failed: {reason}"));
                State::Plain
            }
            Some(Ok(None)) => State::Plain,
            Some(Ok(Some(code))) => {
                let nanoseconds = taken.as_nanos() as u64;
                self.tally.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
                self.report(&code, taken);
                self.is_verified = false;
                State::Fresh(Arc::new(code))
            }
        };
    }

    fn failed(&self) {
        self.tally.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether compiled code is run.
    pub fn is_compiled(&self) -> bool {
        matches!(self.state, State::Fresh(_) | State::Compiled(_))
    }

    /// Tells who wants to know; compiled code has its text, or what gives it, as `code`.
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
            "to compile {} {what}\n  it is run operation by operation",
            self.plan.summary()
        );
    }

    /// Whether it is compiled, and not compared yet.
    pub fn is_fresh(&mut self) -> bool {
        self.look();
        matches!(self.state, State::Fresh(_))
    }

    /// Takes the result of the comparison.
    pub fn judge(&mut self, wrong: Option<&str>) {
        let state = std::mem::replace(&mut self.state, State::Plain);
        match (state, wrong) {
            (State::Fresh(code), None) => self.state = State::Compiled(code),
            (_, Some(text)) => self.warn(&format!("gave {text}")),
            (state, None) => self.state = state,
        }
    }

    /// The steps whose random numbers the plan is given, with the numbers that they take.
    pub fn random(&self, inputs: &[Given<Held>]) -> impl Iterator<Item = (&Step, Vec<Scalar>)> {
        self.translation.random.iter().map(|&index| {
            let step = &self.plan.steps[index];
            let number = |source: &Operand<u32>| match source {
                Operand::Scalar(scalar) => *scalar,
                Operand::Tensor(value) => inputs[*value as usize].number(),
            };
            (step, step.operands.iter().map(number).collect())
        })
    }

    /// Runs the plan on its inputs, followed by the random numbers.
    pub fn launch(
        &mut self,
        engine: &Object,
        classes: &Classes,
        given: &mut [Given<Held>],
    ) -> Result<Vec<Held>, EngineError> {
        Python::attach(|py| {
            let code = match &self.state {
                State::Fresh(code) | State::Compiled(code) => Some(Arc::clone(code)),
                _ => None,
            };
            let mut failed = None;
            if let Some(code) = code {
                let values = self.values(py, given);
                match code.bind(py).call1((values,)).and_then(|made| self.outputs(made)) {
                    Ok(outputs) => return self.verified(py, engine, classes, outputs),
                    Err(error) if matches!(self.state, State::Fresh(_)) => {
                        return Err(explain(error));
                    }
                    Err(error) => failed = Some(error),
                }
            }
            let values = self.values(py, given);
            let plan = self.translation.plan.bind(py);
            let made = engine.bind(py).call_method1("run", (plan, values)).map_err(explain)?;
            let outputs = self.outputs(made).map_err(explain)?;
            if let Some(error) = failed {
                // It was not the values: they are fine for the plain run.
                self.failed();
                self.warn(&format!("gave code that fails: {}", explain(error)));
                self.state = State::Plain;
            }
            self.verified(py, engine, classes, outputs)
        })
    }

    /// All values that the plan is given, as a list.
    fn values<'py>(&self, py: Python<'py>, given: &[Given<Held>]) -> Bound<'py, PyList> {
        let count = self.plan.inputs.len();
        let object = |given: &Given<Held>| match given {
            Given::Tensor(tensor) => tensor.object.bind(py).clone(),
            Given::Number(scalar) => number(py, *scalar),
            Given::Taken => unreachable!("nothing was taken"),
        };
        let list = PyList::empty(py);
        let constant = |scalar: &Scalar| number(py, *scalar);
        let (inputs, random) = given.split_at(count);
        let values = inputs
            .iter()
            .map(object)
            .chain(self.translation.constants.iter().map(constant))
            .chain(random.iter().map(object));
        for value in values {
            list.append(value).expect("a list takes anything");
        }
        list
    }

    fn outputs(&self, made: Bound<'_, PyAny>) -> PyResult<Vec<Object>> {
        made.try_iter()?.map(|output| Ok(Arc::new(output?.unbind()))).collect()
    }

    /// The outputs, if they are what the plan says: looked at the first time.
    fn verified(
        &mut self,
        py: Python<'_>,
        engine: &Object,
        classes: &Classes,
        outputs: Vec<Object>,
    ) -> Result<Vec<Held>, EngineError> {
        let wanted = &self.plan.outputs;
        if outputs.len() != wanted.len() {
            let text = format!("the engine gave {} results for {}", outputs.len(), wanted.len());
            return Err(EngineError::Other(text));
        }
        let mut held = Vec::with_capacity(outputs.len());
        for (&value, object) in wanted.iter().zip(outputs) {
            let meta = *self.plan.meta(value).tensor().expect("outputs are tensors");
            if !self.is_verified {
                let given = engine.bind(py).call_method1("describe", (&*object,));
                let given = given.and_then(|given| classes.meta(&given)).map_err(explain)?;
                if given != meta {
                    return Err(EngineError::Other(mismatch(&self.plan, value, given, meta)));
                }
            }
            held.push(Held { object, meta });
        }
        self.is_verified = !matches!(self.state, State::Compiling { .. });
        Ok(held)
    }
}

fn mismatch(plan: &Plan, value: u32, given: Meta, expected: Meta) -> String {
    let step = (value as usize).checked_sub(plan.inputs.len());
    let name = step.map_or("an input", |step| plan.steps[step].operation.name);
    format!(
        "the engine gave {} {} for {name}, expected {} {}",
        given.dtype, given.shape, expected.dtype, expected.shape
    )
}
