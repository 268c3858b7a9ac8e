//! The peers of a server: their links, and the clients that are connected no more and may come back.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_dispatcher::PeerId;
use gt_ir::message::{Hello, Message, Process, Resume, Role};
use gt_net::process;
use gt_net::resume::{self, Incoming, Unacknowledged};
use gt_net::server::LinkId;
use rustc_hash::FxHashMap;

use super::guesses::Guesses;

/// All peers of a server.
#[derive(Default)]
pub(super) struct PeerTable {
    by_link: FxHashMap<LinkId, PeerId>,
    peers: FxHashMap<PeerId, Peer>,
    last: u64,
    /// How many clients are connected no more.
    away: usize,
    /// The tokens of sessions that could not go on when the server was started again, and why.
    ended: Vec<(u128, String)>,
    guesses: Guesses,
}

/// A peer.
pub(super) struct Peer {
    pub link: Option<LinkId>,
    /// Proven by its key, or claimed by its hello if no keys are used.
    pub role: Role,
    pub machine: String,
    /// What a client goes on with its session by.
    pub client: Option<Box<Client>>,
}

/// A client, which may lose its connection and come back.
pub(super) struct Client {
    token: u128,
    user: String,
    process: Option<Process>,
    pub outgoing: Unacknowledged,
    pub incoming: Incoming,
    /// What it is sent once its session is durable, while it is not.
    pub held: Option<Vec<Message>>,
    /// Since when it is connected no more.
    away: Option<Instant>,
    /// Whether it has not come back since the server was started again; or may not know that it was.
    is_restored: bool,
    is_untold: bool,
}

/// Why a client may not go on.
pub(super) struct ResumeRefused {
    /// Why; nothing if it is not to be answered.
    pub reason: Option<String>,
    /// The session that ends with this.
    pub ended: Option<PeerId>,
}

impl Client {
    fn new(hello: &Hello) -> Client {
        Client {
            token: resume::token(),
            user: user(hello),
            process: hello.process,
            outgoing: Unacknowledged::default(),
            incoming: Incoming::default(),
            held: None,
            away: None,
            is_restored: false,
            is_untold: false,
        }
    }

    /// It knows, if it had to, that the server was started again.
    pub fn has_returned(&mut self) {
        self.is_untold = false;
    }

    /// What the client is told to go on by.
    pub fn resume(&mut self) -> Resume {
        Resume { received: self.incoming.acknowledge(), ..Resume::new(self.token) }
    }
}

fn user(hello: &Hello) -> String {
    hello.badge.as_ref().map(|badge| badge.user.clone()).unwrap_or_default()
}

impl PeerTable {
    /// Adds the peer that says hello on a link. Its hello gets what it goes on by.
    pub fn add(&mut self, link: LinkId, role: Option<Role>, hello: &mut Hello) {
        self.last += 1;
        let id = PeerId(self.last);
        let role = role.unwrap_or(hello.role);
        let client = (role == Role::Client).then(|| Box::new(Client::new(hello)));
        match (&client, role) {
            (Some(client), _) => hello.resume = Some(Box::new(Resume::new(client.token))),
            (None, Role::Worker) if hello.resume.is_none() => {
                hello.resume = Some(Box::new(Resume::new(resume::token())));
            }
            _ => {}
        }
        let (machine, on) = (hello.machine.clone(), Some(link.clone()));
        self.by_link.insert(link, id);
        self.peers.insert(id, Peer { link: on, role, machine, client });
    }

    /// Adds the client of a session that goes on after the server was started again. It has to come
    /// back.
    pub fn restore(&mut self, hello: &Hello, received: u64) -> PeerId {
        self.last += 1;
        let id = PeerId(self.last);
        let client = Client {
            token: hello.resume.as_ref().map_or_else(resume::token, |resume| resume.token),
            incoming: Incoming::begin_at(received),
            away: Some(Instant::now()),
            is_restored: true,
            is_untold: true,
            ..Client::new(hello)
        };
        let (link, role, machine) = (None, Role::Client, hello.machine.clone());
        self.peers.insert(id, Peer { link, role, machine, client: Some(Box::new(client)) });
        self.away += 1;
        id
    }

    /// A session of a journal cannot go on: its client is told when it comes back.
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

    /// The links of all peers that are connected.
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

    /// A link is lost. Returns the peer if it is gone for good: a client may come back.
    pub fn disconnect(&mut self, link: &LinkId) -> Option<PeerId> {
        let id = self.by_link.remove(link)?;
        let peer = self.peers.get_mut(&id)?;
        let Some(client) = peer.client.as_mut().filter(|client| client.held.is_none()) else {
            // Also a client that was not welcomed yet: it knows of no session.
            peer.link = Some(link.clone());
            return Some(id);
        };
        peer.link = None;
        client.away = Some(Instant::now());
        self.away += 1;
        None
    }

    /// A client is connected again, on another link. Returns it, the messages that it has not
    /// received, and whether the server was started again since.
    ///
    /// # Errors
    /// Why it may not go on.
    pub fn resume(
        &mut self,
        link: LinkId,
        hello: &Hello,
        given: &Resume,
    ) -> Result<(PeerId, Vec<Vec<Bytes>>, bool), ResumeRefused> {
        let is_it = |peer: &Peer| {
            peer.client
                .as_ref()
                .is_some_and(|client| given.is_by(client.token) && client.user == user(hello))
        };
        let refuse = |reason| Err(ResumeRefused { reason, ended: None });
        if self.guesses.lock(&user(hello)) {
            // A client of the same user that is who it says tries again.
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
                if given.is_by(*token) {
                    ended = Some(reason.clone());
                }
            }
            if let Some(reason) = ended {
                return refuse(Some(format!("the session could not go on: {reason}")));
            }
            let reason = "the session has ended, or the server was started anew";
            return refuse(self.guesses.add(user(hello)).then(|| reason.into()));
        };
        let peer = self.peers.get_mut(&id).expect("it was found");
        let client = peer.client.as_mut().expect("it was found by it");
        // It is told so until it has heard of it.
        let is_renewed = client.is_untold;
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
            // What was acknowledged and is not in the journal is not needed any more.
            client.incoming = Incoming::begin_at(received.max(given.acknowledged));
        }
        if !client.outgoing.acknowledge(given.received) {
            let reason = Some("the session cannot go on: messages of it are lost".into());
            return Err(ResumeRefused { reason, ended: Some(id) });
        }
        match peer.link.replace(link.clone()) {
            // That its connection was lost has not been noticed here.
            Some(before) => drop(self.by_link.remove(&before)),
            None => self.away -= 1,
        }
        client.away = None;
        self.by_link.insert(link, id);
        Ok((id, client.outgoing.unacknowledged().cloned().collect(), is_renewed))
    }

    /// The clients that do not come back: their processes on this machine have ended, or they were
    /// away for too long. With the reason.
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
    use gt_ir::message::Badge;

    use super::*;

    fn hello(user: &str) -> Hello {
        let badge = Badge { user: user.into(), team: String::new(), proof: [0; 32] };
        let badge = (!user.is_empty()).then(|| Box::new(badge));
        Hello { badge, ..Hello::new(Role::Client, user) }
    }

    fn link(number: u8) -> LinkId {
        LinkId::from(vec![number])
    }

    /// A client that has lost its connection; gives its token.
    fn lost(peers: &mut PeerTable, number: u8, user: &str) -> u128 {
        let mut said = hello(user);
        peers.add(link(number), None, &mut said);
        assert!(peers.disconnect(&link(number)).is_none(), "it may come back");
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
        // One bit is another.
        for bit in 0..64 {
            assert!(resume(&mut peers, "ada", ada ^ 1 << (2 * bit)).is_err());
        }
        assert!(resume(&mut peers, "ada", ada).is_ok() && resume(&mut peers, "", nobody).is_ok());
    }

    #[test]
    fn who_guesses_finds_no_session_even_by_the_right_token_and_others_do() {
        let mut peers = PeerTable::default();
        let (ada, eve) = (lost(&mut peers, 1, "ada"), lost(&mut peers, 2, "eve"));
        for guess in 0..Guesses::MOST {
            assert!(resume(&mut peers, "eve", u128::from(guess)).is_err_and(|why| why.is_some()));
        }
        assert_eq!(resume(&mut peers, "eve", 7), Err(None), "there is no answer");
        assert_eq!(resume(&mut peers, "eve", eve), Err(None), "not even to the right one");
        assert!(resume(&mut peers, "ada", ada).is_ok());
        peers.guesses.forget();
        assert!(resume(&mut peers, "eve", eve).is_ok(), "it was only told to wait");
    }

    #[test]
    fn guesses_without_a_key_cost_nobody_a_session() {
        let mut peers = PeerTable::default();
        let nobody = lost(&mut peers, 1, "");
        for guess in 0..Guesses::MOST {
            assert!(resume(&mut peers, "", u128::from(guess)).is_err_and(|why| why.is_some()));
        }
        assert_eq!(resume(&mut peers, "", 7), Err(None), "there is no answer");
        assert!(resume(&mut peers, "", nobody).is_ok());
    }
}
