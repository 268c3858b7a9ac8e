//! What Prometheus reads.

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
        "gt_sessions{waits_for=\"nothing\"} 1.0",
        "gt_sessions{waits_for=\"memory\"} 0.0",
        "# TYPE gt_worker_busy_seconds counter",
        "# UNIT gt_worker_busy_seconds seconds",
        "gt_worker_busy_seconds_total{worker=\"w0\"} 1.5",
        "gt_worker_memory_bytes{worker=\"w1\"} 4096.0",
        "gt_worker_draining{worker=\"w1\"} 1.0",
        "gt_worker_operations_total{worker=\"w0\"} 7.0",
        "gt_worker_failed_operations_total{worker=\"w0\"} 1.0",
        "gt_user_device_seconds_total{user=\"a\\\"d\\\\a\",team=\"vision\"} 9.0",
        "gt_user_sessions{user=\"a\\\"d\\\\a\",team=\"vision\"} 2.0",
        "gt_events_dropped_total 0",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{}", answer.body);
    }
    assert_eq!(lines.last(), Some(&"# EOF"));
    assert!(!answer.body.contains("train"), "sessions have no labels");
}
