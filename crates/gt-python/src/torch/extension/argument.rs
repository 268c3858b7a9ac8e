//! The arguments of a call as the extension describes them, without Python.

use std::slice;

use gt::DType;

/// What an argument is; as `ArgumentKind` in extension.cpp.
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

/// The mark of a number that was written beside a tensor.
pub const WRAPPED_NUMBER: u8 = 1;
/// The mark of a tensor that shows other numbers than it holds.
pub const CONJUGATE_OR_NEGATIVE: u8 = 2;
/// PyTorch's number of the host, and of the cluster, among devices.
pub const HOST: u8 = 0;
pub const CLUSTER: u8 = 20;

/// An argument, or an item of a list, which comes after its list; as `ExtensionArgument` in
/// extension.cpp.
#[repr(C)]
pub struct ExtensionArgument {
    pub kind: ArgumentKind,
    /// Axes of a tensor, items of a list, bytes of a text.
    pub count: u32,
    /// A number, the address of a text's bytes, or that of a tensor.
    pub value: u64,
    /// Where a tensor's storage is.
    pub address: usize,
    /// Where a tensor begins in its storage, in elements.
    pub offset: i64,
    sizes: *const i64,
    strides: *const i64,
    /// PyTorch's number of the dtype.
    pub dtype: u8,
    pub device: u8,
    pub marks: u8,
}

impl ExtensionArgument {
    /// Whether it is a tensor on the cluster that may hold indices.
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

    /// A text's bytes.
    pub fn text(&self) -> &[u8] {
        if self.kind != ArgumentKind::Text || self.count == 0 {
            return &[];
        }
        // SAFETY: a text has this many bytes, which live as long as the call.
        unsafe { slice::from_raw_parts(self.value as *const u8, self.count as usize) }
    }

    /// The number that a tensor of the host's without axes holds, as the word of a float64; `None`
    /// for other tensors and dtypes.
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
                // SAFETY: the storage of a tensor of the host's holds its one element there.
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

/// GT's dtypes by PyTorch's numbers (c10/core/ScalarType.h).
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

/// PyTorch's numbers of the dtypes that indices have: int32 and int64.
const INDICES: [u8; 2] = [3, 4];

/// GT's dtype for PyTorch's number of one.
pub fn dtype(number: u8) -> Option<DType> {
    DTYPES.iter().find(|(of, _)| *of == number).map(|(_, dtype)| *dtype)
}

/// PyTorch's number of a dtype.
pub fn number(dtype: DType) -> u8 {
    let found = DTYPES.iter().find(|(_, of)| *of == dtype);
    found.expect("every dtype has a number").0
}

/// # Safety
/// There are as many arguments, which live as long as they are used.
pub unsafe fn list<'a>(first: *const ExtensionArgument, count: usize) -> &'a [ExtensionArgument] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(first, count) }
}
