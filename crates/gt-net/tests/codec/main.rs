//! Messages survive the way through frames; anything else is an error, never a panic.
//!
//! - [`samples`]: messages of all kinds.
//! - What was encoded is decoded again, here; [`hostile`]: frames that no encoder wrote.
//! - [`corpus`]: what the fuzzer begins with; [`released`]: peers of other versions.

mod corpus;
mod hostile;
mod released;
mod samples;

use gt_ir::message::{ClientToServer, ServerToWorker, WorkerToServer};
use gt_ir::wire::Record;
use gt_ir::{ClientCommand, Instruction, Operand, RequestId, Scalar, SourceId, TensorId, ops};
use gt_net::codec::{decode, encode};
use proptest::prelude::*;

use crate::samples::{LANE, client_commands, data, meta, samples, worker_commands};

#[test]
fn every_message_is_read_back() {
    // Each is compared where it is made.
    assert!(samples().len() > 60);
    let (request, result) = (RequestId(1), Ok(data((64 << 20) + 5)));
    let large = WorkerToServer::Value { request, result };
    assert_eq!(decode::<WorkerToServer>(&encode(&large)).unwrap(), large);
}

#[test]
fn the_log_knows_the_length_on_the_wire() {
    let empty = encode(&ClientToServer::Stream(Vec::new())).concat().len();
    for command in client_commands() {
        let length = encode(&ClientToServer::Stream(vec![command.clone()])).concat().len() - empty;
        assert_eq!(command.length(), length, "{command:?}");
    }
    let work = |commands| encode(&ServerToWorker::Work { lane: LANE, commands }).concat().len();
    for command in worker_commands() {
        let length = work(vec![command.clone()]) - work(Vec::new());
        assert_eq!(command.length(), length, "{command:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn scalars_keep_their_bits(bits in any::<u64>(), whole in any::<i64>()) {
        for scalar in [Scalar::Float(f64::from_bits(bits)), Scalar::Int(whole)] {
            let command = ClientCommand::Run(Instruction {
                operation: &ops::binary::ADD,
                output: TensorId(1),
                results: [meta()].into_iter().collect(),
                operands: [Operand::Scalar(scalar), Operand::Tensor(TensorId(2))].into_iter().collect(),
                attributes: Default::default(),
                source: SourceId(0),
                signal: 0,
            });
            let frames = encode(&ClientToServer::Stream(vec![command]));
            let Ok(ClientToServer::Stream(back)) = decode(&frames) else { panic!("a stream") };
            let ClientCommand::Run(instruction) = &back[0] else { panic!("an instruction") };
            let same = match (instruction.operands[0], scalar) {
                (Operand::Scalar(Scalar::Float(a)), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
                (Operand::Scalar(a), b) => a == b,
                _ => false,
            };
            prop_assert!(same);
        }
    }
}
