//! Signals: named scopes, to which a configuration assigns placements.
//!
//! Each thread has its own stack. A scope may name another signal for the gradients of what it
//! computes; otherwise the gradients run under the signal `backward` of its configuration. A scope
//! without a placement inherits that of the enclosing scope.

use std::marker::PhantomData;
use std::sync::{LazyLock, Mutex};

use tracing::{Level, enabled, info, warn};

use crate::config::registry;
use crate::context;
pub use crate::context::names::{name, number};
pub use crate::context::scopes::Scope;
use crate::environment;
use crate::error::{ClientError, Result};
use gt_ir::nearest::{misspelled, nearest};

/// The value of `GT_STRICT`.
static STRICT: LazyLock<bool> = LazyLock::new(|| environment::is_set("GT_STRICT"));

/// Opens a scope on this thread; returns the number of scopes that were open. A signal without a
/// configuration changes nothing; `GT_VERBOSE` reports it once, and a warning if another signal has
/// nearly the same name.
///
/// # Errors
/// With `GT_STRICT`, a signal that has no configuration.
pub fn enter(signal: &str, backward: Option<&str>) -> Result<usize> {
    let configured = registry::get(signal).and_then(|config| config.backward);
    for name in [Some(signal), backward, configured.as_deref()].into_iter().flatten() {
        check_known(name)?;
    }
    let backward = backward.map_or(0, number);
    let scope = Scope { signal: number(signal), backward, compiled: 0 };
    Ok(context::with(|context| context.scopes.borrow_mut().enter(scope)))
}

/// A scope that is closed when this is dropped, with those that were opened in it.
///
/// ```
/// # fn steps() -> gt_client::Result<()> {
/// let _scope = gt_client::signal::scope("rows")?;
/// // Results of this scope are placed by "rows"; an early `?` also closes the scope.
/// # Ok(())
/// # }
/// ```
#[must_use = "the scope is closed when this is dropped"]
pub struct ScopeGuard {
    depth: usize,
    /// Not `Send`: a scope belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Opens a scope on this thread, as [`enter`] does, until the result is dropped.
///
/// # Errors
/// As for [`enter`].
pub fn scope(signal: &str) -> Result<ScopeGuard> {
    enter(signal, None).map(|depth| ScopeGuard { depth, thread: PhantomData })
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        unwind(self.depth);
    }
}

/// Unknown signals that have been looked at.
static SEEN: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

/// Reports a signal without a configuration once: a probable slip is a warning.
///
/// # Errors
/// With `GT_STRICT`, the signal has no configuration.
fn check_known(name: &str) -> Result<()> {
    if registry::is_known(name) || !(*STRICT || enabled!(Level::WARN)) {
        return Ok(());
    }
    if !*STRICT {
        let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if seen.iter().any(|other| other == name) {
            return Ok(());
        }
        seen.push(name.to_string());
    }
    let names = registry::names();
    let known: Vec<_> = names.iter().map(String::as_str).collect();
    let hint = match nearest(name, &known) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None if known.is_empty() => "load a configuration with gt.load_config".to_string(),
        None => format!("the known ones are {}", known.join(", ")),
    };
    let text = format!("signal '{name}' has no configuration\n  hint: {hint}");
    if *STRICT {
        return Err(ClientError::usage(text));
    }
    if misspelled(name, &known).is_some() {
        warn!("{text}");
    } else {
        info!("{text}");
    }
    Ok(())
}

/// Has this thread, on which no scope is open, compute the gradients of a scope until it is set to
/// another one.
pub fn follow(scope: Scope) {
    context::with(|context| context.scopes.borrow_mut().follow(scope));
}

/// Closes the innermost scope of this thread.
///
/// # Errors
/// No scope is open, or the innermost is another.
pub fn exit(signal: &str) -> Result<()> {
    context::with(|context| {
        let mut scopes = context.scopes.borrow_mut();
        let Some(innermost) = scopes.innermost() else {
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
        scopes.exit();
        Ok(())
    })
}

/// Closes the innermost scopes of this thread until `depth` are left.
pub fn unwind(depth: usize) {
    context::with(|context| context.scopes.borrow_mut().unwind(depth));
}

/// Returns the innermost scope of this thread, as it was opened.
pub fn innermost() -> Scope {
    context::with(|context| context.scopes.borrow().innermost().unwrap_or_default())
}

/// Returns the scope in force on this thread.
pub fn current() -> Scope {
    context::with(context::Context::scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SignalConfig;
    use gt_ir::signal::Shard;

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
    fn a_scope_without_a_placement_inherits_the_enclosing_one() {
        let shard = || Some(Shard::row(None, Some(0)));
        let placed = SignalConfig { shard: shard(), backward: None, compile: false };
        let compiled = SignalConfig { shard: None, backward: Some("b".into()), compile: true };
        registry::register("test placed", placed.clone());
        registry::register("test compiled", compiled);
        enter("test placed", Some("a")).unwrap();
        enter("test unknown", None).unwrap();
        let name_of = |scope: Scope| (name(scope.signal).unwrap(), name(scope.backward));
        assert_eq!(name_of(current()), ("test placed".into(), Some("a".into())));
        assert_eq!(name(innermost().signal).as_deref(), Some("test unknown"));
        enter("test compiled", None).unwrap();
        assert_eq!(name_of(current()), ("test placed".into(), Some("b".into())));
        let around = Scope { compiled: current().compiled, ..Scope::default() };
        context::with(|context| {
            context.within_scope(Scope::default(), || assert_eq!(current(), around));
        });
        registry::register("test unknown", placed);
        assert_eq!(name_of(current()), ("test unknown".into(), Some("b".into())));
        unwind(0);
        assert_eq!(current(), Scope::default());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it is about threads")]
    fn threads_have_their_own_scopes() {
        enter("here", None).unwrap();
        std::thread::spawn(|| assert_eq!(current(), Scope::default())).join().unwrap();
        exit("here").unwrap();
    }
}
