//! Elementwise operations of one to three operands: one driver for all, kernels by dtype.
//!
//! A kernel works on runs of elements of the dtype it computes in. The driver feeds it straight
//! from an operand's memory where that is one run of the right dtype, else by way of a small
//! block on the stack, into which the operand is loaded and cast: a bool mask times floats, a
//! broadcast row, a number or 16-bit floats are never made into a tensor first.

use std::mem::MaybeUninit;
use std::ops::Range;

use gt_ir::instruction::Operands;
use gt_ir::{DType, Meta, Operand, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::copy::Loops;
use crate::element::{Element, with_bits, with_element};
use crate::tensor::{Strides, Tensor};
use crate::threads::{Shared, Threads};

/// Computes a run: `n` elements from each input to the output. The output may be the first
/// input's own memory if both have the same type, else it overlaps with none.
///
/// # Safety
/// Each pointer is good for `n` elements of the types the kernel was made for.
pub type Kernel = unsafe fn(inputs: &[*const u8; 3], out: *mut u8, n: usize);

/// Kernels by the dtype they compute in.
pub type ByDType = [Option<Kernel>; 10];

/// What to run on which dtypes.
#[derive(Clone, Copy)]
pub struct Plan {
    pub kernel: Kernel,
    /// The dtypes the kernel reads.
    pub inputs: [DType; 3],
    /// The dtype the kernel writes.
    pub result: DType,
    /// Whether the output may be the first operand's memory.
    pub in_place: bool,
    /// From how many elements on threads share the work.
    pub parallel: usize,
}

impl Plan {
    /// A kernel that reads one dtype and writes one.
    pub fn new(kernel: Kernel, input: DType, result: DType) -> Plan {
        Plan { kernel, inputs: [input; 3], result, in_place: false, parallel: PARALLEL }
    }
}

/// Elements in a block.
const BLOCK: usize = 1024;
/// Tensors up to this size take the short way.
const SMALL: usize = 128;
/// Work on this many elements is split over threads; functions are worth it sooner than sums.
const PARALLEL: usize = 1 << 17;
pub const PARALLEL_FUNCTIONS: usize = 1 << 16;
/// The smallest part that a thread takes.
const PIECE: usize = 1 << 14;
/// Rows shorter than this are not worth a kernel call each.
const SHORT_ROW: usize = 16;

/// Runs a plan on operands that broadcast to the output's shape. It may take the operands, so
/// that the last reference to one is gone when the output is made.
pub fn run(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    plan: &Plan,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let mut out = match reuse(operands, plan, output) {
        Some(out) => out,
        None => Tensor::empty(output)?,
    };
    let n = output.shape.numel();
    if n == 0 {
        return Ok(out);
    }
    if n <= SMALL && plan.result == output.dtype && small(operands, plan, &mut out, n) {
        return Ok(out);
    }
    general(threads, operands, plan, output, &mut out)?;
    Ok(out)
}

/// The first operand's tensor, a further reference, if its memory can take the output.
fn reuse(operands: &mut Operands<Tensor>, plan: &Plan, output: Meta) -> Option<Tensor> {
    if !plan.in_place {
        return None;
    }
    let Operand::Tensor(first) = &mut operands[0] else { return None };
    let fits = first.dtype() == output.dtype
        && plan.inputs[0] == output.dtype
        && *first.shape() == output.shape
        && first.is_contiguous()
        && first.is_writable();
    fits.then(|| first.clone())
}

/// Room for [`SMALL`] elements of any dtype.
#[repr(align(64))]
struct SmallBlock([MaybeUninit<u64>; SMALL]);

/// The short way for small tensors that need neither casts nor broadcasting; false if they do.
fn small(operands: &Operands<Tensor>, plan: &Plan, out: &mut Tensor, n: usize) -> bool {
    let mut block = SmallBlock([MaybeUninit::uninit(); SMALL]);
    let mut inputs = [std::ptr::null(); 3];
    let mut filled = false;
    for (index, operand) in operands.iter().enumerate() {
        match operand {
            Operand::Tensor(tensor)
                if tensor.dtype() == plan.inputs[index]
                    && tensor.shape() == out.shape()
                    && tensor.is_contiguous() =>
            {
                inputs[index] = tensor.read();
            }
            Operand::Scalar(scalar) if !filled => {
                let target = block.0.as_mut_ptr().cast::<u8>();
                with_element!(plan.inputs[index], T => {
                    let value = T::from_scalar(*scalar);
                    for i in 0..n {
                        // SAFETY: the block has room for n <= SMALL elements of any size.
                        unsafe { target.cast::<T>().add(i).write(value) }
                    }
                });
                inputs[index] = target;
                filled = true;
            }
            _ => return false,
        }
    }
    // SAFETY: each input has n elements of the dtype planned, the output too; it is new or the
    // first operand, which the plan then allows.
    unsafe { (plan.kernel)(&inputs, out.write(), n) };
    true
}

/// Everything a thread needs to run its part.
struct Job<'a> {
    plan: &'a Plan,
    arity: usize,
    loops: Loops<3>,
    /// The operands' memory and dtypes.
    from: [*const u8; 3],
    dtypes: [DType; 3],
    to: *mut u8,
    result: DType,
}

fn general(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    plan: &Plan,
    output: Meta,
    out: &mut Tensor,
) -> Result<(), EngineError> {
    let mut tensors: [Option<Tensor>; 3] = [None, None, None];
    for (index, operand) in operands.drain(..).enumerate() {
        tensors[index] = Some(match operand {
            Operand::Tensor(tensor) => tensor,
            // Numbers are tensors of one element, of the dtype they are computed in.
            Operand::Scalar(scalar) => Tensor::scalar(scalar, plan.inputs[index])?,
        });
    }
    let arity = tensors.iter().flatten().count();
    let mut loops = loops_over(&tensors, &output.shape);
    let short = loops.inner() < SHORT_ROW && loops.rows() >= SHORT_ROW;
    let copies: [bool; 3] = std::array::from_fn(|k| short || loops.is_turned(k));
    if copies.contains(&true) {
        for (tensor, copies) in tensors.iter_mut().zip(copies) {
            if let Some(tensor) = tensor
                && copies
                && tensor.numel() > 1
            {
                *tensor = tensor.expand(&output.shape).contiguous()?;
            }
        }
        loops = loops_over(&tensors, &output.shape);
    }
    let from = |index: usize| tensors[index].as_ref().map_or(std::ptr::null(), Tensor::read);
    let dtype = |index: usize| tensors[index].as_ref().map_or(output.dtype, Tensor::dtype);
    let job = Job {
        plan,
        arity,
        loops,
        from: [from(0), from(1), from(2)],
        dtypes: [dtype(0), dtype(1), dtype(2)],
        to: out.write(),
        result: output.dtype,
    };
    split(threads, &job, output.shape.numel());
    Ok(())
}

fn loops_over(tensors: &[Option<Tensor>; 3], shape: &Shape) -> Loops<3> {
    let strides = |index: usize| -> Strides {
        tensors[index].as_ref().map_or([0; 8], |tensor| tensor.strides_in(shape))
    };
    Loops::new(shape, &[strides(0), strides(1), strides(2)])
}

/// Runs a job, over threads where it is large.
fn split(threads: &mut Threads, job: &Job, numel: usize) {
    let (rows, columns) = (job.loops.rows(), job.loops.inner());
    if numel < job.plan.parallel || threads.count() == 1 {
        return part(job, 0..rows, 0..columns);
    }
    let by_columns = columns >= rows;
    let length = if by_columns { columns } else { rows };
    let pieces = (threads.count() * 4).min(numel / PIECE).clamp(1, length);
    // Whole blocks keep the vectors of each thread aligned.
    let step = length.div_ceil(pieces);
    let step = if by_columns { step.next_multiple_of(BLOCK) } else { step };
    let job = Shared(job);
    threads.for_each(length.div_ceil(step), |piece| {
        let range = piece * step..((piece + 1) * step).min(length);
        if by_columns {
            part(job.get(), 0..rows, range);
        } else {
            part(job.get(), range, 0..columns);
        }
    });
}

/// Room for [`BLOCK`] elements of any dtype.
#[repr(align(64))]
struct Block([MaybeUninit<u64>; BLOCK]);

impl Block {
    fn new() -> Block {
        Block([MaybeUninit::uninit(); BLOCK])
    }

    fn room(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// How a kernel gets at an operand in the inner loop.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// Straight from its memory.
    Direct,
    /// One value throughout: in a block from the beginning.
    Constant,
    /// Loaded into a block.
    Load,
}

fn access(job: &Job, index: usize) -> Access {
    if index >= job.arity || job.loops.is_constant(index) {
        Access::Constant
    } else if job.loops.inner_stride(index) == 1 && job.dtypes[index] == job.plan.inputs[index] {
        Access::Direct
    } else {
        Access::Load
    }
}

/// Runs the columns of some rows.
fn part(job: &Job, rows: Range<usize>, columns: Range<usize>) {
    let mut blocks = [Block::new(), Block::new(), Block::new()];
    let (mut raw, mut result) = (Block::new(), Block::new());
    let accesses = [access(job, 0), access(job, 1), access(job, 2)];
    let casts = job.result != job.plan.result;
    let straight = !casts && accesses[..job.arity].iter().all(|&access| access == Access::Direct);
    let run = if straight { columns.len() } else { BLOCK.min(columns.len()) };
    let mut inputs = [std::ptr::null(); 3];
    for index in 0..job.arity {
        if accesses[index] == Access::Constant {
            let block = blocks[index].room();
            // SAFETY: the operand has one element, which is at its start.
            unsafe { load(job, index, job.from[index], 0, block, run, &mut raw) };
            inputs[index] = block.cast_const();
        }
    }
    let inner = job.loops.inner();
    job.loops.for_each_row(rows, |row, offsets| {
        let mut column = columns.start;
        while column < columns.end {
            let n = run.min(columns.end - column);
            for index in 0..job.arity {
                let stride = job.loops.inner_stride(index);
                let at = offsets[index] + column as isize * stride;
                let size = job.dtypes[index].size() as isize;
                // SAFETY: the loops stay within the operand.
                let from = unsafe { job.from[index].offset(at * size) };
                match accesses[index] {
                    Access::Direct => inputs[index] = from,
                    Access::Constant => {}
                    Access::Load => {
                        let block = blocks[index].room();
                        // SAFETY: n elements at the stride are within the operand.
                        unsafe { load(job, index, from, stride, block, n, &mut raw) };
                        inputs[index] = block.cast_const();
                    }
                }
            }
            // SAFETY: the output is contiguous and has the shape of the loops; each part writes
            // its own elements of it.
            unsafe {
                let to = job.to.add((row * inner + column) * job.result.size());
                if casts {
                    (job.plan.kernel)(&inputs, result.room(), n);
                    let done = [result.room().cast_const(); 3];
                    cast::kernel(job.plan.result, job.result)(&done, to, n);
                } else {
                    (job.plan.kernel)(&inputs, to, n);
                }
            }
            column += n;
        }
    });
}

/// Brings `n` elements of operand `index` into a block, in the dtype they are computed in.
///
/// # Safety
/// `n` elements at the stride from `from` are within the operand; `n` is at most [`BLOCK`].
unsafe fn load(
    job: &Job,
    index: usize,
    from: *const u8,
    stride: isize,
    block: *mut u8,
    n: usize,
    raw: &mut Block,
) {
    let (given, wanted) = (job.dtypes[index], job.plan.inputs[index]);
    // SAFETY: the caller's promise; a block has room for BLOCK elements of any size.
    unsafe {
        if given == wanted {
            gather(from, stride, block, n, given.size());
        } else if stride == 0 {
            cast::kernel(given, wanted)(&[from; 3], raw.room(), 1);
            gather(raw.room(), 0, block, n, wanted.size());
        } else if stride == 1 {
            cast::kernel(given, wanted)(&[from; 3], block, n);
        } else {
            gather(from, stride, raw.room(), n, given.size());
            cast::kernel(given, wanted)(&[raw.room().cast_const(); 3], block, n);
        }
    }
}

/// # Safety
/// `n` elements of `size` bytes at the stride can be read, and `n` written to `to`.
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
