//! A plane of inputs with the zeros around it, rearranged so that, for a fixed index of the short
//! side, the inputs that consecutive indices of the long side meet are contiguous.

use std::mem::MaybeUninit;
use std::sync::Arc;

use gt_worker::EngineError;

use super::ConvolutionFloat;
use super::sub_convolution::SubConvolution;
use super::unfold::{MatrixSide, copy_line};
use crate::buffer::Buffer;
use crate::simd::vectorized;

/// Elements that are processed at a time.
pub const LANES: usize = 16;

/// The layout of a plane for a long side, along whose lines loops run, and a short side, whose
/// indices shift where the lines begin. The sides are outputs and kernel elements, or vice versa.
pub struct Grid {
    long: MatrixSide,
    short: MatrixSide,
    /// The lengths of the inputs along each axis.
    input: [usize; 3],
    lows: [isize; 3],
    /// The lengths of each phase (`order` in the code). An index of the short side shifts the
    /// inputs by its step; the shift divided by the long side's step is added to the long index,
    /// and the remainder is the phase. Each phase is stored separately.
    lengths: [usize; 3],
}

/// Memory for a plane in the layout of a grid.
pub struct Plane<T> {
    buffer: Arc<Buffer>,
    count: usize,
    _values: std::marker::PhantomData<T>,
}

impl Grid {
    /// Returns the grid for a long and a short side, or `None` if most of it would be zeros.
    pub fn new<T: ConvolutionFloat>(
        part: &SubConvolution<T>,
        long: MatrixSide,
        short: MatrixSide,
    ) -> Option<Grid> {
        let mut lengths = [0; 3];
        let (mut count, mut plain) = (1usize, 1usize);
        for (axis, length) in lengths.iter_mut().enumerate() {
            let moved = (short.lengths[axis] - 1).checked_mul(short.steps[axis])?;
            *length = long.lengths[axis] + moved / long.steps[axis];
            count = count.checked_mul(length.checked_mul(long.steps[axis])?)?;
            plain = plain.saturating_mul(part.axes[axis].input + long.lengths[axis]);
        }
        lengths[2] = lengths[2].next_multiple_of(LANES);
        let (input, lows) = (part.axes.map(|axis| axis.input), part.axes.map(|axis| axis.low));
        (count / 4 <= plain).then_some(Grid { long, short, input, lows, lengths })
    }

    /// Returns the distance between lines of a phase.
    pub fn pitch(&self) -> usize {
        self.lengths[2]
    }

    /// Returns the number of elements from the first of the long side to the last, inclusive, with
    /// all elements in between.
    pub fn span(&self) -> usize {
        let [z, y, x] = self.long.lengths;
        ((z - 1) * self.lengths[1] + y - 1) * self.lengths[2] + x
    }

    /// Returns the offset at which a line of the long side begins.
    pub fn line(&self, z: usize, y: usize) -> usize {
        (z * self.lengths[1] + y) * self.lengths[2]
    }

    /// Returns the offset at which the long side begins for each index of the short side.
    pub fn starts(&self) -> Vec<usize> {
        let place = |axis: usize, index: usize| {
            let (moved, step) = (index * self.short.steps[axis], self.long.steps[axis]);
            (moved % step, moved / step)
        };
        let [depth, height, width] = self.short.lengths;
        let mut starts = Vec::with_capacity(depth * height * width);
        for (z, y) in pairs(depth, height) {
            let ((order_z, z), (order_y, y)) = (place(0, z), place(1, y));
            for (order_x, x) in (0..width).map(|x| place(2, x)) {
                let order = (order_z * self.long.steps[1] + order_y) * self.long.steps[2] + order_x;
                starts.push(order * self.order() + self.line(z, y) + x);
            }
        }
        starts
    }

    /// Returns the number of elements of a phase.
    fn order(&self) -> usize {
        self.lengths.iter().product()
    }

    /// Allocates memory for a plane.
    pub fn plane<T: ConvolutionFloat>(&self) -> Result<Plane<T>, EngineError> {
        let orders: usize = self.long.steps.iter().product();
        // The extra elements are read beyond the last line.
        let count = orders * self.order() + self.pitch() + LANES;
        let buffer = Buffer::new(count * size_of::<T>())?;
        Ok(Plane { buffer, count, _values: std::marker::PhantomData })
    }

    /// Writes one line, whose first element is at position `at` among the inputs and the zeros.
    ///
    /// # Safety
    /// As for [`Grid::fill`].
    #[inline(always)]
    unsafe fn fill_line<T: ConvolutionFloat>(
        &self,
        from: *const T,
        at: [usize; 3],
        to: &mut [MaybeUninit<T>],
    ) {
        let [depth, height, width] = self.input;
        let place = |axis: usize| at[axis] as isize - self.lows[axis];
        // A negative position becomes a large `usize`, which is beyond the length, too.
        let (z, y) = (place(0) as usize, place(1) as usize);
        if z >= depth || y >= height {
            to.fill(MaybeUninit::new(T::ZERO));
            return;
        }
        // SAFETY: a line of the plane, which the caller guarantees to be readable.
        let line = unsafe {
            std::slice::from_raw_parts(from.wrapping_add((z * height + y) * width), width)
        };
        copy_line(line, place(2), self.long.steps[2], to);
    }

    /// Writes a plane of inputs in this layout.
    ///
    /// # Safety
    /// `from` points to a readable plane of the inputs.
    pub unsafe fn fill<'a, T: ConvolutionFloat>(
        &self,
        from: *const T,
        plane: &'a mut Plane<T>,
    ) -> &'a [T] {
        let values = plane.values();
        vectorized(
            #[inline(always)]
            || {
                let [steps_z, steps_y, steps_x] = self.long.steps;
                let mut lines = values.chunks_mut(self.lengths[2]);
                for (z, y) in pairs(steps_z, steps_y) {
                    for x in 0..steps_x {
                        for (row_z, row_y) in pairs(self.lengths[0], self.lengths[1]) {
                            let at = [z + row_z * steps_z, y + row_y * steps_y, x];
                            let to = lines.next().expect("a line for each row of the plane");
                            // SAFETY: by the caller's guarantee.
                            unsafe { self.fill_line(from, at, to) };
                        }
                    }
                }
                lines.for_each(|rest| rest.fill(MaybeUninit::new(T::ZERO)));
            },
        );
        // SAFETY: every line and the rest have just been written.
        unsafe { &*(std::ptr::from_mut(values) as *const [T]) }
    }
}

/// Returns all pairs of an outer and an inner index, in row-major order.
#[inline(always)]
pub fn pairs(outer: usize, inner: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |outer| (0..inner).map(move |inner| (outer, inner)))
}

impl<T: ConvolutionFloat> Plane<T> {
    fn values(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the buffer has room for this many elements and belongs to this plane.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.data().cast(), self.count) }
    }
}
