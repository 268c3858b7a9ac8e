//! The endpoint for watchers in other processes: a Unix socket that only this user can open.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use gt_dispatcher::{FromPeer, ToPeer};
use gt_ir::message::{Frame, Goodbye, Hello, WatcherToServer};
use gt_net::codec::{self, DecodeError};
use gt_net::local::{LocalLink, socket_path};

use super::listener::Listener;
use super::runtime::Runtime;

/// How long a watcher may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a watcher may take to read a message.
const READING: Duration = Duration::from_secs(1);
/// The delay before `accept` is retried after an error.
const AGAIN: Duration = Duration::from_millis(100);

/// The socket, and the thread that listens on it.
pub struct WatchSocket {
    path: PathBuf,
    /// The socket file's inode, as another session of this process may have replaced the file.
    inode: u64,
    listener: Arc<Listener>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WatchSocket {
    /// Listens for watchers; `None` if that fails, as observability must not affect the work.
    pub fn open(runtime: &Arc<Runtime>) -> Option<WatchSocket> {
        let path = socket_path(std::process::id()).ok()?;
        // A stale file of an earlier process with this id, or of an earlier session of this one.
        let _ = fs::remove_file(&path);
        let listener = Arc::new(Listener::bind(&path).ok()?);
        let inode = fs::symlink_metadata(&path).ok()?.ino();
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut endpoint = WatchSocket {
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
                    let Ok(stream) = accepted else {
                        // Perhaps out of file descriptors: retry later.
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

    /// In the child of a fork: closes the descriptor, and leaves the socket file to the parent.
    pub fn forget(self) {
        // SAFETY: the listener's thread, which shares the descriptor, does not exist in this
        // process, and nothing else uses it.
        unsafe { self.listener.close() };
        std::mem::forget(self);
    }
}

impl Drop for WatchSocket {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.listener.stop();
        // The thread ends at once, and never drops a session itself, so joining cannot deadlock.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Serves one watcher until it disconnects, or the session ends.
fn serve(runtime: &Weak<Runtime>, stream: UnixStream) {
    let mut link = LocalLink::new(stream, "a watcher".into());
    let Some(peer) = runtime.upgrade().map(|runtime| runtime.add_watcher()) else { return };
    let mut is_welcome = false;
    loop {
        let Ok(Some(frames)) = link.receive(SILENCE) else { break };
        let answers = match read(&frames, is_welcome) {
            Ok(message) => {
                let Some(live) = runtime.upgrade() else { return };
                live.serve_watcher(peer, message)
            }
            Err(DecodeError::OtherProtocol(stranger)) => {
                vec![Goodbye { reason: stranger.refusal("program") }.into()]
            }
            Err(error) => {
                let hint = "install the same version of gt on both sides";
                let reason = format!("it could not read a message: {error}\n  hint: {hint}");
                vec![Goodbye { reason }.into()]
            }
        };
        is_welcome = true;
        let are_sent = answers.iter().all(|answer| link.send(&answer.encode(), READING).is_ok());
        if !are_sent || matches!(answers.last(), Some(ToPeer::Goodbye(_))) {
            break;
        }
    }
    if let Some(live) = runtime.upgrade() {
        live.remove_watcher(peer);
    }
}

/// Decodes what a watcher sends: a hello first, and requests once it `is_welcome`.
fn read(frames: &[Bytes], is_welcome: bool) -> Result<FromPeer, DecodeError> {
    if !is_welcome {
        return match codec::decode(frames)? {
            hello @ Hello::Watcher(_) => Ok(hello.into()),
            _ => Err(DecodeError::BadCode { what: "the hello of a watcher", code: 0 }),
        };
    }
    Ok(match codec::decode_frame::<WatcherToServer>(frames)? {
        Frame::Message(message) => message.into(),
        Frame::Goodbye(goodbye) => goodbye.into(),
    })
}
