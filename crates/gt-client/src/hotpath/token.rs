//! Tokens: hashes of commands without tensors' ids and numbers.

use gt_ir::{Attribute, ClientCommand, Instruction, Meta, Operand, Scalar, TensorId};

/// Operands up to this distance are hashed by their distance.
const NEAR: u64 = 16;

/// Returns the hash of an instruction, or of a tensor from data; `None` for commands that make no
/// tensor. The distance of tensors older than `oldest` is ignored.
#[inline]
pub fn token(command: &ClientCommand, oldest: TensorId) -> Option<u64> {
    match command {
        ClientCommand::Run(instruction) => Some(instruction_token(instruction, oldest)),
        ClientCommand::Create(create) => {
            let mut hash = TokenHasher::new(1);
            hash.eat(u64::from(create.signal));
            hash.meta(&create.content.meta());
            Some(hash.finish())
        }
        _ => None,
    }
}

fn instruction_token(instruction: &Instruction, oldest: TensorId) -> u64 {
    let operation = instruction.operation;
    let mut hash =
        TokenHasher::new(u64::from(operation.id) << 32 | u64::from(instruction.source.0));
    instruction.results.iter().for_each(|meta| hash.meta(meta));
    // One word holds several distances and kinds, as these are small.
    let mut operands = u64::from(instruction.signal);
    for operand in &instruction.operands {
        let operand = match operand {
            Operand::Tensor(id) if *id < oldest => NEAR,
            Operand::Tensor(id) => instruction.output.0.wrapping_sub(id.0).min(NEAR),
            Operand::Scalar(Scalar::Bool(_)) => NEAR + 1,
            Operand::Scalar(Scalar::Int(_)) => NEAR + 2,
            Operand::Scalar(Scalar::Float(_)) => NEAR + 3,
        };
        operands = operands.rotate_left(5) ^ operand;
    }
    hash.eat(operands);
    if instruction.attributes.is_empty() {
        return hash.finish();
    }
    let varies = operation.varying_attribute();
    for (index, attribute) in instruction.attributes.iter().enumerate() {
        match attribute {
            Attribute::None => hash.eat(0),
            Attribute::Int(value) => hash.eat(*value as u64),
            Attribute::Float(value) => hash.eat(value.to_bits()),
            Attribute::Bool(value) => hash.eat(u64::from(*value)),
            Attribute::DType(dtype) => hash.eat(*dtype as u64),
            Attribute::Ints(values) if varies == Some(index) => hash.eat(values.len() as u64),
            Attribute::Ints(values) => values.iter().for_each(|&value| hash.eat(value as u64)),
        }
    }
    hash.finish()
}

/// Multiplies and folds: two words a step, as wyhash does.
struct TokenHasher(u64);

impl TokenHasher {
    fn new(seed: u64) -> TokenHasher {
        TokenHasher(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn eat(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f_u128;
        self.0 = (product >> 64) as u64 ^ product as u64 ^ word.rotate_left(23);
    }

    #[inline]
    fn meta(&mut self, meta: &Meta) {
        let mut word = (meta.dtype as u64) << 8 | meta.shape.rank() as u64;
        for dim in meta.shape.dims() {
            word = word.rotate_left(24) ^ *dim as u64;
        }
        self.eat(word);
    }

    fn finish(self) -> u64 {
        self.0
    }
}
