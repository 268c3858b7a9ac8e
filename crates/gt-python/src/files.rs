//! Reading and writing tensor files, for `gt.safetensors` and `gt._saving`.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use gt::ir::sharding::Block;
use gt::ir::stored::{SavePart, SavedBlock, StoredPart, StoredValues, Written};
use gt::ir::{Meta, RequestId, SourceId, TensorId};
use gt::{AskedSave, Tensor, TensorData};
use gt_store::atomic::AtomicFile;
use gt_store::place::DataRoots;
use gt_store::safetensors::{Planned, SafetensorsReader, SafetensorsWriter, header};
use gt_store::{StoreError, values};
use pyo3::exceptions::{PyKeyError, PyPermissionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{convert, dtype, session, source};

/// How many bytes of tensors are fetched in advance while one is being written.
const MAX_IN_FLIGHT: usize = 64 << 20;

fn to_python(error: StoreError) -> PyErr {
    let text = error.to_string();
    match error {
        StoreError::Io { error, .. } => io::Error::new(error.kind(), text).into(),
        StoreError::Forbidden { .. } => PyPermissionError::new_err(text),
        StoreError::Format { .. } => PyValueError::new_err(text),
        StoreError::NoTensor { .. } => PyKeyError::new_err(text),
        StoreError::DType { .. } => PyTypeError::new_err(text),
    }
}

/// A safetensors file, open for reading.
#[pyclass(name = "SafetensorsFile", module = "gt._gt", frozen)]
pub struct SafetensorsFile(SafetensorsReader);

#[pymethods]
impl SafetensorsFile {
    /// Open a file.
    #[new]
    fn new(path: PathBuf) -> PyResult<SafetensorsFile> {
        SafetensorsReader::open(&path).map(SafetensorsFile).map_err(to_python)
    }

    /// Return a file whose content is `bytes`.
    #[staticmethod]
    fn over(bytes: &Bound<'_, PyBytes>) -> PyResult<SafetensorsFile> {
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        SafetensorsReader::over("the given bytes".as_ref(), bytes)
            .map(SafetensorsFile)
            .map_err(to_python)
    }

    /// The metadata of the header.
    #[getter]
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.metadata().clone()
    }

    /// Return a tuple `(name, dtype, shape)` for each tensor.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let entry = |entry: &gt_store::safetensors::StoredTensor| {
            let dtype = entry.known().map_or(entry.dtype.as_str(), |dtype| dtype.name());
            (entry.name.as_str(), dtype, PyTuple::new(py, &entry.dims)?).into_pyobject(py)
        };
        self.0.entries().iter().map(entry).collect()
    }

    /// Load a tensor of the file into this thread's session.
    fn tensor(&self, py: Python<'_>, name: &str) -> PyResult<PyTensor> {
        made(py, self.0.tensor(name).map_err(to_python)?)
    }

    /// Return the offset in bytes of a tensor's values in the file.
    fn begin_of(&self, name: &str) -> PyResult<u64> {
        self.0.begin_of(name).map_err(to_python)
    }

    /// Load the rows `start` to `end` (exclusive) of a tensor of the file, along its first axis.
    fn rows(&self, py: Python<'_>, name: &str, start: usize, end: usize) -> PyResult<PyTensor> {
        made(py, self.0.rows(name, start, end).map_err(to_python)?)
    }
}

fn made(py: Python<'_>, data: TensorData) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::from_data(&session, data)))
}

/// Write tensors into a safetensors file, which appears under its name once it is complete. Waits
/// for the values.
#[pyfunction]
fn write_safetensors(
    py: Python<'_>,
    path: PathBuf,
    tensors: Vec<(String, Py<PyTensor>)>,
    metadata: BTreeMap<String, String>,
) -> PyResult<()> {
    let (planned, tensors) = in_order(tensors);
    let file = AtomicFile::create(&DataRoots::Anywhere, &path, false).map_err(to_python)?;
    let mut writer =
        SafetensorsWriter::create(file, &path, &planned, &metadata).map_err(to_python)?;
    fetch_in_order(py, &tensors, |data| {
        py.detach(|| writer.write(&data.bytes)).map_err(to_python)
    })?;
    py.detach(|| writer.finish()).map_err(to_python)
}

/// Return the bytes of a safetensors file with these tensors. Waits for the values.
#[pyfunction]
fn safetensors_bytes<'py>(
    py: Python<'py>,
    tensors: Vec<(String, Py<PyTensor>)>,
    metadata: BTreeMap<String, String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (planned, tensors) = in_order(tensors);
    let (header, lengths) =
        header("the given tensors".as_ref(), &planned, &metadata).map_err(to_python)?;
    let total: usize = lengths.iter().map(|(_, length)| length).sum();
    let mut file = Vec::with_capacity(8 + header.len() + total);
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header);
    fetch_in_order(py, &tensors, |data| {
        file.extend_from_slice(&data.bytes);
        Ok(())
    })?;
    Ok(PyBytes::new(py, &file))
}

fn in_order(tensors: Vec<(String, Py<PyTensor>)>) -> (Vec<Planned>, Vec<Py<PyTensor>>) {
    let planned: Vec<Planned> = tensors
        .iter()
        .map(|(name, tensor)| {
            let tensor = &tensor.get().0;
            (name.clone(), tensor.dtype(), tensor.shape())
        })
        .collect();
    let order = SafetensorsWriter::order(&planned);
    let mut given: Vec<Option<_>> = tensors.into_iter().map(|(_, tensor)| Some(tensor)).collect();
    let mut take = |at: usize| given[at].take().expect("each index occurs once");
    (
        order.iter().map(|&at| planned[at].clone()).collect(),
        order.iter().map(|&at| take(at)).collect(),
    )
}

/// Calls `receive` with the values of each tensor, in order; the next values are fetched meanwhile.
fn fetch_in_order(
    py: Python<'_>,
    tensors: &[Py<PyTensor>],
    mut receive: impl FnMut(TensorData) -> PyResult<()>,
) -> PyResult<()> {
    let (mut requests, mut in_flight, mut next) = (VecDeque::new(), 0, tensors.iter());
    loop {
        while requests.is_empty() || in_flight < MAX_IN_FLIGHT {
            let Some(tensor) = next.next() else { break };
            let size = tensor.get().0.shape().numel() * tensor.get().0.dtype().size();
            requests.push_back((tensor.get().request_values(py)?, size));
            in_flight += size;
        }
        let Some((request, size)) = requests.pop_front() else { return Ok(()) };
        in_flight -= size;
        receive(request.wait(py)?)?;
    }
}

/// A running save: tensors that workers are writing into files.
#[pyclass(name = "Saving", module = "gt._gt", frozen)]
pub struct Saving(AskedSave);

#[pymethods]
impl Saving {
    /// Wait until all values are on disk, and return a tuple for each saved block: the index of its
    /// tensor, the name of the file, the offset in the file, the start indices in the tensor, the
    /// shape, the number of bytes, and the checksum.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let written = session::waiting(py, self.0.session(), |interrupt| self.0.wait(interrupt))?;
        written.iter().map(|written| written_tuple(py, written)).collect()
    }
}

fn written_tuple<'py>(py: Python<'py>, written: &Written) -> PyResult<Bound<'py, PyTuple>> {
    let Written { index, file, offset, block, bytes, checksum } = written;
    let starts = PyTuple::new(py, &block.starts[..block.shape.rank()])?;
    let shape = PyTuple::new(py, block.shape.dims())?;
    (*index, file.as_str(), *offset, starts, shape, *bytes, *checksum).into_pyobject(py)
}

/// Start saving tensors: the workers of their session write them into files of a folder. Returns at
/// once.
#[pyfunction]
fn save_values(py: Python<'_>, folder: &str, tensors: Vec<Py<PyTensor>>) -> PyResult<Saving> {
    let session = match tensors.first() {
        Some(tensor) => session::ready_session(py, &tensor.get().0)?,
        None => session::ready_current(py)?,
    };
    source::note(py);
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| tensor.get().0.clone()).collect();
    session.save(folder, &tensors).map(Saving).py()
}

/// A block of a tensor in a file: the path, the offset in the file, the start indices in the
/// tensor, and the shape.
type PartOfFile = (String, u64, Vec<usize>, Vec<i64>);

fn stored(
    dtype: &Bound<'_, PyAny>,
    shape: &[i64],
    parts: Vec<PartOfFile>,
) -> PyResult<StoredValues> {
    let shape = convert::shape(shape)?;
    let part = |(file, offset, starts, dims): PartOfFile| {
        let mut block = Block::whole(convert::shape(&dims)?);
        let fits = starts.len() == shape.rank() && block.shape.rank() == shape.rank();
        let inside = |axis: usize| {
            starts[axis].checked_add(block.shape[axis]).is_some_and(|end| end <= shape[axis])
        };
        if !fits || !(0..shape.rank()).all(inside) {
            return Err(PyValueError::new_err(format!(
                "{file}: a part of shape {} at {starts:?} is not one of a tensor of shape {shape}",
                block.shape
            )));
        }
        block.starts[..starts.len()].copy_from_slice(&starts);
        Ok(StoredPart { file, offset, block })
    };
    let parts = parts.into_iter().map(part).collect::<PyResult<Vec<_>>>()?;
    let (meta, need) = (Meta::new(dtype::parse(dtype)?, shape), Block::whole(shape));
    Ok(StoredValues { meta, need, parts })
}

/// Return a tensor whose values the workers of this thread's session read from files. Does not
/// wait.
///
/// Args:
///     parts: for each block of the tensor the path, the offset in the file, the start indices in
///         the tensor, and the shape.
#[pyfunction]
fn load_values(
    py: Python<'_>,
    dtype: &Bound<'_, PyAny>,
    shape: Vec<i64>,
    parts: Vec<PartOfFile>,
) -> PyResult<PyTensor> {
    let values = stored(dtype, &shape, parts)?;
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(session.load(values)))
}

/// Return a tensor whose values this process reads from files before it returns.
#[pyfunction]
fn read_values(
    py: Python<'_>,
    dtype: &Bound<'_, PyAny>,
    shape: Vec<i64>,
    parts: Vec<PartOfFile>,
) -> PyResult<PyTensor> {
    let values = stored(dtype, &shape, parts)?;
    let data = py.detach(|| values::read(&DataRoots::Anywhere, &values)).map_err(to_python)?;
    made(py, data)
}

/// Write tensors from this process into a file of a folder, in the format of the workers, and
/// return the same tuples as `Saving.wait()`. Waits for the values.
#[pyfunction]
fn write_values<'py>(
    py: Python<'py>,
    folder: &str,
    tensors: Vec<Py<PyTensor>>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let mut values = Vec::with_capacity(tensors.len());
    fetch_in_order(py, &tensors, |data| {
        values.push(data);
        Ok(())
    })?;
    let block = |(index, value): (usize, &TensorData)| SavedBlock {
        tensor: TensorId(0),
        index: index as u32,
        block: Block::whole(value.shape),
    };
    let part = SavePart {
        request: RequestId(0),
        folder: folder.to_string(),
        file: "values-client.safetensors".to_string(),
        blocks: values.iter().enumerate().map(block).collect(),
        line: SourceId::default(),
    };
    let written = py.detach(|| values::write(&DataRoots::Anywhere, &part, &values));
    written.map_err(to_python)?.iter().map(|written| written_tuple(py, written)).collect()
}

/// Return the CRC-32 of a range of a file.
#[pyfunction]
fn file_checksum(py: Python<'_>, path: PathBuf, offset: u64, length: u64) -> PyResult<u32> {
    py.detach(|| values::checksum(&path, offset, length)).map_err(to_python)
}

/// Return the folders in which the workers of this thread's session may read and write files; None
/// if they may wherever this process may.
#[pyfunction]
fn data_roots() -> PyResult<Option<Vec<String>>> {
    Ok(session::current()?.data_roots())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SafetensorsFile>()?;
    module.add_class::<Saving>()?;
    module.add_function(wrap_pyfunction!(save_values, module)?)?;
    module.add_function(wrap_pyfunction!(load_values, module)?)?;
    module.add_function(wrap_pyfunction!(read_values, module)?)?;
    module.add_function(wrap_pyfunction!(write_values, module)?)?;
    module.add_function(wrap_pyfunction!(file_checksum, module)?)?;
    module.add_function(wrap_pyfunction!(data_roots, module)?)?;
    module.add_function(wrap_pyfunction!(write_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors_bytes, module)?)
}
