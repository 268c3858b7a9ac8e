//! Named sessions, which outlive their clients: their names, and what they keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{Kept, TensorId, record};
use rustc_hash::FxHashSet;

/// The name of a session, unique among those of its user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionName {
    pub name: String,
    /// The token that attaching to it requires, if it is private.
    pub token: Option<u128>,
}

record!(struct SessionName { name, token });

/// The kept tensors of a session, by name.
#[derive(Clone, Default)]
pub(crate) struct KeptNames {
    by_name: BTreeMap<String, Arc<Kept>>,
    bytes: usize,
}

impl Record for KeptNames {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.by_name.len() as u64);
        self.by_name.values().for_each(|kept| kept.write(to));
    }

    fn read(from: &mut Source) -> Decoded<KeptNames> {
        let mut all = KeptNames::default();
        Vec::read(from)?.into_iter().for_each(|kept: Kept| all.insert(kept));
        Ok(all)
    }
}

impl KeptNames {
    fn insert(&mut self, kept: Kept) {
        self.remove(&kept.name);
        self.bytes += kept.bytes();
        self.by_name.insert(kept.name.clone(), Arc::new(kept));
    }

    /// Keeps tensors under a name, instead of those that it had.
    ///
    /// # Errors
    /// The name, or all structures together, are longer than a valid client sends.
    pub fn keep(&mut self, kept: Kept) -> Result<(), String> {
        if kept.name.chars().count() > Kept::MOST {
            return Err(format!("a name of more than {} characters for what is kept", Kept::MOST));
        }
        self.insert(kept);
        let most = Kept::MOST_BYTES;
        if self.bytes > most {
            return Err(format!(
                "the names and structures of what it keeps have {} bytes, {most} are allowed",
                self.bytes
            ));
        }
        Ok(())
    }

    /// Keeps nothing under a name any more.
    pub fn remove(&mut self, name: &str) {
        if let Some(kept) = self.by_name.remove(name) {
            self.bytes -= kept.bytes();
        }
    }

    /// Returns all that is kept, sorted by name.
    pub fn all(&self) -> Vec<Kept> {
        self.by_name.values().map(|kept| (**kept).clone()).collect()
    }

    /// Returns the tensors that are kept.
    pub fn tensors(&self) -> FxHashSet<TensorId> {
        let all = self.by_name.values().flat_map(|kept| &kept.tensors);
        all.map(|tensor| tensor.id).collect()
    }

    /// Returns how many names there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }
}
