//! What is inside a hot path, as text for logs and timelines.

use std::ops::Range;

use gt_ir::template::Step;

use super::ClientSession;

/// The most operations and lines that are listed.
const OPERATIONS: usize = 8;
const LINES: usize = 4;

impl ClientSession {
    /// Returns the operations of a part of a template in order, each run of equal ones once, and
    /// the user's lines that are known: `steps=matmul,relu,+3 lines=train.py:12,train.py:14`.
    pub fn hot_path(&self, template: u32, part: Range<usize>) -> Option<String> {
        let steps = &self.planning.templates.get(template)?.steps;
        let steps = &steps[part.start.min(steps.len())..part.end.min(steps.len())];
        let (operations, lines) = self.operations_and_lines(steps);
        let mut text = format!("steps={operations}");
        if !lines.is_empty() {
            text += &format!(" lines={lines}");
        }
        Some(text)
    }

    /// Returns the operations of steps in order, each run of equal ones once, and the user's lines
    /// that are known.
    pub fn operations_and_lines(&self, steps: &[Step]) -> (String, String) {
        let (mut operations, mut lines): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for step in steps {
            let name = match step {
                Step::Run(step) => {
                    let line = self.lines.text(step.source);
                    lines.extend(line.filter(|line| !lines.contains(line)));
                    step.operation.name
                }
                Step::Exchange(step) => step.exchange.collective.name(),
                Step::Data { .. } => "create",
                // Frees compute nothing.
                Step::Free(_) => continue,
            };
            if operations.last() != Some(&name) {
                operations.push(name);
            }
        }
        (listed(&operations, OPERATIONS), listed(&lines, LINES))
    }
}

/// Returns the first names, and the number of the others.
fn listed(names: &[&str], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(",");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown},+{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(&[], 2), "");
        assert_eq!(listed(&["a", "b"], 2), "a,b");
        assert_eq!(listed(&["a", "b", "c", "d"], 2), "a,b,+2");
    }
}
