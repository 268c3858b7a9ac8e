//! The server's backup store: values of snapshots that no worker can keep, on disk and mapped into
//! memory.

use std::path::PathBuf;

use gt_ir::snapshot::Backup;
use gt_ir::{Content, TensorData};
use gt_store::mapped;

/// The least bytes of a message's values for which a file is used.
const WORTH_IT: usize = 1 << 20;

/// A folder for files without a name, which are deleted with their last use.
pub(super) struct BackupStore {
    folder: PathBuf,
}

impl BackupStore {
    pub fn new(folder: PathBuf) -> BackupStore {
        BackupStore { folder }
    }

    /// Moves a message's values to disk, if they are large.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn keep(&self, backup: &mut Backup) -> Result<(), String> {
        let length: usize =
            backup.values.iter().filter_map(data).map(|data| data.bytes.len()).sum();
        if length < WORTH_IT {
            return Ok(());
        }
        let all = backup.values.iter().filter_map(data).map(|data| &data.bytes);
        let mut mapped = mapped::keep(&self.folder, all).map_err(|error| {
            format!("the server cannot write to '{}': {error}", self.folder.display())
        })?;
        for value in &mut backup.values {
            if let Ok(Content::Data(data)) = &mut value.result {
                data.bytes = mapped.split_to(data.bytes.len());
            }
        }
        Ok(())
    }
}

fn data(value: &gt_ir::snapshot::SavedValue) -> Option<&TensorData> {
    match &value.result {
        Ok(Content::Data(data)) => Some(data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::snapshot::{Owner, SavedValue};
    use gt_ir::{DType, SessionId, Shape, SlotId, SourceId, TensorId};

    use super::*;

    fn backup(lengths: &[usize]) -> Backup {
        let value = |(index, length): (usize, &usize)| {
            let shape = Shape::new(&[*length]).unwrap();
            let bytes = vec![index as u8; *length].into();
            let data = TensorData::new(DType::U8, shape, bytes).unwrap();
            let (tensor, line) = (TensorId(index as u64), SourceId(0));
            SavedValue { tensor, line, result: Ok(Content::Data(data)) }
        };
        let (owner, values) =
            (Owner { session: SessionId(1), slot: SlotId(0) }, lengths.iter().enumerate());
        let values = values.map(value).collect();
        Backup { owner, snapshot: 1, sender: None, values, inventory: None }
    }

    #[test]
    fn what_is_on_disk_is_the_same() {
        let backups = BackupStore::new(std::env::temp_dir());
        for lengths in [&[5, 0, 7][..], &[1 << 20, 3, 0, 1 << 19]] {
            let mut moved = backup(lengths);
            backups.keep(&mut moved).unwrap();
            assert!(moved == backup(lengths));
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let backups = BackupStore::new("/nowhere".into());
        assert!(backups.keep(&mut backup(&[10])).is_ok());
        assert!(
            backups.keep(&mut backup(&[1 << 20])).is_err_and(|error| error.contains("/nowhere"))
        );
    }
}
