//! Operations of users: computed by a function that an engine has under their name.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::sample::{sample, tensor};
use crate::dtype::DType;
use crate::error::Error;
use crate::instruction::{Attribute, Attributes, Results};
use crate::operation::{Call, Complex, Family, Meta, Operation, ints, takes};
use crate::shape::Shape;

/// The most characters of a name.
const NAME: usize = 128;
/// The most results.
const RESULTS: usize = 64;
/// The most bytes of the encoded arguments.
const ARGUMENTS: usize = 1 << 16;

/// Computes what the engine's function of this name does. The client declares what it gives, so
/// that shapes are known before values; the worker compares.
///
/// Attributes are lists of numbers: `name` is ASCII text; `declared` has for each result its dtype's
/// code, its number of axes, and their lengths; `arguments` is JSON text in UTF-8, which engines read.
pub static CUSTOM: Operation = Operation {
    id: 300,
    name: "custom",
    family: Family::Index,
    doc: "what the engine's function of this name computes, with the results that are declared",
    complex: Complex::OwnRule,
    parameters: &[
        takes::tensors("tensors"),
        takes::ints("name"),
        takes::ints("declared"),
        takes::ints("arguments"),
    ],
    infer: |call| {
        for index in 0..call.operands.len() {
            call.tensor(index)?;
        }
        let wrong = |index, attribute, expected| Error::BadAttribute {
            operation: call.operation,
            attribute,
            given: format!("{} numbers that are something else", call.ints(index).len()),
            expected,
        };
        name(call.attributes).ok_or_else(|| {
            wrong(0, "name", "1 to 128 characters, each a letter, a digit or one of _.:-")
        })?;
        let arguments = call.ints(2);
        if arguments.len() > ARGUMENTS || arguments.iter().any(|&one| u8::try_from(one).is_err()) {
            return Err(wrong(2, "arguments", "at most 65536 bytes"));
        }
        let results = declared(call.ints(1));
        results.map(|results| results[0]).ok_or_else(|| {
            wrong(1, "declared", "1 to 64 results, each a dtype, its number of axes, and lengths")
        })
    },
    further: Some(|call: &Call, _| {
        let mut results = declared(call.ints(1)).expect("checked by infer");
        results.remove(0);
        results
    }),
    samples: || {
        let text = |text: &str| Attribute::ints(text.as_bytes());
        let declared = [DType::F32 as i64, 2, 2, 3, DType::I64 as i64, 0];
        let attributes = [text("sample"), Attribute::ints(&declared), text("{}")];
        vec![sample(&[tensor(DType::F32, &[2, 3], 0.0, 1.0)], &attributes)]
    },
    ..Operation::base()
};

/// The name under which engines have the function; `None` if it is not a name.
pub fn name(attributes: &Attributes) -> Option<String> {
    let letters = ints(attributes, 0);
    if letters.is_empty() || letters.len() > NAME {
        return None;
    }
    let letter = |&code: &i64| {
        let letter = char::from(u8::try_from(code).ok()?);
        (letter.is_ascii_alphanumeric() || "_.:-".contains(letter)).then_some(letter)
    };
    letters.iter().map(letter).collect()
}

/// What an operation is called in errors and in the log: a custom one by its own name.
pub fn title(operation: &'static Operation, attributes: &Attributes) -> Cow<'static, str> {
    if operation.id != CUSTOM.id {
        return Cow::Borrowed(operation.name);
    }
    Cow::Owned(format!("custom:{}", name(attributes).unwrap_or_default()))
}

/// The results that are declared; `None` where the numbers do not describe any.
fn declared(numbers: &[i64]) -> Option<Results> {
    let mut results = Results::new();
    let mut rest = numbers;
    while let [code, rank, following @ ..] = rest {
        let dtype = DType::from_code(u8::try_from(*code).ok()?)?;
        let (lengths, others) = following.split_at_checked(usize::try_from(*rank).ok()?)?;
        let lengths: Option<SmallVec<[usize; 4]>> =
            lengths.iter().map(|&length| usize::try_from(length).ok()).collect();
        results.push(Meta::new(dtype, Shape::new(&lengths?).ok()?));
        rest = others;
        if results.len() > RESULTS {
            return None;
        }
    }
    (rest.is_empty() && !results.is_empty()).then_some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_declarations_are_refused() {
        let f32 = DType::F32 as i64;
        assert_eq!(declared(&[f32, 1, 4, f32, 0]).map(|results| results.len()), Some(2));
        let bad: &[&[i64]] = &[
            &[],
            &[f32],
            &[99, 0],
            &[-1, 0],
            &[f32, 2, 3],
            &[f32, -1],
            &[f32, i64::MAX],
            &[f32, 1, -4],
            &[f32, 2, i64::MAX, i64::MAX],
        ];
        for numbers in bad {
            assert!(declared(numbers).is_none(), "{numbers:?}");
        }
        assert!(declared(&[f32, 0].repeat(RESULTS + 1)).is_none());
    }

    #[test]
    fn names_are_short_and_plain() {
        let named = |text: &str| name(&Attributes::from_iter([Attribute::ints(text.as_bytes())]));
        assert_eq!(named("lab:flash_attn-2.0").as_deref(), Some("lab:flash_attn-2.0"));
        for text in ["", "two words", "é", &"x".repeat(NAME + 1)] {
            assert!(named(text).is_none(), "{text}");
        }
    }
}
