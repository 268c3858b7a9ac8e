//! Results of an engine, compared with what was planned.

use std::sync::Arc;

use gt::ir::Meta;
use gt::worker::EngineError;
use pyo3::prelude::*;

use super::{EngineTensor, PreparedPlan, PythonEngine};

impl PythonEngine {
    /// Returns the result of an operation if it matches its declaration.
    pub fn checked_tensor(
        &mut self,
        made: Bound<'_, PyAny>,
        meta: Meta,
        of: &str,
    ) -> Result<EngineTensor, EngineError> {
        self.checker.check(self.object.bind(made.py()), &self.classes, &made, &meta, of)?;
        Ok(EngineTensor::new(Arc::new(made.unbind()), meta))
    }

    /// Returns the results of compiled code if they match the plan.
    pub fn checked_outputs(
        &mut self,
        program: &PreparedPlan,
        made: Vec<Bound<'_, PyAny>>,
    ) -> Result<Vec<EngineTensor>, EngineError> {
        let (trace, _) = program.trace();
        let (given, wanted) = (made.len(), trace.outputs.len());
        if given != wanted {
            let text = format!("the engine gave {given} results for {wanted}");
            return Err(EngineError::Other(text));
        }
        let outputs = trace.outputs.iter().zip(made);
        let checked = outputs.map(|(&value, made)| {
            let meta = *trace.meta(value).tensor().expect("outputs are tensors");
            self.checked_tensor(made, meta, program.producer(value))
        });
        checked.collect()
    }
}
