//! A client's link, which survives the loss of its connection.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::{
    Acknowledge, Answer, ClientHello, ClientToServer, ClientWelcome, Frame, Goodbye, LARGE_VALUE,
    Reply, Resume, ServerToClient,
};
use gt_ir::{ClientCommand, Content, RequestId, SessionOrigin};
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::published::ServerAddress;
use gt_net::resume::{Incoming, Unacknowledged};
use gt_net::{NetError, codec, process, shm};
use rustc_hash::FxHashMap;

/// The time limit of one attempt to reconnect.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The first, and the longest, pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// The time after which the user is notified of a lost connection.
const NOTIFY_AFTER: Duration = Duration::from_secs(1);
/// A server is considered gone when no process listens at its address for this long.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// How a client reaches its server: address and key; and its own program.
pub(super) struct ServerRoute {
    pub address: ServerAddress,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    pub origin: SessionOrigin,
}

impl ServerRoute {
    pub(super) fn key(&self) -> Result<Option<Key>, NetError> {
        super::find_key(&self.address, self.key_file.as_deref(), self.insecure)
    }

    pub(super) fn hello(&self, key: Option<&Key>) -> ClientHello {
        let badge = key.and_then(Key::badge).cloned().map(Box::new);
        let (machine, process) = (shm::machine_token(), process::own());
        ClientHello { machine, badge, process, ..ClientHello::new(self.origin.clone()) }
    }
}

/// A client's end of its session.
pub(super) struct ClientLink {
    way: ServerRoute,
    link: DealerLink,
    token: Option<u128>,
    grace: Duration,
    outgoing: Unacknowledged,
    incoming: Incoming,
    /// The unanswered requests, and whether each asks for the status.
    asked: FxHashMap<RequestId, bool>,
    /// Whether the server keeps its state, so that it may be restarted.
    is_kept: bool,
    /// The weight of the commands that a restarted server has not received yet, until
    /// [`ClientLink::take_renewed`] takes it.
    renewed: Option<u64>,
    lost: Option<LostConnection>,
}

/// A connection that was lost.
struct LostConnection {
    since: Instant,
    reason: String,
    next: Instant,
    pause: Duration,
    /// Since when no process has listened at the address.
    refused: Option<Instant>,
    is_told: bool,
}

impl LostConnection {
    /// Puts the next attempt off.
    fn later(&mut self) {
        self.pause = (self.pause * 2).min(PAUSE.1);
        self.next = Instant::now() + self.pause;
    }
}

impl ClientLink {
    pub fn new(way: ServerRoute, link: DealerLink, welcome: &ClientWelcome) -> ClientLink {
        ClientLink {
            way,
            link,
            token: welcome.token,
            grace: welcome.grace,
            outgoing: Unacknowledged::default(),
            incoming: Incoming::default(),
            asked: FxHashMap::default(),
            is_kept: welcome.is_kept,
            renewed: None,
            lost: None,
        }
    }

    /// Sends a message, or queues it until the connection is restored.
    ///
    /// # Errors
    /// The session has ended.
    pub fn send(&mut self, message: &ClientToServer) -> Result<(), NetError> {
        let mut is_recorded = false;
        if let ClientToServer::Stream(commands) = message {
            is_recorded = !commands.iter().all(ClientCommand::is_momentary);
            let is_status =
                |command: &ClientCommand| matches!(command, ClientCommand::Status { .. });
            let asked = commands.iter().filter_map(|it| Some((it.request()?, is_status(it))));
            self.asked.extend(asked);
        }
        let frames = codec::encode(message);
        self.outgoing.push(frames.clone(), is_recorded);
        if self.lost.is_some() {
            return Ok(());
        }
        let sent = self.link.send(&frames);
        sent.or_else(|error| self.lose(error))
    }

    /// Says goodbye, if the connection is not lost.
    pub fn close(&mut self) {
        if self.lost.is_none() {
            let goodbye = Goodbye { reason: "the client is done".into() };
            // The server notices the end of the connection, too.
            let _ = self.link.send(&codec::encode(&goodbye));
        }
    }

    /// Returns the next message, waiting at most `limit`, or until `wake` is ready.
    ///
    /// # Errors
    /// The session has ended.
    pub fn receive(
        &mut self,
        limit: Duration,
        wake: Wakeup,
    ) -> Result<Option<ServerToClient>, NetError> {
        if self.lost.is_some() && !self.connect_again(limit)? {
            return Ok(None);
        }
        loop {
            let frames = match self.link.receive(limit, wake) {
                Ok(Some(frames)) => frames,
                Ok(None) => return Ok(None),
                Err(error) => return self.lose(error).map(|()| None),
            };
            if let Some(Acknowledge { received }) = codec::decode_acknowledgement(&frames)? {
                self.outgoing.acknowledge(received);
                continue;
            }
            let message = match codec::decode_frame(&frames)? {
                Frame::Message(message) => message,
                Frame::Goodbye(Goodbye { reason }) => {
                    let address = self.way.address.to_string();
                    return Err(NetError::Ended { address, reason });
                }
            };
            self.acknowledge(&frames)?;
            match message {
                ServerToClient::Confirm { snapshot } => {
                    self.send(&ClientToServer::Confirmed { snapshot })?;
                }
                // A restarted server answers requests again: this answer is a duplicate.
                ServerToClient::Answer(answer) if self.asked.remove(&answer.request).is_none() => {
                    self.mark_answered(&answer)?;
                }
                message => return Ok(Some(message)),
            }
        }
    }

    /// Marks the request of an answer as answered.
    fn mark_answered(&mut self, answer: &Answer) -> Result<(), NetError> {
        let Ok(Reply::Value(content)) = &answer.result else { return Ok(()) };
        if content.meta().bytes() as u64 >= LARGE_VALUE {
            self.send(&ClientToServer::Received { request: answer.request })?;
        }
        match content {
            Content::Shared { block, .. } => {
                self.send(&ClientToServer::Release { token: block.token })
            }
            _ => Ok(()),
        }
    }

    /// Returns, once after a server's restart, the weight of the commands that it has yet to
    /// receive.
    pub fn take_renewed(&mut self) -> Option<u64> {
        self.renewed.take()
    }

    fn acknowledge(&mut self, frames: &[Bytes]) -> Result<(), NetError> {
        if let Some(received) = self.incoming.take(frames)
            && self.lost.is_none()
        {
            let sent = self.link.send(&codec::encode(&Acknowledge { received }));
            return sent.or_else(|error| self.lose(error));
        }
        Ok(())
    }

    /// Records the loss of the connection; the session resumes later if it can.
    fn lose(&mut self, error: NetError) -> Result<(), NetError> {
        if self.token.is_none() || self.grace.is_zero() || !matches!(error, NetError::Lost { .. }) {
            return Err(error);
        }
        let (now, pause) = (Instant::now(), PAUSE.0);
        let (reason, refused) = (error.to_string(), None);
        self.lost =
            Some(LostConnection { since: now, reason, next: now, pause, refused, is_told: false });
        Ok(())
    }

    /// Prepares for a server that was restarted.
    fn renew(&mut self) {
        let weight = |frames: &Vec<Bytes>| match codec::decode(frames) {
            Ok(ClientToServer::Stream(commands)) => {
                commands.iter().map(ClientCommand::weight).sum()
            }
            _ => 0,
        };
        // The restarted server does not know of requests for its status.
        let lost: Vec<RequestId> =
            self.asked.iter().filter(|(_, is_status)| **is_status).map(|(id, _)| *id).collect();
        for request in lost {
            let again = ClientToServer::Stream(vec![ClientCommand::Status { request }]);
            self.outgoing.push(codec::encode(&again), false);
        }
        self.renewed = Some(self.outgoing.unacknowledged().map(weight).sum());
    }

    /// Tries to reconnect when the next attempt is due, and otherwise waits at most `limit`.
    /// Returns whether the connection is restored.
    fn connect_again(&mut self, limit: Duration) -> Result<bool, NetError> {
        let (Some(lost), Some(token)) = (&mut self.lost, self.token) else { return Ok(true) };
        let wait = lost.next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait.min(limit).min(PAUSE.0));
            return Ok(false);
        }
        if !lost.is_told && lost.since.elapsed() > NOTIFY_AFTER {
            lost.is_told = true;
            let seconds = self.grace.as_secs();
            tracing::warn!("{}; trying again for {seconds} s", lost.reason);
        }
        let ended = |lost: &LostConnection, why: &str| NetError::Lost {
            address: self.way.address.to_string(),
            reason: format!("{}; {why}", lost.reason),
        };
        if lost.since.elapsed() > self.grace {
            return Err(ended(lost, "it could not be reached again"));
        }
        let key = match self.way.key() {
            Ok(key) => key,
            // The server has withdrawn its address: the next one publishes another.
            Err(NetError::NotPublished { .. }) if self.is_kept => {
                lost.later();
                return Ok(false);
            }
            Err(error) => return Err(ended(lost, &error.to_string())),
        };
        let resume = Resume {
            token,
            received: self.incoming.acknowledge(),
            sent: self.outgoing.sent(),
            acknowledged: self.outgoing.acknowledged(),
            recorded: self.outgoing.recorded(),
            waits: self.asked.keys().copied().collect(),
        };
        let hello = ClientHello { resume: Some(Box::new(resume)), ..self.way.hello(key.as_ref()) };
        let (address, insecure) = (&self.way.address, self.way.insecure);
        match super::handshake_within(ATTEMPT, address, key.as_ref(), insecure, hello) {
            Ok((link, welcome)) => {
                if !self.outgoing.acknowledge(welcome.received) {
                    return Err(ended(lost, "messages of the session are lost"));
                }
                self.link = link;
                if let Some(LostConnection { is_told: true, since, .. }) = self.lost.take() {
                    let seconds = since.elapsed().as_secs_f64();
                    tracing::warn!("connected to {address} again after {seconds:.1} s");
                }
                if welcome.is_renewed {
                    self.renew();
                }
                let again: Vec<_> = self.outgoing.unacknowledged().cloned().collect();
                for frames in again {
                    if let Err(error) = self.link.send(&frames) {
                        self.lose(error)?;
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            // The server has answered that it cannot resume the session.
            Err(NetError::TurnedAway { reason, .. }) => Err(ended(lost, &reason)),
            Err(_) => {
                if self.way.address.resolve().is_ok_and(|at| at.is_refused(ATTEMPT)) {
                    let since = lost.refused.get_or_insert_with(Instant::now);
                    if !self.is_kept && since.elapsed() > GONE_AFTER {
                        return Err(ended(lost, "nothing listens at its address any more"));
                    }
                } else {
                    lost.refused = None;
                }
                lost.later();
                Ok(false)
            }
        }
    }
}
