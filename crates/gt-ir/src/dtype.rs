//! Data types and PyTorch's promotion rules.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool = 0,
    U8 = 1,
    I8 = 2,
    I16 = 3,
    I32 = 4,
    I64 = 5,
    F16 = 6,
    BF16 = 7,
    F32 = 8,
    F64 = 9,
    C64 = 10,
    C128 = 11,
}

/// The groups that promotion distinguishes, from weakest to strongest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Category {
    Bool,
    Integer,
    Float,
    Complex,
}

impl DType {
    /// Every dtype, in the order of its code on the wire.
    pub const ALL: [DType; 12] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// Returns the name that users write, as in PyTorch.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// Returns the number of bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    pub const fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Category::Integer,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Category::Float,
            DType::C64 | DType::C128 => Category::Complex,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }

    /// Returns whether this is bool or an integer dtype; sums of these are widened to int64.
    pub const fn is_exact(self) -> bool {
        matches!(self.category(), Category::Bool | Category::Integer)
    }

    /// Returns whether values of this dtype may have gradients: floats and complex numbers.
    pub const fn has_gradients(self) -> bool {
        !self.is_exact()
    }

    /// Returns the dtype of the real and the imaginary part; for a real dtype, the dtype itself.
    #[must_use]
    pub const fn to_real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            real => real,
        }
    }

    /// Returns the complex dtype whose parts have this dtype; complex64 if there is none.
    #[must_use]
    pub const fn to_complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// The dtype from its code on the wire.
    pub fn from_code(code: u8) -> Option<DType> {
        DType::ALL.get(code as usize).copied()
    }

    /// The smallest and the largest integer of the dtype; `None` for floats and complex numbers.
    pub const fn range(self) -> Option<(i64, i64)> {
        match self {
            DType::Bool => Some((0, 1)),
            DType::U8 => Some((0, u8::MAX as i64)),
            DType::I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            DType::I16 => Some((i16::MIN as i64, i16::MAX as i64)),
            DType::I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            DType::I64 => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// The dtype that two tensors of these dtypes promote to (PyTorch's `torch.promote_types`).
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        let (low, high) = if self < other { (self, other) } else { (other, self) };
        match (low, high) {
            // Neither 16-bit float contains the other.
            (F16, BF16) => F32,
            // Neither 8-bit integer contains the other.
            (U8, I8) => I16,
            // The parts of complex64 are float32.
            (F64, C64) => C128,
            _ => high,
        }
    }

    /// Returns whether an in-place operation may store a result of dtype `self` in a tensor of
    /// dtype `to`.
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType, Error> {
        let bare = name.rsplit('.').next().unwrap_or(name);
        let bare = match bare {
            "float" => "float32",
            "double" => "float64",
            "half" => "float16",
            "complex" | "cfloat" => "complex64",
            "cdouble" => "complex128",
            "int" => "int32",
            "long" => "int64",
            "short" => "int16",
            "bool_" => "bool",
            other => other,
        };
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == bare)
            .ok_or_else(|| Error::UnknownDType { given: name.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric_and_keeps_the_category() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                assert_eq!(a.promote(b).category(), a.category().max(b.category()));
            }
        }
    }

    #[test]
    fn promotion_equals_pytorch_in_the_odd_cases() {
        assert_eq!(DType::U8.promote(DType::I8), DType::I16);
        assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
        assert_eq!(DType::I64.promote(DType::F16), DType::F16);
        assert_eq!(DType::Bool.promote(DType::U8), DType::U8);
        assert_eq!(DType::F64.promote(DType::C64), DType::C128);
        assert_eq!(DType::F16.promote(DType::C64), DType::C64);
    }

    #[test]
    fn names_parse_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
        assert_eq!("torch.float32".parse::<DType>().unwrap(), DType::F32);
        assert!("float33".parse::<DType>().is_err());
    }
}
