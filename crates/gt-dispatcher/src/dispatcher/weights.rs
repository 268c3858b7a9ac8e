//! Weights that operators give users, and that these or the sessions' own users give sessions.

use std::time::Duration;

use super::Dispatcher;

/// The largest weight of a session, which the sums of weights have room for.
const MOST: u32 = 1_000_000;

/// The weight of a session that was given none.
pub(super) const USUAL: u32 = 1;

/// Checks a weight.
///
/// # Errors
/// It is zero, or too large; `hint` is the command that holds sessions back.
fn check(weight: Option<u32>, hint: &str) -> Result<(), String> {
    match weight {
        None | Some(1..=MOST) => Ok(()),
        Some(other) => Err(format!(
            "the weight is {other}, expected a whole number from 1 to {MOST}\n  hint: {hint} holds sessions back"
        )),
    }
}

impl Dispatcher {
    /// Sets the weight of a user among others, in place of the policy's.
    ///
    /// # Errors
    /// The weight is out of range, or there is no such user.
    pub(super) fn weigh(
        &mut self,
        now: Duration,
        user: &str,
        weight: Option<u32>,
    ) -> Result<String, String> {
        check(weight, "`gt sessions pause --user USER`")?;
        self.check_user(user)?;
        match weight {
            Some(weight) => self.rules.weights.insert(user.to_string(), weight),
            None => self.rules.weights.remove(user),
        };
        self.set_rules(now, self.rules.clone());
        self.journal_orders();
        Ok(match weight {
            Some(weight) => format!("the weight of user '{user}' is {weight} now"),
            None => format!("the weight of user '{user}' is the policy's again"),
        })
    }

    /// Sets the weight of a session among those of its user.
    ///
    /// # Errors
    /// The weight is out of range, or there is no such session, or several.
    pub(super) fn weigh_session(
        &mut self,
        now: Duration,
        user: Option<&str>,
        name: &str,
        weight: Option<u32>,
    ) -> Result<String, String> {
        check(weight, "`gt sessions pause NAME`")?;
        let peer = self.session_named(user, name)?;
        let Some(session) = self.peers.sessions.get_mut(peer) else { return Ok(String::new()) };
        let weight = weight.unwrap_or(USUAL);
        let label = session.identity.label.clone();
        session.identity.entitlement.weight = weight;
        self.scheduler.admit(peer, &session.identity.entitlement);
        self.admit_everywhere(peer);
        self.divide_device_time(now);
        self.journal_orders();
        Ok(format!("the weight of {label} among the sessions of its user is {weight} now"))
    }
}
