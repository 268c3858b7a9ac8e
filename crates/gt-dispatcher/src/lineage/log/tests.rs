use gt_ir::message::ClientToServer;
use gt_ir::{SourceId, TensorId};

use super::*;

fn add(log: &mut BatchLog, request: u64) -> u64 {
    let (request, line) = (RequestId(request), SourceId(0));
    let fetch = ClientCommand::Fetch { request, tensor: TensorId(1), line };
    let frames =
        codec::encode(&ClientToServer::Stream(vec![ClientCommand::Free(TensorId(2)), fetch]));
    log.add(frames, 0, 2, vec![request])
}

#[test]
fn replay_skips_answered_requests() {
    let mut log = BatchLog::default();
    assert_eq!((add(&mut log, 1), add(&mut log, 2), add(&mut log, 3)), (0, 1, 2));
    log.mark_answered(RequestId(1), None);
    log.mark_answered(RequestId(2), Some(Digest(7)));
    assert_eq!(log.unanswered(), [RequestId(3)]);
    assert!(log.is_answered_before(2) && !log.is_answered_before(3));
    log.mark_planned(0, 4);
    log.rewind();
    let all: Vec<ReplayedBatch> = std::iter::from_fn(|| log.replay()).map(Result::unwrap).collect();
    let counts: Vec<usize> = all.iter().map(|batch| batch.commands.len()).collect();
    assert_eq!(counts, [1, 2, 2], "the second is compared, the third is asked");
    assert_eq!((all[0].slots, all[1].slots, all[0].weight), (Some(SlotCount::Known(4)), None, 0));
    assert!(!log.is_replaying());
}

#[test]
fn requests_answered_before_the_restart_are_removed_when_resent() {
    let mut log = BatchLog::default();
    add(&mut log, 1);
    log.resume(12, FxHashSet::from_iter([RequestId(3)]));
    assert!(log.unanswered().is_empty(), "the first was answered before");
    for (request, received, left) in [(2, 11, 1), (3, 12, 2), (4, 13, 2)] {
        let number = add(&mut log, request);
        let Ok(ClientToServer::Stream(mut batch)) = codec::decode(log.frames(number).unwrap())
        else {
            unreachable!("encoded above");
        };
        log.remove_answered(received, &mut batch);
        assert_eq!(batch.len(), left, "request {request}");
    }
    assert_eq!(log.unanswered(), [RequestId(3), RequestId(4)]);
}

#[test]
fn batches_in_the_base_are_dropped() {
    let mut log = BatchLog::default();
    for request in 1..4 {
        add(&mut log, request);
    }
    log.mark_answered(RequestId(1), Some(Digest(7)));
    log.forget_before(2);
    assert_eq!((log.len(), log.digest(RequestId(1)), log.end()), (1, None, 3));
    log.forget_before(9);
    assert_eq!((log.len(), log.bytes(), add(&mut log, 9)), (0, 0, 3));
}

#[test]
fn requests_of_dropped_batches_are_awaited_until_they_are_answered() {
    let mut log = BatchLog::default();
    let number = add(&mut log, 1);
    log.forget_before(number + 1);
    assert!(!log.is_answered_before(number + 1), "it is in flight");
    log.mark_answered(RequestId(1), None);
    assert!(log.is_answered_before(number + 1));
}
