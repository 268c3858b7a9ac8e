//! The clients of a world.

use gt_dispatcher::PeerId;
use gt_ir::SessionOrigin;
use gt_ir::message::{Attach, Badge, ClientHello, Hello, Resume, Role};

use crate::world::World;

impl World {
    /// Connects a client without a user.
    pub fn add_client(&mut self) -> PeerId {
        self.add_client_of(None)
    }

    /// Connects a client, of this user.
    pub fn add_client_of(&mut self, user: Option<&str>) -> PeerId {
        let peer = self.new_peer(Role::Client);
        self.mailboxes.insert(peer, Vec::new());
        self.credit.insert(peer, 0);
        self.greet(peer, user, None);
        peer
    }

    /// Connects a client that wants a named session, and begins it if there is none.
    pub fn add_attaching(&mut self, name: &str) -> PeerId {
        let peer = self.new_peer(Role::Client);
        self.mailboxes.insert(peer, Vec::new());
        self.credit.insert(peer, 0);
        let attach = Attach { name: name.into(), or_create: true, take_over: false, token: None };
        self.greet(peer, None, Some(Box::new(attach)));
        peer
    }

    /// Sends a client's hello.
    fn greet(&mut self, peer: PeerId, user: Option<&str>, attach: Option<Box<Attach>>) {
        let badge = |user: &str| Badge { user: user.into(), team: String::new(), proof: [0; 32] };
        let hello = ClientHello {
            badge: user.map(|user| Box::new(badge(user))),
            resume: self.token(peer).map(|token| Box::new(Resume::new(token))),
            attach,
            ..ClientHello::new(SessionOrigin::new(format!("client-{}", peer.number)))
        };
        self.send_to_server(peer, Hello::Client(hello));
    }

    /// Kills a client, without a goodbye.
    pub fn kill_client(&mut self, client: PeerId) {
        self.mailboxes.remove(&client);
        self.cut(client, "killed");
    }
}
