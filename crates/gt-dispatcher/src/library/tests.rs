use bytes::Bytes;
use gt_ir::publication::Audience;

use super::*;

fn publish(request: u64, name: &str, audience: Audience) -> Publish {
    Publish {
        request: RequestId(request),
        name: name.into(),
        audience,
        description: String::new(),
        structure: Bytes::new(),
        tensors: Vec::new(),
        at: 0,
    }
}

/// Publishes under a name, and makes it visible.
fn add(
    library: &mut Publications,
    request: u64,
    user: &str,
    name: &str,
    audience: Audience,
) -> SessionId {
    let begun = library.begin(SessionId(1), (user, "vision"), &publish(request, name, audience));
    let Ok(Begun::Store(id)) = begun else { panic!("it is new") };
    library.get_mut(id).unwrap().stage = PublicationStage::Visible;
    id
}

#[test]
fn names_find_the_newest_version_of_whoever_is_meant() {
    let mut library = Publications::default();
    let first = add(&mut library, 1, "ada", "model", Audience::Team);
    let second = add(&mut library, 2, "ada", "model", Audience::Team);
    let bob = add(&mut library, 3, "bob", "model", Audience::All);
    let private = add(&mut library, 4, "bob", "own", Audience::Users(vec!["eve".into()]));
    let find = |user, team, name| library.find((user, team), name).map(|of| of.id);
    assert_eq!(find("ada", "vision", "model"), Ok(second));
    assert_eq!(find("ada", "vision", "model@1"), Ok(first));
    assert_eq!(find("ada", "vision", "bob/model"), Ok(bob));
    assert_eq!(find("eve", "speech", "model"), Ok(bob), "the other is for a team");
    assert_eq!(find("eve", "speech", "own"), Ok(private));
    let error = find("dan", "vision", "model").unwrap_err();
    assert!(error.contains("'ada/model', 'bob/model'"), "{error}");
    let error = find("ada", "vision", "model@7").unwrap_err();
    assert!(error.contains("its versions are 1, 2"), "{error}");
    let error = find("ada", "vision", "own").unwrap_err();
    assert!(error.contains("published are ada/model, bob/model"), "{error}");
}

#[test]
fn only_owners_withdraw() {
    let mut library = Publications::default();
    let first = add(&mut library, 1, "ada", "model", Audience::All);
    let second = add(&mut library, 2, "ada", "model", Audience::All);
    assert!(library.own("bob", "ada/model").unwrap_err().contains("belongs to ada"));
    assert_eq!(library.own("ada", "model"), Ok(vec![first, second]));
    assert_eq!(library.own("ada", "ada/model@2"), Ok(vec![second]));
}

#[test]
fn a_session_that_is_replayed_publishes_once() {
    let mut library = Publications::default();
    let request = publish(5, "model", Audience::All);
    let begin = |library: &mut Publications| library.begin(SessionId(1), ("", ""), &request);
    let Ok(Begun::Store(id)) = begin(&mut library) else { panic!("it is new") };
    assert!(matches!(begin(&mut library), Ok(Begun::Store(again)) if again == id));
    library.get_mut(id).unwrap().stage = PublicationStage::Visible;
    assert!(matches!(begin(&mut library), Ok(Begun::Done(name)) if name == "model@1"));
    library.remove(id);
    library.note_end((SessionId(1), request.request), |_| true);
    let error = begin(&mut library).err().unwrap();
    assert!(error.contains("it has ended since"), "{error}");
}
