//! What sessions are entitled to.

use crate::record;

/// What a session is entitled to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    pub team: String,
    /// The weight of the team among teams.
    pub team_weight: u32,
    pub user: String,
    /// The weight of the user within the team.
    pub user_weight: u32,
    /// The weight of the session among those of its user.
    pub weight: u32,
}

record!(struct Standing { team, team_weight, user, user_weight, weight });

impl Default for Standing {
    /// That of whoever has no user's key.
    fn default() -> Standing {
        let (team, user) = (String::new(), String::new());
        Standing { team, team_weight: 1, user, user_weight: 1, weight: 1 }
    }
}
