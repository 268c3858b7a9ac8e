//! Blocks of tensors in files, as workers write and read them.
//!
//! A file that a worker writes is a safetensors file: each of its tensors is a block, named by the
//! tensor's number and the block's start in it, as `3@0,512`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gt_ir::runs::{CommonRuns, common_runs};
use gt_ir::stored::{SavePart, StoredPart, StoredValues, Written};
use gt_ir::{DType, TensorData};

use crate::atomic::AtomicFile;
use crate::place::DataRoots;
use crate::safetensors::{Planned, SafetensorsWriter, header};
use crate::{Result, StoreError};

/// Runs of a block that are shorter than this are read together with the gaps between them.
const SHORT_RUN: usize = 4096;

/// Writes blocks into a file, which appears once it is complete.
///
/// # Errors
/// The folder is not allowed, the disk is full, or another error of the system.
pub fn write(places: &DataRoots, part: &SavePart, values: &[TensorData]) -> Result<Vec<Written>> {
    let path = PathBuf::from(&part.folder).join(&part.file);
    let planned: Vec<Planned> = part.blocks.iter().zip(values).map(planned).collect();
    let order = SafetensorsWriter::order(&planned);
    let ordered: Vec<Planned> = order.iter().map(|&at| planned[at].clone()).collect();
    let metadata = BTreeMap::new();
    let (head, lengths) = header(&path, &ordered, &metadata)?;
    let file = AtomicFile::create(places, &path, true)?;
    let mut writer = SafetensorsWriter::create(file, &path, &ordered, &metadata)?;
    let mut offset = 8 + head.len() as u64;
    let mut written = Vec::with_capacity(values.len());
    for (&at, (_, length)) in order.iter().zip(lengths) {
        let bytes = &values[at].bytes;
        writer.write(bytes)?;
        let saved = &part.blocks[at];
        written.push(Written {
            index: saved.index,
            file: part.file.clone(),
            offset,
            block: saved.block,
            bytes: length as u64,
            checksum: crc32fast::hash(bytes),
        });
        offset += length as u64;
    }
    writer.finish()?;
    Ok(written)
}

fn planned((block, value): (&gt_ir::stored::SavedBlock, &TensorData)) -> Planned {
    let starts = &block.block.starts[..value.shape.rank()];
    let starts: Vec<String> = starts.iter().map(ToString::to_string).collect();
    let name = format!("{}@{}", block.index, starts.join(","));
    // The format has no complex128: its bytes are kept as they are, as pairs of float64.
    match value.dtype {
        DType::C128 => {
            (name, DType::F64, gt_ir::Shape::new(&[value.bytes.len() / 8]).expect("one axis"))
        }
        dtype => (name, dtype, value.shape),
    }
}

/// Reads a block of a tensor.
///
/// # Errors
/// A file is missing, not allowed or too short; or the files do not cover the block.
pub fn read(places: &DataRoots, stored: &StoredValues) -> Result<TensorData> {
    let StoredValues { meta, need, parts } = stored;
    let item = meta.dtype.size();
    let mut values = Vec::new();
    let length = meta.bytes();
    values.try_reserve_exact(length).map_err(|_| {
        let reason = format!("out of memory: {length} bytes asked for");
        StoreError::io(Path::new("values"), io::Error::new(io::ErrorKind::OutOfMemory, reason))
    })?;
    values.resize(length, 0);
    let mut found = 0;
    for part in parts {
        let Some(runs) = common_runs(&part.block, need, item) else { continue };
        let file = open(places, Path::new(&part.file))?;
        found += runs.bytes / item * runs.places.len();
        PartCopy { part, runs }.run(&file, &mut values)?;
    }
    if found != need.shape.numel() {
        let path = parts.first().map_or("no file", |part| part.file.as_str());
        let reason = format!("{found} of {} elements are in the files", need.shape.numel());
        return Err(StoreError::Format { path: path.into(), reason });
    }
    let data = TensorData::new(meta.dtype, meta.shape, Bytes::from(values));
    Ok(data.expect("as many bytes as the shape asks for"))
}

/// Returns the CRC-32 of a range of a file.
///
/// # Errors
/// The file is missing or too short.
pub fn checksum(path: &Path, offset: u64, length: u64) -> Result<u32> {
    let file = open(&DataRoots::Anywhere, path)?;
    let (mut hash, mut at, end) = (crc32fast::Hasher::new(), offset, offset.saturating_add(length));
    let mut buffer = vec![0; 1 << 20];
    while at < end {
        let count = (end - at).min(buffer.len() as u64) as usize;
        let read = file.read_exact_at(&mut buffer[..count], at);
        read.map_err(|error| StoreError::io(path, error))?;
        hash.update(&buffer[..count]);
        at += count as u64;
    }
    Ok(hash.finalize())
}

/// Opens a regular file for reading: opening others may have side effects.
fn open(places: &DataRoots, path: &Path) -> Result<File> {
    let place = places.find(path, false)?;
    let failed = |error| StoreError::io(path, error);
    if !place.folder.metadata(&place.name).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "no plain file")));
    }
    place.folder.open(&place.name).map(cap_std::fs::File::into_std).map_err(failed)
}

/// Copies the intersection of a part and the needed block, from a file into the needed values.
struct PartCopy<'a> {
    part: &'a StoredPart,
    runs: CommonRuns,
}

impl PartCopy<'_> {
    fn run(&self, file: &File, values: &mut [u8]) -> Result<()> {
        let CommonRuns { bytes: run, places } = &self.runs;
        let in_file = |from: usize| self.part.offset + from as u64;
        if *run >= SHORT_RUN || places.len() <= 1 {
            for (from, to) in places {
                self.read(file, &mut values[*to..to + run], in_file(*from))?;
            }
            return Ok(());
        }
        // Runs come in the order of the file.
        let (begin, end) = (places[0].0, places[places.len() - 1].0);
        let mut between = vec![0; end - begin + run];
        self.read(file, &mut between, in_file(begin))?;
        for (from, to) in places {
            let at = from - begin;
            values[*to..to + run].copy_from_slice(&between[at..at + run]);
        }
        Ok(())
    }

    fn read(&self, file: &File, into: &mut [u8], at: u64) -> Result<()> {
        let path = Path::new(&self.part.file);
        file.read_exact_at(into, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => StoreError::Format {
                path: path.to_path_buf(),
                reason: format!("it ends before byte {}: it is truncated", at + into.len() as u64),
            },
            _ => StoreError::io(path, error),
        })
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::sharding::Block;
    use gt_ir::stored::SavedBlock;
    use gt_ir::{Meta, RequestId, Shape, SourceId, TensorId};
    use proptest::prelude::*;

    use super::*;

    fn values(shape: Shape) -> TensorData {
        let bytes = (0..shape.numel() as i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
        TensorData::new(DType::I32, shape, Bytes::from(bytes)).expect("as many")
    }

    fn block_of(whole: &TensorData, block: &Block) -> TensorData {
        let mut bytes = Vec::new();
        for index in 0..whole.shape.numel() {
            let mut rest = index;
            let inside = (0..whole.shape.rank()).rev().all(|axis| {
                let at = rest % whole.shape[axis];
                rest /= whole.shape[axis];
                at >= block.starts[axis] && at < block.starts[axis] + block.shape[axis]
            });
            if inside {
                bytes.extend_from_slice(&whole.bytes[index * 4..index * 4 + 4]);
            }
        }
        TensorData::new(DType::I32, block.shape, Bytes::from(bytes)).expect("as many")
    }

    fn cut(shape: Shape, axis: usize, start: usize, end: usize) -> Block {
        let mut block = Block::whole(shape.with(axis, end - start));
        block.starts[axis] = start;
        block
    }

    proptest! {
        #[test]
        fn any_block_is_read_from_any_parts(
            dims in proptest::collection::vec(1usize..7, 1..4),
            cuts in (0usize..3, 0usize..7, 0usize..3, 0usize..7, 1usize..7),
        ) {
            let (cut_axis, at, need_axis, start, count) = cuts;
            let shape = Shape::new(&dims).expect("short");
            let (cut_axis, need_axis) = (cut_axis % dims.len(), need_axis % dims.len());
            let at = at % (dims[cut_axis] + 1);
            let start = start % dims[need_axis];
            let end = (start + count).min(dims[need_axis]);
            let whole = values(shape);
            let blocks: Vec<Block> = [(0, at), (at, dims[cut_axis])]
                .into_iter()
                .filter(|(start, end)| start < end)
                .map(|(start, end)| cut(shape, cut_axis, start, end))
                .collect();
            let folder = std::env::temp_dir().join(format!("gt-store-values-{}", std::process::id()));
            let saved = |block: &Block| SavedBlock { tensor: TensorId(1), index: 0, block: *block };
            let part = SavePart {
                request: RequestId(1),
                folder: folder.display().to_string(),
                file: "values.safetensors".into(),
                blocks: blocks.iter().map(saved).collect(),
                line: SourceId::default(),
            };
            let data: Vec<TensorData> = blocks.iter().map(|block| block_of(&whole, block)).collect();
            let written = write(&DataRoots::Anywhere, &part, &data).expect("room");
            let file = folder.join("values.safetensors").display().to_string();
            let parts = written
                .iter()
                .map(|w| StoredPart { file: file.clone(), offset: w.offset, block: w.block })
                .collect();
            let need = cut(shape, need_axis, start, end);
            let meta = Meta::new(DType::I32, need.shape);
            let read = read(&DataRoots::Anywhere, &StoredValues { meta, need, parts }).expect("all of it");
            prop_assert_eq!(read, block_of(&whole, &need));
        }
    }
}
