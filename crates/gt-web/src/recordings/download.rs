//! A recording as a file for Perfetto, which is written while it is sent.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use gt_tools::visualize::perfetto;
use tokio::sync::{Semaphore, mpsc};

use super::columns::Columns;

/// The bytes of a piece, and the number of pieces that wait for a slow reader.
const PIECE: usize = 256 << 10;
const WAITING: usize = 8;

/// Answers with the file of a recording. It is written by a thread that waits for its reader, and
/// ends with the connection.
pub fn serve(number: u64, columns: Arc<Columns>, places: &Arc<Semaphore>) -> Response {
    let Ok(place) = places.clone().try_acquire_owned() else {
        let text = "other downloads run\n  hint: wait until one has ended\n";
        return (StatusCode::TOO_MANY_REQUESTS, text).into_response();
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let write = move || {
        let _place = place;
        let mut out = io::BufWriter::with_capacity(PIECE, Pieces(sender));
        // An error means that the reader has left.
        let _ = perfetto::write(&columns.timeline(), &mut out)
            .and_then(|()| io::Write::flush(&mut out));
    };
    if std::thread::Builder::new().name("gt-web-perfetto".into()).spawn(write).is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        let piece: Bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"gt-recording-{number}.json\""),
        ),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

struct Pieces(mpsc::Sender<Bytes>);

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(bytes));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
