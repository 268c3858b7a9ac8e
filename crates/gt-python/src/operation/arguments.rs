//! Binding of a Python call's arguments to the parameters that an operation declares.

use gt::ir::instruction::Attribute;
use gt::ir::operation::{Default, Parameter, ParameterKind};
use gt::ir::{Attributes, Operation};
use gt::{Scalar, Session, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use super::{CallArguments, CallForm};
use crate::tensor::{PyOperand, PyTensor};
use crate::{convert, dtype};

/// NumPy's names of parameters, with PyTorch's names.
const SYNONYMS: &[(&str, &str)] = &[
    ("axis", "dim"),
    ("axes", "dims"),
    ("axis", "dims"),
    ("dim", "dims"),
    ("keepdims", "keepdim"),
    ("x", "input"),
    ("self", "input"),
    ("x2", "other"),
];

/// One argument for each parameter; `None` where the default applies.
pub struct BoundArguments<'py> {
    operation: &'static Operation,
    given: SmallVec<[Option<Bound<'py, PyAny>>; 6]>,
}

impl<'py> BoundArguments<'py> {
    /// Binds positional and keyword arguments to the parameters.
    ///
    /// # Errors
    /// Too many arguments, an unknown name, a parameter given twice, or a missing parameter.
    pub fn bind(
        operation: &'static Operation,
        form: CallForm,
        given: &CallArguments<'_, 'py>,
    ) -> PyResult<BoundArguments<'py>> {
        let parameters = operation.parameters;
        let mut bound: SmallVec<[Option<Bound<'py, PyAny>>; 6]> = SmallVec::new();
        bound.resize_with(parameters.len(), || None);
        let lengths = parameters.iter().position(|of| of.kind == ParameterKind::Size);
        for (index, argument) in given.positional.iter().enumerate() {
            match lengths {
                // Lengths as separate arguments: the remaining positional arguments are the shape.
                Some(at) if index == at && given.positional.len() > parameters.len() => {
                    let rest = PyTuple::new(argument.py(), &given.positional[at..])?;
                    bound[at] = Some(rest.into_any());
                    break;
                }
                _ if index >= parameters.len() => {
                    return Err(too_many(operation, form, given.positional.len()));
                }
                _ => bound[index] = Some(argument.clone()),
            }
        }
        for (name, argument) in given.named {
            let at = position(parameters, name).ok_or_else(|| unknown(operation, name))?;
            if bound[at].is_some() {
                let text = format!("{}: {name} is given twice", operation.name);
                return Err(PyTypeError::new_err(text));
            }
            bound[at] = Some(argument.clone());
        }
        for (of, argument) in parameters.iter().zip(&bound) {
            if argument.is_none() && of.default.is_none() {
                let text = format!(
                    "{}: {} is missing\n  hint: {}",
                    operation.name,
                    of.name,
                    super::document::signature(operation, form),
                );
                return Err(PyTypeError::new_err(text));
            }
        }
        Ok(BoundArguments { operation, given: bound })
    }

    fn with_parameters(
        &self,
    ) -> impl Iterator<Item = (&'static Parameter, Option<&Bound<'py, PyAny>>)> {
        self.operation.parameters.iter().zip(self.given.iter().map(Option::as_ref))
    }

    /// Returns the first tensor among the operands; the operation is issued in its session.
    pub fn first_tensor(&self) -> Option<Bound<'py, PyTensor>> {
        self.with_parameters().find_map(|(of, given)| {
            if of.attribute().is_some() {
                return None;
            }
            let given = given?;
            match of.kind {
                ParameterKind::Tensors => given.get_item(0).ok()?.cast_into::<PyTensor>().ok(),
                _ => given.cast::<PyTensor>().ok().cloned(),
            }
        })
    }

    /// Returns the operands, converting lists and arrays to tensors of the session.
    pub fn operands(&self, session: &Session) -> PyResult<SmallVec<[PyOperand<'py>; 4]>> {
        let mut operands = SmallVec::new();
        for (of, given) in self.with_parameters().filter(|(of, _)| of.attribute().is_none()) {
            match (of.kind, given) {
                (ParameterKind::Tensors, Some(list)) => {
                    for item in list.try_iter()? {
                        operands.push(self.operand(session, of, &item?)?);
                    }
                }
                (_, Some(given)) => operands.push(self.operand(session, of, given)?),
                (_, None) => operands.push(PyOperand::Scalar(number(of))),
            }
        }
        Ok(operands)
    }

    fn operand(
        &self,
        session: &Session,
        of: &Parameter,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<PyOperand<'py>> {
        let wrong = |_| wrong(self.operation, of, given);
        let beside = || self.first_tensor().map_or(gt::DType::F32, |first| first.get().0.dtype());
        let value = PyOperand::parse_in(|| Ok(session.clone()), beside, given).map_err(wrong)?;
        match value {
            PyOperand::Scalar(scalar) if of.kind != ParameterKind::Value => {
                let shape = gt::Shape::SCALAR;
                let dtype = gt::tensor::default_dtype::dtype_of(scalar);
                let made = Tensor::full(session, shape, scalar, dtype);
                made.map(PyOperand::Converted).map_err(crate::error::to_python)
            }
            value => Ok(value),
        }
    }

    /// Returns the attributes in the order of their declaration.
    pub fn attributes(&self) -> PyResult<Attributes> {
        let mut attributes = Attributes::new();
        for (of, given) in self.with_parameters().filter(|(of, _)| of.attribute().is_some()) {
            attributes.push(match given {
                Some(given) => attribute(self.operation, of, given)?,
                None => default(of),
            });
        }
        Ok(attributes)
    }
}

/// Converts an argument to the attribute of a parameter.
pub fn attribute(
    operation: &Operation,
    of: &Parameter,
    given: &Bound<'_, PyAny>,
) -> PyResult<Attribute> {
    if given.is_none() && of.default == Some(Default::None) {
        return Ok(default(of));
    }
    let wrong = || wrong(operation, of, given);
    Ok(match of.kind {
        ParameterKind::Int | ParameterKind::Dim => Attribute::Int(whole(given).ok_or_else(wrong)?),
        ParameterKind::Float => Attribute::Float(given.extract().map_err(|_| wrong())?),
        ParameterKind::Bool if given.is_instance_of::<PyBool>() => {
            Attribute::Bool(given.extract()?)
        }
        ParameterKind::Bool => return Err(wrong()),
        ParameterKind::DType | ParameterKind::OptionalDType => {
            Attribute::DType(dtype::parse(given)?)
        }
        ParameterKind::Ints | ParameterKind::Dims | ParameterKind::Size => {
            let ints = convert::ints(given, "").map_err(|_| wrong())?;
            Attribute::ints(&ints)
        }
        ParameterKind::Text => {
            Attribute::text(given.cast::<PyString>().map_err(|_| wrong())?.to_str()?)
        }
        ParameterKind::Choice(words) => {
            let word = given.cast::<PyString>().map_err(|_| wrong())?.to_string();
            let place = words.iter().position(|known| *known == word).ok_or_else(wrong)?;
            Attribute::Int(place as i64)
        }
        ParameterKind::Tensor | ParameterKind::Value | ParameterKind::Tensors => {
            unreachable!("these are operands")
        }
    })
}

/// Returns the error for an argument that does not fit its parameter.
#[cold]
fn wrong(operation: &Operation, of: &Parameter, given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    let shown = match given.repr() {
        Ok(text) if text.len().is_ok_and(|length| length <= 40) => format!(" {text}"),
        _ => String::new(),
    };
    let expected = super::document::expected_kind(of);
    let text =
        format!("{}: argument '{}' must be {expected}, not {kind}{shown}", operation.name, of.name);
    match of.kind {
        ParameterKind::Choice(_) if given.is_instance_of::<PyString>() => {
            pyo3::exceptions::PyValueError::new_err(text)
        }
        _ => PyTypeError::new_err(text),
    }
}

/// Returns the value of a Python or NumPy integer; `None` for bools, floats and other objects.
fn whole(given: &Bound<'_, PyAny>) -> Option<i64> {
    if given.is_instance_of::<PyBool>() || given.is_instance_of::<PyFloat>() {
        return None;
    }
    if given.is_instance_of::<PyInt>() {
        return given.extract().ok();
    }
    given.call_method0("__index__").ok()?.extract().ok()
}

/// Returns the index of the parameter with this name or synonym.
fn position(parameters: &[Parameter], name: &str) -> Option<usize> {
    let named = |name: &str| parameters.iter().position(|of| of.name == name);
    named(name).or_else(|| {
        let synonyms = SYNONYMS.iter().filter(|(other, _)| *other == name);
        synonyms.into_iter().find_map(|(_, own)| named(own))
    })
}

/// Returns the default of a parameter as an attribute.
fn default(of: &Parameter) -> Attribute {
    match of.default {
        Some(Default::Int(value)) => Attribute::Int(value),
        Some(Default::Float(value)) => Attribute::Float(value),
        Some(Default::Bool(value)) => Attribute::Bool(value),
        Some(Default::Word(word)) => match of.kind {
            ParameterKind::Choice(words) => {
                let place = words.iter().position(|known| *known == word);
                Attribute::Int(place.expect("the default is one of the words") as i64)
            }
            _ => unreachable!("only choices have words"),
        },
        Some(Default::None) | None => match of.kind {
            ParameterKind::OptionalDType => Attribute::None,
            _ => Attribute::ints::<i64>(&[]),
        },
    }
}

/// Returns the default of an operand, which is a number.
fn number(of: &Parameter) -> Scalar {
    match of.default {
        Some(Default::Int(value)) => Scalar::Int(value),
        Some(Default::Float(value)) => Scalar::Float(value),
        Some(Default::Bool(value)) => Scalar::Bool(value),
        _ => unreachable!("operands that may be missing have a number as default"),
    }
}

#[cold]
fn too_many(operation: &'static Operation, form: CallForm, given: usize) -> PyErr {
    let most = operation.parameters.len();
    let (given, most) = match form {
        CallForm::Function => (given, most),
        _ => (given - 1, most - 1),
    };
    PyTypeError::new_err(format!(
        "{}: {given} arguments are given, expected {most} at most\n  hint: {}",
        operation.name,
        super::document::signature(operation, form)
    ))
}

#[cold]
fn unknown(operation: &'static Operation, name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{}: there is no parameter '{name}'\n  hint: {}",
        operation.name,
        super::document::signature(operation, CallForm::Function)
    ))
}
