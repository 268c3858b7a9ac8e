//! The parameters of an operation, as users write them: names, kinds and defaults.
//!
//! Tensors and numbers become an instruction's operands, everything else its attributes, each in
//! the order of declaration. Names are PyTorch's.

use super::AttributeKind;
use crate::instruction::Attribute;

/// One parameter of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    /// The value where the caller passes none; `None` for a required parameter.
    pub default: Option<Default>,
    /// Whether its values may change between iterations of a loop: they are then no part of a
    /// template's structure.
    pub varies: bool,
}

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// A tensor.
    Tensor,
    /// A tensor or a number.
    Value,
    /// A list of tensors; must be the only operand.
    Tensors,
    Int,
    Float,
    Bool,
    DType,
    /// A dtype, or none for the operation's default.
    OptionalDType,
    /// A list of ints.
    Ints,
    /// A text; the instruction has the bytes of its UTF-8 encoding, as a list of ints.
    Text,
    /// An axis.
    Dim,
    /// One or several axes; all axes if none are given.
    Dims,
    /// A shape or a permutation of axes, passed as one list or as separate arguments.
    Size,
    /// One of these words; the instruction has its index in the list.
    Choice(&'static [&'static str]),
}

/// The default of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Default {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    /// One of the words of a choice.
    Word(&'static str),
}

impl Parameter {
    const fn new(name: &'static str, kind: ParameterKind) -> Parameter {
        Parameter { name, kind, default: None, varies: false }
    }

    /// Returns the parameter with a default.
    #[must_use]
    pub const fn or(self, default: Default) -> Parameter {
        Parameter { default: Some(default), ..self }
    }

    /// Returns the parameter as one whose values are no part of a template's structure.
    #[must_use]
    pub const fn varying(self) -> Parameter {
        Parameter { varies: true, ..self }
    }

    /// Returns the text that an attribute encodes, if this parameter is a text.
    pub fn text(&self, attribute: &Attribute) -> Option<String> {
        if self.kind == ParameterKind::Text { attribute.as_text() } else { None }
    }

    /// Returns the word that an attribute encodes, if this parameter is a choice.
    pub fn word(&self, attribute: &Attribute) -> Option<&'static str> {
        match (self.kind, attribute) {
            (ParameterKind::Choice(words), Attribute::Int(at)) => words.get(*at as usize).copied(),
            _ => None,
        }
    }

    /// Returns an attribute in the form in which the log shows it.
    pub fn shown<'a>(&self, attribute: &'a Attribute) -> ShownAttribute<'a> {
        ShownAttribute { word: self.word(attribute), text: self.text(attribute), attribute }
    }

    /// Returns the kind of attribute that it becomes; `None` for an operand.
    pub const fn attribute(&self) -> Option<AttributeKind> {
        Some(match self.kind {
            ParameterKind::Tensor | ParameterKind::Value | ParameterKind::Tensors => return None,
            ParameterKind::Int | ParameterKind::Dim | ParameterKind::Choice(_) => {
                AttributeKind::Int
            }
            ParameterKind::Float => AttributeKind::Float,
            ParameterKind::Bool => AttributeKind::Bool,
            ParameterKind::DType => AttributeKind::DType,
            ParameterKind::OptionalDType => AttributeKind::OptionalDType,
            ParameterKind::Ints
            | ParameterKind::Text
            | ParameterKind::Dims
            | ParameterKind::Size => AttributeKind::Ints,
        })
    }
}

/// An attribute of a parameter, formatted for the log.
pub struct ShownAttribute<'a> {
    word: Option<&'static str>,
    text: Option<String>,
    attribute: &'a Attribute,
}

impl std::fmt::Display for ShownAttribute<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.word, &self.text) {
            (Some(word), _) => f.write_str(word),
            (None, Some(text)) => f.write_str(text),
            (None, None) => self.attribute.fmt(f),
        }
    }
}

macro_rules! constructors {
    ($($name:ident => $kind:ident, $doc:literal;)*) => {
        $(#[doc = $doc]
        pub const fn $name(name: &'static str) -> Parameter {
            Parameter::new(name, ParameterKind::$kind)
        })*
    };
}

constructors! {
    tensor => Tensor, "A parameter that takes a tensor.";
    value => Value, "A parameter that takes a tensor or a number.";
    tensors => Tensors, "A parameter that takes a list of tensors.";
    int => Int, "A parameter that takes an int.";
    float => Float, "A parameter that takes a float.";
    flag => Bool, "A parameter that takes a bool.";
    dtype => DType, "A parameter that takes a dtype.";
    optional_dtype => OptionalDType, "A parameter that takes a dtype or none.";
    ints => Ints, "A parameter that takes a list of ints.";
    text => Text, "A parameter that takes a text.";
    dim => Dim, "A parameter that takes an axis.";
    dims => Dims, "A parameter that takes one axis or several.";
    size => Size, "A parameter that takes lengths, in a list or one by one.";
}

/// Returns a parameter that takes one of a few words.
pub const fn choice(name: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter::new(name, ParameterKind::Choice(words))
}

/// The namespaces that users call an operation from: a sum of these.
pub mod face {
    /// In no public namespace: a primitive that composites call.
    pub const HIDDEN: u8 = 0;
    /// `gt.name(x)`
    pub const FUNCTION: u8 = 1;
    /// `x.name()`
    pub const METHOD: u8 = 2;
    /// `x.name_()`
    pub const IN_PLACE: u8 = 4;
    /// `gt.nn.functional.name(x)`
    pub const FUNCTIONAL: u8 = 8;
    /// `gt.special.name(x)`
    pub const SPECIAL: u8 = 16;

    pub const BOTH: u8 = FUNCTION | METHOD;
    pub const ELEMENTWISE: u8 = FUNCTION | METHOD | IN_PLACE;
}
