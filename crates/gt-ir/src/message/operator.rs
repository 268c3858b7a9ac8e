//! Messages between an operator and the server.

use std::time::Duration;

use super::kinds;
use crate::instruction::RequestId;
use crate::record;

/// From an operator to the server. Each request gets one answer.
#[derive(Clone, PartialEq, Debug)]
pub enum OperatorToServer {
    /// The worker of this name or number hands everything over and ends, within this time. With
    /// `force` it ends then in any case, and what only it has is lost.
    Drain { request: RequestId, worker: String, within: Duration, force: bool },
    /// The session of this name or label ends; of a user, if one is named.
    EndSession { request: RequestId, user: Option<String>, name: String },
    /// The weight of a user among others, in place of the policy's, or of the session of this name or
    /// label among those of its user; `None` is the policy's again, or 1.
    Weigh { request: RequestId, user: Option<String>, name: Option<String>, weight: Option<u32> },
    /// The sessions of a user, or the one of this name or label, pause or resume.
    Pause { request: RequestId, user: Option<String>, name: Option<String>, is_paused: bool },
}

record!(enum OperatorToServer {
    1 => Drain { request, worker, within, force },
    2 => EndSession { request, user, name },
    3 => Weigh { request, user, name, weight },
    4 => Pause { request, user, name, is_paused },
});

impl OperatorToServer {
    /// Returns the number of the request.
    pub fn request(&self) -> RequestId {
        match self {
            OperatorToServer::Drain { request, .. }
            | OperatorToServer::EndSession { request, .. }
            | OperatorToServer::Weigh { request, .. }
            | OperatorToServer::Pause { request, .. } => *request,
        }
    }
}

/// From the server to an operator.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerToOperator {
    /// A request is done (`Ok` with what was done, for people), or refused with a reason.
    Done { request: RequestId, result: Result<String, String> },
}

record!(enum ServerToOperator { 1 => Done { request, result } });

kinds!(OperatorToServer, ServerToOperator);
