//! Where watchers in other processes reach an embedded session: a socket file that only this user
//! can open.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gt_ir::message::Message;
use gt_net::NetError;
use gt_net::local::{LocalLink, socket_path};

use super::runtime::Runtime;

/// How long a watcher may be silent, and how long it may take to read.
const SILENCE: Duration = Duration::from_secs(60);
const READING: Duration = Duration::from_secs(1);
/// How long until the next try to let watchers in, where one has failed.
const AGAIN: Duration = Duration::from_millis(100);

/// A socket file, and the thread that listens at it.
pub struct Endpoint {
    path: PathBuf,
    /// The socket file's number: another session of this process may have put its own there.
    inode: u64,
    listener: Arc<UnixListener>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens for watchers; `None` where that is not possible: they are no part of the work.
    pub fn open(runtime: &Arc<Runtime>) -> Option<Endpoint> {
        let path = socket_path(std::process::id()).ok()?;
        // Of an earlier process with this number, or an earlier session of this one.
        let _ = fs::remove_file(&path);
        let listener = Arc::new(UnixListener::bind(&path).ok()?);
        let inode = fs::symlink_metadata(&path).ok()?.ino();
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut endpoint = Endpoint {
            path,
            inode,
            listener: Arc::clone(&listener),
            has_ended: Arc::clone(&has_ended),
            thread: None,
        };
        let runtime = Arc::downgrade(runtime);
        let thread = thread::Builder::new()
            .name("gt-watch".into())
            .spawn(move || {
                loop {
                    let accepted = listener.accept();
                    if has_ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let Ok((stream, _)) = accepted else {
                        // No descriptor is left, perhaps: later there may be one.
                        thread::sleep(AGAIN);
                        continue;
                    };
                    let runtime = Weak::clone(&runtime);
                    // Without a thread the watcher is not served.
                    let serve = move || serve(&runtime, stream);
                    let _ = thread::Builder::new().name("gt-watch".into()).spawn(serve);
                }
            })
            .ok()?;
        endpoint.thread = Some(thread);
        Some(endpoint)
    }

    /// In the child of a fork the endpoint is still the parent's.
    pub fn forget(self) {
        // SAFETY: the listener's thread, which shares it, does not exist in this process, and nobody
        // uses it here any more.
        unsafe { libc::close(self.listener.as_raw_fd()) };
        std::mem::forget(self);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        // SAFETY: the listener is open as long as this is there; its thread's `accept` fails then.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        // It ends at once, and never closes a session itself.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Serves one watcher until it goes, or the session ends.
fn serve(runtime: &Weak<Runtime>, stream: UnixStream) {
    let mut link = LocalLink::new(stream, "a watcher".into());
    let Some(peer) = runtime.upgrade().map(|runtime| runtime.add_watcher()) else { return };
    loop {
        let answers = match link.receive(SILENCE) {
            Ok(Some(message)) => {
                let Some(live) = runtime.upgrade() else { return };
                live.serve_watcher(peer, message)
            }
            Err(NetError::Decode(error)) => {
                let hint = "install the same version of gt on both sides";
                let reason = format!("it could not read a message: {error}\n  hint: {hint}");
                vec![Message::Goodbye { reason }]
            }
            Ok(None) | Err(_) => break,
        };
        let are_sent = answers.iter().all(|answer| link.send(answer, READING).is_ok());
        if !are_sent || matches!(answers.last(), Some(Message::Goodbye { .. })) {
            break;
        }
    }
    if let Some(live) = runtime.upgrade() {
        live.remove_watcher(peer);
    }
}
