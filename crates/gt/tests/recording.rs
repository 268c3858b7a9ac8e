//! A session is recorded, and its file is replayed, searched, cut and damaged.

use std::path::Path;
use std::sync::Arc;

use gt::drivers::embedded;
use gt::recording::replay::{
    FirstDifference, ReplayOptions, ReplayReport, Tolerances, bisect, replay,
};
use gt::recording::{
    CommandSubstitution, Ending, RecordedPlace, Recording, RecordingError, record,
};
use gt::{Driver, Session, Tensor};

const EXACT: ReplayOptions = ReplayOptions {
    until: None,
    tolerances: Tolerances { is_exact: true, relative: None, absolute: None },
    slots: Some(1),
    stops_at_difference: false,
};

const AS_IT_IS: CommandSubstitution = CommandSubstitution { is_anonymous: false, read: |_| None };

fn driver(workers: usize) -> Arc<dyn Driver> {
    embedded::driver(workers, &gt::native_worker, Vec::new(), gt::origin(None)).unwrap()
}

/// Records a loop that becomes a hot path, large data twice, a value that is read, and a failure.
fn recorded(path: &Path) -> Vec<f64> {
    let place = RecordedPlace { workers: 1, engine: "native".into(), ..RecordedPlace::default() };
    let session = Session::new(record(driver(1), place, path, AS_IT_IS).unwrap());
    let data: Vec<f32> = (0..5000).map(|index| index as f32 / 5000.0).collect();
    let one = Tensor::from_slice(&session, &data, &[5000]).unwrap();
    let other = Tensor::from_slice(&session, &data, &[5000]).unwrap();
    let mut values = Vec::new();
    let mut x = one.mul(&other).unwrap();
    for step in 0..200 {
        x = x.mul(0.5).unwrap().tanh().unwrap().add(&one).unwrap();
        if step % 50 == 0 {
            values.push(x.sum(&[], false).unwrap().item().unwrap().as_f64());
        }
    }
    let index = Tensor::from_slice(&session, &[9000i64], &[1]).unwrap();
    assert!(x.index_select(0, &index).unwrap().fetch().is_err());
    session.close();
    values
}

fn run(recording: &Recording, workers: usize, options: &ReplayOptions) -> ReplayReport {
    let driver = driver(workers);
    let report = replay(recording, &*driver, options, &mut || false).unwrap();
    driver.close();
    report
}

#[test]
fn a_replay_has_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.gts");
    let values = recorded(&path);
    let recording = Recording::open(&path, None).unwrap();
    assert_eq!(recording.ending, Ending::Complete);
    // The data is stored once: two tensors of 20 KB are recorded.
    assert!(std::fs::metadata(&path).unwrap().len() < 40_000 + 30_000);
    for workers in [1, 2] {
        let report = run(&recording, workers, &EXACT);
        assert_eq!((report.equal, report.different), (values.len() as u64 + 1, 0));
        assert_eq!(report.instructions, recording.instructions);
    }
    let until = Some(recording.instructions / 2);
    let report = run(&recording, 1, &ReplayOptions { until, ..EXACT });
    assert_eq!(Some(report.instructions), until);
    assert!(report.last.is_some());
    let found = bisect(
        &recording,
        &mut || Ok(driver(1)),
        &mut || Ok(driver(2)),
        recording.instructions,
        &EXACT,
        &mut || false,
    );
    assert!(matches!(found.unwrap(), FirstDifference::None));
}

#[test]
fn a_file_is_cut_damaged_or_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.gts");
    recorded(&path);
    let whole = std::fs::read(&path).unwrap();
    let write = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();
    write(&whole[..whole.len() - 1]);
    let recording = Recording::open(&path, None).unwrap();
    assert!(matches!(recording.ending, Ending::Cut { .. }));
    let open = |until| Recording::open(&path, until);
    for length in [0, 3, 23, 24, 40] {
        write(&whole[..length]);
        assert!(matches!(open(None), Err(RecordingError::Empty { .. })), "{length} bytes");
    }
    write(&[9; 200]);
    assert!(matches!(open(None), Err(RecordingError::Foreign { .. })));
    // A byte of the last record of events.
    let mut damaged = whole.clone();
    let at = damaged.len() - 60;
    damaged[at] ^= 1;
    write(&damaged);
    assert!(matches!(open(None), Err(RecordingError::Damaged { .. })));
    write(&whole);
    assert!(matches!(open(Some(0)), Err(RecordingError::Until { .. })));
    assert!(matches!(open(Some(1 << 40)), Err(RecordingError::Until { .. })));
}
