//! A dispatcher of which a test decides what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gt_ir::SessionId;
use gt_ir::SessionOrigin;
use gt_ir::WorkerId;
use gt_ir::entitlement::Entitlement;
use gt_ir::gpu::{GpuMemory, GpuReading, GpuStatus};
use gt_ir::status::counters::ClusterCounters;
use gt_ir::status::inspection::{ExplainedSteps, Inspection, InstructionCount};
use gt_ir::status::{Report, SessionStatus, Status, UserStatus, Waits, WorkerStatus};
use gt_tools::timeline::{Colour, Party, Row, Span, Timeline};
use gt_tools::trace::Recorded;
use gt_web::feed::StatusSource;
use gt_web::listen::ListenAddress;
use gt_web::recordings::recorder::EventRecorder;
use gt_web::{ActingOptions, Page, PageOptions, WebError};

/// What a status takes of a slow dispatcher: two hundred of them are longer than any pause.
const SLOW: Duration = Duration::from_millis(25);

/// What a test sees of the dispatcher, and decides.
#[derive(Default)]
pub struct Dispatcher {
    pub asked: AtomicUsize,
    pub rested: AtomicUsize,
    pub inspected: AtomicUsize,
    pub is_gone: AtomicBool,
    /// Each status takes [`SLOW`].
    pub is_slow: AtomicBool,
    /// Sessions that its status has.
    pub sessions: AtomicUsize,
    /// The number of recordings that have begun, and whether they go on until they are ended.
    pub recorded: AtomicUsize,
    pub is_held: AtomicBool,
}

struct Fake(Arc<Dispatcher>);

impl StatusSource for Fake {
    fn status(&mut self) -> Result<Status, String> {
        let asked = self.0.asked.fetch_add(1, Ordering::SeqCst);
        if self.0.is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(SLOW);
        }
        if self.0.is_gone.load(Ordering::SeqCst) {
            return Err("the server <is> gone".into());
        }
        Ok(status(asked as u64, self.0.sessions.load(Ordering::SeqCst) as u32))
    }

    fn inspect(
        &mut self,
        session: SessionId,
        explain: bool,
    ) -> Result<Result<Inspection, String>, String> {
        self.0.inspected.fetch_add(1, Ordering::SeqCst);
        if self.0.is_gone.load(Ordering::SeqCst) {
            return Err("the server <is> gone".into());
        }
        let is_known = (session.0 as usize) < self.0.sessions.load(Ordering::SeqCst);
        Ok(is_known.then(|| inspection(session, explain)).ok_or("no such session".into()))
    }

    fn rest(&mut self) {
        self.0.rested.fetch_add(1, Ordering::SeqCst);
    }

    fn title(&self) -> String {
        "server secret-host:9000".into()
    }

    fn recorder(&self) -> Arc<dyn EventRecorder> {
        Arc::new(Fake(self.0.clone()))
    }

    fn reader(&self) -> (String, String) {
        ("ada".into(), "login".into())
    }
}

/// The details of a session.
fn inspection(session: SessionId, explain: bool) -> Inspection {
    let stream = vec![InstructionCount {
        operation: "matmul".into(),
        line: "train.py:12".into(),
        signal: "<i>forward</i>".into(),
        count: 7,
        hot: 5,
        bytes: 4096,
    }];
    Inspection {
        session,
        since: Duration::from_secs(3),
        stream,
        unlisted: 2,
        hot_paths: Vec::new(),
        unlisted_hot_paths: 0,
        held: None,
        explained: explain.then(ExplainedSteps::default),
    }
}

impl EventRecorder for Fake {
    fn record(
        &self,
        duration: Duration,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(Timeline, Recorded), String> {
        self.0.recorded.fetch_add(1, Ordering::SeqCst);
        while go_on(2) && self.0.is_held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.0.is_gone.load(Ordering::SeqCst) {
            return Err("the server <is> gone".into());
        }
        let ended = (duration > Duration::from_secs(30)).then(|| "the program has ended".into());
        let recorded = Recorded { events: 2, dropped: 3, title: self.title(), ended };
        Ok((timeline(self.0.sessions.load(Ordering::SeqCst)), recorded))
    }
}

/// A timeline with a span on the row of each session.
fn timeline(sessions: usize) -> Timeline {
    let row = |number| Row { part: Party::Client, name: format!("<b>train</b>.py #{number}") };
    let span = |number: usize| Span {
        row: number,
        begin: 1.0,
        end: 2.5,
        colour: Colour::Issue,
        name: "issue".into(),
        id: Some(7),
        count: 3,
        bytes: 4096,
        session: Some(number as u64),
        session_name: None,
        steps: None,
        lines: None,
        failed: false,
    };
    let (rows, spans) = (0..sessions).map(|number| (row(number), span(number))).unzip();
    Timeline { rows, spans, ..Timeline::default() }
}

/// A status after some half seconds.
fn status(asked: u64, sessions: u32) -> Status {
    let now = Duration::from_millis(500 * (asked + 1));
    let report = Report {
        engine: "native".into(),
        bytes: 4096,
        operations: 7,
        failed: 1,
        ..Report::default()
    };
    let memory = Some(GpuMemory { used: 1 << 30, total: 4 << 30 });
    let gpu = GpuStatus {
        name: "NVIDIA H200".into(),
        index: Some(0),
        uuid: "GPU-1".into(),
        reading: Some(GpuReading { percent: Some(25), memory }),
    };
    let worker = |number: u32| WorkerStatus {
        id: WorkerId(number),
        number,
        name: format!("w{number}"),
        host: "node7".into(),
        rack: String::new(),
        is_draining: number == 1,
        homes: 1,
        in_flight: 5,
        batches: 1,
        busy_since: None,
        busy: Duration::from_millis(1500),
        report: Report { gpu: (number == 0).then(|| gpu.clone()), ..report.clone() },
    };
    let session = |number: u32| SessionStatus {
        number: SessionId(number),
        name: format!("<b>train</b>.py ada@box #{number}"),
        origin: SessionOrigin {
            program: "train.py".into(),
            user: "ada".into(),
            host: "box".into(),
        },
        slots: vec![(0, "w0".into())],
        entitlement: Entitlement::default(),
        share: 0.5,
        since: Duration::ZERO,
        instructions: 100 * (asked + 1),
        hot_instructions: 40 * (asked + 1),
        open: 3,
        queued: 0,
        bytes: 1024,
        spilled: 0,
        busy: Duration::from_millis(100),
        anticipated: Duration::ZERO,
        anticipations: 0,
        windows: Default::default(),
        recoveries: 0,
        unkept: if number == 0 { "there is one worker".into() } else { String::new() },
        tensors: 2,
        named: None,
        last_error: None,
        waits: match number {
            0 => Waits::Work,
            _ => Waits::Memory {
                worker: "w0".into(),
                bytes: 4096,
                holder: String::new(),
                since: Duration::ZERO,
            },
        },
        behind: Vec::new(),
    };
    let entitlement =
        Entitlement { user: "a\"d\\a".into(), team: "vision".into(), ..Entitlement::default() };
    let user =
        UserStatus { entitlement, sessions, busy: Duration::from_secs(9), ..UserStatus::default() };
    Status {
        now,
        workers: (0..2).map(worker).collect(),
        sessions: (0..sessions).map(session).collect(),
        users: vec![user],
        counters: counters(),
        ..Status::default()
    }
}

/// What was counted: a loss, from which a session was restored in two seconds.
fn counters() -> Box<ClusterCounters> {
    let mut counters =
        Box::new(ClusterCounters { workers_lost: 1, moves: 3, ..Default::default() });
    counters.recoveries.add(Duration::from_secs(2));
    counters
}

/// Serves the page of a dispatcher with two sessions.
pub fn serve() -> (Page, Arc<Dispatcher>) {
    serve_with(|_| {})
}

/// Serves a page with other options.
pub fn serve_with(change: impl FnOnce(&mut PageOptions)) -> (Page, Arc<Dispatcher>) {
    let mut options = page_options();
    change(&mut options);
    let (page, dispatcher) = start(&options, None);
    (page.unwrap(), dispatcher)
}

/// The options of a page at any port.
pub fn page_options() -> PageOptions {
    let listen = ListenAddress::parse("0").unwrap();
    PageOptions { listen, names: Vec::new(), allow_network: false, token_file: None, tunnel: None }
}

/// Serves a page with operators, if there are any.
pub fn start(
    options: &PageOptions,
    acting: Option<ActingOptions>,
) -> (Result<Page, WebError>, Arc<Dispatcher>) {
    let dispatcher = Arc::new(Dispatcher::default());
    dispatcher.sessions.store(2, Ordering::SeqCst);
    (Page::start(options, Fake(dispatcher.clone()), acting), dispatcher)
}

/// Waits until a condition holds, for a limited time.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
