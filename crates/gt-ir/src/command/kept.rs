//! Kept tensors: what a session holds under names, for the program that attaches to it next.

use bytes::Bytes;

use crate::instruction::{RequestId, TensorId};
use crate::operation::Meta;
use crate::record;

/// Tensors that a session keeps under a name, and the structure that they are the leaves of.
#[derive(Clone, PartialEq, Debug)]
pub struct Kept {
    pub name: String,
    /// The containers, numbers and strings around the tensors, as the client encodes them. Only
    /// clients read it.
    pub structure: Bytes,
    /// The tensors, in the order in which the structure refers to them.
    pub tensors: Vec<KeptTensor>,
}

record!(struct Kept { name, structure, tensors });

/// A kept tensor, with what a client must know of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KeptTensor {
    pub id: TensorId,
    pub meta: Meta,
}

record!(struct KeptTensor { id, meta });

impl Kept {
    /// The most characters of a name.
    pub const MOST: usize = 200;
    /// The most bytes of all structures of a session together.
    pub const MOST_BYTES: usize = 64 << 20;

    /// Returns the bytes that the server stores for it.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.structure.len() + self.tensors.len() * size_of::<KeptTensor>()
    }
}

/// The name under which a session continues without its client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Detach {
    pub request: RequestId,
    pub name: String,
    /// Attaching to a private session requires it.
    pub token: Option<u128>,
}

record!(struct Detach { request, name, token });
