//! Kernels: loops over contiguous elements, behind function pointers.

use gt_ir::DType;

use crate::element::Element;

/// A loop over `n` elements of each input and of the output.
pub type Loop = unsafe fn(inputs: &[*const u8; 3], out: *mut u8, n: usize);

/// A loop and the dtypes it was compiled for.
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
    /// Creates a kernel from `arity` inputs of type `T` to an output of type `R`.
    ///
    /// # Safety
    /// If the first `arity` inputs can be read as `n` elements of type `T`, and the output can be
    /// written as `n` elements of type `R` and overlaps with no input, the loop reads nothing else,
    /// writes each element of the output, and writes nothing else.
    pub const unsafe fn new<T: Element, R: Element>(run: Loop, arity: u8) -> Kernel {
        let ((), ()) = (T::FITS, R::FITS);
        assert!(arity <= 3);
        Kernel { run, inputs: [T::DTYPE; 3], arity, result: R::DTYPE, in_place: false }
    }

    /// Creates a kernel that may run in place, with inputs and output of one type.
    ///
    /// # Safety
    /// As for [`Kernel::new`], but the output may also be exactly the first input's memory.
    pub const unsafe fn in_place<T: Element>(run: Loop, arity: u8) -> Kernel {
        // SAFETY: the caller's promise, which is stronger.
        Kernel { in_place: true, ..unsafe { Kernel::new::<T, T>(run, arity) } }
    }

    /// Creates a kernel whose first input has another type.
    ///
    /// # Safety
    /// As for [`Kernel::new`], with the first input of type `A`.
    pub const unsafe fn with_first<A: Element, T: Element>(run: Loop, arity: u8) -> Kernel {
        let () = A::FITS;
        // SAFETY: the caller's promise, except for the first input, whose dtype is set below.
        let kernel = unsafe { Kernel::new::<T, T>(run, arity) };
        Kernel { inputs: [A::DTYPE, T::DTYPE, T::DTYPE], ..kernel }
    }

    /// Returns the number of inputs.
    pub fn arity(&self) -> usize {
        usize::from(self.arity)
    }

    /// Returns the dtypes of the inputs.
    pub fn inputs(&self) -> [DType; 3] {
        self.inputs
    }

    /// Returns the dtype of the output.
    pub fn result(&self) -> DType {
        self.result
    }

    /// Returns whether the output may be the first input's memory, if that has this dtype.
    pub fn is_in_place_on(&self, dtype: DType) -> bool {
        self.in_place && self.result == dtype
    }

    /// Returns whether two kernels are the same loop.
    pub fn is(&self, other: &Kernel) -> bool {
        std::ptr::fn_addr_eq(self.run, other.run)
            && (self.inputs, self.arity, self.result) == (other.inputs, other.arity, other.result)
    }

    /// Computes and writes `n` elements.
    ///
    /// # Safety
    /// Each of the first [`Kernel::arity`] inputs can be read as `n` elements of its dtype, and the
    /// output can be written as `n` elements of the result's dtype, all aligned. The output
    /// overlaps with no input, or it is exactly the first input's memory and the kernel
    /// [`Kernel::is_in_place_on`] its dtype.
    #[inline(always)]
    pub unsafe fn run(&self, inputs: &[*const u8; 3], out: *mut u8, n: usize) {
        // SAFETY: the promises of the caller and of the code that created the kernel.
        unsafe { (self.run)(inputs, out, n) }
    }
}
