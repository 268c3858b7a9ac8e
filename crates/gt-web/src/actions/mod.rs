//! What operators do by the page: one request is one action, and its answer what was done.
//!
//! An action waits for the server, so it runs in a thread of its own. Their number and their rate are
//! limited. [`request`]: what a request may ask. [`operator`]: who does it.

mod operator;
mod request;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gt::drivers::operate::OperatorRequest;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::acting::json;
use crate::body;

pub use operator::{PageOperator, ServerOperator};

/// The number of actions at a time; further ones are refused.
const RUNNING: usize = 8;
/// The least time between the starts of two actions.
const APART: Duration = Duration::from_millis(200);

/// Carries out the actions of one page, until it is dropped.
pub struct Actions {
    operator: Arc<dyn PageOperator>,
    places: Arc<Semaphore>,
    last: Mutex<Option<Instant>>,
    is_stopping: Arc<AtomicBool>,
}

impl std::fmt::Debug for Actions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Actions(..)")
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
    }
}

/// Returns that there are no actions, for readers who may not act.
pub fn none() -> Response {
    json(&serde_json::json!({"actions": []})).into_response()
}

impl Actions {
    /// The actions of an operator.
    pub fn new(operator: Arc<dyn PageOperator>) -> Actions {
        Actions {
            operator,
            places: Arc::new(Semaphore::new(RUNNING)),
            last: Mutex::new(None),
            is_stopping: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Returns the names of the actions, and the user for whose sessions alone they are.
    pub fn list(&self) -> Response {
        let user = self.operator.user();
        let names = if user.is_some() { &request::OWN_ACTIONS[..] } else { &request::ACTIONS };
        json(&serde_json::json!({"actions": names, "user": user})).into_response()
    }

    /// Does what a request asks, which someone who may act has sent from an address.
    pub async fn serve(&self, from: Option<IpAddr>, request: Request) -> Response {
        let answered = match self.places.clone().try_acquire_owned() {
            Ok(place) => self.answer(place, from, request).await,
            Err(_) => {
                body::discard(request.into_body()).await;
                let text = format!("{RUNNING} actions run already\n  hint: wait for one of them");
                Err((StatusCode::TOO_MANY_REQUESTS, text))
            }
        };
        match answered {
            Ok(done) => json(&serde_json::json!({"done": done})).into_response(),
            // What is left of a long request is not read.
            Err((status, error)) => {
                let close = [(header::CONNECTION, "close")];
                (status, close, json(&serde_json::json!({"error": error}))).into_response()
            }
        }
    }

    async fn answer(
        &self,
        place: OwnedSemaphorePermit,
        from: Option<IpAddr>,
        request: Request,
    ) -> Result<String, (StatusCode, String)> {
        let (head, body) = request.into_parts();
        let bytes = body::read_json(&head.headers, body, "action").await?;
        let request = request::parse(&bytes).map_err(|text| (StatusCode::BAD_REQUEST, text))?;
        self.wait_for_turn().await;
        let done = self.start(place, from, request).map_err(|error| {
            let text = format!("the action's thread cannot start: {error}");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        })?;
        // A thread that has panicked sends nothing.
        let done = done.await.unwrap_or_else(|_| Err("the action has failed".into()));
        done.map_err(|text| (StatusCode::CONFLICT, text))
    }

    async fn wait_for_turn(&self) {
        let mut last = self.last.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + APART).await;
        }
        *last = Some(Instant::now());
    }

    /// Starts an action. It continues if the reader who asked for it leaves.
    fn start(
        &self,
        place: OwnedSemaphorePermit,
        from: Option<IpAddr>,
        request: OperatorRequest,
    ) -> std::io::Result<oneshot::Receiver<Result<String, String>>> {
        let (operator, is_stopping) = (self.operator.clone(), self.is_stopping.clone());
        let reader = from.map_or_else(|| "unknown".into(), |from| from.to_string());
        let (sender, receiver) = oneshot::channel();
        let act = move || {
            let mut interrupt = || is_stopping.load(Ordering::Acquire);
            let done = operator.operate(&reader, request, &mut interrupt);
            drop(place);
            // The reader may have left.
            let _ = sender.send(done);
        };
        std::thread::Builder::new().name("gt-web-action".into()).spawn(act)?;
        Ok(receiver)
    }
}
