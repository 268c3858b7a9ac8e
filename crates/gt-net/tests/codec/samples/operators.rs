//! Messages of operators.

use std::time::Duration;

use gt_ir::message::{OperatorToServer, ServerToOperator};

use super::REQUEST;

pub fn operator_to_server() -> Vec<OperatorToServer> {
    let (request, user) = (REQUEST, Some("ada".to_string()));
    let within = Duration::from_secs(60);
    vec![
        OperatorToServer::Drain { request, worker: "w3".into(), within, force: true },
        OperatorToServer::EndSession { request, user: user.clone(), name: "run-12".into() },
        OperatorToServer::Weigh {
            request,
            user: Some("ada".into()),
            name: None,
            weight: Some(300),
        },
        OperatorToServer::Pause { request, user, name: None, is_paused: true },
    ]
}

pub fn server_to_operator() -> Vec<ServerToOperator> {
    let request = REQUEST;
    vec![
        ServerToOperator::Done { request, result: Ok("drained".into()) },
        ServerToOperator::Done { request, result: Err("it is the last".into()) },
    ]
}
