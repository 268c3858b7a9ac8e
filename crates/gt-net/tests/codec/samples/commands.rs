//! Every command of clients and to workers.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use gt_ir::fabric::CollectiveCall;
use gt_ir::operation::SampleOperand;
use gt_ir::publication::{Audience, FIRST_PUBLICATION, PUBLISHED};
use gt_ir::sharding::Block;
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::snapshot::{Snapshot, ToPublish};
use gt_ir::stored::{
    PublishedPart, PublishedValues, Save, SavePart, SavedBlock, StoredPart, StoredValues, Written,
};
use gt_ir::{
    ClientCommand, Content, Create, DType, Detach, Instruction, Kept, KeptTensor, Meta, Operand,
    Publish, RequestId, SessionId, Shape, SlotId, SourceId, TensorId, WorkerCommand, WorkerId, ops,
};

use super::exchanges::{collective_exchange, exchange};
use super::templates::{definition, invocation};
use super::{data, meta};

pub fn kept() -> Kept {
    let meta = Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap());
    let tensors = vec![KeptTensor { id: TensorId(300), meta }];
    Kept { name: "model".into(), structure: Bytes::from_static(b"{}"), tensors }
}

fn publish(audience: Audience) -> Publish {
    let Kept { name, structure, tensors } = kept();
    let (request, description) = (RequestId(4), "a base model".into());
    Publish { request, name, audience, description, structure, tensors, at: 1 << 31 }
}

pub fn client_commands() -> Vec<ClientCommand> {
    let request = RequestId(4);
    let mut commands: Vec<_> = instructions().into_iter().map(ClientCommand::Run).collect();
    commands.extend(creates().into_iter().map(ClientCommand::Create));
    commands.extend([
        ClientCommand::Fetch { request, tensor: TensorId(5), line: SourceId(0) },
        ClientCommand::Save(Box::new(Save {
            request,
            folder: "/data/run".into(),
            tensors: vec![TensorId(3), TensorId(900)],
            line: SourceId(2),
        })),
        ClientCommand::Free(TensorId(6)),
        ClientCommand::Cancel { request },
        ClientCommand::Signal { number: 8, name: "läyer".into(), shard: None },
        ClientCommand::Signal { number: 9, name: "grid".into(), shard: Some(grid()) },
        ClientCommand::Statistics { request },
        ClientCommand::Explain { request, begin: true },
        ClientCommand::Locate { request, tensor: TensorId(7) },
        ClientCommand::Status { request },
        ClientCommand::Strict { limit: Some(1 << 40) },
        ClientCommand::Keep(Box::new(kept())),
        ClientCommand::Unkeep { name: "model".into() },
        ClientCommand::Kept { request },
        ClientCommand::Detach(Box::new(Detach {
            request,
            name: "run-12".into(),
            token: Some(u128::MAX),
        })),
        ClientCommand::Abandon,
        ClientCommand::Publish(Box::new(publish(Audience::Team))),
        ClientCommand::Publish(Box::new(publish(Audience::Users(vec!["ada".into()])))),
        ClientCommand::Find { request, name: "ada/model@2".into() },
        ClientCommand::Withdraw { request, name: "model".into() },
        ClientCommand::Define(Box::new(definition())),
        ClientCommand::Forget { template: 3 },
        ClientCommand::Invoke(Box::new(invocation())),
    ]);
    commands
}

pub fn worker_commands() -> Vec<WorkerCommand> {
    let request = RequestId(4);
    let mut commands: Vec<_> =
        instructions().into_iter().map(|one| WorkerCommand::Run(Arc::new(one))).collect();
    commands.extend(creates().into_iter().map(|one| WorkerCommand::Create(Box::new(one))));
    commands.extend([
        WorkerCommand::Free(TensorId(6)),
        WorkerCommand::Fetch { request, tensor: TensorId(5), shared: true, line: SourceId(0) },
        WorkerCommand::Save(Box::new(SavePart {
            request,
            folder: "/data/run".into(),
            file: "values-00001.safetensors".into(),
            blocks: vec![SavedBlock { tensor: TensorId(5), index: 1, block: block() }],
            line: SourceId(2),
        })),
        WorkerCommand::Statistics { request },
        WorkerCommand::Exchange(Box::new(exchange())),
        WorkerCommand::Exchange(Box::new(collective_exchange(CollectiveCall::Broadcast {
            root: 1,
        }))),
        WorkerCommand::Exchange(Box::new(collective_exchange(CollectiveCall::AllToAll))),
        WorkerCommand::Slots(vec![WorkerId(3), WorkerId(9)]),
        WorkerCommand::Define(Box::new(definition())),
        WorkerCommand::Invoke(Arc::new(invocation())),
        WorkerCommand::Snapshot(Box::new(Snapshot {
            session: SessionId(9),
            number: 7,
            keeper: Some(WorkerId(3)),
            most: 1 << 33,
            published: None,
        })),
        WorkerCommand::Snapshot(Box::new(Snapshot {
            session: SessionId(FIRST_PUBLICATION + 1),
            number: PUBLISHED,
            keeper: None,
            most: u64::MAX,
            published: Some(vec![ToPublish {
                tensor: TensorId(300),
                index: TensorId(2),
                block: block(),
            }]),
        })),
        WorkerCommand::Restore { session: SessionId(9), snapshot: 7, is_here: true },
    ]);
    commands
}

/// Every operation with every one of its samples' attributes.
fn instructions() -> Vec<Instruction> {
    let mut instructions = Vec::new();
    for operation in ops::ALL {
        for sample in (operation.samples)() {
            let operands =
                sample.operands.iter().enumerate().map(|(index, operand)| match operand {
                    SampleOperand::Tensor { .. } => Operand::Tensor(TensorId(index as u64 + 7)),
                    SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
                });
            instructions.push(Instruction {
                operation,
                output: TensorId(99),
                results: [meta(), Meta::new(DType::I64, Shape::SCALAR)].into_iter().collect(),
                operands: operands.collect(),
                attributes: sample.attributes.clone(),
                source: SourceId(3),
                signal: 1,
            });
        }
    }
    instructions
}

fn creates() -> Vec<Create> {
    let shared = SharedBlock { pid: 1, fd: -2, length: 24, token: 3 };
    let create =
        |content, signal| Create { output: TensorId(1), content, signal, source: SourceId(4) };
    let shared = Content::Shared { meta: meta(), block: shared };
    let parts = vec![StoredPart { file: "/data/run/x".into(), offset: 1 << 33, block: block() }];
    let stored = StoredValues { meta: Meta::new(DType::BF16, block().shape), need: block(), parts };
    let stored = Content::Stored(Box::new(stored));
    let published = PublishedValues {
        publication: SessionId(FIRST_PUBLICATION + 1),
        index: TensorId(2),
        meta: Meta::new(DType::BF16, block().shape),
        need: block(),
        parts: vec![PublishedPart { slot: SlotId(3), block: block() }],
    };
    let published = Content::Published(Box::new(published));
    let all = [(data(3), 0), (data(5000), 300), (shared, 0), (stored, 2), (published, 0)];
    all.into_iter().map(|(content, signal)| create(content, signal)).collect()
}

fn block() -> Block {
    let mut block = Block::whole(Shape::new(&[2, 300]).unwrap());
    block.starts[1] = 7;
    block
}

pub fn written() -> Written {
    let (file, block) = ("values-00001.safetensors".into(), block());
    Written { index: 3, file, offset: 1 << 40, block, bytes: 1200, checksum: u32::MAX }
}

fn grid() -> Shard {
    let mesh = vec![
        MeshAxis { name: "data".into(), length: 2, axis: Some(-1) },
        MeshAxis { name: "model".into(), length: 0, axis: None },
    ];
    Shard { workers: Some(vec![3, 1, 2, 0]), mesh }
}
