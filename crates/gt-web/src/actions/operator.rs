//! Who does what the page's operators ask: an operator of the server, as the commands are.

use gt::drivers::operate::{self, OperatorRequest};
use gt_tools::ToolError;
use gt_tools::find::WatchTarget;

/// Does what a page's operators ask. It may wait, for a limited time.
pub trait PageOperator: Send + Sync + 'static {
    /// The user on whose sessions alone it acts; none for all.
    fn user(&self) -> Option<&str>;

    /// Has a request done, for the reader of the page at an address. Returns what was done.
    ///
    /// # Errors
    /// It was not done, for a reason; or `interrupt` has returned true.
    fn operate(
        &self,
        reader: &str,
        request: OperatorRequest,
        interrupt: &mut dyn FnMut() -> bool,
    ) -> Result<String, String>;
}

/// Connects to a server as an operator for each request, with the key of the page.
pub struct ServerOperator {
    target: WatchTarget,
    user: Option<String>,
}

impl ServerOperator {
    /// The operator of the server that a target names, whose cluster key it has.
    pub fn of_own_server(target: WatchTarget) -> ServerOperator {
        ServerOperator { target, user: None }
    }

    /// The operator of the server that a target names.
    ///
    /// # Errors
    /// No server is found, or the key is for another role.
    pub fn new(target: WatchTarget) -> Result<ServerOperator, ToolError> {
        let user = gt_tools::operate::check(&target)?;
        Ok(ServerOperator { target, user })
    }
}

impl PageOperator for ServerOperator {
    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn operate(
        &self,
        reader: &str,
        request: OperatorRequest,
        interrupt: &mut dyn FnMut() -> bool,
    ) -> Result<String, String> {
        let name = format!("{}, by its web page for {reader}", operate::name());
        match gt_tools::operate::run(&self.target, name, request, interrupt) {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err("the page has ended; the server may still do it".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}
