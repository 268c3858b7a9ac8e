//! The web page of a dispatcher: `gt web`, and `gt server --web`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gt::net::address::Address;
use gt_tools::find::WatchTarget;
use gt_web::actions::ServerOperator;
use gt_web::listen::ListenAddress;
use gt_web::tunnel::TunnelTarget;
use gt_web::watched::WatchedDispatcher;
use gt_web::{ActingOptions, Page, PageOptions, WebError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::interrupt::until_signal;
use crate::tools;

/// How often the end of `gt web` is polled.
const LOOK: Duration = Duration::from_millis(50);

fn to_python(error: WebError) -> PyErr {
    let text = error.to_string();
    match error {
        WebError::Watch(error) => tools::to_python(error),
        WebError::InUse { .. }
        | WebError::Listen { .. }
        | WebError::TokenFile { .. }
        | WebError::Private(_)
        | WebError::Thread(_) => PyOSError::new_err(text),
        WebError::BadAddress { .. }
        | WebError::BadName { .. }
        | WebError::NotLoopback { .. }
        | WebError::SameToken { .. }
        | WebError::BadToken { .. } => PyValueError::new_err(text),
    }
}

/// Options of a page, as the commands have them.
#[derive(FromPyObject)]
pub struct WebOptions {
    #[pyo3(item)]
    listen: String,
    #[pyo3(item)]
    names: Vec<String>,
    #[pyo3(item)]
    allow_network: bool,
    #[pyo3(item)]
    token_file: Option<PathBuf>,
    #[pyo3(item)]
    has_actions: bool,
    #[pyo3(item)]
    operator_token_file: Option<PathBuf>,
}

impl WebOptions {
    fn read(self) -> PyResult<(PageOptions, Option<OperatorTokenFile>)> {
        let WebOptions { listen, names, allow_network, token_file, .. } = self;
        let listen = ListenAddress::parse(&listen).map_err(to_python)?;
        let operators = self.has_actions.then_some(OperatorTokenFile(self.operator_token_file));
        Ok((PageOptions { listen, names, allow_network, token_file, tunnel: None }, operators))
    }
}

/// The file with the operators' token of a page that has actions; without a file, one is made.
struct OperatorTokenFile(Option<PathBuf>);

impl OperatorTokenFile {
    fn acting(self, operator: ServerOperator) -> ActingOptions {
        ActingOptions { token_file: self.0, operator: Arc::new(operator) }
    }
}

/// Starts the page of a server of this process, at the address where it listens. Programs may connect
/// to the server over the page's port.
pub fn start(
    options: WebOptions,
    server: &Address,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<Page> {
    let address = own_address(server);
    let (mut options, operators) = options.read()?;
    options.tunnel = Some(TunnelTarget { address: address.clone(), has_keys: !insecure });
    let address = Some(address.to_string());
    let target = WatchTarget { address, process: None, key_file, insecure };
    let acting = operators.map(|file| file.acting(ServerOperator::of_own_server(target.clone())));
    Page::start(&options, WatchedDispatcher::new(target), acting).map_err(to_python)
}

/// Returns the address at which the machine itself reaches a server.
fn own_address(server: &Address) -> Address {
    match server {
        Address::Tcp { host, port } if matches!(host.as_str(), "0.0.0.0" | "*") => {
            Address::Tcp { host: "127.0.0.1".into(), port: *port }
        }
        Address::Tcp { host, port } if host == "::" => {
            Address::Tcp { host: "::1".into(), port: *port }
        }
        other => other.clone(),
    }
}

/// Serve the page of a dispatcher until a signal arrives.
///
/// Args:
///     options: `listen`, `names`, `allow_network` and `token_file` of the page, `has_actions` and
///         `operator_token_file`.
///     on_ready: called once it is served, with the link that opens it, and the one by which
///         operators act, or None.
///     is_stopped: called several times a second; a true result ends it.
#[pyfunction]
#[pyo3(signature = (options, on_ready, is_stopped, address=None, process=None, key_file=None, insecure=false))]
#[allow(clippy::too_many_arguments, reason = "they are the options of a program")]
fn run_web(
    py: Python<'_>,
    options: WebOptions,
    on_ready: &Bound<'_, PyAny>,
    is_stopped: &Bound<'_, PyAny>,
    address: Option<String>,
    process: Option<u32>,
    key_file: Option<PathBuf>,
    insecure: bool,
) -> PyResult<()> {
    let (options, operators) = options.read()?;
    let target = WatchTarget { address, process, key_file, insecure };
    let mut watched = WatchedDispatcher::new(target.clone());
    let page = py.detach(|| {
        watched.check()?;
        let acting = match operators {
            Some(file) => Some(file.acting(ServerOperator::new(target)?)),
            None => None,
        };
        Page::start(&options, watched, acting)
    });
    let page = page.map_err(to_python)?;
    on_ready.call1((page.link(), page.acting_link()))?;
    until_signal(py, is_stopped, |stop| {
        while !stop() {
            std::thread::sleep(LOOK);
        }
        drop(page);
        Ok(())
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_web, module)?)
}
