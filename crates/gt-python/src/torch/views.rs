//! The operators from which PyTorch builds every view: sizes, strides and an offset over the same
//! storage. They run without Python.

use pyo3::prelude::*;
use smallvec::SmallVec;

use super::stable_abi::{self, BoxedKernel, Lengths, StackSlot, TensorHandle};

/// Register the kernels of view operators.
///
/// `library` is the path of PyTorch's operators, `libtorch_cpu.so`.
#[pyfunction]
pub fn register_views(library: &str) -> PyResult<()> {
    let kernels: [(_, BoxedKernel); 3] =
        [(c"as_strided", as_strided), (c"_reshape_alias", reshape_alias), (c"view", view)];
    stable_abi::register(library, &kernels)
}

/// `as_strided(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor`
extern "C-unwind" fn as_strided(stack: *mut StackSlot, _arguments: u64, _results: u64) {
    // SAFETY: PyTorch passes four arguments of these types, and the stack has room for the result.
    unsafe {
        let arguments = std::slice::from_raw_parts(stack, 4);
        let tensor = TensorHandle::from_slot(arguments[0]);
        let (sizes, strides) =
            (stable_abi::numbers(arguments[1]), stable_abi::numbers(arguments[2]));
        let offset = stable_abi::optional(arguments[3]);
        stable_abi::put_result(stack, strided(tensor, &sizes, &strides, offset));
    }
}

/// `_reshape_alias(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor`
extern "C-unwind" fn reshape_alias(stack: *mut StackSlot, _arguments: u64, _results: u64) {
    // SAFETY: as above, with three arguments.
    unsafe {
        let arguments = std::slice::from_raw_parts(stack, 3);
        let tensor = TensorHandle::from_slot(arguments[0]);
        let (sizes, strides) =
            (stable_abi::numbers(arguments[1]), stable_abi::numbers(arguments[2]));
        stable_abi::put_result(stack, tensor.view(&sizes, &strides, 0));
    }
}

/// `view(Tensor self, SymInt[] size) -> Tensor`
extern "C-unwind" fn view(stack: *mut StackSlot, _arguments: u64, _results: u64) {
    // SAFETY: as above, with two arguments.
    unsafe {
        let arguments = std::slice::from_raw_parts(stack, 2);
        let tensor = TensorHandle::from_slot(arguments[0]);
        let sizes = stable_abi::numbers(arguments[1]);
        stable_abi::put_result(stack, viewed(tensor, sizes));
    }
}

fn strided(
    tensor: TensorHandle,
    sizes: &[i64],
    strides: &[i64],
    offset: Option<i64>,
) -> Result<TensorHandle, String> {
    let own = tensor.offset();
    let offset = offset.unwrap_or(own);
    if sizes.len() != strides.len() {
        return Err("mismatch in length of strides and shape".into());
    }
    if strides.iter().any(|&stride| stride < 0) {
        return Err(format!(
            "as_strided: Negative strides are not supported at the moment, got strides: {strides:?}"
        ));
    }
    if let Some(size) = sizes.iter().find(|&&size| size < 0) {
        return Err(format!("as_strided: negative size {size} in {sizes:?}"));
    }
    if offset < 0 {
        return Err(format!("Tensor: invalid storage offset {offset}"));
    }
    if !sizes.contains(&0) {
        let steps =
            sizes.iter().zip(strides).map(|(size, stride)| (size - 1).saturating_mul(*stride));
        let end = steps.fold(offset.saturating_add(1), i64::saturating_add);
        if end > tensor.room() {
            return Err(format!(
                "setStorage: sizes {sizes:?}, strides {strides:?}, storage offset {offset} requiring a storage of {end} elements are out of bounds for storage of {} elements",
                tensor.room()
            ));
        }
    }
    tensor.view(sizes, strides, offset - own)
}

fn viewed(tensor: TensorHandle, mut sizes: Lengths) -> Result<TensorHandle, String> {
    let (own, strides) = tensor.layout();
    infer(&own, &mut sizes)?;
    match strides_of_view(&own, &strides, &sizes) {
        Some(strides) => tensor.view(&sizes, &strides, 0),
        None => Err(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
                .into(),
        ),
    }
}

/// Computes the length that is given as -1, if there is one.
fn infer(own: &[i64], sizes: &mut [i64]) -> Result<(), String> {
    let count: i64 = own.iter().product();
    let mut unknown = None;
    let mut known: i64 = 1;
    for (axis, &size) in sizes.iter().enumerate() {
        match size {
            -1 if unknown.is_some() => return Err("only one dimension can be inferred".into()),
            -1 => unknown = Some(axis),
            size if size < 0 => {
                return Err(format!(
                    "invalid shape dimension {size} at index {axis} of shape {sizes:?}"
                ));
            }
            size => known = known.saturating_mul(size),
        }
    }
    match unknown {
        Some(_) if known == 0 && count == 0 => Err(format!(
            "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
        )),
        Some(axis) if known != 0 && count % known == 0 => {
            sizes[axis] = count / known;
            Ok(())
        }
        None if known == count => Ok(()),
        _ => Err(format!("shape '{sizes:?}' is invalid for input of size {count}")),
    }
}

/// Returns strides that view elements of the sizes `own` and strides `strides` under the sizes
/// `to`; `None` if there are none.
fn strides_of_view(own: &[i64], strides: &[i64], to: &[i64]) -> Option<Lengths> {
    if own.contains(&0) {
        if own == to {
            return Some(Lengths::from_slice(strides));
        }
        let mut found: Lengths = SmallVec::from_elem(1, to.len());
        for axis in (1..to.len()).rev() {
            found[axis - 1] = found[axis] * to[axis].max(1);
        }
        return Some(found);
    }
    let mut found: Lengths = SmallVec::from_elem(0, to.len());
    // The number of axes of `to` without strides yet; they are assigned from the last on.
    let mut left = to.len();
    // The stride and the number of elements of the current block of contiguous axes.
    let (mut step, mut count) = (strides.last().copied().unwrap_or(1), 1);
    for axis in (0..own.len()).rev() {
        count *= own[axis];
        let ends = axis == 0 || own[axis - 1] != 1 && strides[axis - 1] != count * step;
        if !ends {
            continue;
        }
        let mut placed = 1;
        while left > 0 && (placed < count || to[left - 1] == 1) {
            left -= 1;
            found[left] = placed * step;
            placed *= to[left];
        }
        if placed != count {
            return None;
        }
        if axis > 0 {
            (step, count) = (strides[axis - 1], 1);
        }
    }
    if own.is_empty() {
        found.fill(1);
        return Some(found);
    }
    (left == 0).then_some(found)
}
