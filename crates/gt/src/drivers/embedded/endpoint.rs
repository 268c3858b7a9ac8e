//! Where watchers in other processes reach an embedded session: a socket file that only this user
//! can open.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use gt_net::local::{LocalLink, socket_path};

use super::runtime::Runtime;

/// How long a watcher may be silent, and how long it may take to read.
const SILENCE: Duration = Duration::from_secs(60);
const READING: Duration = Duration::from_secs(1);

/// A socket file, and the thread that listens at it.
pub struct Endpoint {
    path: PathBuf,
    listener: RawFd,
}

impl Endpoint {
    /// Listens for watchers; `None` where that is not possible: they are no part of the work.
    pub fn open(runtime: &Arc<Runtime>) -> Option<Endpoint> {
        let path = socket_path(std::process::id()).ok()?;
        // Of an earlier process with this number, or an earlier session of this one.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).ok()?;
        let endpoint = Endpoint { path, listener: listener.as_raw_fd() };
        let runtime = Arc::downgrade(runtime);
        thread::Builder::new()
            .name("gt-watch".into())
            .spawn(move || {
                while let Ok((stream, _)) = listener.accept() {
                    let runtime = Weak::clone(&runtime);
                    // Without a thread the watcher is not served.
                    let serve = move || serve(&runtime, stream);
                    let _ = thread::Builder::new().name("gt-watch".into()).spawn(serve);
                }
            })
            .ok()?;
        Some(endpoint)
    }

    /// In the child of a fork the endpoint is still the parent's.
    pub fn forget(self) {
        // SAFETY: the thread that owns the listener does not exist in this process.
        unsafe { libc::close(self.listener) };
        std::mem::forget(self);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: the listener is open until its thread's `accept` fails, which this brings about.
        unsafe { libc::shutdown(self.listener, libc::SHUT_RDWR) };
        let _ = fs::remove_file(&self.path);
    }
}

/// Serves one watcher until it goes, or the session ends.
fn serve(runtime: &Weak<Runtime>, stream: UnixStream) {
    let mut link = LocalLink::new(stream, "a watcher".into());
    let Some(peer) = runtime.upgrade().map(|runtime| runtime.add_watcher()) else { return };
    while let Ok(Some(message)) = link.receive(SILENCE) {
        let Some(live) = runtime.upgrade() else { return };
        let answers = live.serve_watcher(peer, message);
        drop(live);
        if !answers.iter().all(|answer| link.send(answer, READING).is_ok()) {
            break;
        }
    }
    if let Some(live) = runtime.upgrade() {
        live.remove_watcher(peer);
    }
}
