//! A template with a step of each kind, and its invocation.

use std::sync::Arc;

use gt_ir::fabric::CollectiveCall;
use gt_ir::layout::{Layout, Mesh, Placement};
use gt_ir::template::{
    Argument, ExchangeStep, IterationPart, Name, RunStep, Start, Step, Varying, VaryingSlice,
};
use gt_ir::{
    Attribute, Definition, Invocation, Scalar, Shape, SlotId, SourceId, Template, TensorId,
    TransferId, ops,
};

use super::exchanges::collective_exchange;
use super::meta;

pub fn definition() -> Definition {
    let lists = [vec![1i64], vec![2], vec![1]];
    let run = RunStep {
        operation: &ops::slice::SLICE,
        output: Name::Own(300),
        results: [meta()].into_iter().collect(),
        operands: [
            Argument::Tensor(Name::Outside(3)),
            Argument::Number(2),
            Argument::Constant(Scalar::Float(0.5)),
        ]
        .into_iter()
        .collect(),
        attributes: lists.iter().map(|list| Attribute::ints(list)).collect(),
        varying: Some(Varying { first: 3, added: [-5].into_iter().collect() }),
        source: SourceId(7),
        signal: 300,
    };
    let placements = [Placement::balanced(0, 9, 2)].into_iter().collect();
    let slots = vec![SlotId(1), SlotId(0)];
    let mesh = Arc::new(Mesh { number: 0, dims: [2].into_iter().collect(), slots });
    let layout = Layout { mesh, placements };
    let shape = Shape::new(&[9, 3]).unwrap();
    let moving = VaryingSlice {
        whole: shape,
        from: layout.clone(),
        size: shape,
        starts: Varying { first: 1, added: [0, 7].into_iter().collect() },
        to: layout,
    };
    let exchange = ExchangeStep {
        exchange: Box::new(collective_exchange(CollectiveCall::AllReduce)),
        transfer: 9,
        input: Some(Name::Made(4)),
        output: None,
        slice: Some(Box::new(moving)),
    };
    let template = Template {
        steps: vec![
            Step::Run(run),
            Step::Exchange(exchange),
            Step::Data { output: Name::Own(2), meta: meta() },
            Step::Free(Name::Own(1)),
        ],
        frees: vec![Name::Outside(0), Name::Own(3)],
        widths: [10, 200],
        tensors: 2,
        numbers: 2,
        cuts: vec![1, 3],
    };
    let start = Start {
        bases: [TensorId(1 << 40), TensorId::PLANNED],
        tensors: vec![TensorId(1), TensorId(1 << 50)],
        numbers: vec![Scalar::Int(3), Scalar::Bool(false)],
    };
    Definition { number: 63, template, start, compile: true }
}

pub fn invocation() -> Invocation {
    let numbers = vec![(0, Scalar::Float(0.5)), (1, Scalar::Int(-7)), (300, Scalar::Bool(true))];
    Invocation {
        template: 63,
        bases: [TensorId(1 << 40), TensorId::PLANNED],
        transfer: TransferId(77),
        part: IterationPart { first: 2, last: 200, frees: 5 },
        tensors: vec![(0, TensorId(4)), (9000, TensorId(1 << 46))],
        numbers,
        others: vec![TensorId(0), TensorId(1 << 44)],
        digest: 0xdead_beef,
    }
}
