//! Bodies of requests, which are small.

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;

/// The bytes of a body, and the time for which they are awaited.
pub const BYTES: usize = 4096;
pub const WITHIN: Duration = Duration::from_secs(5);
/// The bytes that are read of one that is too long, or that is not needed. A connection that ends
/// before them may end without its answer.
const READ: usize = 64 << 10;

/// Why a body cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadBody {
    /// It is too long, or its connection has ended.
    Broken,
    /// It has not arrived in time.
    Late,
}

/// Reads a body.
///
/// # Errors
/// It is too long or too late.
pub async fn read(body: Body) -> Result<Vec<u8>, BadBody> {
    let mut chunks = body.into_data_stream();
    let collect = async {
        let (mut bytes, mut length) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| BadBody::Broken)?;
            length += chunk.len();
            if length <= BYTES {
                bytes.extend_from_slice(&chunk);
            } else if length > READ {
                break;
            }
        }
        if length <= BYTES { Ok(bytes) } else { Err(BadBody::Broken) }
    };
    tokio::time::timeout(WITHIN, collect).await.unwrap_or(Err(BadBody::Late))
}

/// Reads a body that is not needed, as its sender reads the answer then.
pub async fn discard(body: Body) {
    // Its content does not matter.
    let _ = read(body).await;
}
