//! What Prometheus reads.

use std::collections::BTreeSet;

use crate::http::{get, get_as_owner};
use crate::source::serve;

#[test]
fn metrics_are_openmetrics_with_bounded_labels() {
    let (page, _dispatcher) = serve();
    assert_eq!(get(&page, "/metrics", &[]).status, 401);
    let answer = get_as_owner(&page, "/metrics");
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let lines: Vec<&str> = answer.body.lines().collect();
    for line in [
        "gt_workers 2.0",
        "gt_sessions{waits_for=\"work\"} 1.0",
        "gt_sessions{waits_for=\"memory\"} 1.0",
        "gt_sessions{waits_for=\"nothing\"} 0.0",
        "gt_longest_wait_seconds{waits_for=\"value\"} 0.0",
        "gt_sessions_at_risk 1.0",
        "gt_sessions_detached 0.0",
        "# TYPE gt_worker_busy_seconds counter",
        "# UNIT gt_worker_busy_seconds seconds",
        "gt_worker_busy_seconds_total{worker=\"w0\"} 1.5",
        "gt_worker_memory_bytes{worker=\"w1\"} 4096.0",
        "gt_worker_draining{worker=\"w1\"} 1.0",
        "gt_worker_operations_total{worker=\"w0\"} 7.0",
        "gt_worker_failed_operations_total{worker=\"w0\"} 1.0",
        "gt_gpu_utilization_ratio{worker=\"w0\",gpu=\"NVIDIA H200\"} 0.25",
        "gt_gpu_memory_used_bytes{worker=\"w0\",gpu=\"NVIDIA H200\"} 1073741824.0",
        "gt_gpu_memory_bytes{worker=\"w0\",gpu=\"NVIDIA H200\"} 4294967296.0",
        "gt_user_device_seconds_total{user=\"a\\\"d\\\\a\",team=\"vision\"} 9.0",
        "gt_user_sessions{user=\"a\\\"d\\\\a\",team=\"vision\"} 2.0",
        "gt_events_dropped_total 0",
        "gt_worker_events_total{event=\"lost\"} 1.0",
        "gt_moves_total 3",
        "gt_moved_bytes_total 0",
        "# TYPE gt_recovery_seconds histogram",
        "gt_recovery_seconds_sum 2.0",
        "gt_recovery_seconds_count 1",
        "gt_recovery_seconds_bucket{le=\"1.0\"} 0",
        "gt_recovery_seconds_bucket{le=\"2.5\"} 1",
        "gt_recovery_seconds_bucket{le=\"+Inf\"} 1",
        "gt_value_wait_seconds_count 0",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{}", answer.body);
    }
    let wait = "gt_longest_wait_seconds{waits_for=\"memory\"} ";
    let wait = lines.iter().find_map(|line| line.strip_prefix(wait)).unwrap();
    assert!(wait.parse::<f64>().unwrap() >= 0.5, "{wait}");
    assert_eq!(lines.last(), Some(&"# EOF"));
    assert!(!answer.body.contains("train"), "sessions have no labels");
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_other = |letter: char| !(letter.is_ascii_lowercase() || letter == '_');
    let words = text.split(is_other).filter(|word| word.starts_with("gt_"));
    // Each bucket of a histogram is a sample, as are their sum and their count.
    let of_histogram = |name| {
        let parts = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
        parts.iter().find_map(|part| str::strip_suffix(name, part)).map(|of| (name, of.len()))
    };
    words
        .map(|word| of_histogram(word).map_or(word, |(of, end)| &of[..end + "_seconds".len()]))
        .collect()
}

#[test]
fn documentation_dashboard_and_alerts_name_the_metrics_that_there_are() {
    let (page, _dispatcher) = serve();
    let answer = get_as_owner(&page, "/metrics").body;
    let samples = answer.lines().filter(|line| !line.starts_with('#'));
    let served: BTreeSet<&str> = samples.flat_map(names).collect();
    let read = |path: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    for path in ["deploy/monitoring/grafana.json", "deploy/monitoring/alerts.yaml"] {
        let text = read(path);
        let unknown: Vec<_> = names(&text).difference(&served).copied().collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}, expected some of {served:?}");
    }
    let documentation = read("docs/web.md");
    let rows: String = documentation.lines().filter(|line| line.starts_with("| `gt_")).collect();
    assert_eq!(names(&rows), served, "docs/web.md");
}
