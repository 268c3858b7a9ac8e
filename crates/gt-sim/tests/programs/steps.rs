//! Programs, and how they are run.

use gt_client::{Session, Tensor, no_grad, signal};
use gt_ir::{Attributes, DType, Operand, Operation, Shape, TensorData};

use crate::programs::scopes::scope_name;

/// One line of a program. Tensors are named by the step that made them.
#[derive(Clone, Debug)]
pub struct Step {
    pub name: usize,
    pub action: Action,
    /// The scope it runs in: a number below [`crate::programs::scopes::SCOPES`], 0 for none.
    pub scope: usize,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    Randn {
        dims: Vec<usize>,
        wants_grad: bool,
    },
    Randint {
        dims: Vec<usize>,
        below: i64,
    },
    /// Numbers that come with the instruction.
    Data {
        dims: Vec<usize>,
    },
    Apply {
        operation: &'static Operation,
        operands: Vec<Operand<usize>>,
        attributes: Attributes,
    },
    /// The tensor placed by the scope.
    Place {
        input: usize,
    },
    /// `target -= 0.1 * source`, in place.
    Update {
        target: usize,
        source: usize,
    },
    /// The gradient of the sum of this is added to that of all leaves.
    Backward {
        output: usize,
    },
}

/// The step that made a tensor, whether this is its value or gradient, and the value, if any.
pub type Value = (usize, &'static str, Result<TensorData, String>);

/// Runs a program; returns all its tensors' values, and the gradients of its leaves.
pub fn run(session: &Session, seed: u64, steps: &[Step], scoped: bool) -> Vec<Value> {
    session.manual_seed(seed);
    let mut tensors: Vec<Option<Tensor>> = Vec::new();
    for step in steps {
        tensors.resize(tensors.len().max(step.name + 1), None);
        let scope = (scoped && step.scope > 0).then(|| scope_name(seed, step.scope));
        if let Some(scope) = &scope {
            signal::enter(scope, None).unwrap();
        }
        let made = perform(session, &tensors, step, scope.as_deref());
        if let Some(scope) = &scope {
            signal::exit(scope).unwrap();
        }
        tensors[step.name] = made;
    }
    let mut values = Vec::new();
    for (name, tensor) in tensors.iter().enumerate() {
        let Some(tensor) = tensor else { continue };
        values.push((name, "value", tensor.fetch().map_err(|error| error.to_string())));
        if let Some(grad) = tensor.grad() {
            values.push((name, "gradient", grad.fetch().map_err(|error| error.to_string())));
        }
    }
    values
}

/// Runs a step; returns the tensor that it makes, if any.
fn perform(
    session: &Session,
    tensors: &[Option<Tensor>],
    step: &Step,
    scope: Option<&str>,
) -> Option<Tensor> {
    let tensor = |name: usize| tensors[name].as_ref().expect("made by an earlier step");
    match &step.action {
        Action::Randn { dims, wants_grad } => {
            let made = Tensor::randn(session, Shape::new(dims).unwrap(), DType::F64).unwrap();
            made.set_requires_grad(*wants_grad).unwrap();
            Some(made)
        }
        Action::Data { dims } => {
            let count: usize = dims.iter().product();
            let values: Vec<f64> = (0..count).map(|at| (at * 7 % 11) as f64 - 4.0).collect();
            Some(Tensor::from_slice(session, &values, dims).unwrap())
        }
        Action::Randint { dims, below } => {
            let shape = Shape::new(dims).unwrap();
            Some(Tensor::randint(session, 0, *below, shape, DType::I64).unwrap())
        }
        Action::Apply { operation, operands, attributes } => {
            let operands: Vec<Operand<&Tensor>> =
                operands.iter().map(|operand| operand.map(|name| tensor(*name))).collect();
            Some(Tensor::apply(session, operation, &operands, attributes.clone()).unwrap())
        }
        Action::Place { input } => match scope {
            // An axis out of range is an error of the client alone.
            Some(scope) => {
                let placed = tensor(*input).with_signal(scope, None);
                Some(placed.unwrap_or_else(|_| tensor(*input).copy().unwrap()))
            }
            None => Some(tensor(*input).copy().unwrap()),
        },
        Action::Update { target, source } => {
            let (target, source) = (tensor(*target), tensor(*source));
            no_grad(|| target.assign(&target.mul_add(source, -0.1).unwrap(), "update")).unwrap();
            None
        }
        Action::Backward { output } => {
            // Without a graph, or after the graph was freed, it is an error of the client alone.
            let _ = tensor(*output).sum(&[], false).unwrap().backward();
            None
        }
    }
}
