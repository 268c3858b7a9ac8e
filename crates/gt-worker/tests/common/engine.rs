//! A minimal engine: vectors of numbers, and a few operations on them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::{Attributes, DType, Meta, Operand, Operation, Scalar, TensorData, Trace};
use gt_worker::engine::launch_plainly;
use gt_worker::engine::pausable::{EngineCall, PausableCall};
use gt_worker::plan::{InputValue, Plan};
use gt_worker::{CollectivePart, Engine, EngineError, SharedBuffer};

use super::compiler::{Compiler, SlowCall};

/// Computes on vectors of float64. The logarithm of a negative number is an error, its square
/// root a panic.
pub struct Vectors {
    /// The operations computed, in order; `compiled` before those of compiled code.
    computed: Arc<Mutex<Vec<&'static str>>>,
    compiler: Arc<Compiler>,
    /// The time that its operations have taken: 100 us for each element.
    time: Duration,
    device: Arc<Mutex<Option<DeviceClock>>>,
}

/// A device that does turns when it is waited for.
#[derive(Default)]
pub struct DeviceClock {
    begin: Duration,
    /// The times of turns that are not done.
    under_way: VecDeque<Duration>,
    /// The most that there were when a turn began.
    pub most: usize,
    /// Whether it is done with all.
    pub is_done: bool,
}

/// A shared vector.
pub type Vector = Arc<Vec<f64>>;

const LOWERED: [&str; 9] =
    ["add", "mul", "neg", "log", "sqrt", "full", "slice", "slice_assign", "cat"];

impl Vectors {
    pub fn new(
        computed: Arc<Mutex<Vec<&'static str>>>,
        compiler: Arc<Compiler>,
        device: Arc<Mutex<Option<DeviceClock>>>,
    ) -> Vectors {
        Vectors { computed, compiler, time: Duration::ZERO, device }
    }
}

/// An operand's numbers; a scalar is broadcast to `length`.
fn wide(operand: &Operand<Vector>, length: usize) -> Vec<f64> {
    match operand {
        Operand::Scalar(scalar) => vec![scalar.as_f64(); length],
        Operand::Tensor(vector) => vector.to_vec(),
    }
}

impl Engine for Vectors {
    type Tensor = Vector;
    type Program = (Trace, Vec<Option<u32>>);

    fn name(&self) -> &str {
        "vectors"
    }

    fn lowers(&self, operation: &'static Operation) -> bool {
        LOWERED.contains(&operation.name)
    }

    fn create(&mut self, data: TensorData) -> Result<Vector, EngineError> {
        let numbers = (0..data.shape.numel()).map(|index| data.element(index).as_f64());
        Ok(Arc::new(numbers.collect()))
    }

    fn read(&mut self, tensor: &Vector) -> Result<TensorData, EngineError> {
        Ok(super::data(tensor))
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Vector>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Vector, EngineError> {
        self.computed.lock().unwrap().push(operation.name);
        if operation.name == "slice"
            && self.compiler.makes_views.load(Ordering::Relaxed)
            && let Operand::Tensor(whole) = &operands[0]
            && whole.len() == output.shape.numel()
        {
            return Ok(Arc::clone(whole));
        }
        let length = output.shape.numel();
        self.time += Duration::from_micros(100) * length as u32;
        let operand = |index: usize| wide(&operands[index], length);
        let each = |f: fn(f64) -> f64| operand(0).into_iter().map(f).collect();
        let both = |f: fn(f64, f64) -> f64| {
            operand(0).into_iter().zip(operand(1)).map(|(a, b)| f(a, b)).collect()
        };
        let range = || {
            let start = ints(attributes, 0)[0] as usize;
            start..start + ints(attributes, 1)[0] as usize
        };
        let made: Vec<f64> = match operation.name {
            "add" => both(|a, b| a + b),
            "mul" => both(|a, b| a * b),
            "neg" => each(|x| -x),
            "log" => match operand(0).into_iter().find(|x| *x < 0.0) {
                Some(x) => return Err(EngineError::Other(format!("logarithm of {x}"))),
                None => each(f64::ln),
            },
            "sqrt" => each(|x| if x < 0.0 { panic!("root of {x}") } else { x.sqrt() }),
            "full" => operand(0),
            "slice" => operand(0)[range()].to_vec(),
            "slice_assign" => {
                let mut whole = operand(0);
                whole[range()].copy_from_slice(&operand(1));
                whole
            }
            "cat" => operands.iter().flat_map(|part| wide(part, 0)).collect(),
            other => return Err(EngineError::Other(format!("no {other}"))),
        };
        assert_eq!(made.len(), length, "{}", operation.name);
        Ok(Arc::new(made))
    }

    fn prepare(&mut self, plan: &Plan) -> Result<Self::Program, EngineError> {
        Ok((plan.trace.clone(), plan.trace.last_uses()))
    }

    fn shared_buffer(&self, tensor: &Vector) -> Option<SharedBuffer> {
        let is_shared = Arc::strong_count(tensor) > 1;
        (is_shared && self.compiler.makes_views.load(Ordering::Relaxed)).then(|| SharedBuffer {
            id: Arc::as_ptr(tensor) as usize as u64,
            bytes: 8 * tensor.len() as u64,
        })
    }

    fn is_on_host(&self) -> bool {
        !self.compiler.is_device.load(Ordering::Relaxed)
    }

    fn can_pause(&self) -> bool {
        self.compiler.is_slow.load(Ordering::Relaxed)
    }

    fn rate(&self) -> u64 {
        // Everything of 100 bytes is long.
        if self.can_pause() { 20_000 } else { 10_000_000_000 }
    }

    fn begin<'a>(
        &mut self,
        call: EngineCall<'a, Vectors>,
    ) -> Result<Box<dyn PausableCall<Vector>>, EngineCall<'a, Vectors>> {
        match call {
            EngineCall::Operation(call) => {
                let result = call.run(self);
                Ok(Box::new(SlowCall {
                    compiler: Arc::clone(&self.compiler),
                    is_stopped: false,
                    result,
                }))
            }
            program => Err(program),
        }
    }

    fn warmup(&self) -> u32 {
        self.compiler.warmup.load(Ordering::Relaxed)
    }

    fn settle(&mut self, _program: &mut Self::Program, _at_most: Duration) -> bool {
        !self.compiler.is_busy.load(Ordering::Relaxed)
    }

    fn launch(
        &mut self,
        program: &mut Self::Program,
        inputs: &mut [InputValue<Vector>],
    ) -> Result<Vec<Vector>, EngineError> {
        if self.warmup() > 0 {
            self.computed.lock().unwrap().push("compiled");
        }
        self.launch_cold(program, inputs)
    }

    fn launch_cold(
        &mut self,
        (trace, last_uses): &mut Self::Program,
        inputs: &mut [InputValue<Vector>],
    ) -> Result<Vec<Vector>, EngineError> {
        let (trace, last_uses) = (trace.clone(), last_uses.clone());
        launch_plainly(self, &trace, &last_uses, inputs)
    }

    fn is_unchecked(&mut self, _program: &mut Self::Program) -> bool {
        false
    }

    fn judge(&mut self, _program: &mut Self::Program, _wrong: Option<&str>) {}

    /// With a device, asking takes no time.
    fn now(&self) -> Duration {
        let idle = Duration::from_micros(self.compiler.idle.load(Ordering::Relaxed));
        if self.runs_ahead() { idle } else { self.time + idle }
    }

    fn runs_ahead(&self) -> bool {
        self.device.lock().unwrap().is_some()
    }

    fn begin_turn(&mut self) {
        let mut device = self.device.lock().unwrap();
        let device = device.as_mut().unwrap();
        device.begin = self.time;
        device.most = device.most.max(device.under_way.len());
    }

    fn end_turn(&mut self) -> bool {
        let mut device = self.device.lock().unwrap();
        let device = device.as_mut().unwrap();
        device.under_way.push_back(self.time - device.begin);
        true
    }

    fn turns_done(&mut self, under_way: usize) -> Vec<u64> {
        let mut device = self.device.lock().unwrap();
        let device = device.as_mut().unwrap();
        let left = if device.is_done { 0 } else { under_way };
        let done = device.under_way.len().saturating_sub(left);
        device.under_way.drain(..done).map(|turn| turn.as_nanos() as u64).collect()
    }

    /// As if all members had contributed the same.
    fn run_collective(&mut self, part: CollectivePart<Vector>) -> Result<Vec<Vector>, EngineError> {
        self.computed.lock().unwrap().push("join");
        let members = part.engine_collective.members.len() as f64;
        let own = &part.gives[0].1;
        let sum: Vec<f64> = own.iter().map(|x| x * members).collect();
        Ok(part.gets.iter().map(|_| Arc::new(sum.clone())).collect())
    }

    fn can_reduce(&self, dtype: DType) -> bool {
        dtype == DType::F64
    }
}

/// A number, as an operand.
pub fn number(value: f64) -> Operand {
    Operand::Scalar(Scalar::Float(value))
}
