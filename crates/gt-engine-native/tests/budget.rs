//! Every operation under a budget: the bytes that it allocates, as counted by the allocator, are
//! within the budget.
//!
//! Operands are enlarged samples. An operation succeeds within its budget or reports that memory is
//! exhausted; in either case it allocates no more than the budget.

mod calls;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::ops::custom::CUSTOM;
use gt_ir::ops::{self, linalg};
use gt_ir::{Meta, Operation};
use gt_worker::{Engine, EngineError};

use calls::{Call, create, enlarged, metas, reshaped};

/// The system's allocator, with counters.
struct Counting;

static NOW: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

fn add(bytes: i64) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: all calls are forwarded to the system's allocator unchanged; the counters are atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: by the caller's guarantee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: by the caller's guarantee.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: by the caller's guarantee.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that small blocks, threads and tables may take in addition to a budget. Blocks are up to
/// an eighth larger than requested.
const SLACK: i64 = 3 << 20;

/// Operations whose shapes follow from attributes, which are not enlarged: they allocate only their
/// results, or a copy of their operand.
const BY_ATTRIBUTES: [&str; 4] = ["arange", "linspace", "eye", "reshape"];

/// Runs a call under a budget; returns the most bytes that it allocated at a time, and its result.
fn run(
    engine: &mut NativeEngine,
    operation: &'static Operation,
    call: &Call,
    budget: Option<u64>,
    is_expanded: bool,
) -> (i64, Result<(), EngineError>) {
    let outputs = operation.results(&metas(call), &call.1).expect("the sample is valid");
    let given: Operands<Tensor> =
        call.0.iter().map(|operand| create(engine, operand, is_expanded)).collect();
    let kept = given.clone();
    engine.release_memory();
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    engine.set_budget(budget);
    let made = match operation.further {
        Some(_) => engine.run_several(operation, given, &call.1, &outputs).map(drop),
        None => engine.run(operation, given, &call.1, outputs[0]).map(drop),
    };
    engine.set_budget(None);
    let most = MOST.load(Ordering::Relaxed) - before;
    drop(kept);
    (most, made)
}

/// Returns a description of the first violation by a call.
fn judge(engine: &mut NativeEngine, operation: &'static Operation, call: &Call) -> Option<String> {
    for is_expanded in [false, true] {
        // The first run allocates what remains afterwards, such as threads and tables.
        let _ = run(engine, operation, call, None, is_expanded);
        let (most, free) = run(engine, operation, call, None, is_expanded);
        for budget in [most - most / 4, most / 2, most / 8] {
            let (used, made) = run(engine, operation, call, Some(budget as u64), is_expanded);
            let allowed = budget + budget / 8 + SLACK;
            if used > allowed {
                let (name, shapes) = (operation.name, metas(call));
                return Some(format!(
                    "{name} {shapes:?} expanded {is_expanded}: {used} bytes under a budget of {budget} ({made:?})"
                ));
            }
            let is_alike = match &made {
                Err(EngineError::OutOfMemory { .. }) => true,
                made => made.is_ok() == free.is_ok(),
            };
            if !is_alike {
                return Some(format!(
                    "{}: {made:?}, and without a budget {free:?}",
                    operation.name
                ));
            }
        }
    }
    None
}

/// Returns the call with large matrices, if it is a factorization.
fn matrices(operation: &Operation, call: &Call) -> Option<Call> {
    let all =
        [&linalg::CHOLESKY, &linalg::LU, &linalg::QR, &linalg::SVD, &linalg::EIGH, &linalg::EIG];
    let is_of_matrices = all.iter().any(|other| other.id == operation.id);
    let square = |dims: &[usize]| (dims.len() >= 2).then(|| vec![300, 300]);
    if is_of_matrices { reshaped(call, square) } else { None }
}

#[test]
fn no_operation_allocates_beyond_its_budget() {
    let mut engine = NativeEngine::new(2);
    let (mut wrong, mut small) = (Vec::new(), Vec::new());
    let all = ops::ALL.iter().copied().filter(|operation| **operation != CUSTOM);
    for operation in all.filter(|operation| engine_lowers(operation)) {
        let mut tried: Vec<(usize, Call)> = Vec::new();
        for sample in (operation.samples)() {
            let call = (sample.operands.to_vec(), sample.attributes.clone());
            let candidates = enlarged(&call).into_iter().chain(matrices(operation, &call));
            for call in candidates {
                let Ok(results) = operation.results(&metas(&call), &call.1) else { continue };
                let given =
                    metas(&call).iter().filter_map(|of| of.tensor().copied()).collect::<Vec<_>>();
                let size: usize = results.iter().chain(&given).map(Meta::bytes).sum();
                if (1 << 20..64 << 20).contains(&size) {
                    tried.push((size, call));
                }
            }
        }
        tried.sort_by_key(|(size, _)| *size);
        if tried.is_empty() {
            small.push(operation.name);
        }
        // The largest call, and a few of the others.
        let step = tried.len().div_ceil(3).max(1);
        for (_, call) in tried.into_iter().rev().step_by(step) {
            wrong.extend(judge(&mut engine, operation, &call));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(small, BY_ATTRIBUTES, "operations without a large sample");
}

fn engine_lowers(operation: &'static Operation) -> bool {
    NativeEngine::new(1).lowers(operation)
}
