//! Mutations of a command stream, for fuzzing.

use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::template::{Argument, Name, Step};
use gt_ir::{
    Attribute, ClientCommand, DType, Instruction, KeptTensor, Meta, Operand, RequestId, Scalar,
    Shape, TensorId, ops,
};

/// Decisions drawn from bytes; 0 when none are left.
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, at: 0 }
    }

    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes.get(self.at - 1).copied().unwrap_or(0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        let word =
            u64::from(self.byte()) | if limit > 256 { u64::from(self.byte()) << 8 } else { 0 };
        word % limit.max(1)
    }

    /// The unused bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Mostly a small number, sometimes one near a limit.
    fn number(&mut self) -> u64 {
        let near = self.below(5);
        match self.below(16) {
            0 => TensorId::PLANNED.0.wrapping_add(near),
            1 => TensorId::PLANNED.0.wrapping_sub(near),
            2 => u64::MAX - near,
            3 => (1 << 40) + near,
            4 => i64::MAX as u64 - near,
            5 => u64::from(u32::MAX) - near,
            _ => self.below(24),
        }
    }

    fn id(&mut self) -> TensorId {
        TensorId(self.number())
    }

    fn word(&mut self) -> u32 {
        self.number() as u32
    }

    fn scalar(&mut self) -> Scalar {
        match self.below(4) {
            0 => Scalar::Bool(true),
            1 => Scalar::Float(f64::from(self.byte()) / 8.0 - 4.0),
            2 => Scalar::Float(f64::NAN),
            _ => Scalar::Int(self.number() as i64),
        }
    }

    fn meta(&mut self) -> Meta {
        let dims: Vec<usize> = (0..self.below(4)).map(|_| self.number() as usize).collect();
        let dtype = [DType::F32, DType::I64, DType::Bool][self.below(3) as usize];
        Meta::new(dtype, Shape::new(&dims).unwrap_or(Shape::SCALAR))
    }
}

/// Applies a few random mutations to a stream.
pub fn mutate(stream: &mut Vec<ClientCommand>, choices: &mut Choices) {
    for _ in 0..=choices.below(6) {
        let count = stream.len() as u64;
        if count == 0 {
            return;
        }
        let at = choices.below(count) as usize;
        match choices.below(10) {
            0 => drop(stream.remove(at)),
            1 => stream.insert(at, stream[at].clone()),
            2 => stream.swap(at, choices.below(count) as usize),
            _ => change(&mut stream[at], choices),
        }
    }
}

/// Changes a random field of a command.
fn change(command: &mut ClientCommand, choices: &mut Choices) {
    match command {
        ClientCommand::Run(instruction) => change_instruction(instruction, choices),
        ClientCommand::Create(create) => match choices.below(2) {
            0 => create.output = choices.id(),
            _ => create.signal = choices.word(),
        },
        ClientCommand::Free(id) => *id = choices.id(),
        ClientCommand::Fetch { request, tensor, .. }
        | ClientCommand::Locate { request, tensor } => match choices.below(2) {
            0 => *tensor = choices.id(),
            _ => *request = RequestId(choices.number()),
        },
        ClientCommand::Save(save) => match choices.below(3) {
            0 => save.tensors.push(choices.id()),
            1 => save.tensors.clear(),
            _ => save.request = RequestId(choices.number()),
        },
        ClientCommand::Signal { number, shard, .. } => match choices.below(3) {
            0 => *number = choices.word(),
            1 => *shard = None,
            _ => *shard = Some(shard_of(choices)),
        },
        ClientCommand::Define(definition) => {
            let (template, start) = (&mut definition.template, &mut definition.start);
            let at = choices.below(template.steps.len().max(1) as u64) as usize;
            match choices.below(10) {
                0 => definition.number = choices.word(),
                1 => template.widths[choices.below(2) as usize] = choices.word(),
                2 => start.bases[choices.below(2) as usize] = choices.id(),
                3 => start.tensors.iter_mut().for_each(|id| *id = choices.id()),
                4 => start.numbers.iter_mut().for_each(|number| *number = choices.scalar()),
                5 => template.frees.push(name(choices)),
                6 if at < template.steps.len() => drop(template.steps.remove(at)),
                7 => template.steps.push(Step::Free(name(choices))),
                8 => template.tensors = choices.word(),
                _ => template
                    .steps
                    .get_mut(at)
                    .into_iter()
                    .for_each(|step| change_step(step, choices)),
            }
        }
        ClientCommand::Invoke(invocation) => match choices.below(8) {
            0 => invocation.template = choices.word(),
            1 => invocation.bases[choices.below(2) as usize] = choices.id(),
            2 => invocation.part.first = choices.word(),
            3 => invocation.part.last = choices.word(),
            4 => invocation.part.frees = choices.word(),
            5 => invocation.tensors.iter_mut().for_each(|(_, id)| *id = choices.id()),
            6 => invocation.numbers.iter_mut().for_each(|(_, number)| *number = choices.scalar()),
            _ => invocation.others.push(choices.id()),
        },
        ClientCommand::Forget { template } => *template = choices.word(),
        ClientCommand::Strict { limit } => *limit = Some(choices.number()),
        ClientCommand::Rescale(rescale) => rescale.slots = Some(choices.word()),
        ClientCommand::Publish(publish) => match choices.below(2) {
            0 => publish.request = RequestId(choices.number()),
            _ => publish.tensors.push(KeptTensor { id: choices.id(), meta: choices.meta() }),
        },
        ClientCommand::Find { request, .. } | ClientCommand::Withdraw { request, .. } => {
            *request = RequestId(choices.number());
        }
        ClientCommand::Keep(kept) => {
            let tensor = KeptTensor { id: choices.id(), meta: choices.meta() };
            kept.tensors.push(tensor);
        }
        ClientCommand::Detach(detach) => detach.request = RequestId(choices.number()),
        ClientCommand::Unkeep { .. } | ClientCommand::Abandon => {}
        ClientCommand::Cancel { request }
        | ClientCommand::Statistics { request }
        | ClientCommand::Explain { request, .. }
        | ClientCommand::Kept { request }
        | ClientCommand::Status { request } => *request = RequestId(choices.number()),
    }
}

fn change_instruction(instruction: &mut Instruction, choices: &mut Choices) {
    match choices.below(7) {
        0 => instruction.output = choices.id(),
        1 => instruction.results = (0..choices.below(3)).map(|_| choices.meta()).collect(),
        2 => instruction.operation = ops::ALL[choices.below(ops::ALL.len() as u64) as usize],
        3 => instruction.operands.push(Operand::Tensor(choices.id())),
        4 => instruction.signal = choices.below(4) as u32,
        5 => instruction.attributes.iter_mut().for_each(|of| change_attribute(of, choices)),
        _ => instruction.operands.iter_mut().for_each(|operand| match choices.below(2) {
            0 => *operand = Operand::Tensor(choices.id()),
            _ => *operand = Operand::Scalar(choices.scalar()),
        }),
    }
}

fn change_attribute(attribute: &mut Attribute, choices: &mut Choices) {
    let number = choices.number() as i64;
    match attribute {
        Attribute::Ints(numbers) if choices.below(4) > 0 => match numbers.first_mut() {
            Some(first) => *first = number,
            None => numbers.push(number),
        },
        Attribute::Int(value) => *value = number,
        other => *other = Attribute::Int(number),
    }
}

fn name(choices: &mut Choices) -> Name {
    let place = choices.word();
    [Name::Own(place), Name::Made(place), Name::Outside(place)][choices.below(3) as usize]
}

fn change_step(step: &mut Step, choices: &mut Choices) {
    let Step::Run(run) = step else { return };
    match choices.below(6) {
        0 => run.output = name(choices),
        1 => run.results = (0..choices.below(3)).map(|_| choices.meta()).collect(),
        2 => run.operands.push(Argument::Number(choices.word())),
        3 => run.operation = ops::ALL[choices.below(ops::ALL.len() as u64) as usize],
        4 => run.attributes.iter_mut().for_each(|of| change_attribute(of, choices)),
        _ => match &mut run.varying {
            Some(varying) => varying.added.iter_mut().for_each(|it| *it = choices.number() as i64),
            None => run.operands.iter_mut().for_each(|it| *it = Argument::Tensor(name(choices))),
        },
    }
}

fn shard_of(choices: &mut Choices) -> Shard {
    let axis = |choices: &mut Choices| MeshAxis {
        name: String::new(),
        length: choices.word(),
        axis: Some(choices.number() as i64),
    };
    let workers = (choices.below(2) == 0).then(|| (0..3).map(|_| choices.word()).collect());
    Shard { workers, mesh: (0..choices.below(4)).map(|_| axis(choices)).collect() }
}
