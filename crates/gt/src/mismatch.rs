//! Files that replay a difference between compiled code and its operations.
//!
//! A file is an archive as NumPy's `np.load` reads it (`.npz`), in the directory that
//! `GT_MISMATCH_DIR` names:
//!
//! - `plan.txt`: the plan and what differs, to be read.
//! - `plan.json`: the same for programs; `gt.engines.mismatch` says what is in it.
//! - `input_0.npy`, `expected_0.npy`, `given_0.npy` and so on: the values. bfloat16 stands as uint16.

use std::fmt::Write;
use std::hash::Hasher;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use gt_ir::{Attribute, DType, Meta, Operand, Scalar, TensorData, Trace};
use gt_worker::mismatch::Mismatch;
use gt_worker::plan::InputValue;
use tracing::warn;

use crate::archive::Archive;

/// The most files that a process writes.
const FILES: usize = 32;
/// The most bytes of values in a file.
const MOST: usize = 1 << 31;

static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Writes a file that replays a difference, and returns its path. Without a file it logs why, and
/// returns `None`.
pub fn keep(mismatch: &Mismatch) -> Option<String> {
    if WRITTEN.fetch_add(1, Ordering::Relaxed) >= FILES {
        return None;
    }
    let folder = std::env::var_os("GT_MISMATCH_DIR").filter(|path| !path.is_empty());
    let folder = folder.map_or_else(|| std::env::temp_dir().join("gt-mismatches"), PathBuf::from);
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(&mismatch.plan.key());
    let name = format!("{}-{:016x}-{}.npz", mismatch.engine, hasher.finish(), std::process::id());
    let path = folder.join(name);
    let values: usize = tensors(mismatch).map(|(_, data)| data.bytes.len()).sum();
    if values > MOST {
        warn!("no file replays the difference: it would have {values} bytes");
        return None;
    }
    let written =
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, archive(mismatch)));
    match written {
        Ok(()) => Some(path.display().to_string()),
        Err(error) => {
            warn!(
                "no file replays the difference: {}: {error}; GT_MISMATCH_DIR is to name a folder \
                 that can be written",
                path.display()
            );
            None
        }
    }
}

/// All tensors with their names.
fn tensors(mismatch: &Mismatch) -> impl Iterator<Item = (String, &TensorData)> {
    let inputs = mismatch.inputs.iter().enumerate().filter_map(|(index, input)| match input {
        InputValue::Tensor(data) => Some((format!("input_{index}"), data)),
        _ => None,
    });
    let expected = mismatch.expected.iter().enumerate();
    let given = mismatch.given.iter().enumerate();
    inputs
        .chain(expected.map(|(index, data)| (format!("expected_{index}"), data)))
        .chain(given.map(|(index, data)| (format!("given_{index}"), data)))
}

fn archive(mismatch: &Mismatch) -> Vec<u8> {
    let mut archive = Archive::default();
    let text = format!("{}\n{}: {mismatch}\n", mismatch.plan, mismatch.engine);
    archive.add("plan.txt", &[text.as_bytes()]);
    archive.add("plan.json", &[json(mismatch).as_bytes()]);
    for (name, data) in tensors(mismatch) {
        archive.add(&format!("{name}.npy"), &[&header(data), &data.bytes]);
    }
    archive.finish()
}

/// The header of a file of one array, version 1.0 of NumPy's format.
fn header(data: &TensorData) -> Vec<u8> {
    let descr = match data.dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::BF16 => "<u2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
    };
    let shape: String = data.shape.iter().map(|dim| format!("{dim},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The values begin at a multiple of 64 bytes.
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

/// Returns the trace as JSON.
fn json(mismatch: &Mismatch) -> String {
    let trace = &mismatch.plan.trace;
    let inputs = mismatch.inputs.iter().enumerate().map(|(index, given)| match given {
        InputValue::Number(scalar) => format!("{{\"number\":{}}}", number(*scalar)),
        _ => match trace.meta(index as u32) {
            Operand::Tensor(of) => format!("{{\"tensor\":{}}}", meta(&of)),
            Operand::Scalar(scalar) => format!("{{\"number\":{}}}", number(scalar)),
        },
    });
    let steps = (0..trace.steps.len()).map(|index| step(trace, index));
    let outputs = trace.outputs.iter().map(u32::to_string);
    format!(
        "{{\"format\":1,\"engine\":{},\"difference\":{},\n\"inputs\":[{}],\n\"steps\":[{}],\n\
         \"outputs\":[{}]}}\n",
        quoted(&mismatch.engine),
        quoted(&mismatch.to_string()),
        list(inputs, ","),
        list(steps, ",\n"),
        list(outputs, ",")
    )
}

fn step(trace: &Trace, index: usize) -> String {
    let step = &trace.steps[index];
    let operands = step.operands.iter().map(|source| match source {
        Operand::Tensor(value) => format!("{{\"value\":{value}}}"),
        Operand::Scalar(scalar) => format!("{{\"constant\":{}}}", number(*scalar)),
    });
    let varying = step.varying.iter().map(|value| format!("{{\"value\":{value}}}"));
    let named = step.operation.named(&step.attributes);
    let fixed = named.filter(|(of, _)| !of.varies || step.varying.is_empty());
    let attributes = fixed.map(|(of, attribute)| {
        let value = match (of.word(attribute), attribute) {
            (Some(word), _) => quoted(word),
            (None, Attribute::None) => "null".into(),
            (None, Attribute::Int(value)) => value.to_string(),
            (None, Attribute::Float(value)) => number(Scalar::Float(*value)),
            (None, Attribute::Bool(value)) => value.to_string(),
            (None, Attribute::DType(dtype)) => quoted(dtype.name()),
            (None, Attribute::Ints(values)) => {
                format!("[{}]", list(values.iter().map(i64::to_string), ","))
            }
        };
        format!("{}:{value}", quoted(of.name))
    });
    let results = if step.is_further() { 1 } else { trace.results(index).len() };
    format!(
        "{{\"operation\":{},\"operands\":[{}],\"attributes\":{{{}}},\"output\":{},\"results\":{results}}}",
        quoted(step.operation.name),
        list(operands.chain(varying), ","),
        list(attributes, ","),
        meta(&step.output),
    )
}

fn meta(of: &Meta) -> String {
    let shape = list(of.shape.iter().map(usize::to_string), ",");
    format!("{{\"dtype\":{},\"shape\":[{shape}]}}", quoted(of.dtype.name()))
}

/// A number as Python's `json` reads it.
fn number(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() => "NaN".into(),
        Scalar::Float(value) if value.is_infinite() => {
            if value > 0.0 {
                "Infinity".into()
            } else {
                "-Infinity".into()
            }
        }
        Scalar::Float(value) => format!("{value:?}"),
    }
}

fn list(items: impl Iterator<Item = String>, between: &str) -> String {
    items.collect::<Vec<_>>().join(between)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                write!(quoted, "\\u{:04x}", letter as u32).expect("text takes anything");
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
