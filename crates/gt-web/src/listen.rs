//! The address of the page, and the names by which browsers may call it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

use crate::error::WebError;

/// The port of the page if no other is named.
pub const DEFAULT_PORT: u16 = 8265;

/// Where a page listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Parses `8265`, `localhost:8265`, `0.0.0.0:8265` or `[::1]:8265`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<ListenAddress, WebError> {
        let bad = || WebError::BadAddress { given: text.chars().take(80).collect() };
        let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
        let port = port.parse().map_err(|_| bad())?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match inner {
            Some(inner) => inner.parse::<IpAddr>().map_err(|_| bad())?.to_string(),
            None if is_host(host) => host.to_string(),
            None => return Err(bad()),
        };
        Ok(ListenAddress { host, port })
    }

    /// Listens there. Other addresses than those of loopback must be allowed.
    ///
    /// # Errors
    /// The address is in use, not allowed, or not of this machine.
    pub fn bind(&self, allow_network: bool) -> Result<TcpListener, WebError> {
        let ListenAddress { host, port } = self.clone();
        let address =
            self.resolve().map_err(|error| WebError::Listen { host: host.clone(), port, error })?;
        if !allow_network && !address.ip().is_loopback() {
            return Err(WebError::NotLoopback { host });
        }
        TcpListener::bind(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => WebError::InUse { host, port },
            _ => WebError::Listen { host, port, error },
        })
    }

    /// Returns the host's name, unless it is an address.
    pub fn name(&self) -> Option<String> {
        let is_address = self.host.parse::<IpAddr>().is_ok();
        (!is_address).then(|| self.host.clone())
    }

    fn resolve(&self) -> io::Result<SocketAddr> {
        // Where browsers look first.
        if self.host == "localhost" {
            return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port));
        }
        let mut found = (self.host.as_str(), self.port).to_socket_addrs()?;
        found.next().ok_or_else(|| io::Error::other("the host has no address"))
    }
}

/// Returns whether a text may be the name of a host.
fn is_host(text: &str) -> bool {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_valid)
}

/// The hosts that a request may name. A page of another site whose name leads here (DNS rebinding)
/// names itself, so it is refused; addresses cannot be rebound.
#[derive(Clone, Debug)]
pub struct ServedHosts {
    address: SocketAddr,
    names: Vec<String>,
}

impl ServedHosts {
    /// The hosts of a page at an address. A reverse proxy serves it under `names`.
    ///
    /// # Errors
    /// A name cannot be that of a host.
    pub fn new(address: SocketAddr, names: &[String]) -> Result<ServedHosts, WebError> {
        let check = |name: &String| match is_host(name) {
            true => Ok(name.to_ascii_lowercase()),
            false => Err(WebError::BadName { given: name.chars().take(80).collect() }),
        };
        let names = names.iter().map(check).collect::<Result<_, _>>()?;
        Ok(ServedHosts { address, names })
    }

    /// Returns whether the page is served under the host of a request, as `127.0.0.1:8265`.
    pub fn contains(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host.as_str(), Some(80)),
        };
        if self.names.iter().any(|served| served == name) {
            return true;
        }
        let (own, is_local) = (self.address.ip(), self.address.ip().is_loopback());
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_served = match literal.unwrap_or(name).parse::<IpAddr>() {
            Ok(address) => own.is_unspecified() || address == own,
            Err(_) => name == "localhost" && (is_local || own.is_unspecified()),
        };
        is_served && port == Some(self.address.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_a_host_and_a_port() {
        let at = |host: &str, port| ListenAddress { host: host.into(), port };
        for (text, expected) in [
            ("8265", at("127.0.0.1", 8265)),
            ("0", at("127.0.0.1", 0)),
            ("localhost:80", at("localhost", 80)),
            ("0.0.0.0:8265", at("0.0.0.0", 8265)),
            ("[::1]:8265", at("::1", 8265)),
        ] {
            assert_eq!(ListenAddress::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["", "x", "99999", "-1", ":8265", "a b:80", "::1:80", "[::1]", "[x]:80", "h:"] {
            let error = ListenAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains("expected PORT or HOST:PORT"), "{text}: {error}");
        }
    }

    #[test]
    fn only_loopback_is_served_without_permission() {
        let any = ListenAddress::parse("0.0.0.0:0").unwrap();
        let error = any.bind(false).unwrap_err().to_string();
        assert!(error.contains("--insecure-web") && error.contains("TLS"), "{error}");
        any.bind(true).unwrap();
        let first = ListenAddress::parse("0").unwrap().bind(false).unwrap();
        let port = first.local_addr().unwrap().port();
        let second = ListenAddress::parse(&format!("localhost:{port}")).unwrap();
        let error = second.bind(false).unwrap_err().to_string();
        assert!(error.contains("is in use") && error.contains(&port.to_string()), "{error}");
    }

    #[test]
    fn a_host_must_be_one_under_which_the_page_is_served() {
        let hosts = |at: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            ServedHosts::new(at.parse().unwrap(), &names).unwrap()
        };
        let local = hosts("127.0.0.1:8265", &["gt.example.com"]);
        for host in ["127.0.0.1:8265", "localhost:8265", "LOCALHOST:8265", "GT.example.com:443"] {
            assert!(local.contains(host), "{host}");
        }
        let strangers =
            ["", ":", "127.0.0.1", "127.0.0.1:80", "evil.com:8265", "localhost.evil.com:8265"];
        let others = ["10.0.0.1:8265", "[::1]:8265", "[::1", "127.0.0.1:8265:8265", "example.com"];
        for host in strangers.into_iter().chain(others) {
            assert!(!local.contains(host), "{host}");
        }
        assert!(hosts("127.0.0.1:80", &[]).contains("localhost"));
        assert!(hosts("[::1]:8265", &[]).contains("[::1]:8265"));
        let any = hosts("0.0.0.0:8265", &[]);
        assert!(any.contains("10.0.0.1:8265") && !any.contains("evil.com:8265"));
        let name = ["gt.example.com:443".to_string()];
        assert!(ServedHosts::new("127.0.0.1:1".parse().unwrap(), &name).is_err());
    }
}
