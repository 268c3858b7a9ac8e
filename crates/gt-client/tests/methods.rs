//! Generates `src/tensor/generated.rs`: the methods of `Tensor` that follow from the operations'
//! declarations, one for each operation that is also a method. The test checks that the file is up
//! to date; with `GT_WRITE_METHODS=1` it writes the file.

use std::fmt::Write;
use std::path::Path;

use gt_ir::operation::{AttributeKind, Parameter, ParameterKind, face};
use gt_ir::{Operation, ops};

#[test]
fn generated_methods_match_the_operations() {
    let mut code = String::from("impl Tensor {\n");
    let methods = ops::ALL.iter().filter(|operation| operation.face & face::METHOD != 0);
    code += &methods.map(|operation| method(operation)).collect::<Vec<_>>().join("\n");
    code += "}\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tensor/generated.rs");
    if std::env::var_os("GT_WRITE_METHODS").is_some() {
        std::fs::write(&path, &code).expect("the folder can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == code, "{} is stale; GT_WRITE_METHODS=1 rewrites it", path.display());
}

/// Returns the source of an operation's method; the first operand is the tensor itself.
fn method(operation: &Operation) -> String {
    let mut takes = String::new();
    let (mut operands, mut attributes) = (Vec::new(), Vec::new());
    let mut generic = "";
    for (index, parameter) in operation.parameters.iter().enumerate() {
        let name = argument(parameter);
        match parameter.attribute() {
            None if index == 0 => operands.push("Operand::Tensor(self)".to_string()),
            None if parameter.kind == ParameterKind::Tensor => {
                operands.push(format!("Operand::Tensor({name})"));
                write!(takes, ", {name}: &Tensor").unwrap();
            }
            None => {
                generic = "<'a>";
                operands.push(format!("{name}.into().0"));
                write!(takes, ", {name}: impl Into<Value<'a>>").unwrap();
            }
            Some(kind) => {
                let (of, value) = attribute(operation, parameter, kind, &name);
                write!(takes, ", {name}: {of}").unwrap();
                attributes.push(value);
            }
        }
    }
    let documentation: String =
        operation.doc.lines().map(|line| format!("    /// {line}\n")).collect();
    format!(
        "{documentation}    #[track_caller]\n    \
         pub fn {name}{generic}(&self{takes}) -> Result<Tensor> {{\n        \
         let operands = [{operands}];\n        \
         Tensor::apply(&self.session(), by_id({id}), &operands, smallvec![{attributes}])\n    }}\n",
        name = operation.name,
        operands = operands.join(", "),
        id = operation.id,
        attributes = attributes.join(", "),
    )
}

/// Returns the type of a parameter that becomes an attribute, and the attribute's expression.
fn attribute(
    operation: &Operation,
    parameter: &Parameter,
    kind: AttributeKind,
    name: &str,
) -> (&'static str, String) {
    if let ParameterKind::Choice(words) = parameter.kind {
        let place = format!("word({:?}, {name:?}, {name}, &{words:?})?", operation.name);
        return ("&str", format!("Attribute::Int({place})"));
    }
    if parameter.kind == ParameterKind::Text {
        return ("&str", format!("Attribute::text({name})"));
    }
    match kind {
        AttributeKind::Int => ("i64", format!("Attribute::Int({name})")),
        AttributeKind::Float => ("f64", format!("Attribute::Float({name})")),
        AttributeKind::Bool => ("bool", format!("Attribute::Bool({name})")),
        AttributeKind::DType => ("DType", format!("Attribute::DType({name})")),
        AttributeKind::OptionalDType => {
            ("Option<DType>", format!("{name}.map_or(Attribute::None, Attribute::DType)"))
        }
        AttributeKind::Ints => ("&[i64]", format!("Attribute::ints({name})")),
    }
}

/// Returns a parameter's name, with an underscore if it is a Rust keyword.
fn argument(parameter: &Parameter) -> String {
    match parameter.name {
        "self" | "where" | "type" => format!("{}_", parameter.name),
        name => name.to_string(),
    }
}
