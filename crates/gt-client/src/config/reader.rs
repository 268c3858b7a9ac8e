//! Reads the parts of a configuration's tree, checking keys and values.

use gt_ir::Rescale;
use gt_ir::nearest::nearest;
use gt_ir::signal::{MeshAxis, Shard};

use super::tree::{Entry, YamlValue};
use super::{ConfigError, SignalConfig};

const SIGNAL_KEYS: &[&str] = &["shard", "backward", "compile"];
const SHARD_KEYS: &[&str] = &["axis", "workers", "replicated", "mesh"];
const WORKERS: &str = "a list of worker numbers, or null for all workers";

/// Reads the parts of a tree. `path` is always the key's full path, for errors.
pub struct Reader<'a> {
    /// The name of the file, for errors.
    pub file: &'a str,
}

impl Reader<'_> {
    pub(super) fn signal(
        &self,
        name: &Entry,
        value: &YamlValue,
    ) -> Result<SignalConfig, ConfigError> {
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

    pub(super) fn slots(&self, value: &YamlValue) -> Result<u32, ConfigError> {
        let count = value.whole().and_then(Rescale::count);
        count.ok_or_else(|| self.wrong(value, "slots", "a number of slots, from 1 to 4096"))
    }

    fn shard(&self, value: &YamlValue, path: &str) -> Result<Option<Shard>, ConfigError> {
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

    fn axis(&self, value: &YamlValue, path: &str) -> Result<i64, ConfigError> {
        let axis = value.whole().and_then(|axis| i64::try_from(axis).ok());
        axis.ok_or_else(|| self.wrong(value, path, "a whole number"))
    }

    /// Reads a mesh: one or two named axes of workers. `axis` has the tensor axis that is sharded
    /// over each.
    fn mesh(
        &self,
        value: &YamlValue,
        path: &str,
        axis: Option<(&YamlValue, String)>,
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
            let length = whole.ok_or_else(|| self.wrong(length, &path, "a number of workers"))?;
            mesh.push(MeshAxis { name: name.text.clone(), length, axis: None });
        }
        let Some((axes, path)) = axis else { return Ok(mesh) };
        for (name, axis) in self.map(axes, &path, "a tensor's axis for each name of the mesh")? {
            let path = format!("{path}.{}", name.text);
            let whole = if axis.is_null() { None } else { Some(self.axis(axis, &path)?) };
            if whole.is_some() && mesh.iter().any(|entry| entry.axis == whole) {
                return Err(self.wrong(axis, &path, "an axis that is not sharded already"));
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

    fn workers(&self, value: &YamlValue, path: &str) -> Result<Option<Vec<u32>>, ConfigError> {
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

    fn name(&self, value: &YamlValue, path: &str) -> Result<Option<String>, ConfigError> {
        match value.text() {
            Some(text) => Ok(Some(text.to_string())),
            None if value.is_null() => Ok(None),
            None => Err(self.wrong(value, path, "the name of a signal")),
        }
    }

    pub(super) fn flag(&self, value: &YamlValue, path: &str) -> Result<bool, ConfigError> {
        value.flag().ok_or_else(|| self.wrong(value, path, "true or false"))
    }

    /// Returns the entries of a mapping; null is an empty mapping.
    ///
    /// # Errors
    /// The value is neither a mapping nor null.
    pub fn map<'v>(
        &self,
        value: &'v YamlValue,
        path: &str,
        expected: &'static str,
    ) -> Result<&'v [(Entry, YamlValue)], ConfigError> {
        match value.map() {
            Some(entries) => Ok(entries),
            None if value.is_null() => Ok(&[]),
            None => Err(self.wrong(value, path, expected)),
        }
    }

    /// Returns the error of an unexpected value.
    pub fn wrong(&self, value: &YamlValue, key: &str, expected: &'static str) -> ConfigError {
        let (place, given) = (value.place(self.file), value.to_string());
        ConfigError::WrongValue { place, key: key.into(), given, expected }
    }

    /// Returns the error of an unknown key.
    pub fn unknown(
        &self,
        key: &Entry,
        path: String,
        expected: &'static [&'static str],
    ) -> ConfigError {
        let nearest = nearest(&key.text, expected);
        ConfigError::UnknownKey { place: key.place(self.file), key: path, expected, nearest }
    }
}
