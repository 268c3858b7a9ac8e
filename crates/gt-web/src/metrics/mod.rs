//! The status as OpenMetrics, for Prometheus.
//!
//! Labels are bounded: workers, users, and the kinds of waits. Sessions are counted, not named.
//! [`counted`]: what the dispatcher has counted since it started.

mod counted;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gt_ir::gpu::GpuReading;
use gt_ir::status::{Status, UserStatus, Waits, WorkerStatus};
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Values = Vec<(Labels, f64)>;

/// Returns a status as text.
pub fn encode(status: &Status) -> String {
    let mut metrics = Metrics { registry: Registry::with_prefix("gt") };
    dispatcher(&mut metrics, status);
    counted::add(&mut metrics, &status.counters);
    sessions(&mut metrics, status);
    workers(&mut metrics, status);
    gpus(&mut metrics, status);
    users(&mut metrics, status);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode_text(&mut text, &metrics.registry);
    text
}

fn dispatcher(metrics: &mut Metrics, status: &Status) {
    let uptime = status.now.as_secs_f64();
    metrics.number("dispatcher_uptime", "The time since the dispatcher started", SECONDS, uptime);
    let workers = status.workers.len() as f64;
    metrics.number("workers", "The number of workers", None, workers);
    let publications = status.publications.len() as f64;
    metrics.number("publications", "The number of published versions", None, publications);
    let bytes = status.publications.iter().map(|publication| publication.bytes).sum::<u64>();
    metrics.number("published", "The bytes of published tensors", BYTES, bytes as f64);
    metrics.total("events_dropped", "Events dropped as a watcher was slow", None, status.dropped);
}

fn sessions(metrics: &mut Metrics, status: &Status) {
    let count = |kind: &'static str| {
        let of = status.sessions.iter().filter(|session| kind_of(&session.waits) == kind);
        (vec![("waits_for", kind.to_string())], of.count() as f64)
    };
    let counts = WAITS.into_iter().map(count).collect();
    metrics.gauge("sessions", "The number of sessions, by what they wait for", None, counts);
    let longest = |kind: &'static str| {
        let waits = status.sessions.iter().map(|session| &session.waits);
        let times = waits.filter(|waits| kind_of(waits) == kind).filter_map(since);
        let longest = times.map(|since| status.now.saturating_sub(since)).max();
        (vec![("waits_for", kind.to_string())], longest.unwrap_or_default().as_secs_f64())
    };
    let times = ["value", "memory"].into_iter().map(longest).collect();
    metrics.gauge("longest_wait", "How long a session waits, of those that do", SECONDS, times);
    let at_risk = status.sessions.iter().filter(|session| !session.unkept.is_empty()).count();
    let help = "Sessions whose tensors would be lost if a worker were";
    metrics.number("sessions_at_risk", help, None, at_risk as f64);
    let detached = status.sessions.iter().filter_map(|session| session.named.as_ref());
    let detached = detached.filter(|named| named.is_detached).count();
    metrics.number("sessions_detached", "Sessions without a client", None, detached as f64);
}

/// Returns since when something is awaited, where that is known.
fn since(waits: &Waits) -> Option<Duration> {
    match waits {
        Waits::Value { since, .. } | Waits::Memory { since, .. } => Some(*since),
        _ => None,
    }
}

fn workers(metrics: &mut Metrics, status: &Status) {
    let sample = |worker: &WorkerStatus, value: fn(&WorkerStatus) -> f64| {
        (vec![("worker", escaped(&worker.name))], value(worker))
    };
    let of = |value| status.workers.iter().map(|worker| sample(worker, value)).collect();
    // Workers that have not reported have no samples of these.
    let reported = |value| {
        let workers = status.workers.iter().filter(|worker| worker.report.is_received());
        workers.map(|worker| sample(worker, value)).collect()
    };
    let busy = of(|worker| worker.busy.as_secs_f64());
    metrics.counter("worker_busy", "The time with commands in flight", SECONDS, busy);
    let queue = of(|worker| worker.in_flight as f64);
    metrics.gauge("worker_queue", "The weight of commands in flight", None, queue);
    let draining = of(|worker| f64::from(u8::from(worker.is_draining)));
    metrics.gauge("worker_draining", "1 while the worker hands over what it has", None, draining);
    let operations = reported(|worker| worker.report.operations as f64);
    metrics.counter("worker_operations", "Operations run", None, operations);
    let failed = reported(|worker| worker.report.failed as f64);
    metrics.counter("worker_failed_operations", "Operations that failed", None, failed);
    let memory = reported(|worker| worker.report.bytes as f64);
    metrics.gauge("worker_memory", "The bytes of tensors in memory", BYTES, memory);
    let spilled = reported(|worker| worker.report.spilled_bytes as f64);
    metrics.gauge("worker_spilled", "The bytes of tensors on disk", BYTES, spilled);
    let kept = reported(|worker| worker.report.snapshot_bytes as f64);
    metrics.gauge("worker_snapshots", "The bytes of snapshots in memory", BYTES, kept);
    let on_disk = reported(|worker| worker.report.snapshot_disk_bytes as f64);
    metrics.gauge("worker_snapshots_disk", "The bytes of snapshots on disk", BYTES, on_disk);
}

fn gpus(metrics: &mut Metrics, status: &Status) {
    let of = |value: fn(&GpuReading) -> Option<f64>| {
        let values = status.workers.iter().filter_map(|worker| {
            let gpu = worker.report.gpu.as_ref()?;
            let labels = vec![("worker", escaped(&worker.name)), ("gpu", escaped(&gpu.name))];
            Some((labels, value(gpu.reading.as_ref()?)?))
        });
        values.collect::<Values>()
    };
    let used = of(|reading| Some(f64::from(reading.percent?) / 100.0));
    metrics.gauge("gpu_utilization_ratio", "The part of the time that kernels ran", None, used);
    let memory = of(|reading| Some(reading.memory?.used as f64));
    metrics.gauge("gpu_memory_used", "The memory used by all processes on it", BYTES, memory);
    let total = of(|reading| Some(reading.memory?.total as f64));
    metrics.gauge("gpu_memory", "The memory of a worker's GPU", BYTES, total);
}

fn users(metrics: &mut Metrics, status: &Status) {
    let of = |value: fn(&UserStatus) -> f64| {
        let labels = |user: &UserStatus| {
            let entitlement = &user.entitlement;
            vec![("user", escaped(&entitlement.user)), ("team", escaped(&entitlement.team))]
        };
        status.users.iter().map(|user| (labels(user), value(user))).collect()
    };
    let used = of(|user| user.busy.as_secs_f64());
    metrics.counter("user_device", "The device time that a user's sessions used", SECONDS, used);
    let sessions = of(|user| f64::from(user.sessions));
    metrics.gauge("user_sessions", "The number of a user's sessions", None, sessions);
    let share = of(|user| user.share);
    metrics.gauge("user_share_ratio", "The share if all sessions have work", None, share);
    let memory = of(|user| user.bytes as f64);
    metrics.gauge("user_memory", "The bytes of a user's tensors in memory", BYTES, memory);
}

/// Returns a label's value as it stands between quotes; the encoder writes it as it is.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const SECONDS: Option<Unit> = Some(Unit::Seconds);
const BYTES: Option<Unit> = Some(Unit::Bytes);

/// The kinds of waits.
const WAITS: [&str; 9] =
    ["nothing", "workers", "room", "client", "copies", "operator", "work", "value", "memory"];

fn kind_of(waits: &Waits) -> &'static str {
    match waits {
        Waits::Nothing => "nothing",
        Waits::Workers => "workers",
        Waits::Room => "room",
        Waits::Reader => "client",
        Waits::Copies => "copies",
        Waits::Operator => "operator",
        Waits::Work => "work",
        Waits::Value { .. } => "value",
        Waits::Memory { .. } => "memory",
    }
}

struct Metrics {
    registry: Registry,
}

impl Metrics {
    fn number(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        self.register(name, help, unit, gauge);
    }

    fn total(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        self.register(name, help, unit, counter);
    }

    fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, values: Values) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.register(name, help, unit, family);
    }

    fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, values: Values) {
        let family = Family::<Labels, Counter<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.register(name, help, unit, family);
    }

    fn register(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        metric: impl prometheus_client::registry::Metric,
    ) {
        match unit {
            Some(unit) => self.registry.register_with_unit(name, help, unit, metric),
            None => self.registry.register(name, help, metric),
        }
    }
}
