//! What the dispatcher has counted: cluster events, and how long things took.

use gt_ir::status::counters::{BOUNDS, ClusterCounters, DurationHistogram};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::{BYTES, Metrics, SECONDS};

/// Adds the counters and histograms of a dispatcher.
pub fn add(metrics: &mut Metrics, counters: &ClusterCounters) {
    let ClusterCounters { workers_joined, workers_left, workers_lost, .. } = counters;
    let workers = [("joined", workers_joined), ("left", workers_left), ("lost", workers_lost)];
    let events = workers.map(|(event, count)| (vec![("event", event.to_string())], *count as f64));
    let help = "Workers that joined, left as they had announced, or were lost";
    metrics.counter("worker_events", help, None, events.into());
    let mut count = |name, help, unit, value| metrics.total(name, help, unit, value);
    count("moves", "Moves of slots from one worker to another", None, counters.moves);
    let help = "The bytes that moved slots had in their snapshots";
    count("moved", help, BYTES, counters.moved_bytes);
    let help = "Sessions ended by the server, an operator or a lost connection";
    count("sessions_ended", help, None, counters.sessions_ended);
    let help = "Losses of tensors that could not be restored";
    count("sessions_lost_tensors", help, None, counters.tensors_lost);
    let help = "Commands that are not tried again, as workers died of them";
    count("commands_given_up", help, None, counters.commands_given_up);
    for (name, help, histogram) in [
        ("recovery", "From the loss of a worker until a session is restored", &counters.recoveries),
        ("value_wait", "From when a value is asked for until it is sent", &counters.value_waits),
        (
            "queue_wait",
            "From when commands are received until they are planned",
            &counters.queue_waits,
        ),
    ] {
        metrics.register(name, help, SECONDS, Durations(histogram.clone()));
    }
}

/// A histogram that the dispatcher has filled.
#[derive(Debug)]
struct Durations(DurationHistogram);

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.0.counts).collect();
        let (sum, count) = (self.0.sum.as_secs_f64(), self.0.count());
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
