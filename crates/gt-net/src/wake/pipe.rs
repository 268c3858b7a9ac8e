//! A wakeup by a pipe, for systems without event descriptors.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// A pipe: readable from `ring` until `clear`.
pub struct Wake {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Wake {
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Wake> {
        let (reader, writer) = io::pipe()?;
        for fd in [reader.as_raw_fd(), writer.as_raw_fd()] {
            // SAFETY: the descriptor is open; the calls change its flags, and no memory.
            let status = unsafe {
                let flags = libc::fcntl(fd, libc::F_GETFL);
                libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
            };
            assert_eq!(status, 0, "a pipe can be read and written without waiting");
        }
        Ok(Wake { reader, writer })
    }

    pub fn ring(&self) {
        // The write fails if the pipe is full, but then it is readable already.
        let _ = (&self.writer).write(&[1]);
    }

    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while (&self.reader).read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    pub fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}
