//! Random programs give the same under any signals on any number of workers as on one worker
//! without: operations of all kinds, gradients, updates in place.
//!
//! `GT_PROGRAMS=10000` runs more of them, `GT_PROGRAM=seed` one alone. A program that fails is
//! shrunk and printed.

use std::sync::{Arc, Mutex};

use gt_client::config::{SignalConfig, registry};
use gt_client::{Session, Tensor, no_grad, signal};
use gt_dispatcher::Limits;
use gt_ir::philox::Stream;
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::{Attribute, Attributes, DType, Operand, Operation, Scalar, Shape, TensorData, ops};
use gt_sim::{Delays, World, driver};
use smallvec::smallvec;

/// Numbers that a seed decides.
struct Chance(Stream, u64);

impl Chance {
    fn new(seed: u64) -> Chance {
        Chance(Stream::new(seed, 77), 0)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.1 += 1;
        self.0.integer(self.1, 0, limit.max(1) as i64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// One line of a program. Tensors are named by the step that made them.
#[derive(Clone, Debug)]
struct Step {
    name: usize,
    action: Action,
    /// The scope it runs in: a number of [`SCOPES`], 0 for none.
    scope: usize,
}

#[derive(Clone, Debug)]
enum Action {
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

const SCOPES: usize = 9;

/// In every third program all scopes share one mesh of two axes, and lengths are few: what is cut
/// over one axis and partial over the other meets more often there.
fn is_regular(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// What the scopes of a program mean on `workers` workers.
fn register_scopes(seed: u64, workers: usize) {
    let mut chance = Chance::new(seed ^ 0x5c09e);
    let shared = workers >= 4 && is_regular(seed);
    for number in 1..SCOPES {
        let count = 1 + chance.below(workers);
        let mut all: Vec<u32> = (0..workers as u32).collect();
        let chosen: Vec<u32> = (0..count).map(|_| all.remove(chance.below(all.len()))).collect();
        let axis = |chance: &mut Chance| (chance.below(4) > 0).then(|| chance.below(4) as i64 - 1);
        let shard = if shared {
            let second = (workers / 2) as u32;
            let mesh = vec![
                MeshAxis { name: "a".into(), length: 2, axis: axis(&mut chance) },
                MeshAxis { name: "b".into(), length: second, axis: axis(&mut chance) },
            ];
            Shard { workers: Some((0..2 * second).collect()), mesh }
        } else if count >= 4 && chance.flag() {
            let (first, second) = (axis(&mut chance), axis(&mut chance));
            let mesh = vec![
                MeshAxis { name: "a".into(), length: 2, axis: first },
                MeshAxis { name: "b".into(), length: (count / 2) as u32, axis: second },
            ];
            Shard { workers: Some(chosen), mesh }
        } else {
            Shard::row((chance.below(3) > 0).then_some(chosen), axis(&mut chance))
        };
        let backward = chance.flag().then(|| scope_name(seed, 1 + chance.below(SCOPES - 1)));
        let config = SignalConfig { shard: Some(shard), backward, compile: false };
        registry::register(&scope_name(seed, number), config);
    }
}

fn scope_name(seed: u64, number: usize) -> String {
    format!("program {seed} scope {number}")
}

/// The step that made a tensor, what of it this is, and its value if it has one.
type Value = (usize, &'static str, Result<TensorData, String>);

/// Runs a program; gives all its tensors' values, and the gradients of its leaves.
fn run(session: &Session, seed: u64, steps: &[Step], scoped: bool) -> Vec<Value> {
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
            // An axis that the tensor does not have is an error of the client alone.
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
            // Without anything to differentiate, or after the graph was given up, it is an error
            // of the client alone.
            let _ = tensor(*output).sum(&[], false).unwrap().backward();
            None
        }
    }
}

/// What the writer of programs knows of a tensor.
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

struct Writer {
    chance: Chance,
    regular: bool,
    known: Vec<Known>,
    steps: Vec<Step>,
}

/// Operations with steps or edges, where the last bit decides; and those that make much of the
/// last bits of large numbers.
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

impl Writer {
    fn dims(&mut self) -> Vec<usize> {
        if self.regular {
            let rank = 1 + self.chance.below(3);
            return (0..rank).map(|_| self.chance.one_of(&[4, 6])).collect();
        }
        let rank = self.chance.below(4);
        (0..rank).map(|_| self.chance.one_of(&[1, 2, 3, 4, 5, 7, 8])).collect()
    }

    fn push(&mut self, action: Action, made: Option<(Shape, DType, bool, bool, bool)>) {
        let name = self.steps.len();
        let scope = if self.chance.below(3) == 0 { 0 } else { self.chance.below(SCOPES) };
        self.steps.push(Step { name, action, scope });
        if let Some((shape, dtype, exact, grad, leaf)) = made {
            self.known.push(Known { name, shape, dtype, exact, grad, leaf });
        }
    }

    fn pick(&mut self, fits: impl Fn(&Known) -> bool) -> Option<Known> {
        let fitting: Vec<usize> =
            (0..self.known.len()).filter(|&index| fits(&self.known[index])).collect();
        if fitting.is_empty() {
            return None;
        }
        let index = self.chance.one_of(&fitting);
        Some(self.known[index].clone())
    }

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

    /// Operands that are likely to fit; each with the number that stands in its place, if any.
    fn operands(&mut self, operation: &Operation) -> Option<Vec<(Known, Option<Scalar>)>> {
        use gt_ir::operation::{Arity, Family};
        if operation.family == Family::Create {
            return None;
        }
        let first = match operation.name {
            "gather" | "scatter_add" | "index_select" | "index_add" | "index_copy" => {
                return self.indexed(operation);
            }
            "matmul" => return self.factors(),
            "where" => self.pick(|known| known.dtype == DType::Bool)?,
            _ => self.pick(|known| known.dtype != DType::Bool || known.name.is_multiple_of(3))?,
        };
        let count = match operation.arity {
            Arity::Exactly(count) => usize::from(count),
            Arity::AtLeast(_) => 1 + self.chance.below(3),
        };
        let mut operands = vec![(first.clone(), None)];
        for _ in 1..count {
            let shape = first.shape;
            let number = Scalar::Float(self.chance.below(40) as f64 / 10.0 + 0.25);
            let broadcasts = |known: &Known| {
                known.shape.broadcast(&shape, "").is_ok() && known.name.is_multiple_of(2)
            };
            let second = match self.chance.below(4) {
                0 if operation.name != "cat" => Some((first.clone(), Some(number))),
                1 => Some((first.clone(), None)),
                2 => self.pick(broadcasts).map(|known| (known, None)),
                _ => self.pick(|known| known.shape == shape).map(|known| (known, None)),
            };
            operands.push(second?);
        }
        Some(operands)
    }

    /// Two matrices that fit: one and another, or itself transposed.
    fn factors(&mut self) -> Option<Vec<(Known, Option<Scalar>)>> {
        let left = self.pick(|known| known.shape.rank() >= 2 && known.dtype != DType::Bool)?;
        let inner = left.shape[left.shape.rank() - 1];
        let fits = |known: &Known| {
            let rank = known.shape.rank();
            rank >= 2 && known.shape[rank - 2] == inner && known.dtype == left.dtype
        };
        let right = self.pick(fits)?;
        Some(vec![(left, None), (right, None)])
    }

    fn indexed(&mut self, operation: &Operation) -> Option<Vec<(Known, Option<Scalar>)>> {
        let x = self.pick(|known| known.shape.rank() > 0 && known.shape.numel() > 0)?;
        let shortest = *x.shape.iter().min().unwrap();
        let dims = match operation.name {
            "gather" | "scatter_add" => x.shape.dims().to_vec(),
            _ => vec![x.shape[0]],
        };
        let shape = Shape::new(&dims).unwrap();
        let below = shortest as i64;
        self.push(Action::Randint { dims, below }, Some((shape, DType::I64, true, false, false)));
        let index = self.known[self.known.len() - 1].clone();
        let mut operands = vec![(x.clone(), None), (index, None)];
        if operation.name != "gather" && operation.name != "index_select" {
            operands.push((x, None));
        }
        // Which of equal indices counts is not the same everywhere.
        (operation.name != "index_copy").then_some(operands)
    }

    fn attributes(&mut self, operation: &Operation, first: Shape) -> Option<Attributes> {
        let rank = first.rank();
        let chance = &mut self.chance;
        let axis = |chance: &mut Chance| Attribute::Int(chance.below(rank.max(1)) as i64);
        let axes = |chance: &mut Chance| {
            let chosen: Vec<i64> = (0..rank as i64).filter(|_| chance.flag()).collect();
            Attribute::ints(&chosen)
        };
        Some(match operation.name {
            "cast" => {
                let kinds = [DType::F64, DType::I64, DType::I32, DType::I16, DType::U8];
                smallvec![Attribute::DType(chance.one_of(&kinds))]
            }
            "sum" | "mean" | "prod" | "amax" | "amin" | "any" | "all" | "logsumexp" => {
                smallvec![axes(chance), Attribute::Bool(chance.flag())]
            }
            "argmax" | "argmin" => {
                let one: Vec<i64> =
                    (rank > 0).then(|| chance.below(rank) as i64).into_iter().collect();
                smallvec![Attribute::ints(&one), Attribute::Bool(chance.flag())]
            }
            "var" | "std" => {
                smallvec![axes(chance), Attribute::Bool(chance.flag()), Attribute::Int(0)]
            }
            "cumsum" | "softmax" | "log_softmax" | "cat" => smallvec![axis(chance)],
            "gather" | "scatter_add" => smallvec![axis(chance)],
            "index_select" | "index_add" | "index_copy" => smallvec![Attribute::Int(0)],
            "wrap_index" => smallvec![Attribute::Int(8)],
            "tril" | "triu" => smallvec![Attribute::Int(chance.below(5) as i64 - 2)],
            "flip" => smallvec![axes(chance)],
            "permute" => {
                let mut left: Vec<i64> = (0..rank as i64).collect();
                let order: Vec<i64> =
                    (0..rank).map(|_| left.remove(chance.below(left.len()))).collect();
                smallvec![Attribute::ints(&order)]
            }
            "reshape" => smallvec![Attribute::dims(&other_shape(chance, first))],
            "expand" => {
                let mut dims: Vec<usize> = first
                    .iter()
                    .map(|&dim| if dim == 1 { 1 + chance.below(4) } else { dim })
                    .collect();
                if chance.flag() {
                    dims.insert(0, 1 + chance.below(4));
                }
                smallvec![Attribute::dims(&dims)]
            }
            "slice" | "slice_assign" => {
                let (mut starts, mut sizes, mut steps) = (vec![], vec![], vec![]);
                for &dim in first.dims() {
                    let start = if chance.flag() { 0 } else { chance.below(dim) };
                    let step = 1 + chance.below(2);
                    let size = if chance.flag() && start == 0 && step == 1 {
                        dim
                    } else {
                        chance.below((dim - start).div_ceil(step) + 1)
                    };
                    starts.push(start as i64);
                    sizes.push(size as i64);
                    steps.push(step as i64);
                }
                smallvec![
                    Attribute::ints(&starts),
                    Attribute::ints(&sizes),
                    Attribute::ints(&steps)
                ]
            }
            "gelu" => smallvec![Attribute::Bool(chance.flag())],
            _ if operation.attributes.is_empty() => smallvec![],
            _ => return None,
        })
    }
}

/// Another shape of as many elements: two axes as one, or one as two.
fn other_shape(chance: &mut Chance, shape: Shape) -> Vec<usize> {
    let mut dims = shape.dims().to_vec();
    for _ in 0..1 + chance.below(2) {
        if dims.len() > 1 && chance.flag() {
            let at = chance.below(dims.len() - 1);
            let merged = dims[at] * dims.remove(at + 1);
            dims[at] = merged;
        } else if !dims.is_empty() && dims.len() < 6 {
            let at = chance.below(dims.len());
            let parts: Vec<usize> =
                (1..=dims[at].max(1)).filter(|part| dims[at].is_multiple_of(*part)).collect();
            let part = chance.one_of(&parts);
            dims[at] /= part;
            dims.insert(at, part);
        }
    }
    dims
}

fn program(seed: u64) -> Vec<Step> {
    let (chance, regular) = (Chance::new(seed), is_regular(seed));
    let mut writer = Writer { chance, regular, known: Vec::new(), steps: Vec::new() };
    let length = 5 + writer.chance.below(35);
    writer.write(length);
    writer.steps
}

fn new_session(seed: u64, workers: usize) -> Session {
    let delays = Delays { least: 1, most: if seed.is_multiple_of(2) { 5 } else { 5_000 } };
    let mut world = World::new(seed, workers, delays, Limits::default());
    world.settle();
    driver::connect(&Arc::new(Mutex::new(world))).0
}

/// What is wrong with a program, if anything is.
fn check(seed: u64, workers: usize, steps: &[Step]) -> Result<(), String> {
    let outcome = std::panic::catch_unwind(|| {
        let want = run(&new_session(seed, 1), seed, steps, false);
        let got = run(&new_session(seed, workers), seed, steps, true);
        (want, got)
    });
    let (want, got) = outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| "a panic".into())
    })?;
    if want.len() != got.len() {
        return Err("not as many values".into());
    }
    for ((name, what, want), (_, _, got)) in want.iter().zip(&got) {
        // What fails on one worker may succeed in part on several.
        let Ok(want) = want else { continue };
        let got = got.as_ref().map_err(|error| format!("{what} of {name}: {error}"))?;
        if (want.dtype, want.shape) != (got.dtype, got.shape) {
            return Err(format!("{what} of {name} is {} {}", got.dtype, got.shape));
        }
        let numbers = |data: &TensorData| -> Vec<f64> {
            (0..data.shape.numel()).map(|i| data.element(i).as_f64()).collect()
        };
        let (want, got) = (numbers(want), numbers(got));
        let scale = want.iter().filter(|x| x.is_finite()).fold(1.0f64, |max, x| max.max(x.abs()));
        // Functions of whole numbers are float32. What has lost all its digits says nothing.
        if scale > 1e9 {
            continue;
        }
        for (index, (a, b)) in want.iter().zip(&got).enumerate() {
            let close = (a - b).abs() <= 1e-4 * scale || a == b || (a.is_nan() && b.is_nan());
            if !close {
                return Err(format!("{what} of {name}: element {index} is {b}, expected {a}"));
            }
        }
    }
    Ok(())
}

/// The smallest part of a program that still fails.
fn shrink(seed: u64, workers: usize, steps: &[Step]) -> Vec<Step> {
    let mut steps = steps.to_vec();
    let mut index = steps.len();
    while index > 0 {
        index -= 1;
        let mut fewer = steps.clone();
        fewer.remove(index);
        if check(seed, workers, &fewer).is_err_and(|error| !error.contains("earlier step")) {
            steps = fewer;
            index = index.min(steps.len());
        }
    }
    steps
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_programs_give_the_same_on_any_placement() {
    let seeds = match number("GT_PROGRAM") {
        Some(seed) => seed..seed + 1,
        None => 0..number("GT_PROGRAMS").unwrap_or(400),
    };
    for seed in seeds {
        let workers = 1 + (seed % 8) as usize;
        register_scopes(seed, workers);
        let steps = program(seed);
        if let Err(error) = check(seed, workers, &steps) {
            let small = shrink(seed, workers, &steps);
            let error = check(seed, workers, &small).err().unwrap_or(error);
            let lines: Vec<String> = small.iter().map(|step| format!("{step:?}")).collect();
            panic!("program {seed} on {workers} workers: {error}\n{}", lines.join("\n"));
        }
    }
}
