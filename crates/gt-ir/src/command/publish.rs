//! The request to publish tensors.

use bytes::Bytes;

use super::KeptTensor;
use crate::instruction::RequestId;
use crate::publication::Audience;
use crate::record;

/// A request to publish tensors as they are now; answered with their version.
#[derive(Clone, PartialEq, Debug)]
pub struct Publish {
    pub request: RequestId,
    /// The name, without that of the user.
    pub name: String,
    pub audience: Audience,
    pub description: String,
    /// What surrounds the tensors, as the client encodes it.
    pub structure: Bytes,
    pub tensors: Vec<KeptTensor>,
    /// The client's time, in seconds since 1970.
    pub at: u64,
}

record!(struct Publish { request, name, audience, description, structure, tensors, at });

impl Publish {
    /// The most bytes of a description.
    pub const MOST_DESCRIPTION: usize = 4096;

    /// Returns the bytes that the server stores for it.
    pub fn bytes(&self) -> usize {
        let names = self.name.len() + self.description.len();
        names + self.structure.len() + self.tensors.len() * size_of::<KeptTensor>()
    }
}
