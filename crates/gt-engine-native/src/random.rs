//! Random numbers. Each depends only on the seed, the instruction, and the element's position in
//! the whole tensor, so that shards draw what the unsharded tensor would.

use std::mem::MaybeUninit;

use gt_ir::draws;
use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::ops::random::random_part;
use gt_ir::philox::RandomStream;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;
use half::{bf16, f16};

use crate::create::{PIECE, number};
use crate::element::{Element, with_element};
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Counters whose words are generated at a time.
const BLOCK: usize = 64;

/// The elements of the whole tensor that a part of it has, as runs of consecutive positions.
pub struct DrawPart {
    /// The number of consecutive elements of a run.
    run: usize,
    /// The axes outside of a run: the part's length and start, and the axis's stride in the whole
    /// tensor.
    outer: Vec<(usize, u64, u64)>,
    /// The position of the first run in the whole tensor, along the axes within a run.
    start: u64,
}

impl DrawPart {
    /// Describes the part of shape `shape`. `part` has its starts and the shape of the whole
    /// tensor; it is empty if the tensor is whole.
    pub fn new(shape: &Shape, part: &[i64]) -> DrawPart {
        let Some((starts, whole)) = random_part(part) else {
            return DrawPart { run: shape.numel().max(1), outer: Vec::new(), start: 0 };
        };
        let mut part = DrawPart { run: 1, outer: Vec::new(), start: 0 };
        let (mut step, mut is_within) = (1, true);
        for axis in (0..shape.rank()).rev() {
            if is_within {
                part.run *= shape[axis];
                part.start += starts[axis] as u64 * step;
            } else {
                part.outer.push((shape[axis], starts[axis] as u64, step));
            }
            is_within &= shape[axis] as i64 == whole[axis];
            step *= whole[axis] as u64;
        }
        part
    }

    /// Returns the position in the whole tensor of the part's element `index`, and the number of
    /// elements from it on that have consecutive positions.
    pub fn run(&self, index: usize) -> (u64, usize) {
        let (mut rest, within) = (index / self.run, index % self.run);
        let mut place = self.start;
        for &(length, start, step) in &self.outer {
            place += (start + (rest % length) as u64) * step;
            rest /= length;
        }
        (place + within as u64, self.run - within)
    }
}

/// Returns the random numbers of an instruction, given by the first two operands.
pub fn stream(operands: &Operands<Tensor>) -> Result<RandomStream, EngineError> {
    let (seed, instruction) = (number(operands, 0)?.as_i64(), number(operands, 1)?.as_i64());
    Ok(RandomStream::new(seed as u64, instruction as u64))
}

/// Draws a tensor; `draw` converts four words to consecutive elements.
fn drawn<T: Element, const N: usize>(
    threads: &mut Threads,
    operands: &Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
    draw: impl Fn([u32; 4]) -> [T; N] + Sync,
) -> Result<Tensor, EngineError> {
    let stream = stream(operands)?;
    let part = DrawPart::new(&output.shape, ints(attributes, 2));
    let mut out = Uninit::new(output)?;
    let fill = |piece: usize, mut slots: &mut [MaybeUninit<T>]| {
        let mut index = piece * PIECE;
        while !slots.is_empty() {
            let (place, length) = part.run(index);
            let (run, rest) = slots.split_at_mut(length.min(slots.len()));
            index += run.len();
            fill_run(stream, place, run, &draw);
            slots = rest;
        }
    };
    threads.for_each_part(out.slots::<T>(), PIECE, fill);
    // SAFETY: every element has been written: runs follow one another.
    Ok(unsafe { out.finish() })
}

/// Draws consecutive elements, the first of them at `place`. Each block draws its words first and
/// then converts them, as a loop over both is not vectorized.
#[inline(always)]
fn fill_run<T: Copy, const N: usize>(
    stream: RandomStream,
    place: u64,
    mut out: &mut [MaybeUninit<T>],
    draw: &impl Fn([u32; 4]) -> [T; N],
) {
    let mut counter = place / N as u64;
    // Elements of the first counter that are before the run.
    let mut before = (place % N as u64) as usize;
    let mut words = [[0; BLOCK]; 4];
    let mut values = [[MaybeUninit::uninit(); N]; BLOCK];
    while !out.is_empty() {
        let count = (before + out.len()).div_ceil(N).min(BLOCK);
        vectorized(
            #[inline(always)]
            || {
                draw_words(stream, counter, &mut words, count);
                let [a, b, c, d] = &words;
                for lane in 0..count {
                    let drawn = draw([a[lane], b[lane], c[lane], d[lane]]);
                    for place in 0..N {
                        values[lane][place].write(drawn[place]);
                    }
                }
            },
        );
        let drawn = &values.as_flattened()[before..count * N];
        let (now, rest) = out.split_at_mut(drawn.len().min(out.len()));
        now.copy_from_slice(&drawn[..now.len()]);
        (counter, before, out) = (counter + count as u64, 0, rest);
    }
}

/// Generates the words of `count` consecutive counters, at most a block of them.
#[inline(always)]
fn draw_words(
    stream: RandomStream,
    first: u64,
    [a, b, c, d]: &mut [[u32; BLOCK]; 4],
    count: usize,
) {
    for lane in 0..count {
        [a[lane], b[lane], c[lane], d[lane]] = stream.words(first + lane as u64);
    }
}

/// Calls [`drawn`] with a closure that is always inlined; otherwise there would be a call for each
/// counter.
macro_rules! drawn {
    ($threads:ident, $operands:ident, $attributes:ident, $output:ident, |$words:ident| $draw:expr) => {
        drawn(
            $threads,
            &$operands,
            $attributes,
            $output,
            #[inline(always)]
            |$words| $draw,
        )
    };
}

pub fn rand(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    // 16-bit floats are rounded down to the digits that they hold: rounding up would yield 1.
    let cut = |u: f32, scale: f32| (u * scale).floor() / scale;
    match output.dtype {
        DType::F64 => drawn!(threads, operands, attributes, output, |w| draws::uniforms_f64(w)),
        DType::F16 => drawn!(threads, operands, attributes, output, |w| {
            draws::uniforms_f32(w).map(|u| f16::from_f32(cut(u, 2048.0)))
        }),
        DType::BF16 => drawn!(threads, operands, attributes, output, |w| {
            draws::uniforms_f32(w).map(|u| bf16::from_f32(cut(u, 256.0)))
        }),
        _ => drawn!(threads, operands, attributes, output, |w| draws::uniforms_f32(w)),
    }
}

pub fn randn(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    match output.dtype {
        DType::F64 => drawn!(threads, operands, attributes, output, |w| draws::normals_f64(w)),
        DType::F16 => drawn!(threads, operands, attributes, output, |w| {
            draws::normals_f32(w).map(f16::from_f32)
        }),
        DType::BF16 => drawn!(threads, operands, attributes, output, |w| {
            draws::normals_f32(w).map(bf16::from_f32)
        }),
        _ => drawn!(threads, operands, attributes, output, |w| draws::normals_f32(w)),
    }
}

pub fn randint(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let (low, high) = (number(&operands, 2)?.as_i64(), number(&operands, 3)?.as_i64());
    if high <= low && output.shape.numel() > 0 {
        let text = format!("randint: high {high} must be above low {low}");
        return Err(EngineError::Other(text));
    }
    let span = high.wrapping_sub(low) as u64;
    with_element!(output.dtype, T => match u32::try_from(span) {
        Ok(span) => drawn!(threads, operands, attributes, output, |words| {
            let [a, b] = draws::below_narrow(words, span);
            [low.wrapping_add(a as i64).cast::<T>(), low.wrapping_add(b as i64).cast::<T>()]
        }),
        Err(_) => drawn!(threads, operands, attributes, output, |words| {
            draws::below(words, span).map(|offset| low.wrapping_add(offset as i64).cast::<T>())
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runs of every possible part of a tensor of three axes have the positions of its
    /// elements, in order.
    #[test]
    fn runs_cover_the_elements_of_a_shard() {
        let whole = [3i64, 4, 5];
        let cuts = |length: i64| {
            (0..length).flat_map(move |start| (start + 1..=length).map(move |end| (start, end)))
        };
        for (a, b) in cuts(3) {
            for (c, d) in cuts(4) {
                for (e, f) in cuts(5) {
                    let shape =
                        Shape::new(&[(b - a), (d - c), (f - e)].map(|n| n as usize)).unwrap();
                    let part = DrawPart::new(&shape, &[&[a, c, e], &whole[..]].concat());
                    let mut given = Vec::new();
                    while given.len() < shape.numel() {
                        let (place, length) = part.run(given.len());
                        given.extend(place..place + length as u64);
                    }
                    let places = (a..b).flat_map(|i| (c..d).map(move |j| i * 4 + j));
                    let places = places.flat_map(|row| (e..f).map(move |k| (row * 5 + k) as u64));
                    assert_eq!(given, places.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_run_generates_the_same_numbers_as_the_whole_tensor() {
        let stream = RandomStream::new(1, 2);
        for place in 0..9 {
            for length in 0..40 {
                let length = length * 11;
                let mut out = vec![MaybeUninit::uninit(); length];
                fill_run(stream, place, &mut out, &draws::normals_f32);
                for (index, value) in out.into_iter().enumerate() {
                    // SAFETY: all elements of a run are written.
                    let value: f32 = unsafe { value.assume_init() };
                    assert_eq!(value, stream.normal_f32(place + index as u64));
                }
            }
        }
    }
}
