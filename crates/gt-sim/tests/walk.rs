//! A walk through the code: one training step, followed through all crates.
//!
//! `y = x w` is fitted to a line. The data is sharded by rows over two workers; the weight is on
//! one. The loop runs until it is a *hot path*, and this test checks what each crate holds. Read it
//! from top to bottom.

use std::sync::Arc;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Session, Tensor};
use gt_ir::signal::Shard;
use gt_ir::template::Step;
use gt_ir::wire::Record;
use gt_ir::{Bindings, ClientCommand};
use gt_worker::Work;

use crate::common::parts::{Line, start};

/// Returns a line of the log without times and sizes.
fn plain(line: &str) -> String {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    format!("{} {} {}", parts[3].replace("WORKER ", ""), parts[4], parts[6])
}

#[test]
fn a_training_step_goes_through_all_crates() {
    let (parts, log, plans) = start();
    let session = Session::new(Arc::new(Line(Arc::clone(&parts))));
    session.set_hot_paths(Settings { enabled: true, threshold: 3, compile: false });
    let shard = Some(Shard::row(None, Some(0)));
    registry::register("walk rows", SignalConfig { shard, ..SignalConfig::default() });
    let data = |numbers: [f32; 4]| {
        crate::common::within("walk rows", || Tensor::from_slice(&session, &numbers, &[4]).unwrap())
    };
    let (x, y) = (data([1.0, 2.0, 3.0, 4.0]), data([3.0, 6.0, 9.0, 12.0]));
    let mut w = Tensor::from_slice(&session, &[0.0f32], &[1]).unwrap();
    // gt-client: each call puts an instruction on the session's stream, and returns a handle of its
    // result.
    let step = |w: &Tensor| {
        let error = x.mul(w).unwrap().sub(&y).unwrap();
        let gradient = error.mul(&x).unwrap().sum(&[], false).unwrap();
        w.sub(&gradient.mul(0.002).unwrap()).unwrap()
    };
    // The expected value, as NumPy computes it: w -= 0.002 * ((x * w - y) * x).sum().
    let mut want = 0.0f32;
    for _ in 0..36 {
        w = step(&w);
        want -= 0.002 * (30.0 * want - 90.0);
    }
    let got = w.to_vec().unwrap()[0];
    assert!((got - f64::from(want)).abs() < 1e-5, "{got} instead of {want}");

    let sent = std::mem::take(&mut parts.lock().unwrap().sent);
    // gt-ir: the first step, as instructions. Tensors 0 and 1 are the data, 2 is the weight.
    let runs = sent.iter().filter_map(|command| match command {
        ClientCommand::Run(instruction) => Some(instruction.to_string()),
        _ => None,
    });
    assert_eq!(runs.take(6).collect::<Vec<_>>().join("\n"), INSTRUCTIONS);

    // gt-client: the detector has found that they repeat, and has defined a template, of three
    // rounds, as a shorter one costs more than it saves. From then on an iteration is one command,
    // in which only the ids of its results are new.
    let template = sent.iter().find_map(|command| match command {
        ClientCommand::Define(definition) => Some(definition),
        _ => None,
    });
    let template = template.expect("the loop is hot");
    assert_eq!(template.template.len(), 18);
    let bindings = Bindings::new(template.template.widths, &template.start);
    let steps = template.template.steps.iter().map(|step| match step {
        Step::Run(step) => step.instruction(&bindings).to_string(),
        other => panic!("only the planner makes {other:?}"),
    });
    assert_eq!(steps.skip(6).take(6).collect::<Vec<_>>().join("\n"), TEMPLATE);
    let last = sent.iter().rfind(|command| matches!(command, ClientCommand::Invoke(_))).unwrap();
    assert!(last.length() <= 16, "{last:?} takes {} bytes", last.length());

    // gt-dispatcher: the planner has sharded each instruction over the two slots, and has inserted
    // exchanges. The sum is partial: each slot has the sum of its own rows. It is scaled as it is,
    // and all-reduced where the replicated weight needs it. This was planned once, and is a
    // template for each worker.
    let log = log.lock().unwrap();
    let begin = log.iter().rposition(|line| line.contains("w1 ") && line.contains("HotPathStart"));
    let iteration = log[begin.expect("workers invoke it") + 1..].iter().take(14);
    assert_eq!(iteration.map(|line| plain(line)).collect::<Vec<_>>().join("\n"), PLANNED);

    // gt-worker: all operations between two exchanges are one engine plan. It has the update of one
    // round and the gradient of the next, and reuses the memory of the old weight.
    let plans = plans.lock().unwrap();
    let of_both = |worker: &str| plans.iter().any(|plan| *plan == format!("{worker}\n{PLAN}"));
    assert!(of_both("w0") && of_both("w1"), "{}", plans.join("\n"));

    // gt-engine-native has run more than half of all operations in such plans.
    for worker in &parts.lock().unwrap().workers {
        let stats = worker.stats();
        assert!(stats.hot_instructions * 2 > stats.operations_total, "{stats:?}");
    }
}

const INSTRUCTIONS: &str = "\
TENSOR[3] := MUL TENSOR[0] TENSOR[2]
TENSOR[4] := SUB TENSOR[3] TENSOR[1]
TENSOR[5] := MUL TENSOR[4] TENSOR[0]
TENSOR[6] := SUM TENSOR[5] dim=[] keepdim=false
TENSOR[7] := MUL TENSOR[6] 0.002
TENSOR[8] := SUB TENSOR[2] TENSOR[7]";

/// The second round of the iteration from which the template was made.
const TEMPLATE: &str = "\
TENSOR[51] := MUL TENSOR[0] TENSOR[50]
TENSOR[52] := SUB TENSOR[51] TENSOR[1]
TENSOR[53] := MUL TENSOR[52] TENSOR[0]
TENSOR[54] := SUM TENSOR[53] dim=[] keepdim=false
TENSOR[55] := MUL TENSOR[54] 0.002
TENSOR[56] := SUB TENSOR[50] TENSOR[55]";

/// The first round of an iteration on the second worker.
const PLANNED: &str = "\
w1 WorkerBinaryOp result=189 op=mul left=0 right=188
w1 WorkerBinaryOp result=190 op=sub left=189 right=1
w1 WorkerFreeTensor tensor=189
w1 WorkerBinaryOp result=191 op=mul left=190 right=0
w1 WorkerFreeTensor tensor=190
w1 WorkerReduceOp result=192 op=sum input=191 dim=[] keepdim=false
w1 WorkerFreeTensor tensor=191
w1 WorkerBinaryOp result=193 op=mul left=192 right=scalar(0.002)
w1 WorkerFreeTensor tensor=192
w1 WorkerAllReduce op=all_reduce result=17592186044449 shape=() input=193 to=[0] from=[0]
w1 WorkerBinaryOp result=194 op=sub left=188 right=17592186044449
w1 WorkerFreeTensor tensor=193
w1 WorkerFreeTensor tensor=17592186044449
w1 WorkerFreeTensor tensor=188";

/// The plan between two sums: `w - gradient`, and the gradient of the next round.
const PLAN: &str = "\
%0: float32 (1,)
%1: float32 ()
%2: float32 (2,)
%3: float32 (2,)
%4: a number
%5 = sub(%0, %1) float32 (1,)
%6 = mul(%2, %5) float32 (2,)
%7 = sub(%6, %3) float32 (2,)
%8 = mul(%7, %2) float32 (2,)
%9 = sum(%8, dim=[], keepdim=false) float32 ()
%10 = mul(%9, %4) float32 ()
outputs: %5 %10
given away: %0 %1
";
