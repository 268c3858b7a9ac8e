//! A Unix socket that a thread listens on until another thread stops it.
//!
//! - [`linux`]: a listening socket that is shut down ends its `accept`.
//! - [`polled`]: on other Unix systems `accept` does not end so: the thread waits for the socket
//!   and for a wakeup.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(any(test, not(target_os = "linux"), feature = "portable"))]
// On Linux its tests alone use it, and they end with their process.
#[cfg_attr(all(target_os = "linux", not(feature = "portable")), allow(dead_code))]
mod polled;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub use linux::Listener;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub use polled::Listener;

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn check<L: Sync>(
        name: &str,
        bind: fn(&Path) -> io::Result<L>,
        accept: fn(&L) -> io::Result<UnixStream>,
        stop: fn(&L),
    ) {
        let path = std::env::temp_dir().join(format!("gt-{name}-{}.sock", std::process::id()));
        let listener = bind(&path).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                for _ in 0..2 {
                    let mut stream = accept(&listener).unwrap();
                    let mut text = [0; 2];
                    // It waits, although nothing has been sent yet.
                    stream.read_exact(&mut text).unwrap();
                    stream.write_all(&text).unwrap();
                }
                accept(&listener).map(drop)
            });
            for text in [b"ab", b"cd"] {
                let mut stream = UnixStream::connect(&path).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                stream.write_all(text).unwrap();
                let mut answer = [0; 2];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, text);
            }
            std::thread::sleep(Duration::from_millis(20));
            stop(&listener);
            assert!(thread.join().unwrap().is_err(), "a thread in accept returns");
        });
        assert!(accept(&listener).is_err(), "it has been stopped for good");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_thread_that_listens_can_be_stopped() {
        check("listener", Listener::bind, Listener::accept, Listener::stop);
        check("polled", polled::Listener::bind, polled::Listener::accept, polled::Listener::stop);
    }
}
