//! A client's link, which survives the loss of its connection.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::{Hello, LARGE_VALUE, Message, Resume, Role, Welcome};
use gt_ir::{ClientCommand, Content, RequestId};
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::resume::{Incoming, Unacknowledged};
use gt_net::{NetError, codec};
use rustc_hash::FxHashMap;

/// The time limit of one attempt to reconnect.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The first, and the longest, pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// The time after which the user is notified of a lost connection.
const NOTIFY_AFTER: Duration = Duration::from_secs(1);
/// A server is considered gone when no process listens at its address for this long.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// How a client reaches its server: address, key and name.
pub(super) struct ServerRoute {
    pub address: Address,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    pub name: String,
}

impl ServerRoute {
    pub(super) fn key(&self) -> Result<Option<Key>, NetError> {
        super::find_key(&self.address, self.key_file.as_deref(), self.insecure)
    }

    pub(super) fn hello(&self, key: Option<&Key>) -> Hello {
        super::introduction(Role::Client, &self.name, key)
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

impl ClientLink {
    pub fn new(way: ServerRoute, link: DealerLink, welcome: &Welcome) -> ClientLink {
        ClientLink {
            way,
            link,
            token: welcome.resume.as_ref().map(|resume| resume.token),
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
    pub fn send(&mut self, message: &Message) -> Result<(), NetError> {
        let mut is_recorded = false;
        if let Message::Stream(commands) = message {
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

    /// Returns the next message, waiting at most `limit`, or until `wake` is ready.
    ///
    /// # Errors
    /// The session has ended.
    pub fn receive(&mut self, limit: Duration, wake: Wakeup) -> Result<Option<Message>, NetError> {
        if self.lost.is_some() && !self.connect_again(limit)? {
            return Ok(None);
        }
        loop {
            let frames = match self.link.receive(limit, wake) {
                Ok(Some(frames)) => frames,
                Ok(None) => return Ok(None),
                Err(error) => return self.lose(error).map(|()| None),
            };
            let message = codec::decode(&frames)?;
            match message {
                Message::Acknowledge { received } => {
                    self.outgoing.acknowledge(received);
                    continue;
                }
                Message::Goodbye { .. } => {}
                _ => self.acknowledge(&frames)?,
            }
            if let Message::Confirm { snapshot } = message {
                self.send(&Message::Confirmed { snapshot })?;
                continue;
            }
            if let Some(request) = message.answers()
                && self.asked.remove(&request).is_none()
            {
                // A restarted server answers requests again: this answer is a duplicate.
                self.mark_answered(&message)?;
                continue;
            }
            return Ok(Some(message));
        }
    }

    /// Marks the request of an answer as answered.
    fn mark_answered(&mut self, message: &Message) -> Result<(), NetError> {
        let Message::Value { request, result: Ok(content) } = message else { return Ok(()) };
        if content.meta().bytes() as u64 >= LARGE_VALUE {
            self.send(&Message::Received { request: *request })?;
        }
        match content {
            Content::Shared { block, .. } => self.send(&Message::Release { token: block.token }),
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
            let sent = self.link.send(&codec::encode(&Message::Acknowledge { received }));
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
            Ok(Message::Stream(commands)) => commands.iter().map(ClientCommand::weight).sum(),
            _ => 0,
        };
        // The restarted server does not know of requests for its status.
        let lost: Vec<RequestId> =
            self.asked.iter().filter(|(_, is_status)| **is_status).map(|(id, _)| *id).collect();
        for request in lost {
            let again = Message::Stream(vec![ClientCommand::Status { request }]);
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
        let key = self.way.key()?;
        let resume = Resume {
            token,
            received: self.incoming.acknowledge(),
            sent: self.outgoing.sent(),
            acknowledged: self.outgoing.acknowledged(),
            recorded: self.outgoing.recorded(),
            waits: self.asked.keys().copied().collect(),
        };
        let hello = Hello { resume: Some(Box::new(resume)), ..self.way.hello(key.as_ref()) };
        let (address, insecure) = (&self.way.address, self.way.insecure);
        match super::handshake_within(ATTEMPT, address, key.as_ref(), insecure, hello) {
            Ok((link, welcome)) => {
                let received = welcome.resume.map(|resume| resume.received);
                if !received.is_some_and(|received| self.outgoing.acknowledge(received)) {
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
                if self.way.address.is_refused(ATTEMPT) {
                    let since = lost.refused.get_or_insert_with(Instant::now);
                    if !self.is_kept && since.elapsed() > GONE_AFTER {
                        return Err(ended(lost, "nothing listens at its address any more"));
                    }
                } else {
                    lost.refused = None;
                }
                lost.pause = (lost.pause * 2).min(PAUSE.1);
                lost.next = Instant::now() + lost.pause;
                Ok(false)
            }
        }
    }
}
