//! Operations along one axis: sort, topk, extremes along an axis, running extremes and running
//! products. The tensor is rearranged so that the axis is the last one; each row along it is then
//! processed on its own.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::{bool, int};
use gt_ir::shape::axis;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;
use smallvec::SmallVec;

use crate::budget;
use crate::cast;
use crate::element::{Bool, Element, Number, compute_dtype, with_number, with_real};
use crate::math::Float;
use crate::repeats;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements that one thread processes at a time.
const PIECE: usize = 1 << 14;

/// A contiguous tensor whose last axis is the one operated on, in a dtype that supports arithmetic.
pub struct AxisRows {
    tensor: Tensor,
    length: usize,
    /// The permutation that moved the axis to the end, `None` if it was there already. It is its
    /// own inverse.
    order: Option<SmallVec<[usize; 8]>>,
}

impl AxisRows {
    pub fn new(
        threads: &mut Threads,
        x: Tensor,
        attributes: &Attributes,
        dtype: DType,
    ) -> Result<AxisRows, EngineError> {
        let rank = x.shape().rank();
        let along = axis(int(attributes, 0), rank, "along")
            .map_err(|error| EngineError::Other(error.to_string()))?;
        let mut x = cast::to(threads, x, dtype)?;
        let order = (along + 1 < rank).then(|| {
            let mut order: SmallVec<[usize; 8]> = (0..rank).collect();
            order.swap(along, rank - 1);
            order
        });
        if let Some(order) = &order {
            x = x.permute(order);
        }
        let x = x.contiguous_with(threads)?;
        let length = x.shape().dims().last().copied().unwrap_or(1);
        Ok(AxisRows { tensor: x, length, order })
    }

    /// Returns the length of a row.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns all rows, one after another.
    pub fn rows<T: Element>(&self) -> &[T] {
        self.tensor.as_slice()
    }

    /// Allocates results with rows of another length.
    pub fn results(&self, dtype: DType, length: usize) -> Result<Uninit, EngineError> {
        let shape = *self.tensor.shape();
        let shape = match shape.rank() {
            0 => shape,
            rank => shape.with(rank - 1, length),
        };
        Uninit::new(Meta::new(dtype, shape))
    }

    /// Returns results with the axes in their original order, cast to `dtype`.
    pub fn back(
        &self,
        threads: &mut Threads,
        out: Tensor,
        dtype: DType,
    ) -> Result<Tensor, EngineError> {
        let out = match &self.order {
            Some(order) => out.permute(order),
            None => out,
        };
        cast::to(threads, out, dtype)
    }

    /// Calls `row` with each row and its output slots for values and indices.
    fn each<T: Number>(
        &self,
        threads: &mut Threads,
        values: &mut Uninit,
        indices: &mut Uninit,
        length: usize,
        row: impl Fn(&[T], &mut [MaybeUninit<T>], &mut [MaybeUninit<i64>]) + Sync,
    ) {
        let given = self.tensor.as_slice::<T>();
        if given.is_empty() || length == 0 {
            return;
        }
        let (values, indices) = (values.slots::<T>(), indices.slots::<i64>());
        let rows = given.len() / self.length;
        assert!(values.len() == rows * length && indices.len() == rows * length);
        let step = (PIECE / self.length).max(1);
        let mut both: Vec<_> =
            values.chunks_mut(step * length).zip(indices.chunks_mut(step * length)).collect();
        threads.for_each_part(&mut both, 1, |piece, both| {
            let (values, indices) = &mut both[0];
            let given = &given[piece * step * self.length..];
            let rows = given.chunks_exact(self.length);
            let slots = values.chunks_exact_mut(length).zip(indices.chunks_exact_mut(length));
            for (given, (values, indices)) in rows.zip(slots) {
                row(given, values, indices);
            }
        });
    }
}

/// A number that maps to an unsigned integer of the same order, with NaN above all others.
trait SortKey: Number {
    fn key(self) -> u64;
}

macro_rules! keys {
    ($($T:ty => |$x:ident| $key:expr;)*) => { $(
        impl SortKey for $T {
            #[inline(always)]
            fn key(self) -> u64 {
                let $x = self;
                $key
            }
        }
    )* };
}

keys! {
    Bool => |x| u64::from(crate::element::Element::truth(x));
    u8 => |x| u64::from(x);
    i8 => |x| (i64::from(x) as u64) ^ (1 << 63);
    i16 => |x| (i64::from(x) as u64) ^ (1 << 63);
    i32 => |x| (i64::from(x) as u64) ^ (1 << 63);
    i64 => |x| (x as u64) ^ (1 << 63);
    f32 => |x| float_key(u64::from(if x.is_nan() { 0x7fff_ffff } else { (x + 0.0).to_bits() }), 32);
    f64 => |x| float_key(if x.is_nan() { i64::MAX as u64 } else { (x + 0.0).to_bits() }, 64);
}

/// Maps the bits of a float to an integer of the same order: inverts those of negative numbers, and
/// sets the sign bit of the others.
#[inline(always)]
fn float_key(bits: u64, width: u32) -> u64 {
    let sign = 1u64 << (width - 1);
    if bits & sign == 0 { bits | sign } else { !bits & (u64::MAX >> (64 - width)) }
}

/// Returns whether keys of a dtype fit into 32 bits, next to a 32-bit index.
fn is_narrow(dtype: DType, length: usize) -> bool {
    let narrow = matches!(dtype, DType::Bool | DType::U8 | DType::F32);
    narrow && u32::try_from(length).is_ok()
}

/// Calls `put` with the position and the source index of each of the first `count` elements in
/// sorted order. The sort is stable.
fn ordered<T: SortKey>(
    row: &[T],
    count: usize,
    descending: bool,
    mut put: impl FnMut(usize, usize),
) {
    let flip = if descending { u64::MAX } else { 0 };
    if is_narrow(T::DTYPE, row.len()) {
        let flip = flip & 0xffff_ffff;
        let pack = |(at, x): (usize, &T)| (x.key() ^ flip) << 32 | at as u64;
        let mut packed: Vec<u64> = row.iter().enumerate().map(pack).collect();
        first(&mut packed, count);
        packed[..count]
            .iter()
            .enumerate()
            .for_each(|(to, of)| put(to, (of & 0xffff_ffff) as usize));
    } else {
        let pack = |(at, x): (usize, &T)| (x.key() ^ flip, at);
        let mut packed: Vec<(u64, usize)> = row.iter().enumerate().map(pack).collect();
        first(&mut packed, count);
        packed[..count].iter().enumerate().for_each(|(to, of)| put(to, of.1));
    }
}

/// Moves the `count` smallest values to the front, in ascending order.
fn first<T: Ord>(values: &mut [T], count: usize) {
    if count == 0 {
        return;
    }
    if count < values.len() / 4 {
        values.select_nth_unstable(count - 1);
        values[..count].sort_unstable();
    } else {
        values.sort_unstable();
    }
}

fn in_order(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
    descending: bool,
    count: Option<usize>,
) -> Result<Vec<Tensor>, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(x.dtype());
    let rows = AxisRows::new(threads, x, attributes, dtype)?;
    let count = count.unwrap_or(rows.length);
    let mut values = rows.results(dtype, count)?;
    let mut indices = rows.results(DType::I64, count)?;
    let size =
        if is_narrow(dtype, rows.length) { size_of::<u64>() } else { size_of::<(u64, usize)>() };
    let _keys = budget::scratch(rows.length * size * threads.count())?;
    with_real!(dtype, T => rows.each::<T>(threads, &mut values, &mut indices, count, |row, values, indices| {
        ordered(row, count, descending, |to, from| {
            values[to].write(row[from]);
            indices[to].write(from as i64);
        });
    }));
    // SAFETY: `each` visits every row, and `ordered` passes each of its `count` slots once.
    let (values, indices) = unsafe { (values.finish(), indices.finish()) };
    Ok(vec![
        rows.back(threads, values, outputs[0].dtype)?,
        rows.back(threads, indices, DType::I64)?,
    ])
}

pub fn sort(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    in_order(threads, operands, attributes, outputs, bool(attributes, 1), None)
}

pub fn topk(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let count = if outputs[0].shape.rank() == 0 { 1 } else { int(attributes, 1) as usize };
    let largest = bool(attributes, 2);
    in_order(threads, operands, attributes, outputs, largest, Some(count))
}

/// Returns whether `x` replaces the best value so far. NaN beats any number.
#[inline(always)]
fn better<T: Number, const LARGEST: bool, const LAST: bool>(x: T, best: T) -> bool {
    if best.is_nan() {
        return LAST && x.is_nan();
    }
    let beats = if LARGEST { x > best } else { x < best };
    beats || x.is_nan() || (LAST && x == best)
}

fn extremes<const LARGEST: bool, const RUNNING: bool>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(x.dtype());
    // Repeated elements do not change an extreme, and the result repeats as they do.
    let x = if RUNNING { x } else { repeats::distinct_of(x) };
    let rows = AxisRows::new(threads, x, attributes, dtype)?;
    let count = if RUNNING { rows.length } else { 1 };
    let mut values = rows.results(dtype, count)?;
    let mut indices = rows.results(DType::I64, count)?;
    with_real!(dtype, T => rows.each::<T>(threads, &mut values, &mut indices, count, |row, values, indices| {
        let mut best = 0;
        for (at, &x) in row.iter().enumerate() {
            if better::<T, LARGEST, RUNNING>(x, row[best]) {
                best = at;
            }
            if RUNNING {
                values[at].write(row[best]);
                indices[at].write(best as i64);
            }
        }
        if !RUNNING {
            values[0].write(row[best]);
            indices[0].write(best as i64);
        }
    }));
    // SAFETY: `each` visits every row, and all of its slots have been written.
    let (values, indices) = unsafe { (values.finish(), indices.finish()) };
    let values = rows.back(threads, values, outputs[0].dtype)?;
    let indices = rows.back(threads, indices, DType::I64)?;
    Ok(vec![values.expand(&outputs[0].shape), indices.expand(&outputs[1].shape)])
}

macro_rules! extremes {
    ($($name:ident, $largest:literal, $running:literal;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            operands: Operands<Tensor>,
            attributes: &Attributes,
            outputs: &[Meta],
        ) -> Result<Vec<Tensor>, EngineError> {
            extremes::<$largest, $running>(threads, operands, attributes, outputs)
        }
    )* };
}

extremes! {
    max_along, true, false;
    min_along, false, false;
    cummax, true, true;
    cummin, false, true;
}

/// Scans each row: `row` writes, for each element, its combination with all elements before it.
fn running<T: Number>(
    threads: &mut Threads,
    rows: &AxisRows,
    out: &mut Uninit,
    row: impl Fn(&[T], &mut [MaybeUninit<T>]) + Sync,
) {
    let given = rows.tensor.as_slice::<T>();
    if given.is_empty() {
        return;
    }
    let step = (PIECE / rows.length).max(1) * rows.length;
    threads.for_each_part(out.slots::<T>(), step, |piece, out| {
        let given = &given[piece * step..][..out.len()];
        for (given, out) in given.chunks_exact(rows.length).zip(out.chunks_exact_mut(rows.length)) {
            row(given, out);
        }
    });
}

pub fn cumprod(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(output.dtype);
    let rows = AxisRows::new(threads, x, attributes, dtype)?;
    let mut out = rows.results(dtype, rows.length)?;
    with_number!(dtype, T => running::<T>(threads, &rows, &mut out, |row, out| {
        let mut product = T::ONE;
        for (x, out) in row.iter().zip(out) {
            product = product.times(*x);
            out.write(product);
        }
    }));
    // SAFETY: `running` visits every row, all of which is written.
    rows.back(threads, unsafe { out.finish() }, output.dtype)
}

pub fn logcumsumexp(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(output.dtype);
    let rows = AxisRows::new(threads, x, attributes, dtype)?;
    let mut out = rows.results(dtype, rows.length)?;
    match dtype {
        DType::F64 => running::<f64>(threads, &rows, &mut out, log_sums),
        _ => running::<f32>(threads, &rows, &mut out, log_sums),
    }
    // SAFETY: `running` visits every row, all of which `log_sums` writes.
    rows.back(threads, unsafe { out.finish() }, output.dtype)
}

/// Writes the running log(exp(a) + exp(b)), computed as max + log1p(exp(min - max)).
fn log_sums<T: Float>(row: &[T], out: &mut [MaybeUninit<T>]) {
    let mut sum = T::from_f64(f64::NEG_INFINITY);
    for (&x, out) in row.iter().zip(out) {
        let (low, high) = (sum.smaller(x), sum.larger(x));
        // Both are the same infinity: their difference is NaN.
        sum = if low == high && low.minus(high).is_nan() {
            high
        } else {
            high.plus(low.minus(high).exp().log1p())
        };
        out.write(sum);
    }
}
