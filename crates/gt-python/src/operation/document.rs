//! Signatures and docstrings of operations.

use gt::ir::Operation;
use gt::ir::operation::{Default, Parameter, ParameterKind};

use super::CallForm;

/// Returns a description of the values that a parameter accepts.
pub fn expected_kind(of: &Parameter) -> String {
    let kind = match of.kind {
        ParameterKind::Tensor => "a tensor",
        ParameterKind::Value => "a tensor or a number",
        ParameterKind::Tensors => "a list of tensors",
        ParameterKind::Int => "an int",
        ParameterKind::Float => "a float",
        ParameterKind::Bool => "True or False",
        ParameterKind::DType => "a dtype",
        ParameterKind::OptionalDType => "a dtype or None",
        ParameterKind::Ints => "a list of ints",
        ParameterKind::Text => "a string",
        ParameterKind::Dim => "an axis (an int)",
        ParameterKind::Dims => "an axis or a tuple of axes",
        ParameterKind::Size => "a tuple of ints, or ints one by one",
        ParameterKind::Choice(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
            return words.join(" or ");
        }
    };
    kind.to_string()
}

/// Returns a parameter with its default, as in a signature.
fn parameter(of: &Parameter) -> String {
    match of.default {
        None => of.name.to_string(),
        Some(Default::None) => format!("{}=None", of.name),
        Some(Default::Int(value)) => format!("{}={value}", of.name),
        Some(Default::Float(value)) => format!("{}={value:?}", of.name),
        Some(Default::Bool(value)) => {
            format!("{}={}", of.name, if value { "True" } else { "False" })
        }
        Some(Default::Word(word)) => format!("{}='{word}'", of.name),
    }
}

/// Returns the parameter list of an operation in parentheses.
fn parameters(operation: &Operation, form: CallForm) -> String {
    let mut names: Vec<_> = operation.parameters.iter().map(parameter).collect();
    if form != CallForm::Function {
        names[0] = "$self".to_string();
        names.insert(1, "/".to_string());
    }
    format!("({})", names.join(", "))
}

/// Returns the signature of an operation, for hints in errors.
pub fn signature(operation: &Operation, form: CallForm) -> String {
    let names: Vec<_> = operation.parameters.iter().map(parameter).collect();
    match form {
        CallForm::Function => format!("gt.{}({})", operation.name, names.join(", ")),
        CallForm::Method | CallForm::Direct => {
            format!("x.{}({})", operation.name, names[1..].join(", "))
        }
        CallForm::InPlace => format!("x.{}_({})", operation.name, names[1..].join(", ")),
    }
}

/// Returns the docstring of an operation. Its first line is the signature that `inspect` reads.
pub fn document(operation: &Operation, name: &str, form: CallForm) -> String {
    let mut text = format!("{name}{}\n--\n\n", parameters(operation, form));
    if form == CallForm::InPlace {
        text += "In place: ";
        text += operation.doc;
    } else {
        text += &sentence(operation.doc);
    }
    let skipped = usize::from(form != CallForm::Function);
    let described = &operation.parameters[skipped.min(operation.parameters.len())..];
    if !described.is_empty() {
        text += "\n\nArgs:";
        for of in described {
            text += &format!("\n    {}: {}", of.name, expected_kind(of));
        }
    }
    if !operation.example.is_empty() {
        text += "\n\n";
        text += operation.example;
    }
    text
}

/// Returns documentation as a sentence with a capital letter and a full stop.
fn sentence(doc: &str) -> String {
    let mut letters = doc.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let rest = letters.as_str();
    let end = if rest.ends_with('.') { "" } else { "." };
    match doc.chars().nth(1) {
        // Names and formulas keep their case: `-x`, `x / y`.
        Some(second) if second.is_alphabetic() => format!("{first}{rest}{end}"),
        _ => format!("{doc}{end}"),
    }
}
