//! Bodies of requests, which are small.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
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

/// Reads the JSON of a request for an action or a recording, which errors call `what`.
///
/// # Errors
/// It is too long or too late, or its type is not that of JSON: as a status and a text.
pub async fn read_json(
    headers: &HeaderMap,
    body: Body,
    what: &str,
) -> Result<Vec<u8>, (StatusCode, String)> {
    let bytes = read(body).await;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
    if !is_json {
        let text = format!("the type of the {what}'s content is not 'application/json'");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    bytes.map_err(|error| match error {
        BadBody::Broken => {
            let text = format!("the {what} is longer than {BYTES} bytes, or cannot be read");
            (StatusCode::PAYLOAD_TOO_LARGE, text)
        }
        BadBody::Late => {
            let text = format!("the {what} has not arrived within {} s", WITHIN.as_secs());
            (StatusCode::REQUEST_TIMEOUT, text)
        }
    })
}

/// Reads a body that is not needed, as its sender reads the answer then.
pub async fn discard(body: Body) {
    // Its content does not matter.
    let _ = read(body).await;
}
