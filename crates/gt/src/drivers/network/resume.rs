//! A client's link, which goes on when its connection was lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::{Hello, Message, Resume, Role, Welcome};
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::resume::{Incoming, Outgoing};
use gt_net::{NetError, codec};

/// How long an attempt to connect again may take.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The pauses between attempts: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// After so long the user is told.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// A server at whose address nothing listens for so long is gone.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// How a client reaches its server.
pub(super) struct Way {
    pub address: Address,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    pub name: String,
}

impl Way {
    pub(super) fn key(&self) -> Result<Option<Key>, NetError> {
        super::find_key(&self.address, self.key_file.as_deref(), self.insecure)
    }

    pub(super) fn hello(&self, key: Option<&Key>) -> Hello {
        super::introduction(Role::Client, &self.name, key)
    }
}

/// A client's end of its session.
pub(super) struct ClientLink {
    way: Way,
    link: DealerLink,
    token: Option<u128>,
    grace: Duration,
    outgoing: Outgoing,
    incoming: Incoming,
    lost: Option<Lost>,
}

/// A connection that was lost.
struct Lost {
    since: Instant,
    reason: String,
    next: Instant,
    pause: Duration,
    /// Since when nothing has listened at the address.
    refused: Option<Instant>,
    is_told: bool,
}

impl ClientLink {
    pub fn new(way: Way, link: DealerLink, welcome: &Welcome) -> ClientLink {
        ClientLink {
            way,
            link,
            token: welcome.resume.as_ref().map(|resume| resume.token),
            grace: welcome.grace,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            lost: None,
        }
    }

    /// Sends a message, or keeps it until the connection is there again.
    ///
    /// # Errors
    /// The session has ended.
    pub fn send(&mut self, message: &Message) -> Result<(), NetError> {
        let frames = codec::encode(message);
        self.outgoing.push(frames.clone());
        if self.lost.is_some() {
            return Ok(());
        }
        let sent = self.link.send(&frames);
        sent.or_else(|error| self.lose(error))
    }

    /// The next message, waiting for at most `limit`, or until `wake` is ready.
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
            return Ok(Some(message));
        }
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

    /// The connection is lost: the session goes on later, if it can.
    fn lose(&mut self, error: NetError) -> Result<(), NetError> {
        if self.token.is_none() || self.grace.is_zero() || !matches!(error, NetError::Lost { .. }) {
            return Err(error);
        }
        let (now, pause) = (Instant::now(), PAUSE.0);
        let (reason, refused) = (error.to_string(), None);
        self.lost = Some(Lost { since: now, reason, next: now, pause, refused, is_told: false });
        Ok(())
    }

    /// Tries to connect again, if it is time; else waits for at most `limit`. Returns whether the
    /// connection is there.
    fn connect_again(&mut self, limit: Duration) -> Result<bool, NetError> {
        let (Some(lost), Some(token)) = (&mut self.lost, self.token) else { return Ok(true) };
        let wait = lost.next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait.min(limit).min(PAUSE.0));
            return Ok(false);
        }
        if !lost.is_told && lost.since.elapsed() > TELL_AFTER {
            lost.is_told = true;
            let seconds = self.grace.as_secs();
            tracing::warn!("{}; trying again for {seconds} s", lost.reason);
        }
        let ended = |lost: &Lost, why: &str| NetError::Lost {
            address: self.way.address.to_string(),
            reason: format!("{}; {why}", lost.reason),
        };
        if lost.since.elapsed() > self.grace {
            return Err(ended(lost, "it could not be reached again"));
        }
        let key = self.way.key()?;
        let received = self.incoming.acknowledge();
        let resume = Some(Box::new(Resume { token, received }));
        let hello = Hello { resume, ..self.way.hello(key.as_ref()) };
        let (address, insecure) = (&self.way.address, self.way.insecure);
        match super::greet_within(ATTEMPT, address, key.as_ref(), insecure, hello) {
            Ok((link, welcome)) => {
                let received = welcome.resume.map(|resume| resume.received);
                if !received.is_some_and(|received| self.outgoing.acknowledge(received)) {
                    return Err(ended(lost, "messages of the session are lost"));
                }
                self.link = link;
                if let Some(Lost { is_told: true, since, .. }) = self.lost.take() {
                    let seconds = since.elapsed().as_secs_f64();
                    tracing::warn!("connected to {address} again after {seconds:.1} s");
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
            // The server has answered: it does not go on with the session.
            Err(NetError::TurnedAway { reason, .. }) => Err(ended(lost, &reason)),
            Err(_) => {
                if self.way.address.is_refused(ATTEMPT) {
                    let since = lost.refused.get_or_insert_with(Instant::now);
                    if since.elapsed() > GONE_AFTER {
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
