//! Counts a session's instructions by operation, line and signal, while a watcher asks for them.

use gt_ir::instruction::Results;
use gt_ir::template::{IterationPart, Step, Template};
use gt_ir::{ClientCommand, SourceId};
use rustc_hash::FxHashMap;

use crate::templates::ClientTemplates;

/// The most kinds that are counted singly, of some 60 bytes each.
const MOST_KINDS: usize = 1 << 12;

/// The counted instructions.
#[derive(Default)]
pub(crate) struct StreamCounts {
    kinds: FxHashMap<StreamKind, StreamCount>,
    /// Instructions of further kinds.
    others: u64,
}

/// What is counted together: an operation of a line, in the scope of a signal (0 for none).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct StreamKind {
    pub operation: &'static str,
    pub line: SourceId,
    pub signal: u32,
}

/// How many instructions of a kind there were.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct StreamCount {
    pub count: u64,
    /// Those in iterations of hot paths.
    pub hot: u64,
    /// The bytes of the results.
    pub bytes: u64,
}

impl StreamCounts {
    /// Counts commands that are planned next.
    pub fn add(&mut self, commands: &[ClientCommand], templates: &ClientTemplates) {
        for command in commands {
            match command {
                ClientCommand::Run(run) => {
                    let kind = StreamKind {
                        operation: run.operation.name,
                        line: run.source,
                        signal: run.signal,
                    };
                    self.count(kind, false, bytes(&run.results));
                }
                ClientCommand::Create(create) => {
                    let (line, signal) = (create.source, create.signal);
                    let bytes = create.content.meta().bytes() as u64;
                    self.count(StreamKind { operation: "create", line, signal }, false, bytes);
                }
                ClientCommand::Fetch { line, .. } => {
                    let kind = StreamKind { operation: "fetch", line: *line, signal: 0 };
                    self.count(kind, false, 0);
                }
                ClientCommand::Invoke(invocation) => {
                    if let Some(template) = templates.get(invocation.template) {
                        self.add_part(template, invocation.part);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_part(&mut self, template: &Template, part: IterationPart) {
        let steps = part.first as usize..part.last as usize;
        for step in template.steps.get(steps).unwrap_or_default() {
            if let Step::Run(run) = step {
                let (operation, line, signal) = (run.operation.name, run.source, run.signal);
                self.count(StreamKind { operation, line, signal }, true, bytes(&run.results));
            }
        }
    }

    fn count(&mut self, kind: StreamKind, is_hot: bool, bytes: u64) {
        if self.kinds.len() == MOST_KINDS && !self.kinds.contains_key(&kind) {
            self.others += 1;
            return;
        }
        let counted = self.kinds.entry(kind).or_default();
        counted.count += 1;
        counted.hot += u64::from(is_hot);
        counted.bytes += bytes;
    }

    /// Returns the kinds with the most instructions, in a fixed order, and the number of all other
    /// instructions.
    pub fn most_frequent(&self, most: usize) -> (Vec<(StreamKind, StreamCount)>, u64) {
        let mut all: Vec<_> = self.kinds.iter().map(|(kind, count)| (*kind, *count)).collect();
        all.sort_unstable_by_key(|(kind, counted)| (std::cmp::Reverse(counted.count), *kind));
        let rest: u64 = all.iter().skip(most).map(|(_, counted)| counted.count).sum();
        all.truncate(most);
        (all, rest + self.others)
    }
}

fn bytes(results: &Results) -> u64 {
    results.iter().map(|result| result.bytes() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_beyond_the_limit_are_counted_together() {
        let mut counts = StreamCounts::default();
        let kind = |line| StreamKind { operation: "add", line: SourceId(line), signal: 0 };
        for line in 0..MOST_KINDS as u32 + 5 {
            counts.count(kind(line), line == 7, 8);
        }
        counts.count(kind(7), false, 8);
        let (listed, others) = counts.most_frequent(2);
        assert_eq!(listed[0], (kind(7), StreamCount { count: 2, hot: 1, bytes: 16 }));
        assert_eq!(listed[1], (kind(0), StreamCount { count: 1, hot: 0, bytes: 8 }));
        assert_eq!(others, MOST_KINDS as u64 - 2 + 5);
    }
}
