//! Who opens a session: the program, its user and its machine, by which people recognize it.

use crate::ids::SessionId;
use crate::record;

/// The program that opens a session, as its client says: for display only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionOrigin {
    /// The name of its script, its module or its notebook, or the name that the user chose.
    pub program: String,
    /// The account that it runs under; empty if it is not known.
    pub user: String,
    /// Its machine; empty if it is not known.
    pub host: String,
}

record!(struct SessionOrigin { program, user, host });

impl SessionOrigin {
    /// The most characters of each part.
    pub const MOST: usize = 64;

    /// Returns the origin of a program on an unknown machine.
    pub fn new(program: impl Into<String>) -> SessionOrigin {
        SessionOrigin { program: program.into(), ..SessionOrigin::default() }
    }

    /// Checks the name of a session that a user chose, and returns it.
    ///
    /// # Errors
    /// Why it is not valid: it is empty, too long, or has characters that lines, fields or terminals
    /// would break at.
    pub fn check(name: &str) -> Result<String, String> {
        let hint = "\n  hint: a short name such as 'run-12'";
        if name.trim().is_empty() {
            return Err(format!("the name of the session is '{name}', which is empty{hint}"));
        }
        let (count, most) = (name.chars().count(), SessionOrigin::MOST);
        if count > most {
            return Err(format!(
                "the name of the session has {count} characters, {most} are allowed{hint}"
            ));
        }
        match name.chars().find(|letter| is_hidden(*letter) || *letter == '|') {
            Some(letter) => Err(format!(
                "the name of the session has the character {letter:?}, expected letters, digits, spaces and punctuation other than '|'{hint}"
            )),
            None => Ok(name.trim().to_string()),
        }
    }

    /// Returns the origin without characters that lines, fields or terminals would break at, and
    /// with parts of limited lengths: what a client sends may be anything.
    #[must_use]
    pub fn cleaned(&self) -> SessionOrigin {
        let program = match clean(&self.program) {
            program if program.is_empty() => "unnamed".into(),
            program => program,
        };
        SessionOrigin { program, user: word(&self.user), host: word(&self.host) }
    }

    /// Returns the name of a session that people see: `train.py ada@box #3`. A user whom the
    /// client's key proves replaces the one that the client names.
    pub fn label(&self, proven: &str, number: SessionId) -> String {
        format!("{} #{number}", self.holder(proven))
    }

    /// Returns the program with its user and machine: `train.py ada@box`, as in [`Self::label`].
    pub fn holder(&self, proven: &str) -> String {
        let user = if proven.is_empty() { &self.user } else { proven };
        let SessionOrigin { program, host, .. } = self;
        match (user.is_empty(), host.is_empty()) {
            (true, true) => program.clone(),
            (false, true) => format!("{program} {user}"),
            (_, false) => format!("{program} {user}@{host}"),
        }
    }
}

/// Returns whether a character is invisible, or changes how a terminal shows others.
fn is_hidden(letter: char) -> bool {
    let is_format = matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    letter.is_control() || is_format
}

/// Returns a text as part of a line: without hidden characters, and without the log's separator.
fn clean(text: &str) -> String {
    let shown = text.chars().filter(|letter| !is_hidden(*letter));
    let kept = shown.map(|letter| match letter {
        '|' => '_',
        letter if letter.is_whitespace() => ' ',
        letter => letter,
    });
    kept.take(SessionOrigin::MOST).collect::<String>().trim().to_string()
}

/// Returns a text as one word of a label.
fn word(text: &str) -> String {
    clean(text).replace([' ', '@', '#'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(program: &str, user: &str, host: &str) -> SessionOrigin {
        SessionOrigin { program: program.into(), user: user.into(), host: host.into() }
    }

    #[test]
    fn a_label_names_program_user_host_and_number() {
        let ada = origin("train.py", "ada", "box");
        assert_eq!(ada.label("", SessionId(3)), "train.py ada@box #3");
        assert_eq!(ada.label("eve", SessionId(3)), "train.py eve@box #3");
        assert_eq!(SessionOrigin::new("client").label("", SessionId(1)), "client #1");
        assert_eq!(SessionOrigin::new("client").label("ada", SessionId(1)), "client ada #1");
    }

    #[test]
    fn what_a_client_sends_cannot_break_lines_fields_or_terminals() {
        let odd = origin("a|\u{1b}[31m\nb \u{202e}c", "a da\u{7f}", "b@x#1");
        assert_eq!(odd.cleaned(), origin("a_[31mb c", "a_da", "b_x_1"));
        let long = origin(&"x".repeat(500), &"y".repeat(500), "");
        let cleaned = long.cleaned();
        assert_eq!(
            (cleaned.program.len(), cleaned.user.len()),
            (SessionOrigin::MOST, SessionOrigin::MOST)
        );
        assert_eq!(origin(" \n", "", "").cleaned().program, "unnamed");
    }

    #[test]
    fn a_chosen_name_is_checked() {
        assert_eq!(SessionOrigin::check(" run 12 "), Ok("run 12".into()));
        assert_eq!(SessionOrigin::check("Lauf-12 (größer)"), Ok("Lauf-12 (größer)".into()));
        for (name, reason) in [
            ("", "is '', which is empty"),
            ("  ", "which is empty"),
            (&"x".repeat(65), "has 65 characters, 64 are allowed"),
            ("a\nb", "has the character '\\n'"),
            ("a\u{202e}b", "has the character '\\u{202e}'"),
            ("a|b", "has the character '|'"),
        ] {
            let error = SessionOrigin::check(name).unwrap_err();
            assert!(error.contains(reason) && error.contains("hint"), "{name:?}: {error}");
        }
    }
}
