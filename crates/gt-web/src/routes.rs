//! What is served at which path, and the headers of every answer.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use gt_ir::SessionId;
use tokio::sync::watch;

use crate::access::{AccessRules, Admission};
use crate::acting;
use crate::actions::{self, Actions};
use crate::feed::{Latest, Subscription};
use crate::inspections::Inspected;
use crate::recordings::{self, Recordings};
use crate::tunnel::{self, Tunnels};
use crate::{body, metrics, page};

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
    recordings: Recordings,
    /// What operators do; nothing without them.
    actions: Option<Actions>,
    tunnels: Option<Arc<Tunnels>>,
}

type Shared = State<Arc<Site>>;

/// The paths of a page, with that of its tunnels, if it has any.
pub fn router(
    access: AccessRules,
    feed: Subscription,
    recordings: Recordings,
    actions: Option<Actions>,
    tunnels: Option<Arc<Tunnels>>,
) -> Router {
    let site = Arc::new(Site { access, feed, recordings, actions, tunnels: tunnels.clone() });
    let router = match tunnels {
        Some(tunnels) => Router::new().route(tunnel::PATH, tunnel::route(tunnels)),
        None => Router::new(),
    };
    router
        .route(acting::SIGN_IN, get(sign_in))
        .route("/events", get(events))
        .route("/metrics", get(metrics))
        .route("/sessions/{number}", get(session))
        .route(acting::PATH, get(list_actions).post(act))
        .route(recordings::PATH, get(list_recordings).post(record))
        .route("/recordings/{name}", get(recording))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(file)
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// Applies the rules of access before anything else. A stranger does not learn which paths exist.
async fn guard(State(site): Shared, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let tunnels = site.tunnels.as_ref().filter(|_| path == tunnel::PATH);
    let is_tunnel = tunnels.is_some_and(|tunnels| tunnels.has_keys());
    let is_public = matches!(path, "/healthz" | "/readyz") || is_tunnel || page::is_public(path);
    let is_start = path == "/";
    let admission = site.access.check(request.method(), request.uri(), request.headers());
    let admission = match admission {
        Admission::Granted if tunnels.is_some() && !is_tunnel => {
            site.access.check_tunnel(request.headers())
        }
        other => other,
    };
    let is_admitted = match admission {
        Admission::Granted => true,
        Admission::Unknown | Admission::Wrong => is_public,
        Admission::Watcher | Admission::Refused(_) => false,
    };
    let mut response = if is_admitted {
        next.run(request).await
    } else {
        body::discard(request.into_body()).await;
        refuse(&site.access, admission, is_start).await
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn refuse(access: &AccessRules, admission: Admission, is_start: bool) -> Response {
    let status = match admission {
        Admission::Refused(status) => return refusal(status),
        // A reader does not learn why.
        Admission::Watcher => return (StatusCode::FORBIDDEN, LAST).into_response(),
        Admission::Wrong => access.delay().await,
        Admission::Granted | Admission::Unknown => StatusCode::UNAUTHORIZED,
    };
    if is_start { (status, page::sign_in()).into_response() } else { refusal(status) }
}

/// The header of the last answer of a connection.
const LAST: [(HeaderName, &str); 1] = [(header::CONNECTION, "close")];

/// What a person reads who uses a name of the machine that the page is not served under.
const OTHER_HOST: &str = "This host or origin is not one that is served here.\n";

/// Returns an answer that says no more than its status, after which the connection ends.
fn refusal(status: StatusCode) -> Response {
    match status {
        StatusCode::FORBIDDEN => (status, LAST, OTHER_HOST).into_response(),
        StatusCode::METHOD_NOT_ALLOWED => {
            (status, LAST, [(header::ALLOW, "GET, HEAD")]).into_response()
        }
        _ => (status, LAST).into_response(),
    }
}

/// Exchanges a token for a cookie. The token arrives in a header, which other sites cannot send.
async fn sign_in(State(site): Shared, headers: HeaderMap) -> Response {
    site.access.sign_in(&headers).unwrap_or_else(|| StatusCode::NO_CONTENT.into_response())
}

async fn list_actions(State(site): Shared, headers: HeaderMap) -> Response {
    let actions = site.actions.as_ref().filter(|_| site.access.may_act(&headers));
    actions.map_or_else(actions::none, Actions::list)
}

/// Does what an operator asks; `guard` has checked that it is one.
async fn act(
    State(site): Shared,
    from: Option<Extension<ReaderAddress>>,
    takes_long: Option<Extension<HasUpdates>>,
    request: Request,
) -> Response {
    if let Some(Extension(takes_long)) = takes_long {
        takes_long.0.store(true, Ordering::Relaxed);
    }
    match &site.actions {
        Some(actions) => actions.serve(from.map(|Extension(from)| from.0), request).await,
        None => refusal(StatusCode::METHOD_NOT_ALLOWED),
    }
}

async fn list_recordings(State(site): Shared) -> Response {
    site.recordings.list()
}

async fn record(State(site): Shared, request: Request) -> Response {
    site.recordings.start(request).await
}

/// Sends a recording, which may take long.
async fn recording(
    State(site): Shared,
    Path(name): Path<String>,
    takes_long: Option<Extension<HasUpdates>>,
) -> Response {
    if let Some(Extension(takes_long)) = takes_long {
        takes_long.0.store(true, Ordering::Relaxed);
    }
    site.recordings.get(&name)
}

/// The address at the other end of a connection: of a reader, or of a reverse proxy.
#[derive(Clone, Copy)]
pub struct ReaderAddress(pub IpAddr);

/// Whether a connection has a reader of updates or of a recording, or an action, which take long.
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

/// Answers with the details of a session: its instructions, its hot paths, and the tensors that its
/// program holds. Where there are operators, only these see them.
async fn session(State(site): Shared, headers: HeaderMap, uri: Uri) -> Response {
    let error = |status: StatusCode, reason: &str| {
        (status, acting::json(&serde_json::json!({"error": reason}))).into_response()
    };
    let number = uri.path().strip_prefix("/sessions/").and_then(|number| number.parse().ok());
    let (Some(number), None | Some("explain")) = (number, uri.query()) else {
        let expected = "expected /sessions/NUMBER, or /sessions/NUMBER?explain";
        return error(StatusCode::BAD_REQUEST, expected);
    };
    let explain = uri.query().is_some();
    if site.actions.is_some() && !site.access.may_act(&headers) {
        return error(StatusCode::FORBIDDEN, ONLY_OPERATORS);
    }
    match site.feed.inspect(SessionId(number), explain, STATUS).await {
        Some(Inspected::Details(json)) => {
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Some(Inspected::Refused(reason)) => error(StatusCode::NOT_FOUND, &reason),
        Some(Inspected::Lost(reason)) => error(StatusCode::SERVICE_UNAVAILABLE, &reason),
        None => error(StatusCode::TOO_MANY_REQUESTS, "too many sessions are asked about at once"),
    }
}

/// Why a reader does not see what the program of a session holds.
const ONLY_OPERATORS: &str = "the details of sessions are shown to operators: open the link to act, or a page with your own key";

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
