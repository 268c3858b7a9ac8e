//! Questions about single sessions.

use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::actions;
use crate::http::{get, get_as_owner};
use crate::source::serve;

#[test]
fn the_details_of_a_session_are_json() {
    let (page, dispatcher) = serve();
    dispatcher.sessions.store(2, Ordering::SeqCst);
    let answer = get_as_owner(&page, "/sessions/1");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let details: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(details["session"], 1);
    assert_eq!(details["stream"][0]["signal"], "<i>forward</i>");
    assert_eq!((&details["held"], &details["explained"]), (&Value::Null, &Value::Null));
    let explained = get_as_owner(&page, "/sessions/1?explain");
    let details: Value = serde_json::from_str(&explained.body).unwrap();
    assert_eq!(details["explained"]["steps"], serde_json::json!([]));
}

#[test]
fn readers_share_the_answers_of_a_moment() {
    let (page, dispatcher) = serve();
    dispatcher.sessions.store(1, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(get_as_owner(&page, "/sessions/0").status, 200));
        }
    });
    let asked = dispatcher.inspected.load(Ordering::SeqCst);
    assert!((1..20).contains(&asked), "{asked}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let (page, dispatcher) = serve();
    for path in
        ["/sessions/", "/sessions/x", "/sessions/-1", "/sessions/1?x", "/sessions/99999999999"]
    {
        let answer = get_as_owner(&page, path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
    }
    let unknown = get_as_owner(&page, "/sessions/7");
    assert_eq!((unknown.status, &*unknown.body), (404, r#"{"error":"no such session"}"#));
    dispatcher.is_gone.store(true, Ordering::SeqCst);
    let lost = get_as_owner(&page, "/sessions/8");
    assert_eq!((lost.status, &*lost.body), (503, r#"{"error":"the server <is> gone"}"#));
}

#[test]
fn strangers_learn_nothing_and_watchers_of_a_page_with_operators_no_details() {
    let (page, dispatcher) = serve();
    dispatcher.sessions.store(1, Ordering::SeqCst);
    let stranger = get(&page, "/sessions/0", &[]);
    assert_eq!((stranger.status, &*stranger.body), (401, ""));
    let (page, _) = actions::serve();
    assert_eq!(get_as_owner(&page, "/sessions/0").status, 403);
    let token = format!("Bearer {}", actions::operators_token(&page));
    assert_eq!(get(&page, "/sessions/0", &[("Authorization", &token)]).status, 200);
}
