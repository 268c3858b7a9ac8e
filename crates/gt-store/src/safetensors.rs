//! Tensors by name in one file: 8 bytes with the header's length, a header in JSON, the values.
//!
//! The format is <https://huggingface.co/docs/safetensors>. Headers are read and checked by the
//! crate `safetensors`: lengths that overflow, ranges that overlap or leave gaps, and nested JSON are
//! errors.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gt_ir::{DType, Shape, TensorData};
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde_json::{Map, Value, json};

use crate::atomic::AtomicFile;
use crate::{Result, StoreError};

/// The longest header that is accepted, as in other readers.
const LONGEST_HEADER: u64 = 100_000_000;

/// A file whose values are read when they are used.
pub struct SafetensorsReader {
    path: PathBuf,
    /// The number of bytes before the values.
    header: usize,
    values: Bytes,
    entries: Vec<StoredTensor>,
    /// The index of each name among the entries.
    places: HashMap<String, usize>,
    metadata: BTreeMap<String, String>,
}

/// A tensor in a file.
#[derive(Debug, Clone)]
pub struct StoredTensor {
    pub name: String,
    pub dims: Vec<usize>,
    /// The format's name of the dtype; GT lacks some of them.
    pub dtype: String,
    /// Where its values are, from the first byte after the header.
    pub range: (usize, usize),
}

impl StoredTensor {
    /// GT's dtype for the elements, if there is one.
    pub fn known(&self) -> Option<DType> {
        DTYPES.iter().find(|(_, name)| *name == self.dtype).map(|(dtype, _)| *dtype)
    }
}

/// GT's dtypes and their names in the format, which has no complex128.
const DTYPES: [(DType, &str); 11] = [
    (DType::Bool, "BOOL"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::I16, "I16"),
    (DType::I32, "I32"),
    (DType::I64, "I64"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::F32, "F32"),
    (DType::F64, "F64"),
    (DType::C64, "C64"),
];

impl SafetensorsReader {
    /// Maps a file into memory.
    ///
    /// The file must not be changed in place while tensors of it are alive; replacing it by another
    /// of the same name, as [`SafetensorsWriter`] does, is safe.
    ///
    /// # Errors
    /// There is no such file, or it is not of this format.
    pub fn open(path: &Path) -> Result<SafetensorsReader> {
        // Opening a pipe would block until it has a writer.
        if !fs::metadata(path).map_err(|error| StoreError::io(path, error))?.is_file() {
            return Err(StoreError::format(path, "is no plain file"));
        }
        let file = fs::File::open(path).map_err(|error| StoreError::io(path, error))?;
        let length = file.metadata().map_err(|error| StoreError::io(path, error))?.len();
        if length < 8 {
            let reason = format!("{length} bytes long, but a safetensors file has 8 at least");
            return Err(StoreError::format(path, reason));
        }
        // SAFETY: the mapping is private and read-only, and the file stays open for reading. That
        // no process changes it in place meanwhile is this function's documented condition, as for
        // every program that maps files: the system has no way to enforce it.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| StoreError::io(path, error))?;
        SafetensorsReader::over(path, Bytes::from_owner(map))
    }

    /// Reads a file's contents from memory; errors name `path`.
    ///
    /// # Errors
    /// The bytes are not of this format.
    pub fn over(path: &Path, bytes: Bytes) -> Result<SafetensorsReader> {
        let (header, found) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| StoreError::format(path, problem(&bytes, error)))?;
        let names = found.offset_keys();
        let entries = names.into_iter().filter_map(|name| {
            let info = found.info(&name)?;
            let (dims, range) = (info.shape.clone(), info.data_offsets);
            Some(StoredTensor { name, dims, dtype: dtype_name(info.dtype), range })
        });
        let metadata = found.metadata().clone().unwrap_or_default().into_iter().collect();
        let entries: Vec<StoredTensor> = entries.collect();
        let named = entries.iter().enumerate().map(|(at, entry)| (entry.name.clone(), at));
        let places = named.collect();
        let header = 8 + header;
        let values = bytes.slice(header..);
        Ok(SafetensorsReader {
            path: path.to_path_buf(),
            header,
            values,
            entries,
            places,
            metadata,
        })
    }

    /// Returns the file's tensors, in the order of their values.
    pub fn entries(&self) -> &[StoredTensor] {
        &self.entries
    }

    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Returns a tensor's values, which stay in the mapped file.
    ///
    /// # Errors
    /// No tensor has this name, or GT lacks its dtype or number of axes.
    pub fn tensor(&self, name: &str) -> Result<TensorData> {
        let entry = self.entry(name)?;
        let (dtype, shape) = self.kind(entry)?;
        let bytes = self.values.slice(entry.range.0..entry.range.1);
        TensorData::new(dtype, shape, bytes)
            .ok_or_else(|| StoreError::format(&self.path, format!("'{name}' has a wrong length")))
    }

    /// Returns the offset of a tensor's values in the file.
    ///
    /// # Errors
    /// There is none of this name, or GT does not have its dtype or number of axes.
    pub fn begin_of(&self, name: &str) -> Result<u64> {
        let entry = self.entry(name)?;
        self.kind(entry)?;
        Ok((self.header + entry.range.0) as u64)
    }

    /// Returns the rows `start` to `end` along the first axis of a tensor.
    ///
    /// # Errors
    /// As for [`SafetensorsReader::tensor`], or the tensor has fewer rows.
    pub fn rows(&self, name: &str, start: usize, end: usize) -> Result<TensorData> {
        let whole = self.tensor(name)?;
        let rows = whole.shape.first().copied().unwrap_or(0);
        if start > end || end > rows {
            let reason = format!("'{name}' has {rows} rows, but {start} to {end} are asked for");
            return Err(StoreError::format(&self.path, reason));
        }
        let row = whole.bytes.len().checked_div(rows).unwrap_or(0);
        let mut dims = whole.shape.dims().to_vec();
        dims[0] = end - start;
        let shape = Shape::new(&dims).expect("as many axes as the whole, none longer");
        let bytes = whole.bytes.slice(start * row..end * row);
        Ok(TensorData { dtype: whole.dtype, shape, bytes })
    }

    fn entry(&self, name: &str) -> Result<&StoredTensor> {
        self.places.get(name).map(|&at| &self.entries[at]).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|e| e.name.as_str()).take(8).collect();
            let hint = format!("\n  hint: there are {}", names.join(", "));
            StoreError::NoTensor { path: self.path.clone(), name: name.to_string(), hint }
        })
    }

    fn kind(&self, entry: &StoredTensor) -> Result<(DType, Shape)> {
        let dtype = entry.known().ok_or_else(|| StoreError::DType {
            path: self.path.clone(),
            name: entry.name.clone(),
            dtype: entry.dtype.clone(),
        })?;
        let shape = Shape::new(&entry.dims).map_err(|error| {
            StoreError::format(&self.path, format!("'{}': {error}", entry.name))
        })?;
        Ok((dtype, shape))
    }
}

fn dtype_name(dtype: Dtype) -> String {
    // As serde writes it, which is the format's name.
    serde_json::to_value(dtype)
        .ok()
        .and_then(|value| value.as_str().map(str::to_string))
        .unwrap_or_else(|| format!("{dtype:?}"))
}

/// Returns the error of an invalid file.
fn problem(bytes: &Bytes, error: SafeTensorError) -> String {
    let length = bytes.len() as u64;
    let header = bytes
        .get(..8)
        .map_or(0, |first| u64::from_le_bytes(first.try_into().expect("eight bytes were taken")));
    let reason = match error {
        _ if length < 8 => format!("{length} bytes long, but a safetensors file has 8 at least"),
        _ if header > LONGEST_HEADER => {
            format!("its header would be {header} bytes long, more than {LONGEST_HEADER}")
        }
        _ if header > length - 8 => format!(
            "its header is said to be {header} bytes long, but {} bytes follow: it is truncated",
            length - 8
        ),
        SafeTensorError::MetadataIncompleteBuffer => {
            format!(
                "its tensors do not end where the file does, at {length} bytes: it is truncated"
            )
        }
        SafeTensorError::InvalidOffset(name) => {
            format!("the values of '{name}' overlap others, or are not beside them")
        }
        SafeTensorError::TensorInvalidInfo => {
            "a tensor's shape and dtype do not ask for as many bytes as it has".to_string()
        }
        SafeTensorError::ValidationOverflow => "a tensor's length overflows".to_string(),
        error => error.to_string(),
    };
    format!("no valid safetensors file: {reason}")
}

/// A file that is being written, tensor by tensor.
pub struct SafetensorsWriter {
    file: AtomicFile,
    path: PathBuf,
    left: std::vec::IntoIter<(String, usize)>,
}

/// A tensor to be written: its name, dtype and shape.
pub type Planned = (String, DType, Shape);

impl SafetensorsWriter {
    /// The order in which tensors are written, so that each is aligned: by size of their elements,
    /// then by name.
    pub fn order(planned: &[Planned]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..planned.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(planned[at].1.size()), &planned[at].0));
        order
    }

    /// Starts a file of these tensors, in this order.
    ///
    /// # Errors
    /// A duplicate name, a dtype that the format lacks, or an error of the system.
    pub fn create(
        mut file: AtomicFile,
        path: &Path,
        planned: &[Planned],
        metadata: &BTreeMap<String, String>,
    ) -> Result<SafetensorsWriter> {
        let (header, lengths) = header(path, planned, metadata)?;
        file.write(&(header.len() as u64).to_le_bytes())?;
        file.write(&header)?;
        Ok(SafetensorsWriter { file, path: path.to_path_buf(), left: lengths.into_iter() })
    }

    /// Writes the values of the next tensor.
    ///
    /// # Errors
    /// The number of bytes differs from the plan, or an error of the system.
    pub fn write(&mut self, values: &[u8]) -> Result<()> {
        match self.left.next() {
            Some((_, length)) if length == values.len() => self.file.write(values),
            next => {
                let expected = next.map_or("no more tensor".to_string(), |(name, length)| {
                    format!("{length} for '{name}'")
                });
                let reason = format!("{} bytes given, expected {expected}", values.len());
                Err(StoreError::format(&self.path, reason))
            }
        }
    }

    /// Renames the complete file to its final name.
    ///
    /// # Errors
    /// Tensors are missing, or an error of the system.
    pub fn finish(mut self) -> Result<()> {
        if let Some((name, _)) = self.left.next() {
            let reason = format!("the values of '{name}' were not written");
            return Err(StoreError::format(&self.path, reason));
        }
        self.file.commit()
    }
}

/// The header of a file, and the length of each tensor's values.
pub fn header(
    path: &Path,
    planned: &[Planned],
    metadata: &BTreeMap<String, String>,
) -> Result<(Vec<u8>, Vec<(String, usize)>)> {
    let mut members = Map::new();
    if !metadata.is_empty() {
        members.insert("__metadata__".to_string(), json!(metadata));
    }
    let (mut start, mut lengths) = (0, Vec::with_capacity(planned.len()));
    for (name, dtype, shape) in planned {
        let length = shape.numel() * dtype.size();
        let known = DTYPES.iter().find(|(known, _)| known == dtype);
        let (_, kind) = known.ok_or_else(|| {
            let text = format!("'{name}': a safetensors file cannot hold {dtype}");
            StoreError::format(path, text)
        })?;
        let member = json!({
            "dtype": kind, "shape": shape.dims(), "data_offsets": [start, start + length],
        });
        if members.insert(name.clone(), member).is_some() || name == "__metadata__" {
            return Err(StoreError::format(
                path,
                format!("'{name}' cannot be a tensor's name here, or is given twice"),
            ));
        }
        start += length;
        lengths.push((name.clone(), length));
    }
    let mut header = Value::Object(members).to_string().into_bytes();
    // Values begin at a multiple of 8 bytes, as the format asks for.
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok((header, lengths))
}
