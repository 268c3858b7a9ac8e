//! A fixture of two sessions: a healthy one, and one that may send anything.

use gt_dispatcher::PeerId;
use gt_ir::{Attribute, ClientCommand, Operand, Scalar, TensorId, ops};

use super::{Cluster, Program, fetch};

/// Returns the healthy session's batches: sharded, redistributed and repeated work.
fn healthy() -> Vec<Vec<ClientCommand>> {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[6, 4]);
    let whole = [Attribute::ints(&[0]), Attribute::Bool(false)];
    let sum = program.run(&ops::reduce::SUM, &[x], &whole);
    let mut repeated = program.define(0, &[], |program| {
        let scaled =
            program.step(&ops::binary::MUL, &[x, Operand::Scalar(Scalar::Float(2.0))], &[]);
        let of = Operand::Tensor(scaled.output);
        vec![scaled, program.step(&ops::reduce::SUM, &[of], &whole)]
    });
    program.fetch(sum);
    let mut batches = vec![std::mem::take(&mut program.commands)];
    for _ in 0..6 {
        program.invoke(&mut repeated, &[(0, Scalar::Float(3.0))]);
        let last = Operand::Tensor(TensorId(program.base().0 - 1));
        program.run(&ops::unary::EXP, &[last], &[]);
        program.fetch(last);
        batches.push(std::mem::take(&mut program.commands));
    }
    batches
}

/// Two sessions on two workers: the healthy one is 1, the other 2.
pub struct Pair {
    pub cluster: Cluster,
    good: PeerId,
    pub bad: PeerId,
    batches: std::vec::IntoIter<Vec<ClientCommand>>,
}

impl Pair {
    pub fn new() -> Pair {
        let mut cluster = Cluster::new(2);
        let (good, bad) = (cluster.connect(101), cluster.connect(102));
        Pair { cluster, good, bad, batches: healthy().into_iter() }
    }

    /// Sends the healthy session's next batch.
    fn step(&mut self) {
        let batch = self.batches.next().unwrap_or_default();
        self.cluster.send(self.good, batch);
    }

    /// Sends commands of the bad session between batches of the healthy one.
    pub fn attack(&mut self, commands: Vec<ClientCommand>) {
        self.step();
        self.cluster.send(self.bad, commands);
        self.step();
    }

    /// Runs the healthy session to its end, and checks that workers got the same commands from it
    /// as without the bad session.
    pub fn check(mut self, of: &str) {
        while !self.batches.as_slice().is_empty() {
            self.step();
        }
        let mut alone = Cluster::new(2);
        let good = alone.connect(101);
        healthy().into_iter().for_each(|batch| alone.send(good, batch));
        assert_eq!(alone.goodbye(good), None);
        assert!(alone.stream(1).len() > 10, "{:?}", alone.to_clients);
        assert_eq!(self.cluster.stream(1), alone.stream(1), "{of}");
        assert_eq!(self.cluster.goodbye(self.good), None, "{of}");
        assert_eq!(self.cluster.errors(self.good), [], "{of}");
        assert!(!self.cluster.ended.contains(&1), "{of}");
    }

    /// Checks that the bad session was ended for this reason.
    pub fn ended(&mut self, said: &str) {
        let reason = self.cluster.goodbye(self.bad).expect("the session was ended").to_string();
        assert!(reason.contains(said), "{reason:?} does not say {said:?}");
        // Each worker got `EndSession`, and later commands are not accepted.
        assert_eq!(self.cluster.ended, [2, 2], "{reason}");
        let before = self.cluster.streams.len();
        self.cluster.send(self.bad, vec![fetch(0)]);
        assert_eq!(self.cluster.streams.len(), before);
    }
}
