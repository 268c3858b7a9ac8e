//! Recordings of what a cluster does, as timelines that readers look at.
//!
//! A recording has a watcher of its own in a thread of its own, which ends with it: the dispatcher
//! sends events only while one runs. There is one at a time. The newest are kept, for a limited time
//! and with a limited number of bytes.
//!
//! [`request`]: what is asked for. [`recorder`]: what records. [`columns`]: a timeline as browsers read
//! it. `kept`: the recordings of a page. `download`: a timeline for Perfetto.

mod columns;
mod download;
mod kept;
pub mod recorder;
mod request;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use crate::acting::json;
use crate::body;
use columns::Columns;
use kept::{KeptRecordings, RecordingOutcome, RunningRecording};
use recorder::EventRecorder;
use request::RecordingRequest;

/// The path of recordings; each has its number, and `.json`, below it.
pub const PATH: &str = "/recordings";
/// How long a recording is kept.
const KEPT: Duration = Duration::from_secs(30 * 60);
/// The number of downloads for Perfetto at a time: each needs memory of its own.
const DOWNLOADS: usize = 2;

/// Returns whether a request is one that starts a recording.
pub fn is_start(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && uri.path() == PATH
}

/// The recordings of one page, until it is dropped.
pub struct Recordings {
    recorder: Arc<dyn EventRecorder>,
    kept: Arc<KeptRecordings>,
    downloads: Arc<Semaphore>,
}

impl std::fmt::Debug for Recordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recordings(..)")
    }
}

impl Drop for Recordings {
    fn drop(&mut self) {
        self.kept.stop();
    }
}

impl Recordings {
    /// The recordings that a recorder makes.
    pub fn new(recorder: Arc<dyn EventRecorder>) -> Recordings {
        let downloads = Arc::new(Semaphore::new(DOWNLOADS));
        Recordings { recorder, kept: Arc::new(KeptRecordings::default()), downloads }
    }

    /// Returns the recordings, newest first, with their states.
    pub fn list(&self) -> Response {
        json(&self.kept.list()).into_response()
    }

    /// Starts the recording that a request asks for.
    pub async fn start(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let asked = body::read_json(&head.headers, body, "recording").await;
        let asked = asked.and_then(|bytes| {
            request::parse(&bytes).map_err(|text| (StatusCode::BAD_REQUEST, text))
        });
        match asked.and_then(|asked| self.begin(asked)) {
            Ok(number) => {
                let answer = serde_json::json!({"number": number});
                (StatusCode::ACCEPTED, json(&answer)).into_response()
            }
            Err((status, error)) => {
                let close = [(header::CONNECTION, "close")];
                (status, close, json(&serde_json::json!({"error": error}))).into_response()
            }
        }
    }

    /// Returns the recording at a path below [`PATH`]: its number, maybe with `.json`.
    pub fn get(&self, name: &str) -> Response {
        let (number, is_json) = match name.strip_suffix(".json") {
            Some(number) => (number, true),
            None => (name, false),
        };
        let found = number.parse().ok().and_then(|of| Some((of, self.kept.columns(of)?)));
        match found {
            None => StatusCode::NOT_FOUND.into_response(),
            Some((number, columns)) if is_json => download::serve(number, columns, &self.downloads),
            Some((_, columns)) => {
                let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
                (kind, columns.bytes()).into_response()
            }
        }
    }

    fn begin(&self, asked: RecordingRequest) -> Result<u64, (StatusCode, String)> {
        let Some(running) = self.kept.begin(asked) else {
            let text = "a recording runs already\n  hint: wait until it has ended".into();
            return Err((StatusCode::CONFLICT, text));
        };
        let number = running.number();
        let (recorder, kept) = (self.recorder.clone(), self.kept.clone());
        let record = move || running.finish(run(&*recorder, asked, &running));
        std::thread::Builder::new().name("gt-web-recording".into()).spawn(record).map_err(
            |error| {
                let text = format!("the recording's thread cannot start: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, text)
            },
        )?;
        let within = Duration::from_secs(asked.seconds) + KEPT;
        tokio::spawn(async move {
            tokio::time::sleep(within).await;
            kept.remove(number);
        });
        Ok(number)
    }
}

fn run(
    recorder: &dyn EventRecorder,
    asked: RecordingRequest,
    running: &RunningRecording,
) -> Result<RecordingOutcome, String> {
    let (timeline, recorded) =
        recorder.record(Duration::from_secs(asked.seconds), &mut |count| running.advance(count))?;
    if timeline.spans.is_empty() {
        let hint = "record while a program is at work, or for longer";
        return Err(format!("there were no events\n  hint: {hint}"));
    }
    let columns = Columns::of(&timeline, &recorded, asked.session);
    Ok(RecordingOutcome {
        columns: Arc::new(columns),
        dropped: recorded.dropped,
        ended: recorded.ended,
    })
}
