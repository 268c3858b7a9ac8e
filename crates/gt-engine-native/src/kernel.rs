//! Kernels: loops over runs of elements, behind pointers.

use gt_ir::DType;

use crate::element::Element;

/// A loop over `n` elements of each input and of the output.
pub type Loop = unsafe fn(inputs: &[*const u8; 3], out: *mut u8, n: usize);

/// A loop and the dtypes it was made for.
#[derive(Clone, Copy)]
pub struct Kernel {
    run: Loop,
    inputs: [DType; 3],
    arity: u8,
    result: DType,
    in_place: bool,
}

/// Kernels by the dtype they compute in.
pub type ByDType = [Option<Kernel>; DType::ALL.len()];

impl Kernel {
    /// A kernel from `arity` inputs of type `T` to an output of type `R`.
    ///
    /// # Safety
    /// Where the first `arity` inputs can be read, as `n` elements of type `T`, and the output
    /// written, as `n` of type `R`, the loop reads nothing else, and writes each element of the
    /// output and nothing else. The output overlaps with no input.
    pub const unsafe fn new<T: Element, R: Element>(run: Loop, arity: u8) -> Kernel {
        let ((), ()) = (T::FITS, R::FITS);
        assert!(arity <= 3);
        Kernel { run, inputs: [T::DTYPE; 3], arity, result: R::DTYPE, in_place: false }
    }

    /// A kernel whose inputs and output are of one type.
    ///
    /// # Safety
    /// As for [`Kernel::new`]; but the output may also be the first input's very memory.
    pub const unsafe fn in_place<T: Element>(run: Loop, arity: u8) -> Kernel {
        // SAFETY: the caller's promise, which is the stronger one.
        Kernel { in_place: true, ..unsafe { Kernel::new::<T, T>(run, arity) } }
    }

    /// A kernel whose first input is of another type.
    ///
    /// # Safety
    /// As for [`Kernel::new`], with the first input of type `A`.
    pub const unsafe fn with_first<A: Element, T: Element>(run: Loop, arity: u8) -> Kernel {
        let () = A::FITS;
        // SAFETY: the caller's promise, but for the first input, whose dtype is put right.
        let kernel = unsafe { Kernel::new::<T, T>(run, arity) };
        Kernel { inputs: [A::DTYPE, T::DTYPE, T::DTYPE], ..kernel }
    }

    /// How many inputs it reads.
    pub fn arity(&self) -> usize {
        usize::from(self.arity)
    }

    /// The dtypes of its inputs.
    pub fn inputs(&self) -> [DType; 3] {
        self.inputs
    }

    /// The dtype of its output.
    pub fn result(&self) -> DType {
        self.result
    }

    /// Whether the output may be the first input's memory, where that holds this dtype.
    pub fn is_in_place_on(&self, dtype: DType) -> bool {
        self.in_place && self.result == dtype
    }

    /// Whether two kernels are the same loop.
    pub fn is(&self, other: &Kernel) -> bool {
        std::ptr::fn_addr_eq(self.run, other.run)
            && (self.inputs, self.arity, self.result) == (other.inputs, other.arity, other.result)
    }

    /// Computes `n` elements. Then each element of the output is written.
    ///
    /// # Safety
    /// Each of the first [`Kernel::arity`] inputs can be read as `n` elements of its dtype, and the
    /// output written as `n` of the result's, all aligned. The output overlaps with no input, or it
    /// is the first one's very memory, and the kernel [`Kernel::is_in_place_on`] its dtype.
    #[inline(always)]
    pub unsafe fn run(&self, inputs: &[*const u8; 3], out: *mut u8, n: usize) {
        // SAFETY: the caller's promise, and that of who made the kernel.
        unsafe { (self.run)(inputs, out, n) }
    }
}
