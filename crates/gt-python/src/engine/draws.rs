//! Random numbers, which are the same on every engine.

use std::sync::Arc;

use gt::ir::operation::ints;
use gt::ir::ops::random::{RAND, RANDINT, RANDN};
use gt::ir::{Attributes, Meta, Operand, Operation, Scalar};
use gt::worker::{Engine, EngineError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::watchdog::Cost;
use super::{EngineTensor, PythonEngine, convert, explain};

impl PythonEngine {
    /// Returns whether an operation generates random numbers.
    pub(super) fn is_random(operation: &Operation) -> bool {
        [RAND.id, RANDN.id, RANDINT.id].contains(&operation.id)
    }

    /// Generates random numbers on the engine, or on the native engine if this one cannot.
    pub(super) fn draw(
        &mut self,
        operation: &'static Operation,
        numbers: &[Scalar],
        attributes: &Attributes,
        output: Meta,
    ) -> Result<EngineTensor, EngineError> {
        if !self.draws {
            let numbers = numbers.iter().map(|&number| Operand::Scalar(number)).collect();
            let native = &mut self.native;
            // The GIL may be held for a sequence of operations; this one releases it.
            let data = Python::attach(|py| {
                py.detach(|| {
                    let made = native.run(operation, numbers, attributes, output)?;
                    native.read(&made)
                })
            })?;
            return self.create(data);
        }
        let _at_work = self.watchdog.begin(Cost::Work(output.bytes() as u64));
        Python::attach(|py| {
            let numbers = numbers.iter().map(|number| convert::number(py, *number));
            let numbers = PyTuple::new(py, numbers.collect::<Vec<_>>())?;
            let part = PyTuple::new(py, ints(attributes, 2))?;
            let meta = self.classes.to_meta(py, &output)?;
            let made = (operation.name, numbers, meta, part);
            let object = Arc::new(self.object.bind(py).call_method1("draw", made)?.unbind());
            Ok(EngineTensor::new(object, output))
        })
        .map_err(explain)
    }
}
