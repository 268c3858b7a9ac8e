//! The stream modifiers, which rewrite every batch in order before it is planned.

use gt_ir::ClientCommand;
use gt_ir::modifier::Modifier;

/// The list of modifiers. An empty list costs nothing.
#[derive(Default)]
pub struct Pipeline {
    modifiers: Vec<Box<dyn Modifier>>,
}

impl Pipeline {
    /// Appends a modifier.
    pub fn push(&mut self, modifier: Box<dyn Modifier>) {
        self.modifiers.push(modifier);
    }

    /// Runs a batch through all modifiers.
    pub fn process(&mut self, mut batch: Vec<ClientCommand>) -> Vec<ClientCommand> {
        for modifier in &mut self.modifiers {
            let mut out = Vec::with_capacity(batch.len());
            batch.into_iter().for_each(|command| modifier.process(command, &mut out));
            batch = out;
        }
        batch
    }

    /// Returns the counters of each modifier.
    pub fn get_stats(&self) -> Vec<(&'static str, Vec<(&'static str, u64)>)> {
        self.modifiers.iter().map(|modifier| (modifier.name(), modifier.get_stats())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::TensorId;

    /// Repeats every command and counts them.
    struct Twice(u64);

    impl Modifier for Twice {
        fn name(&self) -> &'static str {
            "twice"
        }

        fn process(&mut self, command: ClientCommand, out: &mut Vec<ClientCommand>) {
            self.0 += 1;
            out.extend([command.clone(), command]);
        }

        fn get_stats(&self) -> Vec<(&'static str, u64)> {
            vec![("commands", self.0)]
        }
    }

    #[test]
    fn modifiers_run_in_order_and_count() {
        let mut pipeline = Pipeline::default();
        pipeline.push(Box::new(Twice(0)));
        pipeline.push(Box::new(Twice(0)));
        let out = pipeline.process(vec![ClientCommand::Free(TensorId(1))]);
        assert_eq!(out.len(), 4);
        let stats = pipeline.get_stats();
        assert_eq!(stats[0], ("twice", vec![("commands", 1)]));
        assert_eq!(stats[1], ("twice", vec![("commands", 2)]));
    }
}
