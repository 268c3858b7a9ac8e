//! The arguments of a call as the extension describes them, without Python.

use std::slice;

use gt::DType;

/// The type of an argument; must match `Kind` in extension.cpp.
#[repr(u32)]
#[allow(dead_code, reason = "the extension makes them")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    None,
    Tensor,
    Integer,
    Float,
    Boolean,
    Text,
    List,
    Device,
    Other,
}

/// The mark of a number that PyTorch has wrapped in a tensor.
pub const WRAPPED_NUMBER: u8 = 1;
/// The mark of a tensor whose conjugate or negative bit is set.
pub const CONJUGATE_OR_NEGATIVE: u8 = 2;
/// PyTorch's device types of the host and of the cluster.
pub const HOST: u8 = 0;
pub const CLUSTER: u8 = 20;

/// An argument, or an item of a list; items follow their list. Must match `Argument` in
/// extension.cpp.
#[repr(C)]
pub struct ExtensionArgument {
    pub kind: ArgumentKind,
    /// The number of axes of a tensor, of items of a list, or of bytes of a string.
    pub count: u32,
    /// A number, the address of a string's bytes, or that of a tensor.
    pub value: u64,
    /// The address of a tensor's storage.
    pub address: usize,
    /// The offset of a tensor in its storage, in elements.
    pub offset: i64,
    sizes: *const i64,
    strides: *const i64,
    /// PyTorch's number of the dtype.
    pub dtype: u8,
    pub device: u8,
    pub marks: u8,
}

impl ExtensionArgument {
    /// Returns whether it is a tensor on the cluster that may hold indices.
    pub fn is_index(&self) -> bool {
        INDICES.contains(&self.dtype) && self.kind == ArgumentKind::Tensor && self.device == CLUSTER
    }

    fn lengths(&self, first: *const i64) -> &[i64] {
        if self.kind != ArgumentKind::Tensor || self.count == 0 {
            return &[];
        }
        // SAFETY: a tensor has as many sizes and strides as axes, which live as long as the call.
        unsafe { slice::from_raw_parts(first, self.count as usize) }
    }

    pub fn sizes(&self) -> &[i64] {
        self.lengths(self.sizes)
    }

    pub fn strides(&self) -> &[i64] {
        self.lengths(self.strides)
    }

    /// Returns the bytes of a string.
    pub fn text(&self) -> &[u8] {
        if self.kind != ArgumentKind::Text || self.count == 0 {
            return &[];
        }
        // SAFETY: a string has this many bytes, which live as long as the call.
        unsafe { slice::from_raw_parts(self.value as *const u8, self.count as usize) }
    }

    /// Returns the value of a host tensor without axes as a float64; `None` for other tensors,
    /// dtypes and integers that a float64 cannot hold exactly.
    pub fn host_number(&self) -> Option<f64> {
        if self.kind != ArgumentKind::Tensor
            || self.device != HOST
            || self.count != 0
            || self.address == 0
        {
            return None;
        }
        macro_rules! read {
            ($number:ty) => {{
                let first = (self.address as *const $number).wrapping_add(self.offset as usize);
                // SAFETY: the storage of a host tensor holds its only element there.
                unsafe { first.read_unaligned() }
            }};
        }
        match dtype(self.dtype)? {
            DType::F64 => Some(read!(f64)),
            DType::F32 => Some(f64::from(read!(f32))),
            DType::I64 => {
                Some(read!(i64)).filter(|of| of.unsigned_abs() < 1 << 53).map(|of| of as f64)
            }
            DType::I32 => Some(f64::from(read!(i32))),
            DType::Bool => Some(f64::from(read!(u8))),
            _ => None,
        }
    }
}

/// GT's dtypes, with PyTorch's numbers (c10/core/ScalarType.h).
const DTYPES: [(u8, DType); 12] = [
    (0, DType::U8),
    (1, DType::I8),
    (2, DType::I16),
    (3, DType::I32),
    (4, DType::I64),
    (5, DType::F16),
    (6, DType::F32),
    (7, DType::F64),
    (9, DType::C64),
    (10, DType::C128),
    (11, DType::Bool),
    (15, DType::BF16),
];

/// PyTorch's numbers of the dtypes of indices: int32 and int64.
const INDICES: [u8; 2] = [3, 4];

/// Returns the dtype of PyTorch's number.
pub fn dtype(number: u8) -> Option<DType> {
    DTYPES.iter().find(|(of, _)| *of == number).map(|(_, dtype)| *dtype)
}

/// Returns PyTorch's number of a dtype.
pub fn number(dtype: DType) -> u8 {
    let found = DTYPES.iter().find(|(_, of)| *of == dtype);
    found.expect("every dtype has a number").0
}

/// Returns a slice of the extension's arguments.
///
/// # Safety
/// `first` points to `count` arguments that live as long as the result is used.
pub unsafe fn list<'a>(first: *const ExtensionArgument, count: usize) -> &'a [ExtensionArgument] {
    if count == 0 {
        return &[];
    }
    // SAFETY: by the caller's contract.
    unsafe { slice::from_raw_parts(first, count) }
}
