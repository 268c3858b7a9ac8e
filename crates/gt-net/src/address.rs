//! Server addresses: `host:port`, `[::1]:port`, `tcp://host:port` or `ipc:///path`.

use std::io::ErrorKind;
use std::mem::zeroed;
use std::net::{Ipv6Addr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::NetError;

/// The default port.
pub const DEFAULT_PORT: u16 = 9000;

/// The longest path of a socket file that the system supports.
// SAFETY: all zero bytes are a valid `sockaddr_un`, of which only the size is taken.
const LONGEST_PATH: usize = size_of_val(&unsafe { zeroed::<libc::sockaddr_un>() }.sun_path) - 1;

/// A server's address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    /// A socket file on this machine.
    Ipc {
        path: String,
    },
}

impl Address {
    /// Parses `host:port`, `tcp://host:port` or `ipc:///path`; the port may be left out.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Address, NetError> {
        match Address::parse_to_listen(text)? {
            address if address.is_any_port() => {
                Err(NetError::BadAddress { given: without_secret(text) })
            }
            address => Ok(address),
        }
    }

    /// Like [`Address::parse`], for a server, which may also listen at port 0: any free one.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse_to_listen(text: &str) -> Result<Address, NetError> {
        let bad = || NetError::BadAddress { given: without_secret(text) };
        if let Some(path) = text.strip_prefix("ipc://") {
            return match path.len() {
                0 => Err(bad()),
                1..=LONGEST_PATH => Ok(Address::Ipc { path: path.to_string() }),
                length => {
                    Err(NetError::LongPath { path: path.into(), length, longest: LONGEST_PATH })
                }
            };
        }
        let rest = text.strip_prefix("tcp://").unwrap_or(text);
        if let Some((host, port)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // An interface may follow, as in fe80::1%eth0.
            let number = host.split('%').next().unwrap_or_default();
            number.parse::<Ipv6Addr>().map_err(|_| bad())?;
            let port = match port.strip_prefix(':') {
                Some(port) => port.parse::<u16>().map_err(|_| bad())?,
                None if port.is_empty() => DEFAULT_PORT,
                None => return Err(bad()),
            };
            return Ok(Address::Tcp { host: host.to_string(), port });
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().map_err(|_| bad())?),
            None => (rest, DEFAULT_PORT),
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
        if host.is_empty() || !host.chars().all(valid) {
            return Err(bad());
        }
        Ok(Address::Tcp { host: host.to_string(), port })
    }

    /// Returns whether the system is to choose the port.
    pub fn is_any_port(&self) -> bool {
        matches!(self, Address::Tcp { port: 0, .. })
    }

    /// Returns this address with a port that is free now, chosen by the system. Another process may
    /// take it before it is bound.
    ///
    /// # Errors
    /// The host is not one of this machine's.
    pub fn with_free_port(&self) -> Result<Address, NetError> {
        let Address::Tcp { host, .. } = self else { return Ok(self.clone()) };
        let at = match host.as_str() {
            "localhost" => "127.0.0.1",
            "*" => "0.0.0.0",
            host => host,
        };
        let port = TcpListener::bind((at, 0)).and_then(|listener| listener.local_addr());
        let port = port.map_err(|error| NetError::NoPort { host: host.clone(), error })?.port();
        Ok(Address::Tcp { host: host.clone(), port })
    }

    /// Returns the address at which others reach a server that listens at this one: of a server at
    /// all addresses of its machine, the one of the interface that leads to other machines.
    pub fn to_publish(&self) -> Address {
        let Address::Tcp { host, port } = self else { return self.clone() };
        let host = match host.as_str() {
            "0.0.0.0" | "*" => own_address("0.0.0.0:0", ("192.0.2.1", 9)).or_else(host_name),
            "::" => own_address("[::]:0", ("2001:db8::1", 9)).or_else(host_name),
            _ => None,
        }
        .unwrap_or_else(|| host.clone());
        Address::Tcp { host, port: *port }
    }

    /// The ZeroMQ endpoint to bind.
    pub fn to_bind(&self) -> String {
        match self {
            Address::Tcp { host, port } if host == "localhost" => format!("tcp://127.0.0.1:{port}"),
            Address::Tcp { .. } => format!("tcp://{self}"),
            Address::Ipc { path } => format!("ipc://{path}"),
        }
    }

    /// Returns whether a host is an IPv6 address.
    pub fn is_v6(&self) -> bool {
        matches!(self, Address::Tcp { host, .. } if host.contains(':'))
    }

    /// The ZeroMQ endpoint to connect to.
    pub fn to_connect(&self) -> String {
        match self {
            Address::Tcp { host, port }
                if ["localhost", "0.0.0.0", "*"].contains(&host.as_str()) =>
            {
                format!("tcp://127.0.0.1:{port}")
            }
            Address::Tcp { host, port } if host == "::" => format!("tcp://[::1]:{port}"),
            _ => self.to_bind(),
        }
    }

    /// Returns whether it is reachable from this machine only.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp { host, .. } => {
                ["localhost", "::1"].contains(&host.as_str()) || host.starts_with("127.")
            }
            Address::Ipc { .. } => true,
        }
    }

    /// This machine's own address towards the server; for a local server the loopback address.
    pub fn own_host(&self) -> String {
        let (loopback, any) =
            if self.is_v6() { ("::1", "[::]:0") } else { ("127.0.0.1", "0.0.0.0:0") };
        let loopback = loopback.to_string();
        let Address::Tcp { host, port } = self else { return loopback };
        if self.is_local() {
            return loopback;
        }
        own_address(any, (host, *port)).unwrap_or(loopback)
    }

    /// The command-line option that makes a server listen here.
    pub fn server_option(&self) -> String {
        match self {
            Address::Tcp { port, .. } => format!("-p {port}"),
            Address::Ipc { path } => format!("--ipc {path}"),
        }
    }

    /// Returns whether the host is reachable and no process listens at the port. Takes at most
    /// `limit`.
    pub fn is_refused(&self, limit: Duration) -> bool {
        let kinds = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
        self.try_connect(limit).is_err_and(|error| kinds.contains(&error.kind()))
    }

    /// Returns whether a process accepts connections at the port. Takes at most `limit`, besides the
    /// resolution of the host's name.
    pub fn is_accepting(&self, limit: Duration) -> bool {
        self.try_connect(limit).is_ok()
    }

    fn try_connect(&self, limit: Duration) -> std::io::Result<()> {
        match self {
            Address::Ipc { path } => UnixStream::connect(path).map(drop),
            Address::Tcp { host, port } => {
                let host =
                    if ["0.0.0.0", "*"].contains(&host.as_str()) { "127.0.0.1" } else { host };
                let first = (host, *port).to_socket_addrs()?.next();
                // A name without an address is no refusal.
                let first = first.ok_or(ErrorKind::AddrNotAvailable)?;
                TcpStream::connect_timeout(&first, limit).map(drop)
            }
        }
    }

    /// Checks that the host's name resolves.
    ///
    /// # Errors
    /// It does not resolve.
    pub fn check_host(&self) -> Result<(), NetError> {
        let Address::Tcp { host, port } = self else { return Ok(()) };
        match (host.as_str(), *port).to_socket_addrs() {
            Err(error) if host != "*" => Err(NetError::UnknownHost { host: host.clone(), error }),
            _ => Ok(()),
        }
    }
}

/// Returns an address as messages may show it: in place of a password, `user:...@host`.
pub fn without_secret(text: &str) -> String {
    let (scheme, rest) = text.split_at(text.find("://").map_or(0, |at| at + "://".len()));
    // A password may have any letter, also the one that ends it.
    let login =
        rest.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?.0, host)));
    login.map_or_else(|| text.to_string(), |(user, host)| format!("{scheme}{user}:...@{host}"))
}

/// Returns this machine's name, for one that has no way to others beyond its own network.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_string()).filter(|name| !name.is_empty())
}

/// Returns this machine's own address towards another. Connecting a UDP socket sends nothing, it only
/// selects the route.
fn own_address(any: &str, to: (&str, u16)) -> Option<String> {
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp { host, port } if self.is_v6() => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Ipc { path } => write!(f, "ipc://{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_no_password() {
        for (text, shown) in [
            ("tcp://ada:secret@h:1", "tcp://ada:...@h:1"),
            ("ada:secret@h", "ada:...@h"),
            ("https://ada:se@c/r:et@h/x", "https://ada:...@h/x"),
            (":secret@h", ":...@h"),
            ("ada@h:1", "ada@h:1"),
            ("a b:1", "a b:1"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("'{shown}'")) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn addresses_parse() {
        let tcp = |host: &str, port| Some(Address::Tcp { host: host.into(), port });
        let check = |text: &str, want| assert_eq!(Address::parse(text).ok(), want, "{text}");
        check("localhost:12345", tcp("localhost", 12345));
        check("tcp://10.0.0.1:80", tcp("10.0.0.1", 80));
        check("node7", tcp("node7", 9000));
        check("[::1]:80", tcp("::1", 80));
        check("tcp://[fe80::1%eth0]", tcp("fe80::1%eth0", 9000));
        for bad in ["::1", "::1:80", "[::1", "[::1]80", "[node]:80", "[::1]:0", "[]:80"] {
            check(bad, None);
        }
        check("node7:", None);
        check("node7:99999", None);
        check("", None);
        check("a b:1", None);
        check("localhost:0", None);
        assert!(Address::parse_to_listen("localhost:0").unwrap().is_any_port());
        check("ipc:///tmp/gt.sock", Some(Address::Ipc { path: "/tmp/gt.sock".into() }));
    }
}
