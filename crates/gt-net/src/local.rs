//! Messages over a socket file: between an embedded session and its watchers on the machine.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::Message;

use crate::codec::{self, MAX_FRAMES};
use crate::error::NetError;
use crate::keyring::runtime_folder;

/// The longest frame: status and events are much shorter.
const MAX_FRAME: usize = 64 << 20;

/// One end of a connection.
pub struct LocalLink {
    stream: UnixStream,
    name: String,
}

/// Where the embedded session of a process is reached.
///
/// # Errors
/// There is no folder that only this user can get at.
pub fn socket_path(process: u32) -> Result<PathBuf, NetError> {
    Ok(runtime_folder()?.join(format!("embedded-{process}.sock")))
}

impl LocalLink {
    /// Over a stream; `name` stands in errors.
    pub fn new(stream: UnixStream, name: String) -> LocalLink {
        LocalLink { stream, name }
    }

    /// Connects to a socket file.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(path: &Path) -> Result<LocalLink, NetError> {
        let name = path.display().to_string();
        let stream = UnixStream::connect(path)
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

    /// Sends a message; the other end may read nothing for `limit` at most.
    ///
    /// # Errors
    /// The other end is gone, or does not take it.
    pub fn send(&mut self, message: &Message, limit: Duration) -> Result<(), NetError> {
        let frames = codec::encode(message);
        let mut bytes = (frames.len() as u32).to_le_bytes().to_vec();
        for frame in &frames {
            bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            bytes.extend_from_slice(frame);
        }
        let sent = self.stream.set_write_timeout(Some(limit));
        sent.and_then(|()| self.stream.write_all(&bytes)).map_err(|error| self.lost(&error))
    }

    /// The next message; `None` if none has begun to come within `limit`.
    ///
    /// # Errors
    /// The other end is gone, or sends what is no message.
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Message>, NetError> {
        let until = Instant::now() + limit;
        let mut count = [0; 4];
        self.fill(&mut count[..1], until)
            .or_else(|error| match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                _ => Err(self.lost(&error)),
            })
            .and_then(|has_begun| if has_begun { self.rest(count).map(Some) } else { Ok(None) })
    }

    /// The rest of a message that has begun; that takes no time.
    fn rest(&mut self, mut count: [u8; 4]) -> Result<Message, NetError> {
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
        Ok(codec::decode(&frames)?)
    }

    /// Fills some bytes.
    fn fill(&self, bytes: &mut [u8], until: Instant) -> std::io::Result<bool> {
        let mut filled = 0;
        while filled < bytes.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
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
