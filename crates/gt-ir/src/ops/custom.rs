//! Operations of users: computed by a function that an engine has under their name.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::sample::{sample, tensor};
use crate::dtype::DType;
use crate::error::Error;
use crate::instruction::{Attribute, Attributes, Results};
use crate::operation::facts::says::*;
use crate::operation::{Call, ComplexRule, Family, Meta, Operation, ints, takes};
use crate::shape::Shape;
use crate::sharding::{Rule, shape_of};

/// The most characters of a name.
const NAME: usize = 128;
/// The most results.
const RESULTS: usize = 64;
/// The most bytes of the encoded arguments.
const ARGUMENTS: usize = 1 << 16;

/// Computes what the engine's function of this name does. The client declares what it gives, so
/// that shapes are known before values; the worker compares.
///
/// `declared` has for each result its dtype's code, its number of axes, and their lengths;
/// `arguments` is JSON, which engines read; `sharding` is empty for an operation that is computed
/// whole, or has for each operand, and for the first result, its number of axes and for each of them
/// the number of its factor, -1 for none. Further results have the same factors along the same axes.
pub static CUSTOM: Operation = Operation {
    id: 300,
    name: "custom",
    family: Family::Index,
    doc: "what the engine's function of this name computes, with the results that are declared",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::tensors("tensors"),
        takes::text("name"),
        takes::ints("declared"),
        takes::text("arguments"),
        takes::ints("sharding"),
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
        if call.ints(2).len() > ARGUMENTS || call.attributes[2].as_text().is_none() {
            return Err(wrong(2, "arguments", "at most 65536 bytes of UTF-8"));
        }
        let results = declared(call.ints(1)).ok_or_else(|| {
            wrong(1, "declared", "1 to 64 results, each a dtype, its number of axes, and lengths")
        })?;
        factors(call, &results).ok_or_else(|| {
            let expected = "for each operand, then for the result, its number of axes and their \
                            factors, which have one length each and are axes of all results";
            wrong(3, "sharding", expected)
        })?;
        Ok(results[0])
    },
    further: Some(|call: &Call, _| {
        let mut results = declared(call.ints(1)).expect("checked by infer");
        results.remove(0);
        results
    }),
    sharding: |call, output| {
        let mut rule = Rule::whole(call, output);
        let results = declared(call.ints(1)).expect("checked by infer");
        for (axis, uses) in factors(call, &results).expect("checked by infer") {
            if output.shape[axis] > 1 {
                rule.share(&uses, Some(axis));
            }
        }
        rule
    },
    localize: Some(|attributes, part| {
        let mut results = declared(ints(attributes, 1)).expect("checked by infer");
        for result in &mut results {
            let shared = part.whole.rank().min(result.shape.rank());
            for axis in (0..shared).filter(|&axis| part.output.shape[axis] != part.whole[axis]) {
                result.shape = result.shape.with(axis, part.output.shape[axis]);
            }
        }
        let mut attributes = attributes.clone();
        attributes[1] = Attribute::ints(&numbers(&results));
        attributes
    }),
    samples: || {
        let declared = [DType::F32 as i64, 2, 2, 3, DType::I64 as i64, 1, 2];
        let sharding = Attribute::ints(&[2i64, 0, -1, 2, 0, -1]);
        let attributes = [
            Attribute::text("sample"),
            Attribute::ints(&declared),
            Attribute::text("{}"),
            sharding,
        ];
        vec![sample(&[tensor(DType::F32, &[2, 3], 0.0, 1.0)], &attributes)]
    },
    ..Operation::base().with(facts(Unchanged, Estimated, UserCode))
};

/// The name under which engines have the function; `None` if it is not a name.
pub fn name(attributes: &Attributes) -> Option<String> {
    let name = attributes.first()?.as_text()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    ((1..=NAME).contains(&name.len()) && name.chars().all(is_plain)).then_some(name)
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

/// Results as the numbers that declare them.
fn numbers(results: &Results) -> Vec<i64> {
    let mut numbers = Vec::new();
    for result in results {
        numbers.extend([result.dtype as i64, result.shape.rank() as i64]);
        numbers.extend(result.shape.iter().map(|&length| length as i64));
    }
    numbers
}

/// An axis of the results, and the axes of operands (operand, axis) that run over its factor.
type Factor = (usize, SmallVec<[(usize, usize); 3]>);

/// The factors along which it may be sharded; `None` where the attribute does not describe any.
fn factors(call: &Call, results: &Results) -> Option<Vec<Factor>> {
    let mut rest = call.ints(3);
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let mut take = |shape: Shape| {
        let [rank, following @ ..] = rest else { return None };
        let (factors, others) = following.split_at_checked(usize::try_from(*rank).ok()?)?;
        rest = others;
        (factors.len() == shape.rank()).then_some(factors)
    };
    let shapes: Vec<Shape> = (0..call.operands.len()).map(|index| shape_of(call, index)).collect();
    let operands = shapes.iter().map(|&shape| take(shape)).collect::<Option<Vec<_>>>()?;
    let output = take(results[0].shape)?;
    if !rest.is_empty() {
        return None;
    }
    let mut made: Vec<Factor> = Vec::new();
    for (axis, &factor) in output.iter().enumerate().filter(|(_, factor)| **factor >= 0) {
        let length = results[0].shape[axis];
        let is_shared = |meta: &Meta| meta.shape.get(axis) == Some(&length);
        if output[..axis].contains(&factor) || !results.iter().all(is_shared) {
            return None;
        }
        let mut uses = SmallVec::new();
        for (operand, factors) in operands.iter().enumerate() {
            let mut along = (0..factors.len()).filter(|&along| factors[along] == factor);
            let Some(one) = along.next() else { continue };
            if shapes[operand][one] != length || along.next().is_some() {
                return None;
            }
            uses.push((operand, one));
        }
        made.push((axis, uses));
    }
    Some(made)
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
        let named = |text: &str| name(&Attributes::from_iter([Attribute::text(text)]));
        assert_eq!(named("lab:flash_attn-2.0").as_deref(), Some("lab:flash_attn-2.0"));
        for text in ["", "two words", "é", &"x".repeat(NAME + 1)] {
            assert!(named(text).is_none(), "{text}");
        }
    }
}
