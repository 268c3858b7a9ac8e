//! Exchanges of parts between workers, by themselves and over a fabric.

use std::sync::Arc;

use gt_ir::exchange::{Collective, Exchange, Hop, KeptBlock, OwnBlock, Parts, Receive, Sender};
use gt_ir::fabric::{CollectiveCall, EngineCollective, Fabric, Member};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{DType, Meta, Shape, SlotId, SourceId, TensorId, TransferId, WorkerId};

pub fn exchange() -> Exchange {
    let block = Block::whole(Shape::new(&[2, 3]).unwrap());
    let from_own = Receive { from: Sender::Own(block), at: block };
    let from_other = Receive { from: Sender::Slot(SlotId(4)), at: block };
    Exchange {
        transfer: TransferId(1 << 60),
        collective: Collective::ReduceScatter,
        input: Some(TensorId(8)),
        output: Some((TensorId(9), Meta::new(DType::F16, Shape::new(&[2, 3]).unwrap()))),
        parts: Parts { sends: vec![(SlotId(4), block)], receives: vec![from_own, from_other] },
        hops: vec![
            Hop {
                from: Sender::Slot(SlotId(3)),
                with: Some(OwnBlock { block, axis: Some(1) }),
                to: vec![],
                kept: Some(KeptBlock { part: Some(block), at: block }),
            },
            Hop {
                from: Sender::Own(block),
                with: None,
                to: vec![SlotId(1), SlotId(3)],
                kept: None,
            },
            Hop {
                from: Sender::Slot(SlotId(3)),
                with: Some(OwnBlock { block, axis: None }),
                to: vec![],
                kept: None,
            },
        ],
        reduction: Some(Reduction::Max),
        engine_collective: None,
        line: SourceId(5),
    }
}

pub fn collective_exchange(call: CollectiveCall) -> Exchange {
    let member = |slot: u32| {
        let (worker, name) = (WorkerId(slot + 7), format!("w{slot}"));
        Member { slot: SlotId(slot), worker, name }
    };
    let (kind, store) = ("gloo/2.15".into(), "127.0.0.1:4444".into());
    let engine_collective =
        EngineCollective { kind, store, members: vec![member(3), member(4)], call };
    Exchange { engine_collective: Some(Arc::new(engine_collective)), ..exchange() }
}

pub fn fabric() -> Fabric {
    let (kind, store) = ("nccl/2.15".into(), "10.0.0.7:4444".into());
    Fabric { kind, local: false, store, device: "GPU-7".into() }
}
