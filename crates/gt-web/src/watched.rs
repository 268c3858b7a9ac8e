//! The dispatcher that a page watches: a server, or a program that runs its own workers.

use std::sync::Arc;

use gt::drivers::watch::Watcher;
use gt::net::NetError;
use gt_ir::SessionId;
use gt_ir::status::Status;
use gt_ir::status::inspection::Inspection;
use gt_tools::ToolError;
use gt_tools::find::WatchTarget;

use crate::feed::StatusSource;
use crate::recordings::recorder::{DispatcherRecorder, EventRecorder};

/// A dispatcher, with the connection to it while there is one.
pub struct WatchedDispatcher {
    target: WatchTarget,
    watcher: Option<Watcher>,
    title: String,
    user: String,
    login: String,
}

impl WatchedDispatcher {
    /// The dispatcher that a target names, which need not run yet.
    pub fn new(target: WatchTarget) -> WatchedDispatcher {
        let title = match &target.address {
            Some(address) => format!("server {address}"),
            None => String::new(),
        };
        let login = gt::drivers::origin(None).user;
        WatchedDispatcher { target, watcher: None, title, user: String::new(), login }
    }

    /// Connects to it once.
    ///
    /// # Errors
    /// No dispatcher or several are found, or it cannot be reached.
    pub fn check(&mut self) -> Result<(), ToolError> {
        self.connect().map(drop)
    }

    fn connect(&mut self) -> Result<Watcher, ToolError> {
        let watcher = self.target.watch()?;
        (self.title, self.user) = (watcher.title().into(), watcher.user().into());
        Ok(watcher)
    }

    /// Asks by the connection, which is opened if need be, and dropped if it does not answer.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Watcher) -> Result<T, NetError>,
    ) -> Result<T, String> {
        let connected = match self.watcher.take() {
            Some(watcher) => Ok(watcher),
            None => self.connect(),
        };
        let mut watcher = connected.map_err(|error| error.to_string())?;
        let answer = question(&mut watcher).map_err(|error| error.to_string())?;
        self.watcher = Some(watcher);
        Ok(answer)
    }
}

impl StatusSource for WatchedDispatcher {
    fn inspect(
        &mut self,
        session: SessionId,
        explain: bool,
    ) -> Result<Result<Inspection, String>, String> {
        self.ask(|watcher| watcher.inspect(session, explain))
    }

    fn status(&mut self) -> Result<Status, String> {
        self.ask(Watcher::status)
    }

    fn rest(&mut self) {
        self.watcher = None;
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn recorder(&self) -> Arc<dyn EventRecorder> {
        Arc::new(DispatcherRecorder(self.target.clone()))
    }

    fn reader(&self) -> (String, String) {
        (self.user.clone(), self.login.clone())
    }
}
