//! The rate of a connection, from what the operating system counts of it.

use std::os::fd::RawFd;

use gt_ir::WorkerId;

use super::PeerLinks;
use super::routes::{DialState, RouteKind};

/// The bytes that are needed to know a rate: fewer arrive within the bursts that networks allow. Less
/// is enough from a link that was busy for this many microseconds.
const ENOUGH: u64 = 1 << 20;
const ENOUGH_IF_BUSY: (u64, u64) = (256 << 10, 500_000);

/// What a connection has carried, and how long it took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConnectionCounters {
    /// The bytes that the receiver has acknowledged.
    acknowledged: u64,
    /// The microseconds in which there was something to send, and room for it at the receiver.
    busy: u64,
}

impl ConnectionCounters {
    /// Returns the bytes per second since counters of the connection about a second earlier; `None` if
    /// it has carried too little since: the time that small messages take is that of their ways.
    pub fn rate_since(&self, earlier: ConnectionCounters) -> Option<u64> {
        let bytes = self.acknowledged.saturating_sub(earlier.acknowledged);
        let busy = self.busy.saturating_sub(earlier.busy);
        let (less, long) = ENOUGH_IF_BUSY;
        let is_enough = bytes >= ENOUGH || bytes >= less && busy >= long;
        (is_enough && busy > 0)
            .then(|| u64::try_from(u128::from(bytes) * 1_000_000 / u128::from(busy)).ok())?
    }

    /// Returns the counters of a TCP connection; `None` if the system does not have them.
    ///
    /// See `struct tcp_info` in Linux's `linux/tcp.h`.
    #[cfg(target_os = "linux")]
    pub fn of(descriptor: RawFd) -> Option<ConnectionCounters> {
        /// The positions of fields, of eight bytes each: `tcpi_bytes_acked`, `tcpi_busy_time` and
        /// `tcpi_rwnd_limited`.
        const ACKNOWLEDGED: usize = 120;
        const BUSY: usize = 168;
        const WITHOUT_ROOM: usize = 176;
        let mut information = [0_u8; WITHOUT_ROOM + 8];
        let mut length = information.len() as libc::socklen_t;
        // SAFETY: both pointers are valid for the call, which writes at most `length` bytes. A
        // descriptor that is not a TCP connection is an error.
        let result = unsafe {
            libc::getsockopt(
                descriptor,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                information.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 || (length as usize) < information.len() {
            return None;
        }
        let field = |at: usize| {
            let bytes = information[at..].first_chunk::<8>().expect("the field is inside");
            u64::from_ne_bytes(*bytes)
        };
        let busy = field(BUSY).saturating_sub(field(WITHOUT_ROOM));
        Some(ConnectionCounters { acknowledged: field(ACKNOWLEDGED), busy })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of(_: RawFd) -> Option<ConnectionCounters> {
        None
    }
}

impl PeerLinks {
    /// Returns what each link that this worker has opened has carried, where the system counts it.
    pub fn carried(&mut self) -> impl Iterator<Item = (WorkerId, ConnectionCounters)> {
        self.look();
        self.routes.iter().filter_map(|(worker, route)| match route.kind {
            RouteKind::Dialed { state: DialState::Open(connection), .. } => {
                Some((*worker, ConnectionCounters::of(connection.cast_signed())?))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_needs_enough_bytes() {
        let before = ConnectionCounters { acknowledged: 1000, busy: 500 };
        let after = |acknowledged, busy| ConnectionCounters { acknowledged, busy };
        assert_eq!(after(1000 + (4 << 20), 2_000_500).rate_since(before), Some(2 << 20));
        assert_eq!(after(2000, 2_000_500).rate_since(before), None);
        assert_eq!(after(1000 + (300 << 10), 400_000).rate_since(before), None);
        assert_eq!(after(1000 + (300 << 10), 1_000_500).rate_since(before), Some(300 << 10));
        assert_eq!(after(1000 + (4 << 20), 500).rate_since(before), None);
        assert_eq!(after(0, 0).rate_since(before), None, "another connection");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_counts_what_it_carries() {
        use std::io::Write;
        use std::net::{TcpListener, TcpStream};
        use std::os::fd::AsRawFd;
        use std::time::{Duration, Instant};

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let counters = ConnectionCounters::of(sender.as_raw_fd()).unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
        // The system counts busy time in its clock ticks of up to 10 ms: some transfers take none.
        let limit = Instant::now() + Duration::from_secs(60);
        let mut sent = 0;
        let after = loop {
            sender.write_all(&vec![1; 8 << 20]).unwrap();
            sent += 8 << 20;
            let after = ConnectionCounters::of(sender.as_raw_fd()).unwrap();
            if after.busy > counters.busy && after.acknowledged > counters.acknowledged + ENOUGH {
                break after;
            }
            assert!(Instant::now() < limit, "nothing is counted: {after:?}");
        };
        assert!(after.acknowledged - counters.acknowledged <= sent + 1, "{after:?}");
        assert!(after.rate_since(counters).unwrap() > 100_000, "{after:?}");
        drop(sender);
        assert_eq!(reader.join().unwrap().unwrap(), sent);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(ConnectionCounters::of(file.as_raw_fd()), None);
    }
}
