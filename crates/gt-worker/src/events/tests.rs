use gt_ir::gpu::GpuReading;

use super::*;

/// The statistics of a worker whose GPU is used so much.
fn stats(percent: u8) -> WorkerStats {
    let reading = Some(GpuReading { percent: Some(percent), memory: None });
    let gpu = GpuStatus { name: "a GPU".into(), index: None, uuid: "GPU-1".into(), reading };
    WorkerStats { gpu: Some(gpu), ..WorkerStats::default() }
}

/// Emits the event of reading a value, with times in milliseconds.
fn run(events: &mut Emitter, begin: u64, end: u64) {
    let (stats, at) = (WorkerStats::default(), Duration::from_millis);
    let subject = Subject { what: What::Fetch, signal: 0, tensor: gt_ir::TensorId(1) };
    events.begin(EventKind::Run, subject, at(begin), &stats);
    events.end(at(end), &stats);
}

#[test]
fn an_idle_worker_reports_a_new_reading_of_its_gpu_once_and_to_watchers_alone() {
    let mut events = Emitter::new();
    let reports = |events: &mut Emitter, second: u64, percent: u8| {
        let sent = events.send(Duration::from_secs(second), Urgency::Idle, &stats(percent));
        let report = |message| match message {
            WorkerToServer::Report(report) => report.gpu.and_then(|gpu| gpu.reading?.percent),
            other => panic!("{other:?}"),
        };
        sent.into_iter().map(report).collect::<Vec<_>>()
    };
    assert_eq!(reports(&mut events, 1, 50), []);
    events.observe(EmitLevel::Reports, Duration::ZERO, Duration::ZERO);
    assert_eq!(reports(&mut events, 2, 50), [Some(50)]);
    assert_eq!(reports(&mut events, 3, 50), []);
    assert_eq!(reports(&mut events, 4, 51), [Some(51)]);
    events.observe(EmitLevel::Nothing, Duration::ZERO, Duration::ZERO);
    assert_eq!(reports(&mut events, 5, 52), []);
}

#[test]
fn reports_without_events_are_seldom_unless_a_watcher_asks() {
    let mut events = Emitter::new();
    let at = Duration::from_millis;
    let stats = WorkerStats::default();
    events.observe(EmitLevel::Reports, at(1000), at(1000));
    let is_report = |sent: &[WorkerToServer]| matches!(sent, [WorkerToServer::Report(_)]);
    // The intervals are doubled up to half a second.
    let mut now = 1000;
    for interval in [100, 200, 400, 500, 500] {
        run(&mut events, now - 2, now);
        assert!(is_report(&events.send(at(now), Urgency::Idle, &stats)));
        assert!(!events.is_due(at(now + interval - 1), Urgency::Idle));
        assert_eq!(events.due_in(at(now + 40)), at(interval - 40));
        now += interval;
        assert!(events.is_due(at(now), Urgency::Busy));
    }
    assert!(events.send(at(now), Urgency::Asked, &stats).is_empty(), "there is nothing new");
    run(&mut events, now, now + 1);
    let sent = events.send(at(now + 1), Urgency::Busy, &stats);
    assert!(is_report(&sent));
    // Who asks gets one at once, with all that was done.
    run(&mut events, now + 1, now + 2);
    let sent = events.send(at(now + 2), Urgency::Asked, &stats);
    let [WorkerToServer::Report(report)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(report.busy[Activity::Read as usize], at(5 * 2 + 1 + 1));
}

#[test]
fn events_are_sent_at_once_and_dropped_when_they_are_no_longer_wanted() {
    let mut events = Emitter::new();
    let at = Duration::from_millis;
    let stats = WorkerStats::default();
    events.observe(EmitLevel::Events, at(1000), at(1000));
    run(&mut events, 1001, 1003);
    let sent = events.send(at(1003), Urgency::Idle, &stats);
    assert!(matches!(&sent[..], [_, WorkerToServer::Events { events, .. }] if events.len() == 1));
    run(&mut events, 1004, 1008);
    events.observe(EmitLevel::Reports, at(1008), at(1008));
    let sent = events.send(at(1009), Urgency::Asked, &stats);
    let [WorkerToServer::Report(report)] = &sent[..] else { panic!("{sent:?}") };
    // Its counters go on.
    assert_eq!((report.since, report.busy[Activity::Read as usize]), (at(1000), at(6)));
}
