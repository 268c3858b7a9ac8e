//! What a request may ask: a JSON object with the action, and whom or what it is for.

use std::time::Duration;

use gt::drivers::operate::OperatorRequest;
use serde_json::{Map, Value};

/// The names of the actions.
pub const ACTIONS: [&str; 5] = ["pause", "resume", "end", "weigh", "drain"];
/// Those of users, for sessions of their own.
pub const OWN_ACTIONS: [&str; 4] = ["pause", "resume", "end", "weigh"];

/// The most letters of a name.
const LETTERS: usize = 512;
/// The seconds that a drain may take: reverse proxies wait for an answer for a minute.
const WITHIN: u64 = 50;

/// Parses the body of a request.
///
/// # Errors
/// It has another form; the text says which one is expected.
pub fn parse(bytes: &[u8]) -> Result<OperatorRequest, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("the action is no JSON: {error}"))?;
    let Value::Object(mut fields) = value else {
        return Err("the action is no object, expected one as {\"action\": \"pause\"}".into());
    };
    let action = required(&mut fields, "action")?;
    let request = match action.as_str() {
        "pause" | "resume" => pause(&mut fields, action == "pause")?,
        "end" => {
            let name = required(&mut fields, "session")?;
            OperatorRequest::EndSession { user: text(&mut fields, "user")?, name }
        }
        "weigh" => {
            let (user, name) = user_or_session(&mut fields)?;
            OperatorRequest::Weigh { user, name, weight: weight(fields.remove("weight"))? }
        }
        "drain" => {
            let worker = required(&mut fields, "worker")?;
            let within = within(fields.remove("within"))?;
            OperatorRequest::Drain { worker, within, force: false }
        }
        other => {
            let known = ACTIONS.join(", ");
            return Err(format!("the action is '{}', expected one of {known}", shown(other)));
        }
    };
    match fields.keys().next() {
        None => Ok(request),
        Some(other) => Err(format!("the action '{action}' has no field '{}'", shown(other))),
    }
}

fn pause(fields: &mut Map<String, Value>, is_paused: bool) -> Result<OperatorRequest, String> {
    let (user, name) = user_or_session(fields)?;
    Ok(OperatorRequest::Pause { user, name, is_paused })
}

/// Returns the user and the session that an action is for, of which one may be missing.
fn user_or_session(
    fields: &mut Map<String, Value>,
) -> Result<(Option<String>, Option<String>), String> {
    match (text(fields, "user")?, text(fields, "session")?) {
        (None, None) => Err("the action has neither 'session' nor 'user', expected one".into()),
        both => Ok(both),
    }
}

fn required(fields: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    text(fields, name)?.ok_or_else(|| format!("the action has no '{name}', expected a text"))
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => match text.chars().count() {
            0 => Err(format!("'{name}' of the action is empty")),
            count if count > LETTERS => {
                Err(format!("'{name}' of the action has {count} letters, {LETTERS} are allowed"))
            }
            _ => Ok(Some(text)),
        },
        Some(other) => Err(format!("'{name}' of the action is {}, expected a text", kind(&other))),
    }
}

/// Returns a weight; null is the policy's.
fn weight(given: Option<Value>) -> Result<Option<u32>, String> {
    let expected = "expected a whole number from 1 on, or null for the policy's";
    let Some(given) = given else { return Err(format!("the action has no 'weight', {expected}")) };
    if given.is_null() {
        return Ok(None);
    }
    let number = given.as_u64().and_then(|number| i32::try_from(number).ok());
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) if number > 0 => Ok(Some(number)),
        _ => Err(format!("'weight' of the action is {}, {expected}", kind(&given))),
    }
}

fn within(given: Option<Value>) -> Result<Duration, String> {
    let Some(given) = given else { return Ok(Duration::from_secs(WITHIN)) };
    match given.as_u64() {
        Some(seconds) if (1..=WITHIN).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "'within' of the action is {}, expected seconds from 1 to {WITHIN}\n  hint: `gt worker drain --timeout` takes longer times",
            kind(&given)
        )),
    }
}

/// Names a value: numbers as they are, others by their kind.
fn kind(of: &Value) -> String {
    match of {
        Value::Null => "null".into(),
        Value::Bool(_) => "a truth value".into(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a text".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// Returns the beginning of a text without what breaks lines.
fn shown(text: &str) -> String {
    text.chars().take(40).map(|letter| if letter.is_control() { '_' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn each_action_is_the_request_of_its_command() {
        let pause = |user, name, is_paused| OperatorRequest::Pause { user, name, is_paused };
        let weigh = |user, name, weight| OperatorRequest::Weigh { user, name, weight };
        let drain = |seconds| OperatorRequest::Drain {
            worker: "w3".into(),
            within: Duration::from_secs(seconds),
            force: false,
        };
        for (text, expected) in [
            (r##"{"action":"pause","session":"#3"}"##, pause(None, some("#3"), true)),
            (
                r#"{"action":"resume","session":"a","user":"ada"}"#,
                pause(some("ada"), some("a"), false),
            ),
            (r#"{"action":"pause","user":"ada"}"#, pause(some("ada"), None, true)),
            (
                r#"{"action":"end","session":"a b","user":"ada"}"#,
                OperatorRequest::EndSession { user: some("ada"), name: "a b".into() },
            ),
            (r#"{"action":"weigh","user":"ada","weight":3}"#, weigh(some("ada"), None, Some(3))),
            (r#"{"action":"weigh","user":"ada","weight":null}"#, weigh(some("ada"), None, None)),
            (r##"{"action":"weigh","session":"#3","weight":4}"##, weigh(None, some("#3"), Some(4))),
            (r#"{"action":"drain","worker":"w3"}"#, drain(50)),
            (r#"{"action":"drain","worker":"w3","within":7}"#, drain(7)),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_refused_with_the_expected_one() {
        let long = format!(r#"{{"action":"end","session":"{}"}}"#, "a".repeat(LETTERS + 1));
        let deep = "[".repeat(4000);
        for (text, part) in [
            ("", "no JSON"),
            ("{", "no JSON"),
            (&deep, "no JSON"),
            ("[]", "no object"),
            ("{}", "no 'action', expected a text"),
            (r#"{"action":3}"#, "'action' of the action is 3, expected a text"),
            (r#"{"action":"reboot"}"#, "is 'reboot', expected one of pause, resume, end"),
            (r#"{"action":"pause"}"#, "neither 'session' nor 'user'"),
            (r#"{"action":"pause","session":["a"]}"#, "is a list"),
            (r#"{"action":"pause","session":""}"#, "is empty"),
            (r#"{"action":"end","user":"ada"}"#, "no 'session'"),
            (r#"{"action":"end","session":"a","force":true}"#, "no field 'force'"),
            (&long, "513 letters"),
            (r#"{"action":"weigh","user":"ada"}"#, "no 'weight'"),
            (r#"{"action":"weigh","user":"ada","weight":0}"#, "is 0, expected a whole number"),
            (r#"{"action":"weigh","user":"ada","weight":1.5}"#, "is 1.5"),
            (r#"{"action":"weigh","user":"ada","weight":4294967296}"#, "is 4294967296"),
            (r#"{"action":"drain","worker":"w","within":-1}"#, "is -1, expected seconds"),
            (r#"{"action":"drain","worker":"w","within":3600}"#, "gt worker drain --timeout"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
