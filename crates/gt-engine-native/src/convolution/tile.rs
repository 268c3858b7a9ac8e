//! The innermost loop of an [indirect](super::indirect) convolution: a tile of outputs in
//! registers.

use super::ConvolutionFloat;
use super::vector::Vector;
use crate::element::Number;
use crate::simd::{InstructionSet, level, vectorized};

/// Pixels of a tile: with four registers of outputs each, their sums use 24 of the 32 registers of
/// AVX-512.
pub const PIXELS: usize = 6;

/// The initial values of a tile's sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum InitialSums {
    Zero,
    /// The existing values.
    Existing,
}

/// A tile: `PIXELS` rows of sums, one for each output.
pub struct RegisterTile<'a, T> {
    /// The pointer that `pixel_offsets` and `tap_offsets` are relative to.
    pub inputs: *const T,
    /// The offset of each pixel's inputs.
    pub pixel_offsets: &'a [usize; PIXELS],
    /// The offsets from there to the inputs that are multiplied, in order.
    pub tap_offsets: &'a [usize],
    /// For each tap offset, a row of weights with one for each output.
    pub weights: *const T,
    pub sums: *mut T,
    pub initial: InitialSums,
}

/// The number of outputs of a tile: its registers for each pixel, and the elements of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileWidth {
    level: InstructionSet,
    registers: usize,
    lanes: usize,
}

impl TileWidth {
    /// Returns the width that wastes the least on `outputs` outputs, among those that fit the
    /// machine's registers.
    pub fn of<T: ConvolutionFloat>(outputs: usize) -> TileWidth {
        let level = level();
        let most = if level == InstructionSet::V4 { 4 } else { 2 };
        // One register for each pixel is too few to keep the processor's multipliers busy.
        let cost = |width: &TileWidth| {
            let padded = outputs.next_multiple_of(width.outputs());
            if width.registers == 1 { padded + padded / 4 } else { padded }
        };
        let all = [4, 2, 1].into_iter().filter(|registers| *registers <= most);
        let widths = all.map(|registers| TileWidth::at::<T>(level, registers));
        widths.min_by_key(cost).expect("a width fits into the registers")
    }

    fn at<T: ConvolutionFloat>(level: InstructionSet, registers: usize) -> TileWidth {
        let lanes = match level {
            InstructionSet::Base => T::Base::LANES,
            InstructionSet::V3 => T::V3::LANES,
            InstructionSet::V4 => T::V4::LANES,
        };
        TileWidth { level, registers, lanes }
    }

    /// Returns the number of outputs of a tile.
    pub fn outputs(self) -> usize {
        self.registers * self.lanes
    }

    /// Adds to each sum the products of its pixel's inputs with its output's weights.
    ///
    /// # Safety
    /// The inputs are readable at each sum of a pixel offset and a tap offset, and there is a row
    /// of weights for each tap offset. The sums are readable and writable, and no other thread
    /// accesses them.
    pub unsafe fn add<T: ConvolutionFloat>(self, tile: RegisterTile<T>) {
        // SAFETY: by the caller's guarantee; the machine supports the instruction set, which is
        // from [`level`].
        unsafe {
            match (self.level, self.registers) {
                (InstructionSet::V4, 4) => run::<T::V4, 4>(tile),
                (InstructionSet::V4, 2) => run::<T::V4, 2>(tile),
                (InstructionSet::V4, _) => run::<T::V4, 1>(tile),
                (InstructionSet::V3, 2) => run::<T::V3, 2>(tile),
                (InstructionSet::V3, _) => run::<T::V3, 1>(tile),
                (InstructionSet::Base, 2) => add::<T::Base, 2>(tile),
                (InstructionSet::Base, _) => add::<T::Base, 1>(tile),
            }
        }
    }
}

/// # Safety
/// As for [`TileWidth::add`]; the machine supports the vector's instruction set.
unsafe fn run<V: Vector, const REGISTERS: usize>(tile: RegisterTile<V::Item>) {
    vectorized(
        #[inline(always)]
        // SAFETY: by the caller's guarantee.
        || unsafe { add::<V, REGISTERS>(tile) },
    );
}

/// # Safety
/// As for [`run`].
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators of arrays are not always taken apart into registers"
)]
unsafe fn add<V: Vector, const REGISTERS: usize>(tile: RegisterTile<V::Item>) {
    let RegisterTile { inputs, pixel_offsets, tap_offsets, mut weights, sums, initial } = tile;
    let at = |pixel: usize, register: usize| (pixel * REGISTERS + register) * V::LANES;
    // SAFETY: by the caller's guarantee: there is a row of weights for each tap offset, an input at
    // each sum of a pixel offset and a tap offset, and a row of sums for each pixel.
    unsafe {
        let mut all = [[V::splat(V::Item::ZERO); REGISTERS]; PIXELS];
        if initial == InitialSums::Existing {
            for pixel in 0..PIXELS {
                for register in 0..REGISTERS {
                    all[pixel][register] = V::load(sums.add(at(pixel, register)));
                }
            }
        }
        for tap_offset in tap_offsets {
            let mut row = [V::splat(V::Item::ZERO); REGISTERS];
            for register in 0..REGISTERS {
                row[register] = V::load(weights.add(register * V::LANES));
            }
            for pixel in 0..PIXELS {
                let input = V::splat(*inputs.add(pixel_offsets[pixel] + tap_offset));
                for register in 0..REGISTERS {
                    all[pixel][register] = input.mul_add(row[register], all[pixel][register]);
                }
            }
            weights = weights.add(REGISTERS * V::LANES);
        }
        for pixel in 0..PIXELS {
            for register in 0..REGISTERS {
                all[pixel][register].store(sums.add(at(pixel, register)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_tile_width() {
        let depth = 5;
        let levels = [InstructionSet::Base, InstructionSet::V3, InstructionSet::V4].into_iter();
        let levels = levels.filter(|of| *of <= level());
        for width in levels.flat_map(|of| [1, 2, 4].map(|count| TileWidth::at::<f64>(of, count))) {
            if width.registers == 4 && width.level != InstructionSet::V4 {
                continue;
            }
            let row_length = width.outputs();
            let inputs: Vec<f64> = (0..40).map(f64::from).collect();
            let weights: Vec<f64> = (0..depth * row_length).map(|x| (x % 7) as f64).collect();
            let (pixel_offsets, tap_offsets) = ([3, 0, 9, 9, 1, 30], [0, 4, 1, 9, 2]);
            let mut sums = vec![100.0; PIXELS * row_length];
            for initial in [InitialSums::Zero, InitialSums::Existing] {
                let (inputs, weights) = (inputs.as_ptr(), weights.as_ptr());
                let (pixel_offsets, tap_offsets, sums) =
                    (&pixel_offsets, &tap_offsets, sums.as_mut_ptr());
                // SAFETY: all sums of offsets are within the inputs; weights and sums have the
                // lengths that the tile needs.
                unsafe {
                    width.add(RegisterTile {
                        inputs,
                        pixel_offsets,
                        tap_offsets,
                        weights,
                        sums,
                        initial,
                    })
                };
            }
            for (index, sum) in sums.iter().enumerate() {
                let (pixel, output) = (index / row_length, index % row_length);
                let product = |row: usize| {
                    inputs[pixel_offsets[pixel] + tap_offsets[row]]
                        * weights[row * row_length + output]
                };
                assert_eq!(*sum, 2.0 * (0..depth).map(product).sum::<f64>(), "{width:?}");
            }
        }
    }
}
