//! Conversion of numbers to the dtype of an operation, by PyTorch's rule for each kind of
//! operation.

use half::{bf16, f16};

use crate::call::Meta;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Operand;
use crate::ops::infer::promote;
use crate::scalar::Scalar;

/// How an operation treats numbers among its operands that its dtype cannot represent.
#[derive(Clone, Copy)]
pub enum Numbers {
    /// They are converted unchecked: for arithmetic, in which integers wrap.
    Converted,
    /// They are rounded to the dtype first: a number is equal to the 16-bit float it rounds to.
    Rounded,
    /// As `Rounded`; and the dtype, unless it is float32, must be able to represent a number that
    /// is operand 1.
    Exponent,
    /// Operands 1 and 2 are the lower and the upper limit: one beyond the dtype's range has no
    /// effect, and one that excludes the whole range is an error.
    Limits,
    /// They become elements of the result, and must be representable in its dtype, which the
    /// function returns.
    Stored(fn(&[Operand<Meta>]) -> DType),
}

impl Numbers {
    /// Replaces the numbers among the operands by those that the operation computes with, given the
    /// default dtype.
    ///
    /// # Errors
    /// The operation requires its dtype to represent a number, and it cannot.
    pub fn convert(
        self,
        operation: &'static str,
        operands: &mut [Operand<Meta>],
        default: DType,
    ) -> Result<()> {
        if !operands.iter().any(|operand| matches!(operand, Operand::Scalar(_))) {
            return Ok(());
        }
        let dtype = match self {
            Numbers::Converted => return Ok(()),
            Numbers::Rounded | Numbers::Exponent | Numbers::Limits => promote(operands),
            Numbers::Stored(dtype) => dtype(operands),
        };
        // Integer tensors and float numbers promote to the default dtype.
        let is_float =
            |operand: &Operand<Meta>| operand.tensor().is_some_and(|meta| !meta.dtype.is_exact());
        let by_default = dtype == DType::F32 && !operands.iter().any(is_float);
        let dtype = if by_default { default } else { dtype };
        for (index, operand) in operands.iter_mut().enumerate() {
            let Operand::Scalar(number) = operand else { continue };
            *number = match self {
                Numbers::Rounded => rounded(*number, dtype),
                Numbers::Exponent => {
                    if index == 1 && dtype != DType::F32 {
                        check(operation, *number, dtype)?;
                    }
                    rounded(*number, dtype)
                }
                Numbers::Limits if index > 0 => limit(operation, *number, dtype, index == 1)?,
                Numbers::Stored(_) => {
                    check(operation, *number, dtype)?;
                    *number
                }
                _ => *number,
            };
        }
        Ok(())
    }
}

/// Returns whether a dtype can represent a number: an integer dtype its integral part, where uint8
/// accepts negative ones down to -255, which wrap; a float dtype all but finite numbers beyond its
/// largest.
pub fn fits(number: Scalar, dtype: DType) -> bool {
    let Some((low, high)) = dtype.range() else {
        let largest = largest(dtype.to_real());
        let value = number.as_f64();
        return !value.is_finite() || value.abs() <= largest;
    };
    match number {
        Scalar::Bool(_) => true,
        _ if dtype == DType::Bool => true,
        Scalar::Int(value) if dtype == DType::U8 => (-high..=high).contains(&value),
        Scalar::Int(value) => (low..=high).contains(&value),
        // For int64, the limit is rounded to 2^63, the first number that is too large. NaN fails.
        Scalar::Float(value) => value >= low as f64 && value.trunc() < high as f64 + 1.0,
    }
}

/// Returns an error if a dtype cannot represent a number that becomes an element.
///
/// # Errors
/// [`Error::NumberRange`].
pub fn check(operation: &'static str, number: Scalar, dtype: DType) -> Result<()> {
    if fits(number, dtype) {
        return Ok(());
    }
    Err(Error::NumberRange { operation, number, dtype })
}

/// Returns a number as a scalar of the dtype's category, so that it promotes no tensor of that
/// dtype.
///
/// # Errors
/// As [`check`].
pub fn element(operation: &'static str, number: Scalar, dtype: DType) -> Result<Scalar> {
    check(operation, number, dtype)?;
    Ok(match dtype {
        DType::Bool => Scalar::Bool(number.as_bool()),
        dtype if dtype.range().is_some() => Scalar::Int(number.as_i64()),
        _ => Scalar::Float(number.as_f64()),
    })
}

/// Returns the dtype, or float64 for 16-bit floats: numbers beyond their range become infinite
/// where PyTorch converts them via a tensor.
pub fn unless_half(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F64 } else { dtype }
}

/// Returns the largest finite value of a float dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::MAX.to_f64(),
        DType::BF16 => bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Returns a number rounded to a 16-bit float; with other dtypes, computations convert numbers.
fn rounded(number: Scalar, dtype: DType) -> Scalar {
    match dtype {
        DType::F16 => Scalar::Float(f16::from_f64(number.as_f64()).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_f64(number.as_f64()).to_f64()),
        _ => number,
    }
}

fn limit(operation: &'static str, number: Scalar, dtype: DType, is_low: bool) -> Result<Scalar> {
    let (Some((low, high)), Scalar::Int(value)) = (dtype.range(), number) else {
        check(operation, number, dtype)?;
        return Ok(number);
    };
    let leaves_none = if is_low { value > high } else { value < low };
    if leaves_none {
        return Err(Error::NumberRange { operation, number, dtype });
    }
    Ok(Scalar::Int(value.clamp(low, high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn what_fits() {
        for (number, dtype, expected) in [
            (Scalar::Int(-1), DType::U8, true),
            (Scalar::Int(-256), DType::U8, false),
            (Scalar::Int(256), DType::U8, false),
            (Scalar::Float(-0.5), DType::U8, false),
            (Scalar::Float(255.9), DType::U8, true),
            (Scalar::Int(128), DType::I8, false),
            (Scalar::Float(f64::NAN), DType::I64, false),
            (Scalar::Float(9.3e18), DType::I64, false),
            (Scalar::Int(i64::MAX), DType::I64, true),
            (Scalar::Int(300), DType::Bool, true),
            (Scalar::Float(65_504.0), DType::F16, true),
            (Scalar::Float(65_519.0), DType::F16, false),
            (Scalar::Float(f64::INFINITY), DType::F16, true),
            (Scalar::Float(1e39), DType::F32, false),
            (Scalar::Float(1e39), DType::C64, false),
            (Scalar::Float(1e39), DType::C128, true),
        ] {
            assert_eq!(fits(number, dtype), expected, "{number} {dtype}");
        }
    }

    fn converted(numbers: Numbers, dtype: DType, given: &[Scalar]) -> Result<Vec<Scalar>> {
        let meta = Meta::new(dtype, Shape::new(&[2]).unwrap());
        let mut operands = vec![Operand::Tensor(meta)];
        operands.extend(given.iter().map(|number| Operand::Scalar(*number)));
        numbers.convert("test", &mut operands, DType::F32)?;
        let found = operands[1..].iter().map(|operand| match operand {
            Operand::Scalar(number) => *number,
            Operand::Tensor(_) => unreachable!(),
        });
        Ok(found.collect())
    }

    #[test]
    fn limits_saturate_and_leave_something() {
        let limits = |low, high| {
            converted(Numbers::Limits, DType::I8, &[Scalar::Int(low), Scalar::Int(high)])
        };
        assert_eq!(limits(-1000, 1000).unwrap(), [Scalar::Int(-128), Scalar::Int(127)]);
        assert!(limits(128, 1000).is_err());
        assert!(limits(-1000, -129).is_err());
    }

    #[test]
    fn numbers_are_rounded_where_they_are_compared() {
        let found = converted(Numbers::Rounded, DType::BF16, &[Scalar::Float(1.0001)]);
        assert_eq!(found.unwrap(), [Scalar::Float(1.0)]);
        let found = converted(Numbers::Rounded, DType::F32, &[Scalar::Float(1.0001)]);
        assert_eq!(found.unwrap(), [Scalar::Float(1.0001)]);
    }
}
