//! Which publication a name means.

use gt_ir::SessionId;

use super::name::{self, GivenName, shown};
use super::{Publication, PublicationStage, Publications};

impl Publications {
    /// Returns the publication that a name means for a user in a team: that of the version, or the
    /// newest one that is not withdrawn.
    ///
    /// # Errors
    /// There is none, or several users have one.
    pub fn find(&self, (user, team): (&str, &str), given: &str) -> Result<&Publication, String> {
        let GivenName { user: owner, name, version } = name::parse(given)?;
        let readable: Vec<&Publication> = self
            .publications
            .values()
            .filter(|of| of.is_for(user, team) && of.stage != PublicationStage::Withdrawn)
            .collect();
        let is_named =
            |of: &&&Publication| of.name == name && owner.is_none_or(|owner| of.user == owner);
        let named: Vec<&Publication> = readable.iter().filter(is_named).copied().collect();
        let mut owners: Vec<&str> = named.iter().map(|of| of.user.as_str()).collect();
        owners.sort_unstable();
        owners.dedup();
        let owner = match owners.as_slice() {
            _ if owners.contains(&user) && owner.is_none() => user,
            [owner] => owner,
            [] => return Err(unknown(given, &readable)),
            several => {
                let names: Vec<String> =
                    several.iter().map(|of| format!("'{of}/{name}'")).collect();
                return Err(format!(
                    "several users have published '{}'\n  hint: say whose: {}",
                    shown(name),
                    names.join(", ")
                ));
            }
        };
        let own = named.into_iter().filter(|of| of.user == owner);
        let mut versions: Vec<&Publication> = own.collect();
        versions.sort_by_key(|of| of.version);
        let found = match version {
            Some(version) => versions.iter().rfind(|of| of.version == version),
            // One that is being stored is awaited only if there is no other.
            None => versions
                .iter()
                .rfind(|of| of.stage == PublicationStage::Visible)
                .or(versions.last()),
        };
        found.copied().ok_or_else(|| {
            let numbers: Vec<String> = versions.iter().map(|of| of.version.to_string()).collect();
            format!(
                "'{}' has no version {}\n  hint: its versions are {}",
                shown(name),
                version.unwrap_or_default(),
                numbers.join(", ")
            )
        })
    }

    /// Returns the user's own publications that a name means: one version, or all.
    ///
    /// # Errors
    /// There is none.
    pub fn own(&self, user: &str, given: &str) -> Result<Vec<SessionId>, String> {
        let GivenName { user: owner, name, version } = name::parse(given)?;
        if let Some(owner) = owner.filter(|owner| *owner != user) {
            return Err(format!(
                "'{}' belongs to {}, and only its owner may withdraw it",
                shown(given),
                shown(owner)
            ));
        }
        let is_own = |of: &&Publication| of.user == user && of.stage != PublicationStage::Withdrawn;
        let own: Vec<&Publication> = self.publications.values().filter(is_own).collect();
        let is_it = |of: &&&Publication| {
            of.name == name && version.is_none_or(|version| version == of.version)
        };
        let found: Vec<SessionId> = own.iter().filter(is_it).map(|of| of.id).collect();
        if found.is_empty() { Err(unknown(given, &own)) } else { Ok(found) }
    }
}

/// Returns the error for a name that none of these has.
fn unknown(given: &str, known: &[&Publication]) -> String {
    let mut names: Vec<String> = known.iter().map(|of| of.full_name()).collect();
    names.sort_unstable();
    names.dedup();
    let others = match names.as_slice() {
        [] => "nothing is published that you can read".to_string(),
        _ => format!("published are {}", names.join(", ")),
    };
    format!("there is no publication '{}'\n  hint: {others}", shown(given))
}
