//! Signal configurations in YAML: what the names of signals mean.
//!
//! ```yaml
//! forward:
//!   shard: {axis: 0, workers: [0, 1]}
//!   backward: backward_signal
//!   compile: false
//! ```

use serde::Deserialize;
use thiserror::Error;

use crate::nearest::nearest;

/// What a signal means.
#[derive(Clone, PartialEq, Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct SignalConfig {
    #[serde(default)]
    pub shard: Option<Shard>,
    /// The signal that its gradients run under.
    #[serde(default)]
    pub backward: Option<String>,
    #[serde(default)]
    pub compile: bool,
}

/// Where tensors go: cut along an axis over workers, or a copy on each.
#[derive(Clone, PartialEq, Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    #[serde(default)]
    pub axis: i64,
    /// Worker numbers; `None` means all.
    #[serde(default)]
    pub workers: Option<Vec<u32>>,
    #[serde(default)]
    pub replicated: bool,
}

/// What is wrong with a configuration.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ConfigError {
    #[error("{file}: {reason}{}", hint(.nearest))]
    Syntax { file: String, reason: String, nearest: Option<String> },
    #[error("{file}: signal '{signal}': {reason}")]
    Meaning { file: String, signal: String, reason: String },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|key| format!("\n  hint: did you mean '{key}'?")).unwrap_or_default()
}

const KEYS: [&str; 6] = ["shard", "backward", "compile", "axis", "workers", "replicated"];

/// The signals of a YAML text, by name in the order of their names; `file` names it in errors.
///
/// # Errors
/// What is not YAML, unknown keys, values of a wrong type, workers that are none or named twice.
pub fn parse(text: &str, file: &str) -> Result<Vec<(String, SignalConfig)>, ConfigError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let signals: std::collections::BTreeMap<String, SignalConfig> = serde_saphyr::from_str(text)
        .map_err(|error| {
            let reason = error.to_string();
            let nearest = unknown_key(&reason).and_then(|key| nearest(key, &KEYS));
            ConfigError::Syntax { file: file.into(), nearest: nearest.map(String::from), reason }
        })?;
    for (signal, config) in &signals {
        check(config).map_err(|reason| ConfigError::Meaning {
            file: file.into(),
            signal: signal.clone(),
            reason,
        })?;
    }
    Ok(signals.into_iter().collect())
}

/// The key that a parser's message calls unknown.
fn unknown_key(reason: &str) -> Option<&str> {
    let (_, rest) = reason.split_once("unknown field `")?;
    rest.split_once('`').map(|(key, _)| key)
}

fn check(config: &SignalConfig) -> Result<(), String> {
    let Some(shard) = &config.shard else { return Ok(()) };
    let Some(workers) = &shard.workers else { return Ok(()) };
    if workers.is_empty() {
        return Err(
            "the list of workers is empty\n  hint: leave it out, or write null, for all".into()
        );
    }
    for (index, worker) in workers.iter().enumerate() {
        if workers[..index].contains(worker) {
            return Err(format!("worker {worker} stands twice in {workers:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read() {
        let text = "a:\n  shard:\n    axis: 1\n    workers: [0, 2]\n  backward: b\n  compile: true\nb:\n  shard: {workers: null, replicated: true}\n";
        let signals = parse(text, "x.yaml").unwrap();
        let shard = Shard { axis: 1, workers: Some(vec![0, 2]), replicated: false };
        let a = SignalConfig { shard: Some(shard), backward: Some("b".into()), compile: true };
        assert_eq!(signals[0], ("a".into(), a));
        assert!(signals[1].1.shard.as_ref().is_some_and(|shard| shard.replicated));
        assert_eq!(parse("", "x.yaml").unwrap(), []);
    }

    #[test]
    fn errors_name_file_line_and_the_nearest_key() {
        let check = |text: &str, wants: &[&str]| {
            let error = parse(text, "x.yaml").unwrap_err().to_string();
            for want in wants {
                assert!(error.contains(want), "'{want}' in: {error}");
            }
        };
        check("a:\n  shrad: {axis: 0}\n", &["x.yaml", "shrad", "line 2", "'shard'"]);
        check("a:\n  shard: {axis: zero}\n", &["x.yaml", "line 2"]);
        check("a: {shard: {workers: []}}", &["'a'", "empty"]);
        check("a: {shard: {workers: [1, 1]}}", &["worker 1", "twice"]);
        check("a: {shard: {workers: [-1]}}", &["x.yaml"]);
        check("- 1\n", &["x.yaml"]);
        check("a: {", &["x.yaml"]);
    }
}
