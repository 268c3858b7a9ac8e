//! What operators ask: drain a worker, end, pause and resume sessions, change a user's weight. Users
//! ask the same for sessions of their own, without the first and the last.

use std::time::Duration;

use gt_ir::WorkerId;
use gt_ir::message::{OperatorHello, OperatorToServer, ServerToOperator, Welcome};
use gt_ir::nearest::nearest;

use super::Dispatcher;
use crate::drain::DrainAsker;
use crate::observability::log::LineKind;
use crate::paused::PausedBy;
use crate::peer::{PeerId, word};
use crate::sessions::ClientSession;

/// The most names that an error lists.
const LISTED: usize = 12;

/// The most letters of an operator's name in the log.
const SHOWN: usize = 160;

/// The most letters of a name that an operator asks for.
const LONGEST: usize = 512;

/// Checks the lengths of the names in a request.
///
/// # Errors
/// One is too long to be logged, and to be compared with others.
fn check_lengths(message: &OperatorToServer) -> Result<(), String> {
    let (user, (what, name)) = match message {
        OperatorToServer::Drain { worker, .. } => (None, ("worker", Some(worker))),
        OperatorToServer::EndSession { user, name, .. } => (user.as_ref(), ("session", Some(name))),
        OperatorToServer::Weigh { user, name, .. } | OperatorToServer::Pause { user, name, .. } => {
            (user.as_ref(), ("session", name.as_ref()))
        }
    };
    for (what, name) in [("user", user), (what, name)] {
        if let Some(name) = name.filter(|name| name.chars().nth(LONGEST).is_some()) {
            return Err(format!(
                "the name of the {what} has {} bytes, expected at most {LONGEST} letters: '{}...'",
                name.len(),
                word(name)
            ));
        }
    }
    Ok(())
}

/// Returns an operator's name as a part of a log line, where it is between quotes.
fn logged(name: &str) -> String {
    let is_odd = |letter: char| letter.is_control() || matches!(letter, '|' | '\'');
    name.chars().take(SHOWN).map(|letter| if is_odd(letter) { '_' } else { letter }).collect()
}

/// Lists names, and suggests the nearest to the `given` one.
fn known(given: &str, names: &[&str]) -> String {
    let mut list = names.iter().take(LISTED).map(|name| format!("'{name}'")).collect::<Vec<_>>();
    if names.len() > LISTED {
        list.push("...".into());
    }
    match nearest(given, names) {
        Some(near) => format!("{}\n  hint: did you mean '{near}'?", list.join(", ")),
        None => list.join(", "),
    }
}

/// An operator who is connected.
pub(crate) struct ConnectedOperator {
    /// Who it says that it is, for the log.
    name: String,
    /// The user on whose sessions alone it operates, if it has a user's key.
    user: Option<String>,
}

impl ConnectedOperator {
    /// Checks that it may operate on all that is of a user, or of all users.
    ///
    /// # Errors
    /// It has the key of another user.
    fn check(&self, of: Option<&str>) -> Result<(), String> {
        match &self.user {
            Some(own) if of != Some(own.as_str()) => Err(format!(
                "the key is of the user '{own}', who may pause, resume, end and weigh sessions of their own alone\n  hint: the rest takes an operator's key"
            )),
            _ => Ok(()),
        }
    }

    /// The user whose key it has proven to have, for the log.
    fn logged_user(&self) -> String {
        self.user.as_deref().map_or("operator".into(), |user| format!("user='{}'", logged(user)))
    }

    /// As whom it pauses sessions.
    fn role(&self) -> PausedBy {
        if self.user.is_some() { PausedBy::User } else { PausedBy::Operator }
    }
}

impl Dispatcher {
    /// Admits an operator, who is named in the log beside each request.
    pub(super) fn welcome_operator(&mut self, peer: PeerId, hello: OperatorHello) {
        let user = hello.badge.map(|badge| badge.user);
        let operator = ConnectedOperator { name: logged(&hello.name), user };
        self.operators.insert(peer, operator);
        self.outbox.push(peer, Welcome::Operator);
    }

    /// Does what an operator asks, and answers.
    pub(super) fn operate(&mut self, now: Duration, peer: PeerId, message: OperatorToServer) {
        let request = message.request();
        // Taken out meanwhile: what it asks changes other parts.
        let Some(operator) = self.operators.remove(&peer) else { return };
        let name = format!("operator{}", peer.number);
        let (by, user) = (&operator.name, operator.logged_user());
        let result = match check_lengths(&message) {
            Ok(()) => {
                let details = format_args!("by='{by}' {user} {message:?}");
                self.observability.write(now, LineKind::Recv, &name, "Operate", 0, details);
                self.do_as(now, (peer, &operator), message)
            }
            Err(reason) => {
                let details = format_args!("by='{by}' {user} a name that is too long");
                self.observability.write(now, LineKind::Recv, &name, "Operate", 0, details);
                Err(reason)
            }
        };
        self.operators.insert(peer, operator);
        // A drain is answered at its end.
        let Some(result) = result.transpose() else { return };
        let details = format_args!("{result:?}");
        self.observability.write(now, LineKind::Send, &name, "Operate", 0, details);
        self.outbox.push(peer, ServerToOperator::Done { request, result });
    }

    /// Ends the connections of operators with the keys of revoked users.
    pub(super) fn end_revoked_operators(&mut self, now: Duration) {
        let users = self.operators.iter().filter_map(|(peer, of)| Some((*peer, of.user.clone()?)));
        for (peer, user) in users.collect::<Vec<_>>() {
            if let Some(reason) = self.revoked(&user) {
                self.operators.remove(&peer);
                self.refuse(now, peer, reason);
            }
        }
    }

    /// Does what an operator asks. Returns what was done, or none if that is answered later.
    ///
    /// # Errors
    /// It is not done, for a reason.
    fn do_as(
        &mut self,
        now: Duration,
        (peer, operator): (PeerId, &ConnectedOperator),
        message: OperatorToServer,
    ) -> Result<Option<String>, String> {
        let own = operator.user.clone();
        match message {
            OperatorToServer::Drain { request, worker, within, force } => {
                operator.check(None)?;
                let asker = DrainAsker::Operator(peer, request);
                let worker = self.worker_named(&worker)?;
                self.drain(now, worker, asker, within, force).map(|()| None)
            }
            OperatorToServer::EndSession { user, name, .. } => {
                let user = user.or(own);
                operator.check(user.as_deref())?;
                let by = operator.role();
                self.end_session_of(now, by, user.as_deref(), &name).map(Some)
            }
            OperatorToServer::Weigh { user, name: Some(name), weight, .. } => {
                let user = user.or(own);
                operator.check(user.as_deref())?;
                self.weigh_session(now, user.as_deref(), &name, weight).map(Some)
            }
            OperatorToServer::Weigh { user, name: None, weight, .. } => {
                operator.check(None)?;
                self.weigh(now, user.as_deref().unwrap_or_default(), weight).map(Some)
            }
            OperatorToServer::Pause { user, name, is_paused, .. } => {
                let user = user.or(own);
                operator.check(user.as_deref())?;
                let by = operator.role();
                self.pause(now, by, (user.as_deref(), name.as_deref()), is_paused).map(Some)
            }
        }
    }

    /// Returns the worker with a name, or with a number.
    ///
    /// # Errors
    /// There is none.
    fn worker_named(&self, given: &str) -> Result<WorkerId, String> {
        let workers = &self.peers.workers;
        let named = workers.iter().find(|worker| worker.name == given);
        let number = given.parse::<u32>().ok();
        let numbered = || workers.iter().find(|worker| Some(worker.number) == number);
        if let Some(worker) = named.or_else(numbered) {
            return Ok(worker.id);
        }
        let names: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
        Err(match names.as_slice() {
            [] => format!("there is no worker '{}': none is connected", word(given)),
            names => {
                let known = known(given, names);
                format!("there is no worker '{}': the workers are {known}", word(given))
            }
        })
    }

    /// Returns the client of the session with a label, a name or a number, of a user if one is
    /// given. A label, or a number as `#3`, comes before the names that users choose: a session
    /// cannot pass for another.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub(super) fn session_named(&self, user: Option<&str>, given: &str) -> Result<PeerId, String> {
        let is_of = |session: &&ClientSession| {
            user.is_none_or(|user| session.identity.entitlement.user == user)
        };
        let all: Vec<&ClientSession> = self.peers.sessions.iter().filter(is_of).collect();
        let marked = given.strip_prefix('#').and_then(|number| number.parse::<u32>().ok());
        let is_it = |session: &ClientSession| {
            session.identity.label == given || Some(session.identity.number.0) == marked
        };
        let has_name = |session: &ClientSession| {
            session.identity.name.as_ref().is_some_and(|of| of.name == given)
        };
        let number = given.parse::<u32>().ok();
        let has_number = |session: &ClientSession| Some(session.identity.number.0) == number;
        let ways: [&dyn Fn(&ClientSession) -> bool; 3] = [&is_it, &has_name, &has_number];
        let find = |is: &dyn Fn(&ClientSession) -> bool| -> Vec<&ClientSession> {
            all.iter().copied().filter(|session| is(session)).collect()
        };
        let found = ways.into_iter().map(find).find(|found| !found.is_empty());
        let of = user.map_or_else(String::new, |user| format!(" of user '{}'", word(user)));
        match found.unwrap_or_default().as_slice() {
            [session] => Ok(session.identity.peer),
            [] => {
                let names = all.iter().map(|session| match &session.identity.name {
                    Some(of) => of.name.as_str(),
                    None => session.identity.label.as_str(),
                });
                let names: Vec<&str> = names.collect();
                let list = match names.as_slice() {
                    [] => "there is none at all".to_string(),
                    names => format!("there are {}", known(given, names)),
                };
                Err(format!("there is no session '{}'{of}: {list}", word(given)))
            }
            several => {
                let labels = several.iter().map(|session| session.identity.label.as_str());
                let labels: Vec<&str> = labels.collect();
                Err(format!(
                    "several sessions have the name '{}': {}\n  hint: --user USER names one, or its number as '#3'",
                    word(given),
                    labels.join(", ")
                ))
            }
        }
    }

    fn end_session_of(
        &mut self,
        now: Duration,
        by: PausedBy,
        user: Option<&str>,
        name: &str,
    ) -> Result<String, String> {
        let peer = self.session_named(user, name)?;
        let label = self.label(peer);
        self.refuse(now, peer, format!("{} has ended it", by.name()));
        Ok(format!("ended the session {label}"))
    }

    fn label(&self, peer: PeerId) -> String {
        let session = self.peers.sessions.get(peer);
        session.map(|session| session.identity.label.clone()).unwrap_or_default()
    }

    /// Checks that a user has sessions, or that the policy or an operator has named it.
    ///
    /// # Errors
    /// Neither.
    pub(super) fn check_user(&self, user: &str) -> Result<(), String> {
        let of_sessions =
            self.peers.sessions.iter().map(|session| session.identity.entitlement.user.as_str());
        let given = self.rules.users.keys().chain(self.rules.weights.keys()).chain(&self.paused);
        let mut names: Vec<&str> = of_sessions.chain(given.map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        if names.contains(&user) {
            return Ok(());
        }
        names.retain(|name| !name.is_empty());
        let list = match names.as_slice() {
            [] => "no session is of a user with a key".to_string(),
            names => format!("the users are {}", known(user, names)),
        };
        Err(format!("there is no user '{}': {list}", word(user)))
    }
}
