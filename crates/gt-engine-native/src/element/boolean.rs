//! The element type of bool tensors.

use gt_ir::DType;

use super::{Element, Number, Whole};

/// A bool as tensors store it: one byte, 0 or 1. Other values have no meaning, but are harmless.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Bool::from(value != 0.0)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Bool::from(value != 0.0)
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Bool::from(value != 0)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(self.0)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.0)
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self.0 != 0
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

/// Inference rejects bool for operations that are not defined for it, so their methods here are
/// never called.
impl Number for Bool {
    const ZERO: Self = Bool(0);
    const ONE: Self = Bool(1);
    const LOWEST: Self = Bool(0);
    const HIGHEST: Self = Bool(1);
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Bool(self.0 ^ other.0)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline(always)]
    fn floor_divide(self, other: Self) -> Self {
        self.times(other)
    }
    #[inline(always)]
    fn remainder(self, _: Self) -> Self {
        Bool(0)
    }
    #[inline(always)]
    fn power(self, other: Self) -> Self {
        Bool(self.0 | (1 - other.0))
    }
    #[inline(always)]
    fn negative(self) -> Self {
        self
    }
    #[inline(always)]
    fn absolute(self) -> Self {
        self
    }
}

impl Whole for Bool {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Bool(self.0 ^ other.0)
    }
    #[inline(always)]
    fn not(self) -> Self {
        Bool(1 - self.0)
    }
}
