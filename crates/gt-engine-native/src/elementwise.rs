//! The driver of elementwise operations; kernels are chosen by dtype.
//!
//! A kernel processes contiguous runs of elements of the dtype it computes in. If an operand is
//! contiguous and has that dtype, the driver passes its memory; otherwise it loads and casts the
//! operand into a small block on the stack. So a bool mask times floats, a broadcast row, a number
//! or 16-bit floats never need a temporary tensor.

use std::mem::MaybeUninit;
use std::ops::Range;

use gt_ir::instruction::Operands;
use gt_ir::shape::MAX_RANK;
use gt_ir::{DType, Meta, Operand, Scalar, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::copy::Loops;
use crate::element::{Element, with_bits, with_element};
use crate::kernel::Kernel;
use crate::repeats;
use crate::tensor::{Tensor, contiguous_strides};
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Elements in a block.
const BLOCK: usize = 1024;
/// Tensors up to this size are computed by [`small`].
const SMALL: usize = 128;
/// Operations of at least this many elements run on several threads.
pub const PARALLEL: usize = 1 << 17;
/// As [`PARALLEL`], for transcendental functions, for which threads pay off sooner.
pub const PARALLEL_FUNCTIONS: usize = 1 << 16;
/// The fewest elements of a thread's part.
const PIECE: usize = 1 << 14;
/// Rows shorter than this are not worth one kernel call each.
const SHORT_ROW: usize = 16;

/// Runs a kernel on operands that broadcast to the output's shape, on several threads if there are
/// at least `parallel` elements. It may take operands out of the list, so that the last reference
/// to one is gone before the output is allocated. A large result repeats what all operands repeat.
pub fn run(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    kernel: &Kernel,
    parallel: usize,
    output: Meta,
) -> Result<Tensor, EngineError> {
    if output.shape.numel() >= repeats::MANY
        && let Some(shape) = repeats::distinct(tensors(operands), output.shape)
    {
        return run_distinct(threads, operands, (kernel, parallel), output, shape);
    }
    let in_place = operands.first_mut().is_some_and(|first| can_take(first, kernel, output));
    let mut out = if in_place { take(operands) } else { Uninit::new(output)? };
    if output.shape.numel() > 0 && !small(operands, kernel, &mut out, in_place) {
        general(threads, operands, (kernel, parallel), &mut out, in_place)?;
    }
    // SAFETY: the kernel has written all elements.
    Ok(unsafe { out.finish() })
}

/// Iterates over the operands that are tensors.
fn tensors(operands: &Operands<Tensor>) -> impl Iterator<Item = &Tensor> + Clone {
    operands.iter().filter_map(Operand::tensor)
}

/// As [`run`], for a result whose distinct elements have the given shape.
#[cold]
fn run_distinct(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    (kernel, parallel): (&Kernel, usize),
    output: Meta,
    shape: Shape,
) -> Result<Tensor, EngineError> {
    for operand in operands.iter_mut() {
        if let Operand::Tensor(tensor) = operand {
            *tensor = repeats::narrowed(tensor, &output.shape, &shape);
        }
    }
    let distinct = Meta::new(output.dtype, shape);
    Ok(run(threads, operands, kernel, parallel, distinct)?.expand(&output.shape))
}

/// Returns whether the output can be written into the operand's memory.
fn can_take(operand: &mut Operand<Tensor>, kernel: &Kernel, output: Meta) -> bool {
    let Operand::Tensor(first) = operand else { return false };
    kernel.is_in_place_on(output.dtype)
        && first.dtype() == output.dtype
        && *first.shape() == output.shape
        && first.is_contiguous()
        && first.is_writable()
}

/// Takes the memory of the first operand, a tensor, for the output.
fn take(operands: &mut Operands<Tensor>) -> Uninit {
    match std::mem::replace(&mut operands[0], Operand::Scalar(Scalar::Bool(false))) {
        Operand::Tensor(first) => Uninit::over(first),
        Operand::Scalar(_) => unreachable!("`can_take` accepts tensors only"),
    }
}

/// Space for [`SMALL`] elements of any dtype.
#[repr(align(64))]
struct SmallBlock([MaybeUninit<[u64; 2]>; SMALL]);

/// Computes small tensors that need neither casts nor broadcasting; returns false if they do. In
/// place, the output is also the first operand.
fn small(operands: &Operands<Tensor>, kernel: &Kernel, out: &mut Uninit, in_place: bool) -> bool {
    let n = out.numel();
    if n > SMALL || kernel.result() != out.dtype() {
        return false;
    }
    check(operands, kernel, out.dtype(), in_place);
    let mut block = SmallBlock([MaybeUninit::uninit(); SMALL]);
    let mut inputs = [std::ptr::null(); 3];
    let mut filled = false;
    for (index, operand) in operands.iter().enumerate() {
        match operand {
            _ if in_place && index == 0 => inputs[0] = out.write().cast_const(),
            Operand::Tensor(tensor)
                if tensor.dtype() == kernel.inputs()[index]
                    && tensor.shape() == out.shape()
                    && tensor.is_contiguous() =>
            {
                inputs[index] = tensor.read();
            }
            Operand::Scalar(scalar) if !filled => {
                let target = block.0.as_mut_ptr().cast::<u8>();
                with_element!(kernel.inputs()[index], T => {
                    let value = T::from_scalar(*scalar);
                    for i in 0..n {
                        // SAFETY: the block has space for n <= SMALL elements of any size.
                        unsafe { target.cast::<T>().add(i).write(value) }
                    }
                });
                inputs[index] = target;
                filled = true;
            }
            _ => return false,
        }
    }
    // SAFETY: each input has n elements of the dtype that the kernel reads, and the output n of the
    // dtype it writes; there are as many inputs as it reads. The output's memory is not shared; if
    // it is the first input's as well, the kernel works in place.
    unsafe { kernel.run(&inputs, out.write(), n) };
    true
}

/// Panics unless the kernel fits the number of operands and may run in place if it has to.
fn check(operands: &Operands<Tensor>, kernel: &Kernel, dtype: DType, in_place: bool) {
    assert!(operands.len() == kernel.arity(), "a kernel of {} operands", kernel.arity());
    assert!(!in_place || kernel.is_in_place_on(dtype), "a kernel that works in place");
}

/// The arguments that a thread needs to run its part.
struct ElementwiseJob<'a> {
    kernel: &'a Kernel,
    loops: Loops<3>,
    /// The memory of the operands; the output's for those that do not exist. So are the dtypes.
    from: [SharedPtr<u8>; 3],
    dtypes: [DType; 3],
    to: SharedPtr<u8>,
    result: DType,
}

fn general(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    (kernel, parallel): (&Kernel, usize),
    out: &mut Uninit,
    in_place: bool,
) -> Result<(), EngineError> {
    let Meta { dtype: result, shape } = out.meta();
    check(operands, kernel, result, in_place);
    // The tensors are kept alive until the kernel has read them.
    let mut tensors: [Option<Tensor>; 3] = [None, None, None];
    let first = usize::from(in_place);
    for (index, operand) in operands.drain(..).enumerate().skip(first) {
        tensors[index] = Some(match operand {
            Operand::Tensor(tensor) => tensor,
            // A number becomes a tensor of one element, of the dtype it is computed in.
            Operand::Scalar(scalar) => Tensor::scalar(scalar, kernel.inputs()[index])?,
        });
    }
    let loops_over = |tensors: &[Option<Tensor>; 3]| {
        // In place, the first operand is iterated as the output is.
        let mut strides = [contiguous_strides(&shape), [0; MAX_RANK], [0; MAX_RANK]];
        for (strides, tensor) in strides.iter_mut().zip(tensors) {
            if let Some(tensor) = tensor {
                *strides = tensor.strides_in(&shape);
            }
        }
        Loops::new(&shape, &strides)
    };
    let mut loops = loops_over(&tensors);
    let short = loops.inner() < SHORT_ROW && loops.rows() >= SHORT_ROW;
    let copies: [bool; 3] = std::array::from_fn(|k| short || loops.is_transposed(k));
    if copies.contains(&true) {
        for (tensor, copies) in tensors.iter_mut().zip(copies) {
            if let Some(tensor) = tensor
                && copies
                && tensor.numel() > 1
            {
                *tensor = tensor.expand(&shape).contiguous()?;
            }
        }
        loops = loops_over(&tensors);
    }
    let to = SharedPtr::new(out.write());
    let mut job = ElementwiseJob { kernel, loops, from: [to; 3], dtypes: [result; 3], to, result };
    for (index, tensor) in tensors.iter().enumerate() {
        if let Some(tensor) = tensor {
            job.from[index] = SharedPtr::new(tensor.read().cast_mut());
            job.dtypes[index] = tensor.dtype();
        }
    }
    // SAFETY: the loops are over the output's shape, to which the operands broadcast; there are as
    // many as the kernel reads, and they are kept alive above. The output is not shared; if it is
    // the first operand as well, the kernel works in place.
    unsafe { split(threads, &job, shape.numel(), parallel) };
    Ok(())
}

/// Runs a job, on several threads if it is large.
///
/// # Safety
/// The loops stay within every operand. The output is contiguous, has `numel` elements, as many as
/// the loops, and no other thread accesses it. If it is the first operand as well, that is iterated
/// in the same way, and the kernel works in place.
unsafe fn split(threads: &mut Threads, job: &ElementwiseJob, numel: usize, parallel: usize) {
    let (rows, columns) = (job.loops.rows(), job.loops.inner());
    if numel < parallel || threads.ways() == 1 {
        // SAFETY: the caller's promise; these are all rows and columns.
        return unsafe { part(job, 0..rows, 0..columns) };
    }
    let by_columns = columns >= rows;
    let length = if by_columns { columns } else { rows };
    let pieces = (threads.ways() * 4).min(numel / PIECE).clamp(1, length);
    // Parts of whole blocks keep the vectors of each thread aligned.
    let step = length.div_ceil(pieces);
    let step = if by_columns { step.next_multiple_of(BLOCK) } else { step };
    threads.for_each(length.div_ceil(step), |piece| {
        let range = piece * step..((piece + 1) * step).min(length);
        let (rows, columns) = if by_columns { (0..rows, range) } else { (range, 0..columns) };
        // SAFETY: the caller's promise; no two pieces share a row and a column.
        unsafe { part(job, rows, columns) };
    });
}

/// Space for [`BLOCK`] elements of any dtype.
#[repr(align(64))]
#[expect(dead_code, reason = "it is used by its address")]
struct RowBlock([[u64; 2]; BLOCK]);

/// How a kernel reads an operand in the inner loop.
#[derive(Clone, Copy, PartialEq)]
enum OperandAccess {
    /// Directly from its memory.
    Direct,
    /// A single value, loaded into a block once.
    Constant,
    /// Loaded into a block for each run.
    Load,
}

fn access(job: &ElementwiseJob, index: usize) -> OperandAccess {
    let wanted = job.kernel.inputs()[index];
    if index >= job.kernel.arity() || job.loops.is_constant(index) {
        OperandAccess::Constant
    } else if job.loops.inner_stride(index) == 1 && job.dtypes[index] == wanted {
        OperandAccess::Direct
    } else {
        OperandAccess::Load
    }
}

/// Runs a range of columns of a range of rows.
///
/// # Safety
/// As for [`split`]; rows and columns are within the loops and disjoint from other threads'.
unsafe fn part(job: &ElementwiseJob, rows: Range<usize>, columns: Range<usize>) {
    // A block for each operand, one for elements before a cast and one for the result. They are
    // used by address only and never moved, which would take longer than the work.
    let mut blocks = MaybeUninit::<[RowBlock; 5]>::uninit();
    let start: *mut RowBlock = blocks.as_mut_ptr().cast();
    // SAFETY: each of the five is within `blocks`, which lives until the end of the function.
    let [first, second, third, raw, result] =
        std::array::from_fn(|k| unsafe { start.add(k).cast::<u8>() });
    let blocks = [first, second, third];
    let accesses = [access(job, 0), access(job, 1), access(job, 2)];
    let arity = job.kernel.arity();
    let casts = job.result != job.kernel.result();
    let straight =
        !casts && accesses[..arity].iter().all(|&access| access == OperandAccess::Direct);
    let run = if straight { columns.len() } else { BLOCK.min(columns.len()) };
    let mut inputs = [std::ptr::null(); 3];
    for index in 0..arity {
        if accesses[index] == OperandAccess::Constant {
            // SAFETY: the operand is one element, at its start. If `run` is more than a block, all
            // operands are direct.
            unsafe { load(job, index, job.from[index].get(), 0, blocks[index], run, raw) };
            inputs[index] = blocks[index].cast_const();
        }
    }
    let inner = job.loops.inner();
    job.loops.for_each_row(rows, |row, offsets| {
        let mut column = columns.start;
        while column < columns.end {
            let n = run.min(columns.end - column);
            for index in 0..arity {
                let stride = job.loops.inner_stride(index);
                let at = offsets[index] + column as isize * stride;
                let size = job.dtypes[index].size() as isize;
                // SAFETY: the loops stay within the operand.
                let from = unsafe { job.from[index].get().offset(at * size).cast_const() };
                match accesses[index] {
                    OperandAccess::Direct => inputs[index] = from,
                    OperandAccess::Constant => {}
                    OperandAccess::Load => {
                        // SAFETY: n elements at the stride are within the operand; n is at most
                        // BLOCK, as not all are direct.
                        unsafe { load(job, index, from, stride, blocks[index], n, raw) };
                        inputs[index] = blocks[index].cast_const();
                    }
                }
            }
            // SAFETY: the output is contiguous and has the shape of the loops, so these n elements
            // belong to this part. Each input has n elements of the dtype that the kernel reads: in
            // a block, or in the operand if it is direct. In place, the first operand is read where
            // the output is written, or was loaded into a block. If the result is cast, n is at
            // most BLOCK, and the cast's kernel is that of both dtypes.
            unsafe {
                let to = job.to.get().add((row * inner + column) * job.result.size());
                if casts {
                    job.kernel.run(&inputs, result, n);
                    let done = [result.cast_const(); 3];
                    cast::kernel(job.kernel.result(), job.result).run(&done, to, n);
                } else {
                    job.kernel.run(&inputs, to, n);
                }
            }
            column += n;
        }
    });
}

/// Loads `n` elements of operand `index` into a block, cast to the dtype they are computed in.
///
/// # Safety
/// `n` elements of the operand's dtype can be read at the stride from `from` on, or one if the
/// stride is 0; `n` is at most [`BLOCK`]. `block` and `raw` are two blocks that overlap with no
/// operand.
unsafe fn load(
    job: &ElementwiseJob,
    index: usize,
    from: *const u8,
    stride: isize,
    block: *mut u8,
    n: usize,
    raw: *mut u8,
) {
    let (given, wanted) = (job.dtypes[index], job.kernel.inputs()[index]);
    // SAFETY: the caller's promise; a block has space for BLOCK elements of any size, and the
    // casts' kernels are those of both dtypes.
    unsafe {
        if given == wanted {
            gather(from, stride, block, n, given.size());
        } else if stride == 0 {
            cast::kernel(given, wanted).run(&[from; 3], raw, 1);
            gather(raw, 0, block, n, wanted.size());
        } else if stride == 1 {
            cast::kernel(given, wanted).run(&[from; 3], block, n);
        } else {
            gather(from, stride, raw, n, given.size());
            cast::kernel(given, wanted).run(&[raw.cast_const(); 3], block, n);
        }
    }
}

/// # Safety
/// `n` elements of `size` bytes can be read at the stride, or one if the stride is 0; `n` can be
/// written at `to`, which does not overlap with them.
unsafe fn gather(from: *const u8, stride: isize, to: *mut u8, n: usize, size: usize) {
    with_bits!(size, T => {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        // SAFETY: the caller's promise.
        unsafe {
            if stride == 0 {
                let value = *from;
                std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<T>>(), n)
                    .fill(MaybeUninit::new(value));
            } else {
                for i in 0..n {
                    to.add(i).write(*from.offset(i as isize * stride));
                }
            }
        }
    });
}
