//! `gt published`: what is published on a server, and who reads it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gt_ir::publication::PublicationStatus;
use gt_ir::status::Status;

use crate::error::ToolError;
use crate::find::WatchTarget;
use crate::words::{age, bytes, grouped, table};

/// Lists the publications of a server.
///
/// # Errors
/// No dispatcher is found, or it does not answer.
pub fn run(target: &WatchTarget) -> Result<String, ToolError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(list(&target.watch()?.status()?, now))
}

/// Returns the list at a time since 1970.
fn list(status: &Status, now: Duration) -> String {
    if status.publications.is_empty() {
        return "nothing is published\n".into();
    }
    let mut rows = vec![
        ["name", "version", "age", "for", "tensors", "bytes", "readers", "description"]
            .map(String::from)
            .to_vec(),
    ];
    rows.extend(status.publications.iter().map(|publication| row(publication, now)));
    table(&rows)
}

fn row(of: &PublicationStatus, now: Duration) -> Vec<String> {
    let readers = match (of.is_withdrawn, of.is_visible) {
        (true, _) => format!("{}, withdrawn", of.readers),
        (false, true) => of.readers.to_string(),
        (false, false) => "being stored".into(),
    };
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    vec![
        of.name.clone(),
        of.version.to_string(),
        age(now.saturating_sub(Duration::from_secs(of.at))),
        of.audience.to_string(),
        grouped(of.tensors),
        bytes(of.bytes),
        readers,
        of.description.chars().map(shown).take(60).collect(),
    ]
}

#[cfg(test)]
mod tests {
    use gt_ir::publication::Audience;

    use super::*;

    #[test]
    fn a_list_has_a_row_for_each_version() {
        let of = |version, readers| PublicationStatus {
            name: "ada/qwen3-8b".into(),
            version,
            audience: Audience::Users(vec!["bob".into(), "eve".into()]),
            description: "base\nmodel".into(),
            at: 1000 * u64::from(version),
            tensors: 12_345,
            bytes: 16 << 30,
            readers,
            is_visible: version == 1,
            is_withdrawn: false,
        };
        let status = Status { publications: vec![of(1, 10), of(2, 0)], ..Status::default() };
        let text = list(&status, Duration::from_secs(4600));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].contains("bob, eve") && lines[1].ends_with("base model"), "{text}");
        assert!(lines[2].contains("being stored"), "{text}");
        assert_eq!(list(&Status::default(), Duration::ZERO), "nothing is published\n");
    }
}
