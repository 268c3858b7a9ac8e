//! The outputs made from a log, byte by byte: `GT_WRITE_FORMATS=1` rewrites them, for review.

use std::path::{Path, PathBuf};

use gt_tools::visualize::{Format, Size, visualize};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn check(format: Format, name: &str) {
    let made = std::env::temp_dir().join(format!("gt-formats-{}-{name}", std::process::id()));
    let size = Size { width: 10.0, height: 5.0, dpi: 96.0 };
    let drawn = visualize(&folder().join("trace.log"), &made, format, size).expect("it is a log");
    assert_eq!((drawn.rows, drawn.moves, drawn.cut_off), (4, 1, false));
    let text = std::fs::read_to_string(&made).expect("it was made");
    std::fs::remove_file(&made).expect("it is there");
    let path = folder().join(name);
    if std::env::var_os("GT_WRITE_FORMATS").is_some() {
        std::fs::write(&path, &text).expect("the folder can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} is another; GT_WRITE_FORMATS=1 writes it", path.display());
}

#[test]
fn a_drawing() {
    check(Format::Svg, "trace.svg");
}

#[test]
fn chromes_trace_events() {
    check(Format::Perfetto, "trace.json");
}
