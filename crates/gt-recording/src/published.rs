//! The values of publications that a session read, which other sessions had published.

use gt_ir::{ClientCommand, Content, SessionId, TensorId};
use rustc_hash::FxHashMap;

use crate::event::SessionEvent;

/// The values of publications, by publication and number of the tensor.
#[derive(Default)]
pub struct PublishedData(FxHashMap<(SessionId, TensorId), Content>);

impl PublishedData {
    /// Adds the values that an event has.
    pub fn note(&mut self, event: &SessionEvent) {
        if let SessionEvent::Published { publication, index, values } = event {
            self.0.insert((*publication, *index), values.clone());
        }
    }

    /// Returns an event in which tensors of publications are created from their values.
    pub fn restore(&self, mut event: SessionEvent) -> SessionEvent {
        if let SessionEvent::Batch { commands, .. } = &mut event
            && !self.0.is_empty()
        {
            for command in commands {
                if let ClientCommand::Create(create) = command
                    && let Content::Published(values) = &create.content
                    && let Some(data) = self.0.get(&(values.publication, values.index))
                {
                    create.content = data.clone();
                }
            }
        }
        event
    }
}
