//! What a dispatcher makes of streams, as the instruction log writes it, compared with the texts in
//! `streams/`. `GT_WRITE_STREAMS=1` rewrites them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_dispatcher::log::Log;
use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::message::{Message, Role};
use gt_ir::{ClientCommand, Fabric};

use super::hello;

const CLIENT: PeerId = PeerId(100);

/// A dispatcher with workers that never finish anything, and its log.
pub struct Golden {
    pub dispatcher: Dispatcher,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Golden {
    pub fn new(workers: usize) -> Golden {
        Golden::with(Limits::default(), vec![None; workers])
    }

    /// With workers that have these fabrics.
    pub fn with(limits: Limits, workers: Vec<Option<Fabric>>) -> Golden {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&lines);
        let log = Log::new(Box::new(move |line| sink.lock().unwrap().push(line.to_string())));
        let mut dispatcher = Dispatcher::new(String::new(), limits, Some(log));
        for (worker, fabric) in workers.into_iter().enumerate() {
            let message = hello(Role::Worker, format!("w{worker}"), fabric);
            dispatcher.handle(Duration::ZERO, PeerId(1 + worker as u64), Role::Worker, message);
        }
        let message = hello(Role::Client, "client".into(), None);
        dispatcher.handle(Duration::ZERO, CLIENT, Role::Client, message);
        Golden { dispatcher, lines }
    }

    /// Compares the log of these batches with the text of this name.
    pub fn check(mut self, name: &str, batches: impl IntoIterator<Item = Vec<ClientCommand>>) {
        for batch in batches {
            self.dispatcher.handle(Duration::ZERO, CLIENT, Role::Client, Message::Stream(batch));
        }
        let got = self.lines.lock().unwrap().join("\n") + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name);
        if std::env::var_os("GT_WRITE_STREAMS").is_some() {
            std::fs::write(&path, &got).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(got, want, "{name}: GT_WRITE_STREAMS=1 writes it anew");
    }
}
