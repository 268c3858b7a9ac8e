//! Signal configurations in YAML: what the names of signals mean.
//!
//! ```yaml
//! forward:
//!   shard: {axis: 0, workers: [0, 1]}
//!   backward: backward_signal
//!   compile: false
//! hybrid:
//!   shard:
//!     mesh: {data: 2, model: 2}
//!     axis: {data: 0, model: 1}
//! ```
//!
//! The text becomes a tree that knows where each of its parts stands ([`tree`]); reading the tree
//! gives signals, or an error that names file, line, column and key.

pub mod registry;
mod tree;

use std::fmt;

use gt_ir::signal::{MeshAxis, Shard};
use thiserror::Error;

use crate::nearest::nearest;
use tree::{Entry, Value};

/// What a signal means.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SignalConfig {
    pub shard: Option<Shard>,
    /// The signal that its gradients run under. It may be registered later.
    pub backward: Option<String>,
    pub compile: bool,
}

/// A place in a file; lines and columns count from 1, 0 where the parser knows none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub file: String,
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            _ => write!(f, "{}:{}:{}", self.file, self.line, self.column),
        }
    }
}

/// What is wrong with a configuration. Keys are given with their path: `forward.shard.axis`.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ConfigError {
    #[error("{place}: this cannot be read: {reason}")]
    Syntax { place: Place, reason: String },
    #[error("{place}: '{key}' stands twice, expected once")]
    DuplicateKey { place: Place, key: String },
    #[error(
        "{place}: '{key}' is not a known key, expected {}{}",
        expected.join(", "), hint(*nearest)
    )]
    UnknownKey {
        place: Place,
        key: String,
        expected: &'static [&'static str],
        nearest: Option<&'static str>,
    },
    #[error("{place}: '{key}' is {given}, expected {expected}")]
    WrongValue { place: Place, key: String, given: String, expected: &'static str },
    #[error("{place}: '{key}' is not an axis of the mesh, expected {}", names.join(", "))]
    UnknownMeshAxis { place: Place, key: String, names: Vec<String> },
    #[error("{place}: '{key}' names worker {worker} twice, expected each worker once")]
    DuplicateWorker { place: Place, key: String, worker: u32 },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("\n  hint: did you mean '{key}'?")).unwrap_or_default()
}

const SIGNAL_KEYS: &[&str] = &["shard", "backward", "compile"];
const SHARD_KEYS: &[&str] = &["axis", "workers", "replicated", "mesh"];
const WORKERS: &str = "a list of worker numbers, or null for all workers";

/// The signals of a YAML text in the order of the text; `file` names it in errors.
///
/// # Errors
/// What is not YAML, keys that are unknown or stand twice, values of a wrong type, and lists of
/// workers that are empty or name one twice.
pub fn parse(text: &str, file: &str) -> Result<Vec<(String, SignalConfig)>, ConfigError> {
    let reader = Reader { file };
    let root = tree::parse(text, file)?;
    let signals = reader.map(&root, "the file", "a name for each signal")?;
    signals
        .iter()
        .map(|(name, value)| Ok((name.text.clone(), reader.signal(name, value)?)))
        .collect()
}

/// Reads the parts of a tree. A key is given with its path, for errors.
struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn signal(&self, name: &Entry, value: &Value) -> Result<SignalConfig, ConfigError> {
        let mut signal = SignalConfig::default();
        for (key, value) in self.map(value, &name.text, "shard, backward and compile")? {
            let path = format!("{}.{}", name.text, key.text);
            match key.text.as_str() {
                "shard" => signal.shard = self.shard(value, &path)?,
                "backward" => signal.backward = self.name(value, &path)?,
                "compile" => signal.compile = self.flag(value, &path)?,
                _ => return Err(self.unknown(key, path, SIGNAL_KEYS)),
            }
        }
        Ok(signal)
    }

    fn shard(&self, value: &Value, path: &str) -> Result<Option<Shard>, ConfigError> {
        if value.is_null() {
            return Ok(None);
        }
        let (mut workers, mut replicated, mut axis, mut mesh) = (None, false, None, None);
        let mut named = None;
        for (key, value) in self.map(value, path, "axis, workers, replicated and mesh")? {
            let path = format!("{path}.{}", key.text);
            match key.text.as_str() {
                "axis" => axis = Some((value, path)),
                "workers" => {
                    workers = self.workers(value, &path)?;
                    named = Some((value, path));
                }
                "replicated" => replicated = self.flag(value, &path)?,
                "mesh" => mesh = Some((value, path)),
                _ => return Err(self.unknown(key, path, SHARD_KEYS)),
            }
        }
        let mesh = match mesh {
            Some((mesh, path)) => {
                let mut axes = self.mesh(mesh, &path, axis)?;
                let places: u64 = axes.iter().map(|axis| u64::from(axis.length)).product();
                if let (Some(workers), Some((value, path))) = (&workers, &named)
                    && workers.len() as u64 != places
                {
                    return Err(self.wrong(value, path, "as many workers as the mesh has places"));
                }
                if replicated {
                    axes.iter_mut().for_each(|entry| entry.axis = None);
                }
                axes
            }
            None => {
                let axis = axis.map(|(axis, path)| self.axis(axis, &path)).transpose()?;
                let axis = (!replicated).then_some(axis.unwrap_or(0));
                vec![MeshAxis { axis, ..MeshAxis::default() }]
            }
        };
        Ok(Some(Shard { workers, mesh }))
    }

    fn axis(&self, value: &Value, path: &str) -> Result<i64, ConfigError> {
        let axis = value.whole().and_then(|axis| i64::try_from(axis).ok());
        axis.ok_or_else(|| self.wrong(value, path, "a whole number"))
    }

    /// One or two named axes of workers; `axis` says which axis of a tensor is cut over each.
    fn mesh(
        &self,
        value: &Value,
        path: &str,
        axis: Option<(&Value, String)>,
    ) -> Result<Vec<MeshAxis>, ConfigError> {
        const SHAPE: &str = "one or two named lengths, as {data: 2, model: 4}";
        let lengths = self.map(value, path, SHAPE)?;
        if !(1..=2).contains(&lengths.len()) {
            return Err(self.wrong(value, path, SHAPE));
        }
        let mut mesh = Vec::new();
        for (name, length) in lengths {
            let path = format!("{path}.{}", name.text);
            let whole = length.whole().and_then(|length| u32::try_from(length).ok());
            let whole = whole.filter(|&length| length > 0);
            let length = whole.ok_or_else(|| self.wrong(length, &path, "how many workers"))?;
            mesh.push(MeshAxis { name: name.text.clone(), length, axis: None });
        }
        let Some((axes, path)) = axis else { return Ok(mesh) };
        for (name, axis) in self.map(axes, &path, "a tensor's axis for each name of the mesh")? {
            let path = format!("{path}.{}", name.text);
            let whole = if axis.is_null() { None } else { Some(self.axis(axis, &path)?) };
            if whole.is_some() && mesh.iter().any(|entry| entry.axis == whole) {
                return Err(self.wrong(axis, &path, "an axis that is not cut already"));
            }
            let Some(entry) = mesh.iter_mut().find(|entry| entry.name == name.text) else {
                let place = name.place(self.file);
                let names = lengths.iter().map(|(name, _)| name.text.clone()).collect();
                return Err(ConfigError::UnknownMeshAxis { place, key: path, names });
            };
            entry.axis = whole;
        }
        Ok(mesh)
    }

    fn workers(&self, value: &Value, path: &str) -> Result<Option<Vec<u32>>, ConfigError> {
        if value.is_null() {
            return Ok(None);
        }
        let list = value.list().filter(|list| !list.is_empty());
        let mut workers = Vec::new();
        for (index, item) in
            list.ok_or_else(|| self.wrong(value, path, WORKERS))?.iter().enumerate()
        {
            let worker =
                item.whole().and_then(|worker| u32::try_from(worker).ok()).ok_or_else(|| {
                    self.wrong(item, &format!("{path}[{index}]"), "a worker number: 0, 1, 2, ...")
                })?;
            if workers.contains(&worker) {
                let (place, key) = (item.place(self.file), path.to_string());
                return Err(ConfigError::DuplicateWorker { place, key, worker });
            }
            workers.push(worker);
        }
        Ok(Some(workers))
    }

    fn name(&self, value: &Value, path: &str) -> Result<Option<String>, ConfigError> {
        match value.text() {
            Some(text) => Ok(Some(text.to_string())),
            None if value.is_null() => Ok(None),
            None => Err(self.wrong(value, path, "the name of a signal")),
        }
    }

    fn flag(&self, value: &Value, path: &str) -> Result<bool, ConfigError> {
        value.flag().ok_or_else(|| self.wrong(value, path, "true or false"))
    }

    /// The entries of a mapping. Nothing at all counts as an empty one.
    fn map<'v>(
        &self,
        value: &'v Value,
        path: &str,
        expected: &'static str,
    ) -> Result<&'v [(Entry, Value)], ConfigError> {
        match value.map() {
            Some(entries) => Ok(entries),
            None if value.is_null() => Ok(&[]),
            None => Err(self.wrong(value, path, expected)),
        }
    }

    fn wrong(&self, value: &Value, key: &str, expected: &'static str) -> ConfigError {
        let (place, given) = (value.place(self.file), value.to_string());
        ConfigError::WrongValue { place, key: key.into(), given, expected }
    }

    fn unknown(&self, key: &Entry, path: String, expected: &'static [&'static str]) -> ConfigError {
        let nearest = nearest(&key.text, expected);
        ConfigError::UnknownKey { place: key.place(self.file), key: path, expected, nearest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_in_order() {
        let text = "z:\n  shard:\n    axis: -1\n    workers: [0, 2]\n  backward: b\n  compile: true\n\
                    b:\n  shard: {workers: null, replicated: true}\nempty:\n'1': {backward: null}\n";
        let signals = parse(text, "x.yaml").unwrap();
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
        let shard = parse(text, "x.yaml").unwrap()[0].1.shard.clone().unwrap();
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
            "x.yaml:1:63: 'a.shard.axis.model' is 0, expected an axis that is not cut already",
        );
        check(
            "a: {shard: {mesh: {data: 2, model: 2}, workers: [0, 1, 2]}}",
            "x.yaml:1:49: 'a.shard.workers' is a list, expected as many workers as the mesh has places",
        );
        check(
            "a: {shard: {mesh: {data: 0}}}",
            "x.yaml:1:26: 'a.shard.mesh.data' is 0, expected how many workers",
        );
    }

    #[test]
    fn parts_may_be_shared() {
        let text = "a: {shard: &s {axis: 1}}\nb: {shard: *s}\n";
        let signals = parse(text, "x.yaml").unwrap();
        assert_eq!(signals[0].1, signals[1].1);
    }

    #[test]
    fn an_empty_file_has_no_signals() {
        for text in ["", "\n\n", "# only a remark\n", "{}"] {
            assert_eq!(parse(text, "x.yaml").unwrap(), [], "{text:?}");
        }
    }

    #[test]
    fn errors_say_where_what_and_what_instead() {
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
        check("a: {}\nb: {}\na: {}\n", "x.yaml:3:1: 'a' stands twice, expected once");
        check("a: {shard: {axis: 1, axis: 2}}", "x.yaml:1:22: 'axis' stands twice, expected once");
    }

    #[test]
    fn what_is_not_yaml_is_located() {
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
