//! The details of a session, as JSON: for the web page, and for scripts.

use std::time::Duration;

use gt_ir::explain::{PlacedTensor, PlannedRedistribution, PlannedStep};
use gt_ir::layout::Placement;
use gt_ir::status::inspection::{ExplainedSteps, HeldTensor, HeldTensors, Inspection};
use gt_ir::{Meta, SourceId};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

/// Returns the details of a session. Times are in seconds since the dispatcher started.
pub fn json(inspection: &Inspection) -> Value {
    let stream = inspection.stream.iter().map(|of| {
        json!({
            "operation": of.operation,
            "line": of.line,
            "signal": of.signal,
            "count": of.count,
            "hot": of.hot,
            "bytes": of.bytes,
        })
    });
    let hot_paths = inspection.hot_paths.iter().map(|of| {
        json!({
            "number": of.number,
            "steps": of.steps,
            "operations": of.operations,
            "lines": of.lines,
            "instructions": of.instructions,
        })
    });
    json!({
        "session": inspection.session.0,
        "since": seconds(inspection.since),
        "stream": stream.collect::<Vec<_>>(),
        "unlisted": inspection.unlisted,
        "hot_paths": hot_paths.collect::<Vec<_>>(),
        "unlisted_hot_paths": inspection.unlisted_hot_paths,
        "held": inspection.held.as_ref().map(held),
        "explained": inspection.explained.as_ref().map(explained),
    })
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn held(held: &HeldTensors) -> Value {
    json!({
        "at": seconds(held.at),
        "largest": held.largest.iter().map(held_tensor).collect::<Vec<_>>(),
        "others": held.others,
        "other_bytes": held.other_bytes,
    })
}

fn held_tensor(held: &HeldTensor) -> Value {
    json!({
        "variable": held.variable,
        "line": held.line,
        "dtype": held.meta.dtype.name(),
        "shape": held.meta.shape.dims(),
        "bytes": held.meta.bytes(),
        "purpose": held.purpose,
    })
}

fn explained(explained: &ExplainedSteps) -> Value {
    let lines: FxHashMap<SourceId, &str> =
        explained.lines.iter().map(|(line, text)| (*line, text.as_str())).collect();
    let explanation = &explained.explanation;
    let links = explanation.slow_links.iter().map(|link| {
        json!({"one": link.one, "other": link.other, "bytes_per_second": link.bytes_per_second})
    });
    let of_slot = |(slot, bytes): &(u32, u64)| json!({"slot": slot, "bytes": bytes});
    let slots = explanation.slots.iter().zip(&explanation.machines).map(
        |((slot, worker), machine)| json!({"slot": slot, "worker": worker, "machine": machine}),
    );
    json!({
        "at": seconds(explained.at),
        "cut": explained.is_cut,
        "steps": explanation.steps.iter().map(|of| step(of, &lines)).collect::<Vec<_>>(),
        "memory": explanation.memory.iter().map(of_slot).collect::<Vec<_>>(),
        "slots": slots.collect::<Vec<_>>(),
        "slow_links": links.collect::<Vec<_>>(),
    })
}

fn step(step: &PlannedStep, lines: &FxHashMap<SourceId, &str>) -> Value {
    json!({
        "operation": step.operation,
        "line": lines.get(&step.line).copied().unwrap_or_default(),
        "operands": step.operands.iter().map(placed).collect::<Vec<_>>(),
        "output": output(&step.output),
        "moves": step.redistributions.iter().map(redistribution).collect::<Vec<_>>(),
        "counted": step.data_dependent,
    })
}

fn placed(placed: &PlacedTensor) -> Value {
    let Meta { dtype, shape } = &placed.meta;
    json!({
        "dtype": dtype.name(),
        "shape": shape.dims(),
        "placement": placed.placement(),
        "slots": placed.workers,
    })
}

/// Returns a placed tensor with the part that each slot has: for each axis of the mesh, which of the
/// tensor's axes is cut where.
fn output(output: &PlacedTensor) -> Value {
    let shards = output.placements.iter().map(|placement| match placement {
        Placement::Shard { axis, cuts } => json!({"axis": axis, "cuts": cuts[..]}),
        Placement::Replicate | Placement::Partial(_) => Value::Null,
    });
    let mut value = placed(output);
    value["mesh"] = json!(output.dims[..]);
    value["shards"] = shards.collect();
    value
}

fn redistribution(moved: &PlannedRedistribution) -> Value {
    json!({
        "collective": moved.collective.name(),
        "bytes": moved.bytes,
        "from": placed(&moved.from),
        "to": placed(&moved.to),
        "reason": moved.reason,
    })
}
