//! What a request asks for: a JSON object with seconds and a session.

use serde_json::Value;

/// The most seconds of a recording.
pub const LONGEST: u64 = 60;

/// A recording that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordingRequest {
    pub seconds: u64,
    /// The session that is shown first; all are recorded.
    pub session: Option<u64>,
}

/// Parses the body of a request.
///
/// # Errors
/// It has another form; the text says which one is expected.
pub fn parse(bytes: &[u8]) -> Result<RecordingRequest, String> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("the recording is no JSON: {error}"))?;
    let Value::Object(mut fields) = value else {
        return Err("the recording is no object, expected one as {\"seconds\": 5}".into());
    };
    let expected = format!("expected a whole number from 1 to {LONGEST}");
    let seconds = fields.remove("seconds");
    let seconds = seconds.ok_or_else(|| format!("the recording has no 'seconds', {expected}"))?;
    let seconds = match seconds.as_u64() {
        Some(seconds) if (1..=LONGEST).contains(&seconds) => seconds,
        _ => {
            return Err(format!(
                "'seconds' of the recording is {}, {expected}\n  hint: `gt trace` records for longer",
                shown(&seconds.to_string())
            ));
        }
    };
    let session = match fields.remove("session") {
        None | Some(Value::Null) => None,
        Some(given) => Some(given.as_u64().ok_or_else(|| {
            let given = shown(&given.to_string());
            format!("'session' of the recording is {given}, expected a session's number, or null")
        })?),
    };
    match fields.keys().next() {
        None => Ok(RecordingRequest { seconds, session }),
        Some(other) => Err(format!("the recording has no field '{}'", shown(other))),
    }
}

/// Returns the beginning of a text without what breaks lines.
fn shown(text: &str) -> String {
    text.chars().take(40).map(|letter| if letter.is_control() { '_' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_a_session_are_read() {
        for (text, seconds, session) in [
            (r#"{"seconds": 1}"#, 1, None),
            (r#"{"seconds": 60, "session": null}"#, 60, None),
            (r#"{"session": 3, "seconds": 5}"#, 5, Some(3)),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(RecordingRequest { seconds, session }), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_refused_with_the_expected_one() {
        for (text, part) in [
            ("", "no JSON"),
            ("[5]", "no object"),
            ("{}", "no 'seconds', expected a whole number from 1 to 60"),
            (r#"{"seconds": 0}"#, "'seconds' of the recording is 0, expected"),
            (r#"{"seconds": 61}"#, "is 61, expected a whole number from 1 to 60"),
            (r#"{"seconds": 1.5}"#, "is 1.5, expected"),
            (r#"{"seconds": "5"}"#, "is \"5\", expected"),
            (r##"{"seconds": 5, "session": "#3"}"##, "'session' of the recording is \"#3\""),
            (r#"{"seconds": 5, "session": -1}"#, "is -1, expected a session's number, or null"),
            (r#"{"seconds": 5, "all": true}"#, "no field 'all'"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
