use gt_ir::gpu::GpuReading;

use super::*;

/// The statistics of a worker whose GPU is used so much.
fn stats(percent: u8) -> WorkerStats {
    let reading = Some(GpuReading { percent: Some(percent), memory: None });
    let gpu = GpuStatus { name: "a GPU".into(), index: None, uuid: "GPU-1".into(), reading };
    WorkerStats { gpu: Some(gpu), ..WorkerStats::default() }
}

#[test]
fn an_idle_worker_reports_a_new_reading_of_its_gpu_once_and_to_watchers_alone() {
    let mut events = Emitter::new();
    let reports = |events: &mut Emitter, second: u64, percent: u8| {
        let sent = events.send(Duration::from_secs(second), true, &stats(percent));
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
fn reports_without_events_are_seldom_and_those_with_events_at_once() {
    let mut events = Emitter::new();
    let at = Duration::from_millis;
    let stats = WorkerStats::default();
    let run = |events: &mut Emitter, begin: u64, end: u64| {
        let subject = Subject { what: What::Fetch, signal: 0, tensor: gt_ir::TensorId(1) };
        events.begin(EventKind::Run, subject, at(begin), &stats);
        events.end(at(end), &stats);
    };
    events.observe(EmitLevel::Reports, at(1000), at(1000));
    let is_report = |sent: &[WorkerToServer]| matches!(sent, [WorkerToServer::Report(_)]);
    // The intervals are doubled up to half a second.
    let mut now = 1000;
    for interval in [100, 200, 400, 500, 500] {
        run(&mut events, now - 2, now);
        assert!(is_report(&events.send(at(now), true, &stats)));
        assert!(!events.is_due(at(now + interval - 1), true));
        assert_eq!(events.due_in(at(now + 40)), at(interval - 40));
        now += interval;
        assert!(events.is_due(at(now), false));
    }
    let sent = events.send(at(now), true, &stats);
    assert!(sent.is_empty(), "there is nothing new");
    run(&mut events, now, now + 1);
    let sent = events.send(at(now + 1), false, &stats);
    let [WorkerToServer::Report(report)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(report.busy[Activity::Read as usize], at(5 * 2 + 1));
    // Events are sent at once.
    events.observe(EmitLevel::Events, at(now + 2), at(now + 2));
    run(&mut events, now + 3, now + 4);
    let sent = events.send(at(now + 4), true, &stats);
    assert!(matches!(&sent[..], [_, WorkerToServer::Events { events, .. }] if events.len() == 1));
}
