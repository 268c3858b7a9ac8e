//! The steps from a root to a view, which views of a view share.

use std::sync::Arc;

use smallvec::SmallVec;

use super::view_step::ViewStep;

/// The most steps that a view owns; earlier ones are shared with the views of it, so that cloning a
/// long chain stays cheap.
const OWN: usize = 16;

/// A list of steps, from the root on, whose prefix is shared.
#[derive(Clone, Default)]
pub(super) struct ViewSteps {
    earlier: Option<Arc<ViewSteps>>,
    last: SmallVec<[ViewStep; 2]>,
}

impl ViewSteps {
    pub fn push(&mut self, step: ViewStep) {
        if self.last.len() == OWN {
            self.earlier = Some(Arc::new(std::mem::take(self)));
        }
        self.last.push(step);
    }

    /// Returns all steps, from the root on.
    pub fn all(&self) -> Vec<&ViewStep> {
        let mut parts = vec![&self.last];
        let mut before = &self.earlier;
        while let Some(steps) = before {
            parts.push(&steps.last);
            before = &steps.earlier;
        }
        parts.into_iter().rev().flatten().collect()
    }
}

impl Drop for ViewSteps {
    fn drop(&mut self) {
        // Drops a long chain in a loop: recursion would overflow the stack.
        let mut earlier = self.earlier.take();
        while let Some(mut steps) = earlier.and_then(Arc::into_inner) {
            earlier = steps.earlier.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_keeps_its_order_and_is_dropped() {
        let mut steps = ViewSteps::default();
        let mut kept = Vec::new();
        for index in 0..100_000 {
            steps.push(ViewStep::Element { index });
            if index % 1000 == 0 {
                kept.push(steps.clone());
            }
        }
        let indices = |steps: &ViewSteps| -> Vec<usize> {
            let all = steps.all();
            all.iter()
                .filter_map(|step| match step {
                    ViewStep::Element { index } => Some(*index),
                    _ => None,
                })
                .collect()
        };
        assert!(indices(&steps).into_iter().eq(0..100_000));
        assert!(indices(&kept[7]).into_iter().eq(0..7001));
    }
}
