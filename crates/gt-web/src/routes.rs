//! What is served at which path, and the headers of every answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::watch;

use crate::access::{AccessRules, Admission};
use crate::feed::{Latest, Subscription};
use crate::tunnel::{self, Tunnels};
use crate::{metrics, page};

/// The longest stream of updates: browsers then ask for another.
pub const STREAM: Duration = Duration::from_secs(300);
/// How long a status is awaited: as long as the watcher waits to connect and for an answer.
const STATUS: Duration = Duration::from_secs(11);

/// The headers of every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[derive(Debug)]
struct Site {
    access: AccessRules,
    feed: Subscription,
    tunnels: Option<Arc<Tunnels>>,
}

type Shared = State<Arc<Site>>;

/// The paths of a page, with that of its tunnels, if it has any.
pub fn router(access: AccessRules, feed: Subscription, tunnels: Option<Arc<Tunnels>>) -> Router {
    let site = Arc::new(Site { access, feed, tunnels: tunnels.clone() });
    let router = match tunnels {
        Some(tunnels) => Router::new().route(tunnel::PATH, tunnel::route(tunnels)),
        None => Router::new(),
    };
    router
        .route("/sign-in", get(sign_in))
        .route("/events", get(events))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(file)
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// Applies the rules of access before anything else. A stranger does not learn which paths exist.
async fn guard(State(site): Shared, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_tunnel = site.tunnels.as_ref().is_some_and(|tunnels| tunnels.is_public(path));
    let is_public = matches!(path, "/healthz" | "/readyz") || is_tunnel || page::is_public(path);
    let is_start = path == "/";
    let admission = site.access.check(request.method(), request.uri(), request.headers());
    let mut response = match admission {
        Admission::Refused(status) => refusal(status),
        _ if is_public || admission == Admission::Granted => next.run(request).await,
        _ => {
            let status = match admission {
                Admission::Wrong => site.access.delay().await,
                _ => StatusCode::UNAUTHORIZED,
            };
            if is_start { (status, page::sign_in()).into_response() } else { refusal(status) }
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What a person reads who uses a name of the machine that the page is not served under.
const OTHER_HOST: &str = "This host or origin is not one that is served here.\n";

/// Returns an answer that says no more than its status, after which the connection ends.
fn refusal(status: StatusCode) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    let body = if status == StatusCode::FORBIDDEN { OTHER_HOST } else { "" };
    (status, headers, body).into_response()
}

/// Exchanges the token for a cookie. The token arrives in a header, which other sites cannot send.
async fn sign_in(State(site): Shared, headers: HeaderMap) -> Response {
    let cookie = site.access.cookie_for(&headers);
    let cookie = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok());
    let headers = cookie.map(|cookie| [(header::SET_COOKIE, cookie)]);
    (StatusCode::NO_CONTENT, headers.map_or_else(HeaderMap::new, |of| of.into_iter().collect()))
        .into_response()
}

/// Whether a connection has a reader of updates, which takes long.
#[derive(Clone, Default)]
pub struct HasUpdates(Arc<AtomicBool>);

impl HasUpdates {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Streams updates to one reader.
async fn events(State(site): Shared, has_updates: Option<Extension<HasUpdates>>) -> Response {
    if let Some(Extension(has_updates)) = has_updates {
        has_updates.0.store(true, Ordering::Relaxed);
    }
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        // Reverse proxies are not to collect them.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(updates(site.feed.subscribe()))).into_response()
}

fn updates(receiver: watch::Receiver<Latest>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let begin = stream::iter([Ok(Bytes::from_static(b"retry: 2000\n\n"))]);
    let updates = stream::unfold(receiver, |mut receiver| async move {
        loop {
            receiver.changed().await.ok()?;
            let latest = receiver.borrow_and_update().clone();
            if let Some(update) = latest {
                return Some((Ok(update.event.clone()), receiver));
            }
        }
    });
    begin.chain(updates.take_until(Box::pin(tokio::time::sleep(STREAM))))
}

async fn ready(State(site): Shared) -> Response {
    let latest = site.feed.next(STATUS).await;
    match latest.is_some_and(|update| update.status.is_some()) {
        true => "ok\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ok\n").into_response(),
    }
}

async fn metrics(State(site): Shared) -> Response {
    let latest = site.feed.next(STATUS).await;
    let text = latest.and_then(|update| update.status.as_ref().map(metrics::encode));
    match text {
        Some(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn file(uri: Uri) -> Response {
    page::file(uri.path()).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}
