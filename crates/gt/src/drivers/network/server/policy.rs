//! The operator's policy file: shares and limits of users, teams and keys.
//!
//! ```yaml
//! policy: fair                    # or fifo, priority
//! default: {idle: 12h}
//! teams:
//!   vision: {share: 3}
//! users:
//!   ada: {share: 2, memory: 16GB, sessions: 4, workers: 8, wall: 24h}
//! keys:
//!   ada@vision: {priority: 1}
//! revoked: [eve, {user: bob, heir: ada}]
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gt_client::config::tree::{self, Entry, YamlValue};
use gt_client::config::{ConfigError, Reader};
use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_ir::Rescale;
use gt_ir::entitlement::PolicyKind;

use crate::environment::bytes;

const KEYS: &[&str] = &["policy", "default", "teams", "users", "keys", "revoked"];
const REVOKED: &[&str] = &["user", "heir"];
const LIMITS: &[&str] =
    &["share", "priority", "memory", "sessions", "workers", "slots", "wall", "idle"];

const LIMITS_WANTED: &str = "share, priority, memory, sessions, workers, slots, wall and idle";
const COUNT: &str = "a whole number from 1 on, or null for no limit";
const PRIORITY: &str = "a whole number from 0 on";
const MEMORY: &str = "a size, as 16GB, 512MiB or a number of bytes, or null for no limit";
const TIME: &str = "a time, as 12h, 30min, 90s or a number of seconds, or null";

/// Reads a policy file.
///
/// # Errors
/// It cannot be read, or is not a valid policy: the error has file, line, column and key.
pub fn read(path: &Path) -> Result<Rules, String> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{file}: the policy cannot be read: {error}"))?;
    parse(&text, &file).map_err(|error| error.to_string())
}

/// The policy of a YAML text; `file` names it in errors.
///
/// # Errors
/// Text that is not YAML, unknown and duplicate keys, and values of a wrong type.
pub fn parse(text: &str, file: &str) -> Result<Rules, ConfigError> {
    let root = tree::parse(text, file)?;
    let reader = Reader { file };
    let entries =
        reader.map(&root, "the file", "policy, default, teams, users, keys and revoked")?;
    let mut rules = Rules::default();
    // Missing values of a user are the defaults, wherever these are in the file.
    for (key, value) in entries {
        if key.text == "default" {
            rules.default = rule(&reader, value, "default", &PolicyRule::default())?;
        }
    }
    for (key, value) in entries {
        let plain = PolicyRule::default();
        match key.text.as_str() {
            "policy" => rules.policy_kind = policy_kind(&reader, value)?,
            "default" => {}
            "teams" => rules.teams = named(&reader, key, value, &plain)?,
            "users" => rules.users = named(&reader, key, value, &rules.default)?,
            "keys" => rules.keys = named(&reader, key, value, &plain)?,
            "revoked" => rules.revoked = revoked(&reader, value)?,
            _ => return Err(reader.unknown(key, key.text.clone(), KEYS)),
        }
    }
    Ok(rules)
}

/// Reads the users whose keys are revoked, each with its heir, if one is named.
fn revoked(
    reader: &Reader,
    value: &YamlValue,
) -> Result<BTreeMap<String, Option<String>>, ConfigError> {
    const ENTRY: &str = "a user, or {user: NAME, heir: NAME}";
    let mut all = BTreeMap::new();
    if value.is_null() {
        return Ok(all);
    }
    let list = value.list().ok_or_else(|| reader.wrong(value, "revoked", "a list of users"))?;
    for (index, entry) in list.iter().enumerate() {
        let path = format!("revoked[{index}]");
        if let Some(user) = entry.text() {
            all.insert(user.to_string(), None);
            continue;
        }
        let (mut user, mut heir) = (None, None);
        for (key, value) in reader.map(entry, &path, ENTRY)? {
            let path = format!("{path}.{}", key.text);
            let name = value.text().map(str::to_string);
            let name = name.ok_or_else(|| reader.wrong(value, &path, "a user's name"))?;
            match key.text.as_str() {
                "user" => user = Some(name),
                "heir" => heir = Some((name, value, path)),
                _ => return Err(reader.unknown(key, path, REVOKED)),
            }
        }
        let user = user.ok_or_else(|| reader.wrong(entry, &path, ENTRY))?;
        if let Some((name, value, path)) = &heir
            && *name == user
        {
            return Err(reader.wrong(value, path, "another user than the revoked one"));
        }
        all.insert(user, heir.map(|(name, ..)| name));
    }
    Ok(all)
}

fn policy_kind(reader: &Reader, value: &YamlValue) -> Result<PolicyKind, ConfigError> {
    let found =
        PolicyKind::ALL.into_iter().find(|policy_kind| value.text() == Some(policy_kind.name()));
    found.ok_or_else(|| reader.wrong(value, "policy", "fair, fifo or priority"))
}

/// Returns the rules of a section's entries; missing values are those of `base`.
fn named(
    reader: &Reader,
    section: &Entry,
    value: &YamlValue,
    base: &PolicyRule,
) -> Result<BTreeMap<String, PolicyRule>, ConfigError> {
    let mut all = BTreeMap::new();
    for (name, value) in reader.map(value, &section.text, "a name for each")? {
        let path = format!("{}.{}", section.text, name.text);
        if section.text == "keys" && !name.text.contains('@') {
            let (place, given) = (name.place(reader.file), format!("'{}'", name.text));
            let key = path;
            let expected = "a user and a team, as ada@vision";
            return Err(ConfigError::WrongValue { place, key, given, expected });
        }
        all.insert(name.text.clone(), rule(reader, value, &path, base)?);
    }
    Ok(all)
}

fn rule(
    reader: &Reader,
    value: &YamlValue,
    path: &str,
    base: &PolicyRule,
) -> Result<PolicyRule, ConfigError> {
    let mut said = base.clone();
    for (key, value) in reader.map(value, path, LIMITS_WANTED)? {
        let path = format!("{path}.{}", key.text);
        let count = || whole(reader, value, &path, 1, COUNT);
        let time = || read_as(reader, value, &path, time, TIME);
        match key.text.as_str() {
            "share" => said.share = count()?,
            "priority" => said.priority = whole(reader, value, &path, 0, PRIORITY)?,
            "memory" => said.memory = read_as(reader, value, &path, size, MEMORY)?,
            "sessions" => said.sessions = count()?,
            "workers" => said.workers = count()?,
            "slots" => said.slots = slots(reader, value, &path)?,
            "wall" => said.wall = time()?,
            "idle" => said.idle = time()?,
            _ => return Err(reader.unknown(key, path, LIMITS)),
        }
    }
    Ok(said)
}

/// A number of slots; `None` for null.
fn slots(reader: &Reader, value: &YamlValue, path: &str) -> Result<Option<u32>, ConfigError> {
    let number = |value: &YamlValue| Rescale::count(value.whole()?);
    read_as(reader, value, path, number, "a whole number from 1 to 4096, or null")
}

/// A number from `least` on; `None` for null.
fn whole(
    reader: &Reader,
    value: &YamlValue,
    path: &str,
    least: u32,
    expected: &'static str,
) -> Result<Option<u32>, ConfigError> {
    let number = |value: &YamlValue| u32::try_from(value.whole()?).ok().filter(|n| *n >= least);
    read_as(reader, value, path, number, expected)
}

/// Reads a value with `read`; `None` for null.
fn read_as<T>(
    reader: &Reader,
    value: &YamlValue,
    path: &str,
    read: impl Fn(&YamlValue) -> Option<T>,
    expected: &'static str,
) -> Result<Option<T>, ConfigError> {
    if value.is_null() {
        return Ok(None);
    }
    read(value).map(Some).ok_or_else(|| reader.wrong(value, path, expected))
}

fn time(value: &YamlValue) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] =
        [("ms", 1e-3), ("min", 60.0), ("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let seconds = match value.whole() {
        Some(seconds) => seconds as f64,
        None => with_unit(value.text()?, &UNITS)?,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// A number of bytes.
fn size(value: &YamlValue) -> Option<u64> {
    match value.whole() {
        Some(bytes) => u64::try_from(bytes).ok().filter(|bytes| *bytes > 0),
        None => bytes(value.text()?),
    }
}

/// A number with the first of these units that it ends with, multiplied by the unit.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (unit, factor) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read() {
        let text = "users:\n  ada: {share: 2, idle: null}\n  eve:\n\
                    policy: priority\ndefault: {idle: 12h, sessions: 3}\n\
                    teams: {vision: {share: 3, workers: 8}}\n\
                    keys: {ada@vision: {priority: 1, wall: 90}}\n";
        let rules = parse(text, "p.yaml").unwrap();
        let hours = |count: u64| Some(Duration::from_secs(3600 * count));
        assert_eq!(rules.policy_kind, PolicyKind::Priority);
        let ada = &rules.users["ada"];
        assert_eq!(ada.share, Some(2));
        assert_eq!((ada.sessions, ada.idle), (Some(3), None), "null lifts a default");
        assert_eq!(rules.users["eve"], rules.default);
        assert_eq!((rules.default.idle, rules.teams["vision"].idle), (hours(12), None));
        let key = &rules.keys["ada@vision"];
        assert_eq!((key.wall, key.priority), (Some(Duration::from_secs(90)), Some(1)));
        assert_eq!(parse("", "p.yaml").unwrap(), Rules::default());
    }

    #[test]
    fn revoked_users_may_have_heirs() {
        let rules = parse("revoked: [eve, {user: bob, heir: ada}]", "p.yaml").unwrap();
        let wanted = [("bob".to_string(), Some("ada".to_string())), ("eve".to_string(), None)];
        assert_eq!(rules.revoked, wanted.into());
        for (text, wants) in [
            ("revoked: eve", "p:1:10: 'revoked' is 'eve', expected a list of users"),
            ("revoked: [{heir: ada}]", "expected a user, or {user: NAME, heir: NAME}"),
            ("revoked: [{user: ada, hier: bob}]", "hint: did you mean 'heir'?"),
            ("revoked: [{user: ada, heir: ada}]", "expected another user than the revoked one"),
            ("revoked: [7]", "expected a user, or {user: NAME, heir: NAME}"),
        ] {
            let error = parse(text, "p").unwrap_err().to_string();
            assert!(error.contains(wants), "{text}: {error}");
        }
    }

    #[test]
    fn times_have_units() {
        let read = |text: &str| parse(&format!("default: {{{text}}}"), "p").map(|r| r.default);
        for (text, wants) in
            [("30min", 1800.0), ("1.5 d", 129_600.0), ("250ms", 0.25), ("5m", 300.0)]
        {
            let wants = Duration::from_secs_f64(wants);
            assert_eq!(read(&format!("wall: {text}")).unwrap().wall, Some(wants), "{text}");
        }
    }

    #[test]
    fn mistakes_have_line_key_and_what_is_expected() {
        let check = |text: &str, wants: &str| {
            assert_eq!(parse(text, "p.yaml").unwrap_err().to_string(), wants, "{text:?}");
        };
        check(
            "users:\n  ada: {shares: 2}\n",
            "p.yaml:2:9: 'users.ada.shares' is not a known key, expected share, priority, memory, \
             sessions, workers, slots, wall, idle\n  hint: did you mean 'share'?",
        );
        check("policy: fare\n", "p.yaml:1:9: 'policy' is 'fare', expected fair, fifo or priority");
        check(
            "user: {}\n",
            "p.yaml:1:1: 'user' is not a known key, expected policy, default, teams, users, keys, \
             revoked\n  \
             hint: did you mean 'users'?",
        );
        for zero in ["share: 0", "share: -1", "workers: 1.5", "sessions: many"] {
            let error = parse(&format!("default: {{{zero}}}"), "p").unwrap_err().to_string();
            assert!(
                error.ends_with("expected a whole number from 1 on, or null for no limit"),
                "{error}"
            );
        }
        for wrong in ["0", "-5", "soon", "1e400s", "0s"] {
            let error = parse(&format!("default: {{idle: {wrong}}}"), "p").unwrap_err().to_string();
            assert!(error.contains("a time, as 12h"), "{wrong}: {error}");
        }
        check(
            "keys: {ada: {share: 2}}",
            "p.yaml:1:8: 'keys.ada' is 'ada', expected a user and a team, as ada@vision",
        );
    }
}
