//! Messages over a Unix socket, between an embedded session and its watchers.
//!
//! [`connect`]: connecting to a socket without waiting for a stopped process.

mod connect;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
pub use connect::{REFUSES_WHEN_FULL, connect};

use crate::codec::{self, MAX_FRAMES};
use crate::error::NetError;
use crate::keyring::runtime_folder;

/// The longest frame accepted; status and events are much shorter.
const MAX_FRAME: usize = 64 << 20;

/// How long a listener may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// One end of a connection.
pub struct LocalLink {
    stream: UnixStream,
    name: String,
}

/// The socket path of a process's embedded session.
///
/// # Errors
/// There is no folder that only this user can access.
pub fn socket_path(process: u32) -> Result<PathBuf, NetError> {
    Ok(runtime_folder()?.join(format!("embedded-{process}.sock")))
}

impl LocalLink {
    /// A link over a stream; `name` is used in errors.
    pub fn new(stream: UnixStream, name: String) -> LocalLink {
        LocalLink { stream, name }
    }

    /// Connects to a Unix socket.
    ///
    /// # Errors
    /// Nothing listens there.
    pub fn connect(path: &Path) -> Result<LocalLink, NetError> {
        let name = path.display().to_string();
        let stream = connect(path, CONNECT_LIMIT)
            .map_err(|error| NetError::Lost { address: name.clone(), reason: error.to_string() })?;
        Ok(LocalLink { stream, name })
    }

    fn lost(&self, error: &std::io::Error) -> NetError {
        let reason = match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "it does not answer".to_string(),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe => "it has ended".to_string(),
            _ => error.to_string(),
        };
        NetError::Lost { address: self.name.clone(), reason }
    }

    /// Sends the frames of a message; `limit` is the longest that the peer may read nothing.
    ///
    /// # Errors
    /// The peer is gone, or does not read.
    pub fn send(&mut self, frames: &[Bytes], limit: Duration) -> Result<(), NetError> {
        let mut bytes = (frames.len() as u32).to_le_bytes().to_vec();
        for frame in frames {
            bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            bytes.extend_from_slice(frame);
        }
        let sent = unless_closed(self.stream.set_write_timeout(Some(limit)));
        sent.and_then(|()| self.stream.write_all(&bytes)).map_err(|error| self.lost(&error))
    }

    /// Returns the frames of the next message; `None` if none begins to arrive within `limit`.
    ///
    /// # Errors
    /// The peer is gone, or sends invalid data.
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Vec<Bytes>>, NetError> {
        let until = Instant::now() + limit;
        let mut count = [0; 4];
        self.fill(&mut count[..1], until)
            .or_else(|error| match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                _ => Err(self.lost(&error)),
            })
            .and_then(|has_begun| if has_begun { self.rest(count).map(Some) } else { Ok(None) })
    }

    /// The rest of a message that has begun to arrive.
    fn rest(&mut self, mut count: [u8; 4]) -> Result<Vec<Bytes>, NetError> {
        let until = Instant::now() + Duration::from_secs(5);
        let read = |bytes: &mut [u8]| {
            self.fill(bytes, until).map_err(|error| self.lost(&error)).map(|_| ())
        };
        read(&mut count[1..])?;
        let damaged = |what| NetError::Decode(codec::DecodeError::BadCode { what, code: 0 });
        let count = u32::from_le_bytes(count) as usize;
        if count > MAX_FRAMES {
            return Err(damaged("a number of frames"));
        }
        let mut frames = Vec::new();
        for _ in 0..count {
            let mut length = [0; 4];
            read(&mut length)?;
            let length = u32::from_le_bytes(length) as usize;
            if length > MAX_FRAME {
                return Err(damaged("the length of a frame"));
            }
            let mut frame = vec![0; length];
            read(&mut frame)?;
            frames.push(Bytes::from(frame));
        }
        Ok(frames)
    }

    /// Reads until `bytes` is full.
    fn fill(&self, bytes: &mut [u8], until: Instant) -> std::io::Result<bool> {
        let mut filled = 0;
        while filled < bytes.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            unless_closed(self.stream.set_read_timeout(Some(left)))?;
            match (&self.stream).read(&mut bytes[filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The result of setting a timeout. macOS takes none for a socket whose peer has closed it, but then
/// nothing waits: what has arrived is read, and then the end.
fn unless_closed(set: std::io::Result<()>) -> std::io::Result<()> {
    set.or_else(|error| match error.kind() {
        ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_end_is_received() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let [mut ours, mut theirs] =
            [ours, theirs].map(|stream| LocalLink::new(stream, "the peer".into()));
        let limit = Duration::from_secs(5);
        assert!(ours.receive(Duration::from_millis(5)).unwrap().is_none());
        let sent = [Bytes::from_static(b"a message"), Bytes::from_static(b"of two frames")];
        theirs.send(&sent, limit).unwrap();
        drop(theirs);
        assert_eq!(ours.receive(limit).unwrap().unwrap(), sent);
        for ended in [ours.receive(limit).err(), ours.send(&sent, limit).err()] {
            assert!(ended.unwrap().to_string().contains("it has ended"));
        }
    }
}
