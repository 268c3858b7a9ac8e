//! Collectives between a Python engine and those of other workers, such as by NCCL; see
//! `gt.engines.collectives` for the Python interface.

use std::sync::Arc;

use gt::ir::fabric::{CollectiveCall, Fabric};
use gt::ir::{DType, WorkerId};
use gt::worker::CollectivePart;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::convert::Classes;
use super::{EngineTensor, SharedObject};

/// The Python object `Collectives` of an engine.
pub struct EngineCollectives {
    object: SharedObject,
    group: Py<PyAny>,
    fabric: Fabric,
    dtypes: Vec<DType>,
}

impl EngineCollectives {
    /// Returns the collectives of an engine (`None` for the native one) if it has them and
    /// GT_COLLECTIVES allows them.
    ///
    /// # Errors
    /// GT_COLLECTIVES requests collectives that the engine lacks.
    pub fn negotiate(
        py: Python<'_>,
        engine: Option<&SharedObject>,
        name: &str,
    ) -> PyResult<Option<EngineCollectives>> {
        let module = py.import("gt.engines.collectives")?;
        let engine = engine.map(|engine| engine.bind(py));
        let object = module.call_method1("agreed", (engine, name))?;
        if object.is_none() {
            return Ok(None);
        }
        let text = |name: &str| object.getattr(name)?.extract::<String>();
        let fabric = Fabric {
            kind: text("kind")?.replace(char::is_whitespace, "_"),
            local: object.getattr("local")?.extract()?,
            store: text("store")?,
            device: text("device")?,
        };
        let added = object.getattr("adds")?;
        let adds = DType::ALL.into_iter().map(|dtype| Ok((dtype, added.contains(dtype.name())?)));
        let adds = adds.collect::<PyResult<Vec<_>>>()?;
        Ok(Some(EngineCollectives {
            group: module.getattr("Group")?.unbind(),
            fabric,
            dtypes: adds.into_iter().filter(|(_, added)| *added).map(|(dtype, _)| dtype).collect(),
            object: Arc::new(object.unbind()),
        }))
    }

    /// Returns the endpoint that other workers need to know.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns whether `all_reduce` and `reduce_scatter` can sum this dtype.
    pub fn can_reduce(&self, dtype: DType) -> bool {
        self.dtypes.contains(&dtype)
    }

    /// Takes part in a collective by calling Python's `join`, and returns the received tensors.
    ///
    /// # Errors
    /// `join` fails, or returns tensors of other shapes or dtypes than expected.
    pub fn join(
        &self,
        py: Python<'_>,
        engine: &SharedObject,
        classes: &Classes,
        part: &CollectivePart<EngineTensor>,
    ) -> PyResult<Vec<EngineTensor>> {
        let members = part.engine_collective.members.iter();
        let numbers = PyTuple::new(py, members.clone().map(|member| member.worker.0))?;
        let names = PyTuple::new(py, members.map(|member| &member.name))?;
        let store = &part.engine_collective.store;
        let group = self.group.bind(py).call1((store, numbers, names, part.rank, part.epoch))?;
        let root = match part.call {
            CollectiveCall::Broadcast { root } => Some(root),
            _ => None,
        };
        let gives = PyList::empty(py);
        for (to, tensor) in &part.gives {
            gives.append((to, tensor.object.bind(py)))?;
        }
        let gets = PyList::empty(py);
        for (from, meta) in &part.gets {
            gets.append((from, classes.to_meta(py, meta)?))?;
        }
        let given = (group, part.call.name(), root, gives, gets);
        let made: Vec<Py<PyAny>> = self.object.bind(py).call_method1("join", given)?.extract()?;
        let mut held = Vec::with_capacity(made.len());
        for (object, (_, meta)) in made.into_iter().zip(&part.gets) {
            let described = engine.bind(py).call_method1("describe", (&object,))?;
            let found = classes.meta(&described)?;
            if found != *meta {
                return Err(PyValueError::new_err(format!(
                    "join gave {} {}, expected {} {}",
                    found.dtype, found.shape, meta.dtype, meta.shape
                )));
            }
            held.push(EngineTensor::new(Arc::new(object), *meta));
        }
        Ok(held)
    }

    /// Closes all groups that contain a lost worker.
    pub fn close_groups(&self, py: Python<'_>, worker: WorkerId) {
        // Errors are ignored: the groups are not used again.
        drop(self.object.bind(py).call_method1("leave", (worker.0,)));
    }
}
