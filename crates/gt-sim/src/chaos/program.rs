//! A session's small random program, with its expected values.
//!
//! Its numbers are integers small enough that every sum is exact, in any parts and order: so each
//! value must equal that of a faultless run.

use std::sync::Once;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{ClientError, Result, Session, Tensor, signal};
use gt_ir::signal::Shard;

use crate::chance::Chance;

/// Below this, sums and products of integers are exact.
const EXACT: f64 = 1e15;

/// The most tensors that a program holds.
const KEPT: usize = 6;

/// The most workers that scopes name.
const WORKERS: u32 = 4;

/// The name of the signal for a placement: workers, and the axis sharded over them.
fn scope(workers: &[u32], axis: Option<i64>) -> String {
    format!("chaos {workers:?} {axis:?}")
}

/// Registers all scopes once, before any world, so that schedules depend on their seeds only.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for set in 1..1u32 << WORKERS {
            let up: Vec<u32> = (0..WORKERS).filter(|worker| set >> worker & 1 == 1).collect();
            let down: Vec<u32> = up.iter().rev().copied().collect();
            for workers in [up, down] {
                for axis in [None, Some(0), Some(1)] {
                    let shard = Some(Shard::row(Some(workers.clone()), axis));
                    let config = SignalConfig { shard, ..SignalConfig::default() };
                    registry::register(&scope(&workers, axis), config);
                }
            }
        }
    });
}

struct Expected {
    tensor: Tensor,
    values: Vec<f64>,
}

impl Expected {
    fn largest(&self) -> f64 {
        self.values.iter().fold(1.0, |largest, value| value.abs().max(largest))
    }
}

/// The result of a fetch.
pub enum ReadOutcome {
    None,
    Right,
    Wrong { got: Vec<f64>, want: Vec<f64> },
    Failed(ClientError),
}

/// A session's random program.
pub struct RandomProgram {
    pub session: Session,
    chance: Chance,
    /// Tensors are square.
    size: usize,
    /// The workers that its scopes name.
    pub workers: Vec<u32>,
    known: Vec<Expected>,
}

impl RandomProgram {
    pub fn new(session: Session, seed: u64, workers: Vec<u32>) -> RandomProgram {
        let mut chance = Chance::new(seed);
        let enabled = chance.below(4) > 0;
        session.set_hot_paths(Settings { enabled, threshold: 3, compile: false });
        let size = 2 + chance.below(3) as usize;
        RandomProgram { session, chance, size, workers, known: Vec::new() }
    }

    /// Makes a random step, within a random scope.
    pub fn step(&mut self) -> ReadOutcome {
        let name = self.scope();
        let body = |program: &mut RandomProgram| match program.chance.below(12) {
            _ if program.known.len() < 2 => program.create(),
            0 => program.create(),
            1..=6 => program.operate(),
            7 => program.repeat(),
            8 => {
                program.session.flush();
                Ok(())
            }
            _ => Ok(()),
        };
        signal::enter(&name, None).expect("it may be entered");
        let done = body(self);
        signal::exit(&name).expect("it was entered");
        match done {
            Err(error) => ReadOutcome::Failed(error),
            Ok(()) if self.chance.below(8) == 0 => self.ask(),
            Ok(()) if self.chance.below(16) == 0 => self.give_up(),
            Ok(()) => ReadOutcome::None,
        }
    }

    /// Fetches and drops all tensors.
    pub fn finish(&mut self) -> Vec<ReadOutcome> {
        let mut answers = Vec::new();
        while !self.known.is_empty() {
            answers.push(self.ask());
            self.known.pop();
        }
        answers
    }

    fn scope(&mut self) -> String {
        let mut workers = self.workers.clone();
        while workers.len() > 1 && self.chance.below(3) == 0 {
            let index = self.chance.below(workers.len() as u64) as usize;
            workers.remove(index);
        }
        if self.chance.below(3) == 0 {
            workers.reverse();
        }
        scope(&workers, [None, Some(0), Some(1)][self.chance.below(3) as usize])
    }

    fn any(&mut self) -> usize {
        self.chance.below(self.known.len() as u64) as usize
    }

    fn keep(&mut self, tensor: Tensor, values: Vec<f64>) {
        if self.known.len() == KEPT {
            let index = self.any();
            self.known.swap_remove(index);
        }
        self.known.push(Expected { tensor, values });
    }

    fn create(&mut self) -> Result<()> {
        let n = self.size;
        let values: Vec<f64> = (0..n * n).map(|_| self.chance.below(19) as f64 - 9.0).collect();
        let tensor = Tensor::from_slice(&self.session, &values, &[n, n])?;
        self.keep(tensor, values);
        Ok(())
    }

    fn operate(&mut self) -> Result<()> {
        let (left, right, way) = (self.any(), self.any(), self.chance.below(6));
        let (tensor, values) = apply(way, &self.known[left], &self.known[right], self.size)?;
        self.keep(tensor, values);
        Ok(())
    }

    /// Runs a loop that is long enough to become a hot path.
    fn repeat(&mut self) -> Result<()> {
        let (left, right) = (self.any(), self.any());
        let (first, second) = (self.chance.below(6), self.chance.below(6));
        let fixed = Expected {
            tensor: self.known[right].tensor.clone(),
            values: self.known[right].values.clone(),
        };
        let mut at = Expected {
            tensor: self.known[left].tensor.clone(),
            values: self.known[left].values.clone(),
        };
        for _ in 0..3 + self.chance.below(6) {
            for way in [first, second] {
                let (tensor, values) = apply(way, &at, &fixed, self.size)?;
                at = Expected { tensor, values };
            }
            if at.largest() > 1e4 {
                let zero = at.tensor.mul(0.0)?;
                at = Expected { tensor: zero, values: at.values.iter().map(|_| 0.0).collect() };
            }
        }
        self.keep(at.tensor, at.values);
        Ok(())
    }

    /// Begins a fetch and interrupts it.
    fn give_up(&mut self) -> ReadOutcome {
        let index = self.any();
        match self.known[index].tensor.fetch_with(&mut || true) {
            Err(ClientError::Interrupted) => ReadOutcome::None,
            Err(error) => ReadOutcome::Failed(error),
            Ok(_) => ReadOutcome::None,
        }
    }

    fn ask(&mut self) -> ReadOutcome {
        let index = self.any();
        let Expected { tensor, values } = &self.known[index];
        match tensor.to_vec() {
            // Equal as numbers, as the sign of a zero depends on the order of additions.
            Ok(got) if got == *values => ReadOutcome::Right,
            Ok(got) => ReadOutcome::Wrong { got, want: values.clone() },
            Err(error) => {
                self.known.swap_remove(index);
                ReadOutcome::Failed(error)
            }
        }
    }
}

/// Computes a tensor from two others, and its expected values.
fn apply(way: u64, left: &Expected, right: &Expected, n: usize) -> Result<(Tensor, Vec<f64>)> {
    let (a, b) = (&left.values, &right.values);
    let zip = |of: fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect();
    let bound = left.largest() * right.largest() * n as f64;
    Ok(match way {
        0 => (left.tensor.add(&right.tensor)?, zip(|a, b| a + b)),
        1 if bound < EXACT => (left.tensor.mul(&right.tensor)?, zip(|a, b| a * b)),
        2 | 3 if bound < EXACT => {
            let cell = |at: usize| (0..n).map(|k| a[at / n * n + k] * b[k * n + at % n]).sum();
            (left.tensor.matmul(&right.tensor)?, (0..n * n).map(cell).collect())
        }
        4 if bound < EXACT => {
            let sums = (0..n * n).map(|at| (0..n).map(|row| a[row * n + at % n]).sum::<f64>());
            let rows = sums.zip(b).map(|(sum, b)| sum - b).collect();
            (left.tensor.sum(&[0], true)?.sub(&right.tensor)?, rows)
        }
        5 => (left.tensor.t()?, (0..n * n).map(|at| a[at % n * n + at / n]).collect()),
        _ => (left.tensor.mul(0.0)?, vec![0.0; n * n]),
    })
}
