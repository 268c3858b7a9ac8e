//! Writing at the places that an index names along an axis.

use gt_ir::instruction::Operands;
use gt_ir::operation::{bool, int};
use gt_ir::{Attributes, DType, Meta, Operand};
use gt_worker::EngineError;

use crate::cast;
use crate::element::{Element, Number, compute_dtype, with_number};
use crate::index::{axis_of, check_places, for_each_place, index_below};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// A tensor that is written to at places, and what says where.
struct Target {
    out: Tensor,
    index: Tensor,
    along: usize,
    strides: [isize; 8],
}

impl Target {
    fn new(
        threads: &mut Threads,
        operands: &mut Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
        dtype: DType,
    ) -> Result<Target, EngineError> {
        let along = axis_of(attributes, &output.shape)?;
        let rank = output.shape.rank();
        let length = if rank == 0 { 1 } else { output.shape[along] };
        let index = tensor(operands, 1)?;
        let index = index_below(threads, index, length)?;
        let x = tensor(operands, 0)?;
        let out = cast::to(threads, x, dtype)?.writable()?;
        check_places(index.shape(), &output.shape, along);
        // Without axes there is one place only, whatever the stride.
        let strides = if rank == 0 { [0; 8] } else { out.strides() };
        Ok(Target { out, index, along, strides })
    }

    /// Calls `body` with the slots, an entry's number, and the slot it names.
    fn each<T: Number>(&mut self, mut body: impl FnMut(&mut [T], usize, usize)) {
        let slots = self.out.as_mut_slice::<T>();
        for_each_place(&self.index, &self.strides, self.along, |number, place| {
            body(slots, number, place as usize);
        });
    }
}

pub fn scatter(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let mut target = Target::new(threads, &mut operands, attributes, output, dtype)?;
    match &operands[2] {
        Operand::Scalar(scalar) => with_number!(dtype, T => {
            let value = T::from_scalar(*scalar);
            target.each::<T>(|slots, _, place| slots[place] = value);
        }),
        Operand::Tensor(_) => {
            let source = tensor(&mut operands, 2)?;
            let source = cast::to(threads, source, dtype)?.contiguous()?;
            assert!(source.shape() == target.index.shape(), "a value for each entry");
            with_number!(dtype, T => {
                let values = source.as_slice::<T>();
                target.each::<T>(|slots, number, place| slots[place] = values[number]);
            });
        }
    }
    cast::to(threads, target.out, output.dtype)
}

/// The ways to combine, in the order of the choice.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

pub fn scatter_reduce(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let way = [Way::Sum, Way::Prod, Way::Mean, Way::Max, Way::Min][int(attributes, 1) as usize];
    let mut target = Target::new(threads, &mut operands, attributes, output, dtype)?;
    let source = tensor(&mut operands, 2)?;
    let source = cast::to(threads, source, dtype)?.contiguous()?;
    assert!(source.shape() == target.index.shape(), "a value for each entry");
    with_number!(dtype, T => combine::<T>(&mut target, source.as_slice::<T>(), way, bool(attributes, 2)));
    cast::to(threads, target.out, output.dtype)
}

fn combine<T: Number>(target: &mut Target, source: &[T], way: Way, with_own: bool) {
    if !with_own {
        let neutral = match way {
            Way::Sum | Way::Mean => T::ZERO,
            Way::Prod => T::ONE,
            Way::Max => T::LOWEST,
            Way::Min => T::HIGHEST,
        };
        target.each::<T>(|slots, _, place| slots[place] = neutral);
    }
    target.each::<T>(|slots, number, place| {
        let (old, new) = (slots[place], source[number]);
        slots[place] = match way {
            Way::Sum | Way::Mean => old.plus(new),
            Way::Prod => old.times(new),
            Way::Max => old.larger(new),
            Way::Min => old.smaller(new),
        };
    });
    if way == Way::Mean {
        let mut counts = vec![i64::from(with_own); target.out.numel()];
        target.each::<T>(|_, _, place| counts[place] += 1);
        for (slot, count) in target.out.as_mut_slice::<T>().iter_mut().zip(counts) {
            if count > 1 {
                *slot = over::<T>(*slot, count);
            }
        }
    }
}

/// A sum over how many there are; integers are rounded down.
fn over<T: Number>(sum: T, count: i64) -> T {
    if T::DTYPE.is_float() {
        T::from_f64(sum.to_f64() / count as f64)
    } else {
        <T as Element>::from_i64(sum.to_i64().div_euclid(count))
    }
}
