//! The peers of a server: their links, and the disconnected clients that may return.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_dispatcher::{PeerId, ToPeer};
use gt_ir::message::{ClientHello, ClientWelcome, Hello, Process, Resume, Role, is_same_token};
use gt_net::process;
use gt_net::resume::{self, Incoming, Unacknowledged};
use gt_net::server::LinkId;
use rustc_hash::FxHashMap;

use super::rate_limit::RateLimit;

/// All peers of a server.
#[derive(Default)]
pub(super) struct PeerTable {
    by_link: FxHashMap<LinkId, PeerId>,
    peers: FxHashMap<PeerId, Peer>,
    last: u64,
    /// The number of disconnected clients.
    away: usize,
    /// The tokens of sessions that could not be resumed when the server restarted, and why.
    ended: Vec<(u128, String)>,
    rate_limit: RateLimit,
}

/// A peer.
pub(super) struct Peer {
    pub link: Option<LinkId>,
    pub machine: String,
    /// The state by which a client can resume its session.
    pub client: Option<Box<Client>>,
}

/// A client, which may lose its connection and return.
pub(super) struct Client {
    token: u128,
    user: String,
    process: Option<Process>,
    pub outgoing: Unacknowledged,
    pub incoming: Incoming,
    /// The messages that wait until the session is durable.
    pub held: Option<Vec<ToPeer>>,
    /// Whether it was welcomed: before, it knows of no session.
    is_welcomed: bool,
    /// Since when the client is disconnected.
    away: Option<Instant>,
    /// Whether the client has not returned since the server restarted.
    is_restored: bool,
    is_unaware: bool,
}

/// A refused attempt to resume a session.
pub(super) struct ResumeRefused {
    /// The reason; none if the attempt is not answered.
    pub reason: Option<String>,
    /// The session that ends as a consequence.
    pub ended: Option<PeerId>,
}

impl Client {
    fn new(hello: &ClientHello) -> Client {
        Client {
            token: resume::token(),
            user: hello.user().to_string(),
            process: hello.process,
            outgoing: Unacknowledged::default(),
            incoming: Incoming::default(),
            held: None,
            is_welcomed: false,
            away: None,
            is_restored: false,
            is_unaware: false,
        }
    }

    /// Records that the client has returned, and knows of the restart.
    pub fn has_returned(&mut self) {
        self.is_unaware = false;
    }

    /// Fills in what the client needs to resume.
    pub fn fill(&mut self, welcome: &mut ClientWelcome) {
        self.is_welcomed = true;
        (welcome.token, welcome.received) = (Some(self.token), self.incoming.acknowledge());
    }
}

impl PeerTable {
    /// Adds the peer that sent a hello on a link, and fills in how it can resume.
    pub fn add(&mut self, link: LinkId, hello: &mut Hello) -> PeerId {
        let id = self.next(hello.role());
        let (machine, client) = match hello {
            Hello::Client(hello) => {
                let client = Box::new(Client::new(hello));
                hello.resume = Some(Box::new(Resume::new(client.token)));
                (hello.machine.clone(), Some(client))
            }
            Hello::Worker(hello) => {
                hello.token.get_or_insert_with(resume::token);
                (hello.machine.clone(), None)
            }
            Hello::Watcher(_) | Hello::Operator(_) => (String::new(), None),
        };
        self.by_link.insert(link.clone(), id);
        self.peers.insert(id, Peer { link: Some(link), machine, client });
        id
    }

    fn next(&mut self, role: Role) -> PeerId {
        self.last += 1;
        PeerId { role, number: self.last }
    }

    /// Adds the client of a session that was adopted after a restart. The client has yet to return.
    pub fn restore(&mut self, hello: &ClientHello, received: u64) -> PeerId {
        let id = self.next(Role::Client);
        let client = Client {
            token: hello.resume.as_ref().map_or_else(resume::token, |resume| resume.token),
            incoming: Incoming::begin_at(received),
            away: Some(Instant::now()),
            is_welcomed: true,
            is_restored: true,
            is_unaware: true,
            ..Client::new(hello)
        };
        let (link, machine) = (None, hello.machine.clone());
        self.peers.insert(id, Peer { link, machine, client: Some(Box::new(client)) });
        self.away += 1;
        id
    }

    /// Returns the id of a session of the journal that has no client.
    pub fn absent(&mut self) -> PeerId {
        self.next(Role::Client)
    }

    /// Records that a session of the journal cannot be resumed; its client is notified when it
    /// returns.
    pub fn give_up(&mut self, id: PeerId, reason: String) {
        let token = self.remove(id).and_then(|peer| Some(peer.client?.token));
        self.ended.extend(token.map(|token| (token, reason)));
    }

    pub fn id(&self, link: &LinkId) -> Option<PeerId> {
        self.by_link.get(link).copied()
    }

    pub fn get(&self, id: PeerId) -> Option<&Peer> {
        self.peers.get(&id)
    }

    pub fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(&id)
    }

    /// Returns the state by which a client can resume its session.
    pub fn client_mut(&mut self, id: PeerId) -> Option<&mut Client> {
        self.peers.get_mut(&id)?.client.as_deref_mut()
    }

    /// Returns the links of all connected peers.
    pub fn links(&self) -> Vec<LinkId> {
        self.by_link.keys().cloned().collect()
    }

    pub fn remove(&mut self, id: PeerId) -> Option<Peer> {
        let peer = self.peers.remove(&id)?;
        match &peer.link {
            Some(link) => drop(self.by_link.remove(link)),
            None => self.away -= 1,
        }
        Some(peer)
    }

    /// Handles the loss of a link. Returns the peer, unless it is a client, which may return.
    pub fn disconnect(&mut self, link: &LinkId) -> Option<PeerId> {
        let id = self.by_link.remove(link)?;
        let peer = self.peers.get_mut(&id)?;
        let Some(client) = peer.client.as_mut().filter(|client| client.is_welcomed) else {
            // Also for a client that was not welcomed yet, and so knows of no session.
            peer.link = Some(link.clone());
            return Some(id);
        };
        peer.link = None;
        client.away = Some(Instant::now());
        self.away += 1;
        None
    }

    /// Moves a client to another link. Returns the client, the messages that it has not received,
    /// and whether the server has restarted since.
    ///
    /// # Errors
    /// The session cannot be resumed, or the token is wrong.
    pub fn resume(
        &mut self,
        link: LinkId,
        hello: &ClientHello,
        given: &Resume,
    ) -> Result<(PeerId, Vec<Vec<Bytes>>, bool), ResumeRefused> {
        let is_it = |peer: &Peer| {
            peer.client.as_ref().is_some_and(|client| {
                is_same_token(given.token, client.token) && client.user == hello.user()
            })
        };
        let refuse = |reason| Err(ResumeRefused { reason, ended: None });
        if self.rate_limit.lock(hello.user()) {
            // The right client of the same user will retry.
            return refuse(None);
        }
        let mut found = None;
        for (id, peer) in &self.peers {
            if is_it(peer) {
                found = Some(*id);
            }
        }
        let Some(id) = found else {
            let mut ended = None;
            for (token, reason) in &self.ended {
                if is_same_token(given.token, *token) {
                    ended = Some(reason.clone());
                }
            }
            if let Some(reason) = ended {
                return refuse(Some(format!("the session could not go on: {reason}")));
            }
            let reason = "the session has ended, or the server was started anew";
            return refuse(self.rate_limit.add(hello.user().to_string()).then(|| reason.into()));
        };
        let peer = self.peers.get_mut(&id).expect("it was found");
        let client = peer.client.as_mut().expect("it was found by it");
        // The notice is repeated until the client has received it.
        let is_renewed = client.is_unaware;
        if std::mem::take(&mut client.is_restored) {
            let received = client.incoming.received();
            if given.recorded > received {
                let reason = format!(
                    "the session cannot go on: the server's journal was damaged, and has the client's first {received} messages of {} that it had kept",
                    given.recorded
                );
                return Err(ResumeRefused { reason: Some(reason), ended: Some(id) });
            }
            client.outgoing.begin_at(given.received);
            // Acknowledged messages that are not in the journal are no longer needed.
            client.incoming = Incoming::begin_at(received.max(given.acknowledged));
        }
        if !client.outgoing.acknowledge(given.received) {
            let reason = Some("the session cannot go on: messages of it are lost".into());
            return Err(ResumeRefused { reason, ended: Some(id) });
        }
        match peer.link.replace(link.clone()) {
            // The server has not noticed yet that the old connection was lost.
            Some(before) => drop(self.by_link.remove(&before)),
            None => self.away -= 1,
        }
        client.away = None;
        self.by_link.insert(link, id);
        Ok((id, client.outgoing.unacknowledged().cloned().collect(), is_renewed))
    }

    /// Returns the clients that will not return, with the reason: their processes on this machine
    /// have ended, or they were disconnected for too long.
    pub fn gone(&self, machine: &str, grace: Duration) -> Vec<(PeerId, &'static str)> {
        if self.away == 0 {
            return Vec::new();
        }
        let reason = |peer: &Peer| {
            let client = peer.client.as_ref()?;
            let since = client.away?;
            let is_here = !machine.is_empty() && peer.machine == machine;
            if is_here && client.process.is_some_and(|process| !process::is_alive(process)) {
                return Some("its process has ended");
            }
            (since.elapsed() >= grace).then_some("its connection was lost")
        };
        let gone = self.peers.iter().filter_map(|(id, peer)| Some((*id, reason(peer)?)));
        let mut gone: Vec<_> = gone.collect();
        gone.sort_unstable();
        gone
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::SessionOrigin;
    use gt_ir::message::{Badge, ClientHello, Hello, Resume};

    use super::*;

    fn hello(user: &str) -> ClientHello {
        let badge = Badge { user: user.into(), team: String::new(), proof: [0; 32] };
        let badge = (!user.is_empty()).then(|| Box::new(badge));
        ClientHello { badge, ..ClientHello::new(SessionOrigin::new(user)) }
    }

    fn link(number: u8) -> LinkId {
        LinkId::from(vec![number])
    }

    /// Adds a client that has lost its connection; returns its token.
    fn lost(peers: &mut PeerTable, number: u8, user: &str) -> u128 {
        let mut said = Hello::Client(hello(user));
        let id = peers.add(link(number), &mut said);
        peers.client_mut(id).expect("it is a client").fill(&mut ClientWelcome::default());
        assert!(peers.disconnect(&link(number)).is_none(), "it may come back");
        let Hello::Client(said) = said else { unreachable!("it is a client's") };
        said.resume.expect("it is told by what it goes on").token
    }

    fn resume(peers: &mut PeerTable, user: &str, token: u128) -> Result<PeerId, Option<String>> {
        let resumed = peers.resume(link(200), &hello(user), &Resume::new(token));
        resumed.map(|(id, ..)| id).map_err(|refused| {
            assert!(refused.ended.is_none());
            refused.reason
        })
    }

    #[test]
    fn a_session_goes_on_by_its_token_and_for_its_user_alone() {
        let mut peers = PeerTable::default();
        let (ada, nobody) = (lost(&mut peers, 1, "ada"), lost(&mut peers, 2, ""));
        assert_ne!(ada, nobody);
        for (user, token) in [("eve", ada), ("", ada), ("ada", nobody), ("eve", nobody), ("ada", 0)]
        {
            let refused = resume(&mut peers, user, token).unwrap_err();
            assert!(refused.is_some_and(|reason| reason.contains("the session has ended")));
        }
        // A token that differs in one bit is another token.
        for bit in 0..64 {
            assert!(resume(&mut peers, "ada", ada ^ 1 << (2 * bit)).is_err());
        }
        assert!(resume(&mut peers, "ada", ada).is_ok() && resume(&mut peers, "", nobody).is_ok());
    }

    #[test]
    fn who_guesses_finds_no_session_even_by_the_right_token_and_others_do() {
        let mut peers = PeerTable::default();
        let (ada, eve) = (lost(&mut peers, 1, "ada"), lost(&mut peers, 2, "eve"));
        for guess in 0..RateLimit::MOST {
            assert!(resume(&mut peers, "eve", u128::from(guess)).is_err_and(|why| why.is_some()));
        }
        assert_eq!(resume(&mut peers, "eve", 7), Err(None), "there is no answer");
        assert_eq!(resume(&mut peers, "eve", eve), Err(None), "not even to the right one");
        assert!(resume(&mut peers, "ada", ada).is_ok());
        peers.rate_limit.forget();
        assert!(resume(&mut peers, "eve", eve).is_ok(), "it was only told to wait");
    }

    #[test]
    fn guesses_without_a_key_cost_nobody_a_session() {
        let mut peers = PeerTable::default();
        let nobody = lost(&mut peers, 1, "");
        for guess in 0..RateLimit::MOST {
            assert!(resume(&mut peers, "", u128::from(guess)).is_err_and(|why| why.is_some()));
        }
        assert_eq!(resume(&mut peers, "", 7), Err(None), "there is no answer");
        assert!(resume(&mut peers, "", nobody).is_ok());
    }
}
