//! Replays of recordings: `gt replay`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use gt::recording::replay::{ReplayRequest, ReplayTarget, investigate, summary};
use gt::recording::script::script;
use gt::recording::{Recording, RecordingError};
use gt::worker::Work;
use gt::{ClientError, drivers};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::engine;
use crate::error::to_python;

/// A driver that runs a replay.
type ReplayDriver = Arc<dyn gt::Driver>;

fn to_error(error: RecordingError) -> PyErr {
    let text = error.to_string();
    match error {
        RecordingError::Session(error) => to_python(error),
        RecordingError::File { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(text)
        }
        RecordingError::File { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// Where a replay runs.
#[derive(Clone, PartialEq)]
enum ReplayPlace {
    Embedded { engine: String, workers: usize },
    Server { address: String, key_file: Option<PathBuf>, insecure: bool },
}

impl std::fmt::Display for ReplayPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayPlace::Embedded { engine, workers: 1 } => write!(f, "one {engine} worker"),
            ReplayPlace::Embedded { engine, workers } => write!(f, "{workers} {engine} workers"),
            ReplayPlace::Server { address, .. } => write!(f, "the server at {address}"),
        }
    }
}

impl ReplayPlace {
    /// Opens a session without the GIL.
    fn open(&self) -> Result<ReplayDriver, RecordingError> {
        let origin = gt::origin(Some("gt replay".into()));
        Ok(match self {
            ReplayPlace::Server { address, key_file, insecure } => {
                drivers::network::client::driver(origin, address, key_file.as_deref(), *insecure)?
            }
            ReplayPlace::Embedded { engine, workers } => {
                let engines = Python::attach(|py| engine::engines(py, engine, *workers));
                match engines.map_err(crate::error::from_python)? {
                    None => {
                        drivers::embedded::driver(*workers, &gt::native_worker, Vec::new(), origin)?
                    }
                    Some(engines) => {
                        let engines = Mutex::new(engines.into_iter());
                        let next = |name: String, _: usize| -> Box<dyn Work> {
                            let mut engines = engines.lock().expect("not poisoned");
                            gt::worker_on(name, engines.next().expect("one for each worker"))
                        };
                        drivers::embedded::driver(*workers, &next, Vec::new(), origin)?
                    }
                }
            }
        })
    }

    /// Returns workers in this process: as many as the program had in its own, unless given.
    fn embedded(recording: &Recording, engine: String, workers: Option<usize>) -> ReplayPlace {
        let place = &recording.header.place;
        let recorded = if place.is_remote { 1 } else { place.workers.max(1) };
        ReplayPlace::Embedded { engine, workers: workers.unwrap_or(recorded as usize) }
    }

    /// Returns the engine, if it is known.
    fn engine(&self) -> Option<String> {
        match self {
            ReplayPlace::Embedded { engine, .. } => Some(engine.clone()),
            ReplayPlace::Server { .. } => None,
        }
    }

    /// Returns the place to compare with: as the stream was recorded, or else one native worker.
    fn reference(&self, recording: &Recording) -> ReplayPlace {
        let engine = recording.header.place.engine.clone();
        let recorded = ReplayPlace::embedded(recording, engine, None);
        match recorded.engine().is_some_and(|engine| !engine.is_empty()) && recorded != *self {
            true => recorded,
            false => ReplayPlace::Embedded { engine: "native".into(), workers: 1 },
        }
    }
}

/// Return the program, the version, the place, the environment and the end of a recording: a text
/// for people, and a dict of the environment variables.
#[pyfunction]
#[pyo3(signature = (path, until=None))]
fn read_recording(
    py: Python<'_>,
    path: PathBuf,
    until: Option<u64>,
) -> PyResult<(String, Vec<(String, String)>, u32)> {
    let recording = py.detach(|| Recording::open(&path, until)).map_err(to_error)?;
    let workers = recording.header.place.workers;
    Ok((summary::recording(&recording), recording.header.environment.clone(), workers))
}

/// Replay a recording, and return a text of what was found, and the number of differing values. With
/// `compare`, find the first instruction that differs.
#[pyfunction]
#[pyo3(signature = (
    path, workers=None, until=None, compare=false, exact=None, relative=None, absolute=None,
    address=None, key_file=None, insecure=false
))]
#[allow(clippy::too_many_arguments)] // One for each option of the command.
fn replay_recording(
    py: Python<'_>,
    path: PathBuf,
    workers: Option<usize>,
    until: Option<u64>,
    compare: bool,
    exact: Option<bool>,
    relative: Option<f64>,
    absolute: Option<f64>,
    address: Option<String>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<(String, u64)> {
    let engine = engine::backend(py)?;
    let request = ReplayRequest { until, searches: compare, is_exact: exact, relative, absolute };
    let found = py.detach(|| {
        let recording = Recording::open(&path, until)?;
        let place = match address {
            Some(address) => ReplayPlace::Server { address, key_file, insecure },
            None => ReplayPlace::embedded(&recording, engine, workers),
        };
        if let (ReplayPlace::Embedded { .. }, None) = (&place, until) {
            recording.check_files()?;
        }
        let reference = place.reference(&recording);
        let mut interrupt = || Python::attach(|py| py.check_signals()).is_err();
        let asked = &mut || place.open();
        let asked = ReplayTarget { name: place.to_string(), engine: place.engine(), open: asked };
        let open = &mut || reference.open();
        let (name, engine) = (reference.to_string(), reference.engine());
        let reference = ReplayTarget { name, engine, open };
        investigate(&recording, &request, asked, reference, &mut interrupt)
    });
    found.map_err(|error: RecordingError| match error {
        RecordingError::Session(ClientError::Interrupted) => {
            pyo3::exceptions::PyKeyboardInterrupt::new_err(())
        }
        error => to_error(error),
    })
}

/// An array of a script's data: its name, dtype, shape and bytes.
type ScriptArray<'py> = (String, String, Vec<usize>, Bound<'py, PyBytes>);

/// Return a recording as a program of Python, and the arrays of the file beside it.
#[pyfunction]
#[pyo3(signature = (path, until=None))]
fn recording_script<'py>(
    py: Python<'py>,
    path: PathBuf,
    until: Option<u64>,
) -> PyResult<(String, Vec<ScriptArray<'py>>)> {
    let written = py.detach(|| script(&Recording::open(&path, until)?, until));
    let written = written.map_err(to_error)?;
    let array = |(name, data): (String, gt::TensorData)| {
        let bytes = PyBytes::new(py, &data.bytes);
        (name, data.dtype.to_string(), data.shape.to_vec(), bytes)
    };
    Ok((written.text, written.data.into_iter().map(array).collect()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_recording, module)?)?;
    module.add_function(wrap_pyfunction!(recording_script, module)?)?;
    module.add_function(wrap_pyfunction!(replay_recording, module)?)
}
