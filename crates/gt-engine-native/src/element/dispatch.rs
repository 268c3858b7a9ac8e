//! Macros that dispatch from a dtype, known at run time, to code compiled for its element type.

/// Evaluates `$body` with `$T` as the element type of `$dtype`, any of them.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gt_ir::DType::F16 => { type $T = half::f16; $body }
            gt_ir::DType::BF16 => { type $T = half::bf16; $body }
            dtype => $crate::element::with_number!(dtype, $T => $body),
        }
    };
}

/// Evaluates `$body` with `$T` as the element type of `$dtype`, which supports arithmetic.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gt_ir::DType::C64 => {
                type $T = $crate::element::Complex<f32>;
                $body
            }
            gt_ir::DType::C128 => {
                type $T = $crate::element::Complex<f64>;
                $body
            }
            dtype => $crate::element::with_real!(dtype, $T => $body),
        }
    };
}

/// Evaluates `$body` with `$T` as the element type of `$dtype`, which supports arithmetic and is
/// not complex.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gt_ir::DType::Bool => {
                type $T = $crate::element::Bool;
                $body
            }
            gt_ir::DType::U8 => {
                type $T = u8;
                $body
            }
            gt_ir::DType::I8 => {
                type $T = i8;
                $body
            }
            gt_ir::DType::I16 => {
                type $T = i16;
                $body
            }
            gt_ir::DType::I32 => {
                type $T = i32;
                $body
            }
            gt_ir::DType::I64 => {
                type $T = i64;
                $body
            }
            gt_ir::DType::F32 => {
                type $T = f32;
                $body
            }
            gt_ir::DType::F64 => {
                type $T = f64;
                $body
            }
            gt_ir::DType::F16 | gt_ir::DType::BF16 => {
                unreachable!("16-bit floats are computed as float32")
            }
            gt_ir::DType::C64 | gt_ir::DType::C128 => {
                unreachable!("inference takes no complex numbers here")
            }
        }
    };
}

/// Evaluates `$body` with `$T` as an unsigned integer of `$size` bytes, for code that only moves
/// elements.
macro_rules! with_bits {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = [u64; 2];
                $body
            }
        }
    };
}

pub(crate) use {with_bits, with_element, with_number, with_real};
