//! Connections and their limits: a slow or silent peer costs its own connection, for a limited time.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::{Extension, Router};
use gt::net::address::Address;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::access::AccessRules;
use crate::acting::ActingRules;
use crate::actions::{Actions, PageOperator};
use crate::error::WebError;
use crate::feed::{Feed, StatusSource};
use crate::listen::{ListenAddress, ServedHosts};
use crate::recordings::Recordings;
use crate::routes::{self, HasUpdates, ReaderAddress};
use crate::secret::Secret;
use crate::tunnel::{TunnelTarget, Tunnels};

/// The number of connections; others wait until one ends.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, which is also how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(5);
/// The bytes of a request's head, and the number of its headers.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// After this time a connection accepts no further request.
const CONNECTION: Duration = Duration::from_secs(60);
/// The time for which its last answer may still be read: that of the longest stream of updates, and
/// that of others.
const LAST_STREAM: Duration = routes::STREAM.saturating_add(Duration::from_secs(10));
const LAST_ANSWER: Duration = Duration::from_secs(5);
/// The pause after the system could not accept a connection.
const AGAIN: Duration = Duration::from_millis(100);

/// How a page is served.
#[derive(Clone, Debug)]
pub struct PageOptions {
    pub listen: ListenAddress,
    /// The hosts under which a reverse proxy serves it.
    pub names: Vec<String>,
    /// Allows an address that is not one of loopback.
    pub allow_network: bool,
    /// A file with the token. Without it, one is made.
    pub token_file: Option<PathBuf>,
    /// The server to which programs may connect over the page's port.
    pub tunnel: Option<TunnelTarget>,
}

/// Who acts by a page, and how.
pub struct ActingOptions {
    /// A file with the operators' token. Without it, one is made.
    pub token_file: Option<PathBuf>,
    pub operator: Arc<dyn PageOperator>,
}

/// A page while it is served: until it is dropped.
#[derive(Debug)]
pub struct Page {
    address: SocketAddr,
    link: String,
    acting_link: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _feed: Feed,
}

impl Page {
    /// Serves the page of a source, by which operators may act if `acting` says how.
    ///
    /// # Errors
    /// The address cannot be used, or an option is not valid.
    pub fn start(
        options: &PageOptions,
        source: impl StatusSource,
        acting: Option<ActingOptions>,
    ) -> Result<Page, WebError> {
        let listener = options.listen.bind(options.allow_network)?;
        let address = listener.local_addr().map_err(WebError::Thread)?;
        let shown = link_host(address);
        let mut names = options.names.clone();
        names.extend(options.listen.name());
        names.extend(shown.rsplit_once(':').map(|(host, _)| host.to_string()).filter(|host| {
            // Addresses are known without their names.
            host.parse::<IpAddr>().is_err() && !host.starts_with('[')
        }));
        let hosts = ServedHosts::new(address, &names)?;
        let token = options.token_file.as_deref().map(Secret::read).transpose()?;
        let secret = token.clone().unwrap_or_else(Secret::random);
        let link = link(&shown, "token", token.is_none().then(|| secret.text()));
        let acting = acting.map(|acting| Acting::new(acting, &shown, &secret, address.port()));
        let (acting_link, rules, actions) = match acting.transpose()? {
            Some(Acting { link, rules, actions }) => (link, Some(rules), Some(actions)),
            None => (None, None, None),
        };
        let access = AccessRules::new(secret, rules, hosts, address.port());
        let recordings = Recordings::new(source.recorder());
        let feed = Feed::start(source).map_err(WebError::Thread)?;
        let tunnels = options.tunnel.clone().map(|target| Arc::new(Tunnels::new(target)));
        let router = routes::router(access, feed.subscription(), recordings, actions, tunnels);
        let (stop, stopped) = oneshot::channel();
        let builder = std::thread::Builder::new().name("gt-web".into());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(WebError::Thread)?;
        listener.set_nonblocking(true).map_err(WebError::Thread)?;
        let serve = move || {
            runtime.block_on(async {
                tokio::spawn(accept(listener, router));
                // An error means that the page was dropped, too.
                let _ = stopped.await;
            });
        };
        let thread = Some(builder.spawn(serve).map_err(WebError::Thread)?);
        Ok(Page { address, link, acting_link, stop: Some(stop), thread, _feed: feed })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link that opens it, with the token unless that is in a file.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// The link by which operators act, if there is one, unless their token is in a file.
    pub fn acting_link(&self) -> Option<&str> {
        self.acting_link.as_deref()
    }
}

/// What a page has for its operators.
struct Acting {
    link: Option<String>,
    rules: ActingRules,
    actions: Actions,
}

impl Acting {
    fn new(
        options: ActingOptions,
        host: &str,
        other: &Secret,
        port: u16,
    ) -> Result<Acting, WebError> {
        let token = options.token_file.as_deref().map(Secret::read).transpose()?;
        if let Some(path) =
            options.token_file.filter(|_| token.as_ref().is_some_and(|of| of.is(other.text())))
        {
            return Err(WebError::SameToken { path: path.display().to_string() });
        }
        let secret = token.clone().unwrap_or_else(Secret::random);
        let link = token.is_none().then(|| link(host, "act", Some(secret.text())));
        let rules = ActingRules::new(secret, port);
        Ok(Acting { link, rules, actions: Actions::new(options.operator) })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Nothing in it blocks.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the link of a page. What follows `#` is not sent by browsers: no log and no other site
/// gets to see it.
fn link(host: &str, name: &str, token: Option<&str>) -> String {
    match token {
        Some(token) => format!("http://{host}/#{name}={token}"),
        None => format!("http://{host}/"),
    }
}

/// Returns the host and port at which others reach an address.
fn link_host(address: SocketAddr) -> String {
    let published = Address::parse_to_listen(&address.to_string()).map(|of| of.to_publish());
    match (address.ip().is_unspecified(), published) {
        (true, Ok(published)) => published.to_string(),
        _ => address.to_string(),
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, from)) => {
                let router = router.clone().layer(Extension(ReaderAddress(from.ip())));
                tokio::spawn(async move {
                    serve(stream, router).await;
                    drop(place);
                });
            }
            // There are no file descriptors, or the peer is gone.
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

async fn serve(stream: TcpStream, router: Router) {
    // Updates are small, and each is to arrive at once.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(4 * HEAD_BYTES);
    let has_updates = HasUpdates::default();
    let service = TowerToHyperService::new(router.layer(Extension(has_updates.clone())));
    // A tunnel outlives it: it has limits of its own.
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = pin!(connection);
    // Errors are those of the peer, who hears of them as the connection ends.
    if tokio::time::timeout(CONNECTION, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let within = if has_updates.get() { LAST_STREAM } else { LAST_ANSWER };
        let _ = tokio::time::timeout(within, connection).await;
    }
}
