//! Signal configurations in YAML: the placements of signals.
//!
//! ```yaml
//! forward:
//!   shard: {axis: 0, workers: [0, 1]}
//!   backward: backward_signal
//!   compile: false
//! slots: 4
//! hybrid:
//!   shard:
//!     mesh: {data: 2, model: 2}
//!     axis: {data: 0, model: 1}
//! ```
//!
//! - [`tree`]: the text as a tree of values that know their line and column.
//! - [`reader`]: reads signals from the tree; [`error`]: errors with file, line, column and key.
//! - [`registry`]: the configurations registered in this process.

mod error;
mod reader;
pub mod registry;
pub mod tree;

use gt_ir::Rescale;
use gt_ir::signal::Shard;

pub use error::{ConfigError, FilePosition};
pub use reader::Reader;

/// The configuration of a signal.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SignalConfig {
    pub shard: Option<Shard>,
    /// The signal that its gradients run under. It may be registered later.
    pub backward: Option<String>,
    pub compile: bool,
}

/// The contents of a YAML text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// The signals, in the order of the text.
    pub signals: Vec<(String, SignalConfig)>,
    /// The sessions' number of slots: the keys `slots` and `elastic`, if they are not signals.
    pub slots: Rescale,
}

/// Reads a YAML text; `file` names it in errors.
///
/// # Errors
/// Text that is not YAML, unknown and duplicate keys, values of a wrong type, and lists of workers
/// that are empty or name one twice.
pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
    let root = tree::parse(text, file)?;
    let reader = Reader { file };
    let mut config = Config::default();
    let entries = reader.map(&root, "the file", "a name for each signal");
    for (name, value) in entries.map_err(|error| with_first_line(error, &root, text))? {
        match name.text.as_str() {
            "slots" if value.is_scalar() => config.slots.slots = Some(reader.slots(value)?),
            "elastic" if value.is_scalar() => {
                config.slots.elastic = Some(reader.flag(value, "elastic")?);
            }
            _ => config.signals.push((name.text.clone(), reader.signal(name, value)?)),
        }
    }
    Ok(config)
}

/// Returns the error for a file that is no mapping. YAML joins the lines of a text, of which the
/// error shows the first alone.
fn with_first_line(mut error: ConfigError, root: &tree::YamlValue, text: &str) -> ConfigError {
    if let (ConfigError::WrongValue { place, given, .. }, Some(_)) = (&mut error, root.text()) {
        let before = place.line.saturating_sub(1);
        let from = text.split_inclusive('\n').take(usize::try_from(before).unwrap_or(0));
        *given = tree::quoted(text[from.map(str::len).sum()..].trim());
    }
    error
}

#[cfg(test)]
mod tests {
    use gt_ir::signal::MeshAxis;

    use super::*;

    #[test]
    fn signals_are_read_in_order() {
        let text = "z:\n  shard:\n    axis: -1\n    workers: [0, 2]\n  backward: b\n  compile: true\n\
                    b:\n  shard: {workers: null, replicated: true}\nempty:\n'1': {backward: null}\n";
        let signals = parse(text, "x.yaml").unwrap().signals;
        let names: Vec<&str> = signals.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["z", "b", "empty", "1"]);
        let shard = Shard::row(Some(vec![0, 2]), Some(-1));
        let z = SignalConfig { shard: Some(shard), backward: Some("b".into()), compile: true };
        assert_eq!(signals[0].1, z);
        let shard = Shard::row(None, None);
        assert_eq!(signals[1].1, SignalConfig { shard: Some(shard), ..Default::default() });
        assert_eq!(signals[2].1, SignalConfig::default());
        assert_eq!(signals[3].1, SignalConfig::default());
    }

    #[test]
    fn meshes_have_named_axes() {
        let text = "a: {shard: {mesh: {data: 2, model: 3}, axis: {model: 1}}}";
        let shard = parse(text, "x.yaml").unwrap().signals[0].1.shard.clone().unwrap();
        let data = MeshAxis { name: "data".into(), length: 2, axis: None };
        let model = MeshAxis { name: "model".into(), length: 3, axis: Some(1) };
        assert_eq!(shard, Shard { workers: None, mesh: vec![data, model] });
        let check = |text: &str, wants: &str| {
            assert_eq!(parse(text, "x.yaml").unwrap_err().to_string(), wants);
        };
        check(
            "a: {shard: {mesh: {data: 2}, axis: {date: 1}}}",
            "x.yaml:1:37: 'a.shard.axis.date' is not an axis of the mesh, expected data",
        );
        check(
            "a: {shard: {mesh: {data: 2, model: 2}, axis: {data: 0, model: 0}}}",
            "x.yaml:1:63: 'a.shard.axis.model' is 0, expected an axis that is not sharded already",
        );
        check(
            "a: {shard: {mesh: {data: 2, model: 2}, workers: [0, 1, 2]}}",
            "x.yaml:1:49: 'a.shard.workers' is a list, expected as many workers as the mesh has places",
        );
        check(
            "a: {shard: {mesh: {data: 0}}}",
            "x.yaml:1:26: 'a.shard.mesh.data' is 0, expected a number of workers",
        );
    }

    #[test]
    fn slots_is_a_signal_only_if_it_is_a_mapping() {
        let config = parse("slots: 4\nelastic: true\na: {}\n", "x.yaml").unwrap();
        assert_eq!(config.slots, Rescale { slots: Some(4), elastic: Some(true) });
        assert_eq!(config.signals.len(), 1);
        let config = parse("slots: {compile: true}", "x.yaml").unwrap();
        assert_eq!((config.slots, config.signals.len()), (Rescale::default(), 1));
        let error = parse("slots: none", "x.yaml").unwrap_err().to_string();
        assert_eq!(
            error,
            "x.yaml:1:8: 'slots' is 'none', expected a number of slots, from 1 to 4096"
        );
    }

    #[test]
    fn yaml_aliases_share_parts() {
        let text = "a: {shard: &s {axis: 1}}\nb: {shard: *s}\n";
        let signals = parse(text, "x.yaml").unwrap().signals;
        assert_eq!(signals[0].1, signals[1].1);
    }

    #[test]
    fn an_empty_file_has_no_signals() {
        for text in ["", "\n\n", "# only a remark\n", "{}"] {
            assert_eq!(parse(text, "x.yaml").unwrap(), Config::default(), "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_position_the_problem_and_the_expectation() {
        let check = |text: &str, wants: &str| {
            let error = parse(text, "x.yaml").unwrap_err().to_string();
            assert_eq!(error, wants, "for {text:?}");
        };
        check(
            "a:\n  shrad: {axis: 0}\n",
            "x.yaml:2:3: 'a.shrad' is not a known key, expected shard, backward, compile\n  \
             hint: did you mean 'shard'?",
        );
        check(
            "a: {shard: {zebra: 1}}",
            "x.yaml:1:13: 'a.shard.zebra' is not a known key, expected axis, workers, replicated, mesh",
        );
        check(
            "a:\n  shard: {axis: zero}\n",
            "x.yaml:2:17: 'a.shard.axis' is 'zero', expected a whole number",
        );
        check(
            "a: {shard: {axis: 1.5}}",
            "x.yaml:1:19: 'a.shard.axis' is 1.5, expected a whole number",
        );
        check(
            "a: {shard: {workers: []}}",
            "x.yaml:1:22: 'a.shard.workers' is an empty list, expected a list of worker numbers, \
             or null for all workers",
        );
        check(
            "a: {shard: {workers: 3}}",
            "x.yaml:1:22: 'a.shard.workers' is 3, expected a list of worker numbers, or null for \
             all workers",
        );
        check(
            "a: {shard: {workers: [0, -1]}}",
            "x.yaml:1:26: 'a.shard.workers[1]' is -1, expected a worker number: 0, 1, 2, ...",
        );
        check(
            "a: {shard: {workers: [1, 1]}}",
            "x.yaml:1:26: 'a.shard.workers' names worker 1 twice, expected each worker once",
        );
        check("a:\n  compile: 1\n", "x.yaml:2:12: 'a.compile' is 1, expected true or false");
        check(
            "a: {backward: [b]}",
            "x.yaml:1:15: 'a.backward' is a list, expected the name of a signal",
        );
        check("a: 7", "x.yaml:1:4: 'a' is 7, expected shard, backward and compile");
        check("- 1\n", "x.yaml:1:1: 'the file' is a list, expected a name for each signal");
        check(
            "\nroot:x:0\ndaemon:x:1\n",
            "x.yaml:2:1: 'the file' is 'root:x:0...', expected a name for each signal",
        );
        check(
            &format!("a: {}\n  more", "b".repeat(100)),
            &format!(
                "x.yaml:1:4: 'a' is '{}...', expected shard, backward and compile",
                "b".repeat(60)
            ),
        );
        check("a: {}\nb: {}\na: {}\n", "x.yaml:3:1: 'a' occurs twice, expected once");
        check("a: {shard: {axis: 1, axis: 2}}", "x.yaml:1:22: 'axis' occurs twice, expected once");
    }

    #[test]
    fn syntax_errors_have_positions() {
        for (text, line) in [
            ("a: {", 1),
            ("a:\n\tb: 1\n", 2),
            ("a: *unknown", 1),
            ("a: {}\n---\nb: {}\n", 3),
            ("~: {}", 1),
        ] {
            match parse(text, "x.yaml").unwrap_err() {
                ConfigError::Syntax { place, reason } => {
                    assert_eq!(place.line, line, "{text:?}: {reason}");
                    assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
                }
                other => panic!("{text:?}: {other}"),
            }
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(parse(&"[".repeat(100_000), "x.yaml").is_err());
        assert!(parse(&"a: {".repeat(100_000), "x.yaml").is_err());
    }
}
