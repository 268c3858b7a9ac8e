//! PyTorch's stable ABI for kernels that are called without Python. Its functions are looked up in
//! the library that this process has loaded.
//! Source: torch/csrc/stable/c/shim.h and torch/csrc/inductor/aoti_torch/c/shim.h of PyTorch 2.13.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// A value on a kernel's stack: a number, a handle, or the address of an optional value.
pub type StackSlot = u64;
/// A kernel. Its arguments are the stack, the number of arguments on it, and the number of results.
pub type BoxedKernel = extern "C-unwind" fn(*mut StackSlot, u64, u64);

/// The version of the interface that kernels are built for, an argument of `torch_library_impl`:
/// 2.13.
const VERSION: u64 = 2 << 56 | 13 << 48;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[expect(non_snake_case, reason = "they are PyTorch's names")]
        struct StableFunctions {
            $($name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)*
        }

        impl StableFunctions {
            fn find(library: &Library) -> PyResult<StableFunctions> {
                // SAFETY: the types match the functions' declarations.
                unsafe { Ok(StableFunctions { $($name: library.function(stringify!($name))?,)* }) }
            }
        }
    };
}

functions! {
    torch_library_impl(*mut c_void, *const c_char, BoxedKernel, u64) -> i32;
    aoti_torch_library_init_impl(
        *const c_char, *const c_char, *const c_char, u32, *mut *mut c_void
    ) -> i32;
    torch_call_dispatcher(*const c_char, *const c_char, *mut StackSlot, u64) -> i32;
    torch_new_list_reserve_size(usize, *mut StackSlot) -> i32;
    torch_list_push_back(StackSlot, StackSlot) -> i32;
    torch_list_size(StackSlot, *mut usize) -> i32;
    torch_list_get_item(StackSlot, usize, *mut StackSlot) -> i32;
    torch_delete_list(StackSlot) -> i32;
    torch_new_stable_ivalue(*mut *mut StackSlot) -> i32;
    torch_delete_stable_ivalue(*mut StackSlot) -> i32;
    aoti_torch_get_dim(StackSlot, *mut i64) -> i32;
    aoti_torch_get_sizes(StackSlot, *mut *const i64) -> i32;
    aoti_torch_get_strides(StackSlot, *mut *const i64) -> i32;
    aoti_torch_get_storage_offset(StackSlot, *mut i64) -> i32;
    aoti_torch_get_storage_numel(StackSlot, *mut i64) -> i32;
    aoti_torch_new_tensor_handle(StackSlot, *mut StackSlot) -> i32;
    aoti_torch_delete_tensor_object(StackSlot) -> i32;
    aoti_torch__reinterpret_tensor(StackSlot, i64, *const i64, *const i64, i64, *mut StackSlot) -> i32;
    aoti_torch_check(bool, *const c_char, *const c_char, u32, *const c_char);
    // `c10::InferenceMode::is_enabled`.
    _ZN3c1013InferenceMode10is_enabledEv() -> bool;
    // `at::native::is_inference`; a handle is the address of its tensor.
    _ZN2at6native12is_inferenceERKNS_6TensorE(StackSlot) -> bool;
}

static FUNCTIONS: OnceLock<StableFunctions> = OnceLock::new();

struct Library(*mut c_void, String);

impl Library {
    /// Returns a library that is loaded already.
    fn of(path: &str) -> PyResult<Library> {
        let name = CString::new(path)?;
        // SAFETY: a C string; the library stays loaded for as long as PyTorch is.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
        if handle.is_null() {
            return Err(PyRuntimeError::new_err(format!(
                "gt.torch: {path} is not loaded, where PyTorch's kernels are expected"
            )));
        }
        Ok(Library(handle, path.into()))
    }

    /// # Safety
    /// `F` is the type of the function with this name.
    unsafe fn function<F: Copy>(&self, name: &str) -> PyResult<F> {
        let symbol = CString::new(name)?;
        // SAFETY: a handle of `dlopen` and a C string.
        let found = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        if found.is_null() {
            return Err(PyRuntimeError::new_err(format!(
                "gt.torch: {} has no function {name}, which PyTorch has since 2.13",
                self.1
            )));
        }
        // SAFETY: by the caller's contract it points to a function of type `F`.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }
}

/// Registers kernels of operators for the device, for the lifetime of the process.
pub fn register(library: &str, kernels: &[(&CStr, BoxedKernel)]) -> PyResult<()> {
    let functions = StableFunctions::find(&Library::of(library)?)?;
    let functions = FUNCTIONS.get_or_init(|| functions);
    let mut made = std::ptr::null_mut();
    // SAFETY: C strings that live as long as the process, and memory for the result.
    let mut failed = unsafe {
        let (file, line) = (c"gt".as_ptr(), line!());
        let key = c"PrivateUse1".as_ptr();
        (functions.aoti_torch_library_init_impl)(c"aten".as_ptr(), key, file, line, &raw mut made)
    };
    for (name, kernel) in kernels {
        if failed == 0 {
            // SAFETY: the library made above, a C string, and a kernel.
            failed =
                unsafe { (functions.torch_library_impl)(made, name.as_ptr(), *kernel, VERSION) };
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(PyRuntimeError::new_err("gt.torch: PyTorch has refused the kernels of views")),
    }
}

fn functions() -> &'static StableFunctions {
    FUNCTIONS.get().expect("found by `register`, before any kernel runs")
}

/// An owned handle of a PyTorch tensor.
pub struct TensorHandle(StackSlot);

impl Drop for TensorHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is owned, and deleted only here.
        unsafe { (functions().aoti_torch_delete_tensor_object)(self.0) };
    }
}

/// Sizes or strides.
pub type Lengths = SmallVec<[i64; 8]>;

impl TensorHandle {
    /// Takes ownership of the tensor in a stack slot.
    ///
    /// # Safety
    /// The slot holds a tensor that the caller owns.
    pub unsafe fn from_slot(slot: StackSlot) -> TensorHandle {
        TensorHandle(slot)
    }

    /// Returns the tensor as a result: the reader of the stack deletes it.
    pub fn into_slot(self) -> StackSlot {
        let slot = self.0;
        std::mem::forget(self);
        slot
    }

    /// Returns the sizes and strides.
    pub fn layout(&self) -> (Lengths, Lengths) {
        let (mut rank, mut sizes, mut strides) = (0, std::ptr::null(), std::ptr::null());
        // SAFETY: a tensor, and memory for the results. The pointers stay valid while the tensor is
        // unchanged.
        unsafe {
            (functions().aoti_torch_get_dim)(self.0, &raw mut rank);
            (functions().aoti_torch_get_sizes)(self.0, &raw mut sizes);
            (functions().aoti_torch_get_strides)(self.0, &raw mut strides);
        }
        let copied = |first: *const i64| {
            if rank == 0 {
                return Lengths::new();
            }
            // SAFETY: there is one number for each axis.
            Lengths::from_slice(unsafe { std::slice::from_raw_parts(first, rank as usize) })
        };
        (copied(sizes), copied(strides))
    }

    /// Returns the offset in its storage, in elements.
    pub fn offset(&self) -> i64 {
        let mut offset = 0;
        // SAFETY: a tensor, and memory for the result.
        unsafe { (functions().aoti_torch_get_storage_offset)(self.0, &raw mut offset) };
        offset
    }

    /// Returns the size of its storage, in elements.
    pub fn room(&self) -> i64 {
        let mut count = 0;
        // SAFETY: as above.
        unsafe { (functions().aoti_torch_get_storage_numel)(self.0, &raw mut count) };
        count
    }

    /// Creates a tensor over the same storage that begins `further` elements after this one.
    pub fn view(
        &self,
        sizes: &[i64],
        strides: &[i64],
        further: i64,
    ) -> Result<TensorHandle, String> {
        // SAFETY: one function takes no arguments, the other a tensor.
        let is_alike = unsafe {
            (functions()._ZN3c1013InferenceMode10is_enabledEv)()
                == (functions()._ZN2at6native12is_inferenceERKNS_6TensorE)(self.0)
        };
        if !is_alike {
            return self.view_of_alias(sizes, strides, further);
        }
        let mut made = 0;
        // SAFETY: there are as many strides as sizes; the function copies both.
        let failed = unsafe {
            (functions().aoti_torch__reinterpret_tensor)(
                self.0,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                further,
                &raw mut made,
            )
        };
        if failed == 0 { Ok(TensorHandle(made)) } else { Err("a view could not be made".into()) }
    }

    /// Like [`TensorHandle::view`], for a tensor that is an inference tensor outside of inference
    /// mode, or a normal one inside. A view must match its base in this, as an alias does, whose
    /// strides are changed then.
    fn view_of_alias(
        &self,
        sizes: &[i64],
        strides: &[i64],
        further: i64,
    ) -> Result<TensorHandle, String> {
        let call = |name: &CStr, stack: &mut [StackSlot]| {
            // SAFETY: the stack holds the operator's arguments, which the call consumes.
            match unsafe {
                let first = stack.as_mut_ptr();
                (functions().torch_call_dispatcher)(name.as_ptr(), c"".as_ptr(), first, VERSION)
            } {
                0 => Ok(TensorHandle(stack[0])),
                _ => Err(format!("a view could not be made by {name:?}")),
            }
        };
        let (mut own, mut offset) = (0, std::ptr::null_mut());
        // SAFETY: a tensor, and memory for a reference to it and for a number.
        unsafe {
            (functions().aoti_torch_new_tensor_handle)(self.0, &raw mut own);
            (functions().torch_new_stable_ivalue)(&raw mut offset);
            *offset = (self.offset() + further) as StackSlot;
        }
        let alias = call(c"aten::alias", &mut [own])?;
        let stack = &mut [alias.into_slot(), list(sizes), list(strides), offset as StackSlot];
        call(c"aten::as_strided_", stack)
    }
}

/// Creates a list of numbers for the stack of a call, which consumes it.
fn list(numbers: &[i64]) -> StackSlot {
    let mut made = 0;
    // SAFETY: memory for the list, and then a list.
    unsafe {
        (functions().torch_new_list_reserve_size)(numbers.len(), &raw mut made);
        for &number in numbers {
            (functions().torch_list_push_back)(made, number as StackSlot);
        }
    }
    made
}

/// Returns the numbers of a list on the stack, and deletes the list.
///
/// # Safety
/// The slot holds a list of integers.
pub unsafe fn numbers(slot: StackSlot) -> Lengths {
    let mut count = 0;
    // SAFETY: by the caller's contract the slot holds a list; each index is below its length.
    unsafe {
        (functions().torch_list_size)(slot, &raw mut count);
        let found = (0..count)
            .map(|index| {
                let mut item = 0;
                (functions().torch_list_get_item)(slot, index, &raw mut item);
                item as i64
            })
            .collect();
        (functions().torch_delete_list)(slot);
        found
    }
}

/// Returns an optional number on the stack, and deletes it.
///
/// # Safety
/// The slot holds an optional integer.
pub unsafe fn optional(slot: StackSlot) -> Option<i64> {
    let address = slot as *mut StackSlot;
    if address.is_null() {
        return None;
    }
    // SAFETY: by the caller's contract it is the address of a value that this function owns.
    unsafe {
        let value = *address as i64;
        (functions().torch_delete_stable_ivalue)(address);
        Some(value)
    }
}

/// Puts a kernel's result on the stack, or raises its error as PyTorch's `RuntimeError`.
///
/// # Safety
/// `stack` has room for a result.
pub unsafe fn put_result(stack: *mut StackSlot, result: Result<TensorHandle, String>) {
    match result {
        // SAFETY: by the caller's contract.
        Ok(made) => unsafe { *stack = made.into_slot() },
        Err(message) => {
            let message = CString::new(message).unwrap_or_default();
            let (function, file) = (c"gt".as_ptr(), c"gt".as_ptr());
            // SAFETY: C strings; the exception that this throws copies the message.
            unsafe { (functions().aoti_torch_check)(false, function, file, 0, message.as_ptr()) };
        }
    }
}
