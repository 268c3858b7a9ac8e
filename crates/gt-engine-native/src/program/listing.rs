//! The textual form of a program: which steps run together.

use std::fmt;

use super::{NativeProgram, Unit};

impl fmt::Display for NativeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for unit in &self.units {
            match unit {
                Unit::Single(step) => writeln!(f, "{}", self.trace.line(*step as usize))?,
                Unit::Group(group) => {
                    let kept: Vec<String> = group
                        .outputs
                        .iter()
                        .map(|output| output.value)
                        .chain(group.epilogues.iter().map(|epilogue| epilogue.value))
                        .map(|value| format!("%{value}"))
                        .collect();
                    writeln!(f, "tile by tile over {}, keeping {}:", group.shape, kept.join(" "))?;
                    for step in &group.steps {
                        writeln!(f, "    {}", self.trace.line(*step as usize))?;
                    }
                }
            }
        }
        Ok(())
    }
}
