//! Numbers, texts, instructions and values in Python's notation.

use gt_ir::operation::ParameterKind;
use gt_ir::{Attribute, DType, Instruction, Operand, Scalar, TensorData};

/// Returns a number.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        "float(\"nan\")".into()
    } else if value.is_infinite() {
        format!("float(\"{}inf\")", if value < 0.0 { "-" } else { "" })
    } else {
        format!("{value:?}")
    }
}

fn scalar(value: Scalar) -> String {
    match value {
        Scalar::Bool(value) => boolean(value).into(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => float(value),
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Returns a text, with escapes that Python and JSON share.
fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if (letter as u32) < 32 => quoted.push_str(&format!("\\x{:02x}", letter as u32)),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn operand(value: &Operand) -> String {
    match value {
        Operand::Tensor(tensor) => format!("t{tensor}"),
        Operand::Scalar(value) => scalar(*value),
    }
}

fn attribute(of: &gt_ir::operation::Parameter, value: &Attribute) -> String {
    if let Some(value) = of.word(value).map(str::to_string).or_else(|| of.text(value)) {
        return text(&value);
    }
    match value {
        Attribute::None => "None".into(),
        Attribute::Int(value) => value.to_string(),
        Attribute::Float(value) => float(*value),
        Attribute::Bool(value) => boolean(*value).into(),
        Attribute::DType(dtype) => format!("gt.{dtype}"),
        Attribute::Ints(values) => format!("{:?}", values.as_slice()),
    }
}

/// Returns an instruction as a call of its operation, assigned to its results.
pub fn call(instruction: &Instruction) -> String {
    let operation = instruction.operation;
    let mut operands = instruction.operands.iter().map(operand);
    let mut attributes = instruction.attributes.iter();
    let mut arguments = Vec::new();
    let mut is_positional = true;
    for of in operation.parameters {
        is_positional &= of.attribute().is_none();
        let value = match of.kind {
            ParameterKind::Tensors => {
                Some(format!("[{}]", operands.by_ref().collect::<Vec<_>>().join(", ")))
            }
            _ if of.attribute().is_none() => operands.next(),
            _ => attributes.next().map(|value| attribute(of, value)),
        };
        arguments.extend(value.map(|value| match is_positional {
            true => value,
            false => format!("{}={value}", of.name),
        }));
    }
    let results: Vec<String> =
        instruction.outputs().map(|(tensor, _)| format!("t{tensor}")).collect();
    let comma = if operation.further.is_some() && results.len() == 1 { "," } else { "" };
    format!("{}{comma} = op.{}({})", results.join(", "), operation.name, arguments.join(", "))
}

/// Returns the name of a dtype in NumPy, which lacks bfloat16.
fn numpy_name(dtype: DType) -> Option<String> {
    (dtype != DType::BF16).then(|| dtype.to_string())
}

/// Returns a value as an expression with its elements.
pub fn inline(data: &TensorData) -> String {
    let shape: Vec<String> = data.shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", shape.join(", "));
    let Some(name) = numpy_name(data.dtype) else {
        return format!(
            "from_bytes(np.array({:?}, \"uint8\"), gt.bfloat16, {shape})",
            &data.bytes[..]
        );
    };
    let element = |index: usize| match data.dtype.is_complex() {
        true => {
            let (real, imaginary) = data.complex(index);
            format!("complex({}, {})", float(real), float(imaginary))
        }
        false => scalar(data.element(index)),
    };
    let elements: Vec<String> = (0..data.shape.numel()).map(element).collect();
    format!("gt.from_numpy(np.array([{}], \"{name}\").reshape{shape})", elements.join(", "))
}

/// Returns a value as an expression that reads it from the file beside the program.
pub fn from_file(name: &str, data: &TensorData) -> String {
    match numpy_name(data.dtype) {
        Some(_) => format!("gt.from_numpy(data[\"{name}\"])"),
        None => {
            let shape: Vec<String> = data.shape.iter().map(ToString::to_string).collect();
            format!("from_bytes(data[\"{name}\"], gt.bfloat16, [{}])", shape.join(", "))
        }
    }
}
