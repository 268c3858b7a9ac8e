//! Names of publications: `model`, `model@2`, `ada/model`, `ada/model@2`.

/// The most characters of a name.
const MOST: usize = 200;

/// A name, as a user gives it.
pub(super) struct GivenName<'a> {
    pub user: Option<&'a str>,
    pub name: &'a str,
    pub version: Option<u32>,
}

/// Splits a name into its parts.
///
/// # Errors
/// The version is not a number.
pub(super) fn parse(given: &str) -> Result<GivenName<'_>, String> {
    let (user, rest) = match given.split_once('/') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, given),
    };
    let Some((name, version)) = rest.split_once('@') else {
        return Ok(GivenName { user, name: rest, version: None });
    };
    match version.parse() {
        Ok(version) => Ok(GivenName { user, name, version: Some(version) }),
        Err(_) => Err(format!(
            "the version in '{}' is '{}', expected a number\n  hint: '{name}@2', or '{name}' for the newest",
            shown(given),
            shown(version)
        )),
    }
}

/// Checks the name of a new publication.
///
/// # Errors
/// Why it is not valid.
pub(super) fn check(name: &str) -> Result<(), String> {
    let hint =
        "\n  hint: a short name such as 'qwen3-8b'; the user's name and the version are added";
    let count = name.chars().count();
    if name.trim() != name || name.is_empty() {
        return Err(format!("the name is '{}', expected letters and digits{hint}", shown(name)));
    }
    if count > MOST {
        return Err(format!("the name has {count} characters, {MOST} are allowed{hint}"));
    }
    let is_odd = |letter: &char| letter.is_control() || matches!(letter, '/' | '@' | '|');
    match name.chars().find(is_odd) {
        Some(letter) => {
            Err(format!("the name has the character {letter:?}, which names may not have{hint}"))
        }
        None => Ok(()),
    }
}

/// Returns what a user gave, for messages.
pub(super) fn shown(given: &str) -> String {
    given.chars().take(60).map(|letter| if letter.is_control() { '_' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_users_and_versions() {
        let parts = |given| {
            let GivenName { user, name, version } = parse(given).ok()?;
            Some((user, name, version))
        };
        assert_eq!(parts("model"), Some((None, "model", None)));
        assert_eq!(parts("model@2"), Some((None, "model", Some(2))));
        assert_eq!(parts("ada/model"), Some((Some("ada"), "model", None)));
        assert_eq!(parts("ada/model@12"), Some((Some("ada"), "model", Some(12))));
        assert!(parts("model@new").is_none());
        for wrong in ["", " x", "a/b", "a@1", "a\nb", &"x".repeat(201)] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert!(check("qwen3-8b, längst").is_ok());
    }
}
