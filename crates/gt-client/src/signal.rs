//! Signals: named scopes that tell a dispatcher how to place what is computed in them.
//!
//! Each thread has its own stack. A scope may name another signal for the gradients of what it
//! computes; otherwise the gradients run under the signal `backward` of its configuration.

use std::cell::RefCell;
use std::sync::{LazyLock, Mutex};

use crate::config::registry;
use crate::error::{ClientError, Result};
use crate::nearest::nearest;

/// A scope: the numbers of its signal and of the one for its gradients. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    pub signal: u32,
    pub backward: u32,
}

impl Scope {
    /// The signal under which gradients run of what was computed in this scope.
    pub fn of_gradients(self) -> u32 {
        match self {
            Scope { backward, .. } if backward != 0 => backward,
            Scope { signal: 0, .. } => 0,
            Scope { signal, .. } => of_gradients(signal),
        }
    }
}

thread_local! {
    static STACK: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
}

/// Names by number, for the whole process; number 0 has none.
static NAMES: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

/// The number of a signal's name.
pub fn number(name: &str) -> u32 {
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let found = names.iter().position(|known| known == name);
    found.unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    }) as u32
        + 1
}

/// The name of a signal's number.
pub fn name(number: u32) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    names.get((number as usize).checked_sub(1)?).cloned()
}

/// The signal under which gradients run of what was computed under `signal`: the one that its
/// configuration names, or itself.
fn of_gradients(signal: u32) -> u32 {
    let config = name(signal).and_then(|name| registry::get(&name));
    config.and_then(|config| config.backward).map_or(signal, |name| number(&name))
}

/// What `GT_STRICT` and `GT_VERBOSE` say.
static STRICT: LazyLock<bool> = LazyLock::new(|| is_set("GT_STRICT"));
static VERBOSE: LazyLock<bool> = LazyLock::new(|| is_set("GT_VERBOSE"));

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Opens a scope on this thread. A signal without a configuration changes nothing; `GT_VERBOSE`
/// reports it once.
///
/// # Errors
/// With `GT_STRICT`, a signal that has no configuration.
pub fn enter(signal: &str, backward: Option<&str>) -> Result<()> {
    for name in [Some(signal), backward].into_iter().flatten() {
        check_known(name)?;
    }
    let scope = Scope { signal: number(signal), backward: backward.map_or(0, number) };
    STACK.with_borrow_mut(|stack| stack.push(scope));
    Ok(())
}

/// Unknown signals that have been reported.
static REPORTED: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

fn check_known(name: &str) -> Result<()> {
    if !(*STRICT || *VERBOSE) || registry::get(name).is_some() {
        return Ok(());
    }
    let known = registry::names();
    let hint = match nearest(name, &known.iter().map(String::as_str).collect::<Vec<_>>()) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None if known.is_empty() => "load a configuration with gt.load_config".to_string(),
        None => format!("the known ones are {}", known.join(", ")),
    };
    let text = format!("signal '{name}' has no configuration\n  hint: {hint}");
    if *STRICT {
        return Err(ClientError::usage(text));
    }
    let mut reported = REPORTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !reported.iter().any(|other| other == name) {
        reported.push(name.to_string());
        eprintln!("gt: {text}");
    }
    Ok(())
}

/// Closes the innermost scope of this thread.
///
/// # Errors
/// No scope is open, or the innermost is another.
pub fn exit(signal: &str) -> Result<()> {
    STACK.with_borrow_mut(|stack| {
        let Some(innermost) = stack.last() else {
            return Err(ClientError::usage(format!(
                "signal.exit('{signal}'): no signal scope is open on this thread"
            )));
        };
        if innermost.signal != number(signal) {
            let open = name(innermost.signal).unwrap_or_default();
            return Err(ClientError::usage(format!(
                "signal.exit('{signal}'): the innermost open scope is '{open}'\n  hint: scopes close in the reverse of the order they were entered; `with gt.signal.context(...)` does so by itself"
            )));
        }
        stack.pop();
        Ok(())
    })
}

/// The innermost scope of this thread.
pub fn current() -> Scope {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or_default())
}

/// Runs `body` inside `scope`, as the gradients of a scope do.
pub(crate) fn within<T>(scope: Scope, body: impl FnOnce() -> T) -> T {
    STACK.with_borrow_mut(|stack| stack.push(scope));
    let result = body();
    STACK.with_borrow_mut(|stack| stack.pop());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_close_in_order() {
        enter("outer", Some("back")).unwrap();
        enter("inner", None).unwrap();
        assert_eq!(name(current().signal).as_deref(), Some("inner"));
        assert!(exit("outer").unwrap_err().to_string().contains("'inner'"));
        exit("inner").unwrap();
        assert_eq!(name(current().backward).as_deref(), Some("back"));
        exit("outer").unwrap();
        assert_eq!(current(), Scope::default());
        assert!(exit("outer").is_err());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it is about threads")]
    fn threads_have_their_own_scopes() {
        enter("here", None).unwrap();
        std::thread::spawn(|| assert_eq!(current(), Scope::default())).join().unwrap();
        exit("here").unwrap();
    }
}
