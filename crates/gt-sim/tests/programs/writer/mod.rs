//! Random programs, written so that the values they give do not depend on rounding.

mod arguments;

use gt_ir::{DType, Operand, Shape, ops};

use crate::programs::chance::Chance;
use crate::programs::scopes::{SCOPES, is_regular};
use crate::programs::steps::{Action, Step};

/// The program of a seed.
pub fn program(seed: u64) -> Vec<Step> {
    let (chance, regular) = (Chance::new(seed), is_regular(seed));
    let mut writer = JournalWriter { chance, regular, known: Vec::new(), steps: Vec::new() };
    let length = 5 + writer.chance.below(35);
    writer.write(length);
    writer.steps
}

/// What the writer of a program knows of a tensor.
#[derive(Clone)]
struct Known {
    name: usize,
    shape: Shape,
    dtype: DType,
    /// Made without sums of floats: the same to the last bit on any placement.
    exact: bool,
    grad: bool,
    leaf: bool,
}

/// Writes a program step by step.
struct JournalWriter {
    chance: Chance,
    regular: bool,
    known: Vec<Known>,
    steps: Vec<Step>,
}

/// Operations with steps or edges, where the last bit of an operand decides, and those that amplify
/// rounding errors of large numbers: they take only tensors that are exact.
const EXACT_ONLY: [&str; 31] = [
    "sin",
    "cos",
    "pow",
    "sqrt",
    "rsqrt",
    "log",
    "log1p",
    "sign",
    "floor",
    "ceil",
    "round",
    "floor_divide",
    "remainder",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "argmax",
    "argmin",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "any",
    "all",
    "cast",
    "isnan",
    "where",
    "clamp",
];

/// Operations whose results depend on the order of a sum or product.
const ROUNDING: [&str; 12] = [
    "sum",
    "mean",
    "prod",
    "matmul",
    "var",
    "std",
    "softmax",
    "log_softmax",
    "logsumexp",
    "cumsum",
    "scatter_add",
    "index_add",
];

impl JournalWriter {
    fn write(&mut self, length: usize) {
        while self.steps.len() < length {
            match self.chance.below(14) {
                0 | 1 => {
                    let (dims, wants_grad) = (self.dims(), self.chance.flag());
                    let shape = Shape::new(&dims).unwrap();
                    let made = Some((shape, DType::F64, true, wants_grad, true));
                    self.push(Action::Randn { dims, wants_grad }, made);
                }
                2 if self.chance.flag() => {
                    let dims = self.dims();
                    let made = Some((Shape::new(&dims).unwrap(), DType::F64, true, false, false));
                    self.push(Action::Data { dims }, made);
                }
                2 => {
                    let dims = self.dims();
                    let shape = Shape::new(&dims).unwrap();
                    let made = Some((shape, DType::I64, true, false, false));
                    self.push(Action::Randint { dims, below: 5 }, made);
                }
                3 => self.place(),
                4 => self.update(),
                5 => self.backward(),
                _ => self.operation(),
            }
        }
    }

    fn dims(&mut self) -> Vec<usize> {
        if self.regular {
            let rank = 1 + self.chance.below(3);
            return (0..rank).map(|_| self.chance.one_of(&[4, 6])).collect();
        }
        let rank = self.chance.below(4);
        (0..rank).map(|_| self.chance.one_of(&[1, 2, 3, 4, 5, 7, 8])).collect()
    }

    /// Adds a step; of a tensor that it makes, the shape and dtype, and whether it is exact, needs
    /// a gradient and is a leaf.
    fn push(&mut self, action: Action, made: Option<(Shape, DType, bool, bool, bool)>) {
        let name = self.steps.len();
        let scope = if self.chance.below(3) == 0 { 0 } else { self.chance.below(SCOPES) };
        self.steps.push(Step { name, action, scope });
        if let Some((shape, dtype, exact, grad, leaf)) = made {
            self.known.push(Known { name, shape, dtype, exact, grad, leaf });
        }
    }

    /// One of the tensors that fit.
    fn pick(&mut self, fits: impl Fn(&Known) -> bool) -> Option<Known> {
        let fitting: Vec<usize> =
            (0..self.known.len()).filter(|&index| fits(&self.known[index])).collect();
        if fitting.is_empty() {
            return None;
        }
        let index = self.chance.one_of(&fitting);
        Some(self.known[index].clone())
    }

    fn place(&mut self) {
        let Some(input) = self.pick(|_| true) else { return };
        let made = Some((input.shape, input.dtype, input.exact, input.grad, false));
        self.push(Action::Place { input: input.name }, made);
    }

    fn update(&mut self) {
        let Some(target) = self.pick(|known| known.leaf) else { return };
        let shape = target.shape;
        let Some(source) = self.pick(|known| known.shape == shape && known.dtype == DType::F64)
        else {
            return;
        };
        let exact = source.exact;
        self.push(Action::Update { target: target.name, source: source.name }, None);
        let target = self.known.iter_mut().find(|known| known.name == target.name).unwrap();
        target.exact &= exact;
    }

    fn backward(&mut self) {
        if let Some(output) = self.pick(|known| known.grad && !known.leaf) {
            self.push(Action::Backward { output: output.name }, None);
            // A graph is given up after its backward.
            self.known.iter_mut().filter(|known| !known.leaf).for_each(|known| known.grad = false);
            self.known.retain(|known| known.leaf || !known.grad);
        }
    }

    fn operation(&mut self) {
        let operation = self.chance.one_of(ops::ALL);
        // Of equal values it is 0 or all but 0, as sums are rounded, and its slope 0 or 1. Its
        // samples are checked in sharding.rs.
        if operation.name == "std" {
            return;
        }
        let Some(operands) = self.operands(operation) else { return };
        let first = operands[0].0.shape;
        // Products of many float32 leave their range, and infinity times 0 is not a number: the
        // order decides.
        if operation.name == "prod" && operands[0].0.dtype == DType::F32 {
            return;
        }
        let Some(attributes) = self.attributes(operation, first) else { return };
        let metas: Vec<_> = operands
            .iter()
            .map(|(known, scalar)| match scalar {
                Some(scalar) => Operand::Scalar(*scalar),
                None => Operand::Tensor(gt_ir::Meta::new(known.dtype, known.shape)),
            })
            .collect();
        let Ok(meta) = operation.check(&metas, &attributes) else { return };
        if meta.shape.numel() > 2000 {
            return;
        }
        let inputs_exact = operands.iter().all(|(known, scalar)| scalar.is_some() || known.exact);
        if EXACT_ONLY.contains(&operation.name) && !inputs_exact {
            return;
        }
        let exact = inputs_exact && (!meta.dtype.is_float() || !ROUNDING.contains(&operation.name));
        let grad = meta.dtype.is_float()
            && operands.iter().any(|(known, scalar)| scalar.is_none() && known.grad);
        let operands = operands
            .iter()
            .map(|(known, scalar)| scalar.map_or(Operand::Tensor(known.name), Operand::Scalar))
            .collect();
        let action = Action::Apply { operation, operands, attributes };
        self.push(action, Some((meta.shape, meta.dtype, exact, grad, false)));
    }
}
