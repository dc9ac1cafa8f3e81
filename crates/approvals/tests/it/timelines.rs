//! The exact times of events, to the millisecond.

use switchboard_approvals::{
    Action, Ask, Broker, DecisionError, Input, Kind, Outcome,
    broker::{BYTES_MAX, Change, KEEP, OPEN_EACH, OPEN_MAX, REQUEST_BYTES, SHARES},
};
use switchboard_wire::Raw;

use crate::world::{Seen, World, ask};

fn told(world: &World) -> Vec<(u64, Change)> {
    let told = world.seen.iter().filter_map(|(at, seen)| match seen {
        Seen::Told(why, _) => Some((*at, *why)),
        _ => None,
    });
    told.collect()
}

fn delivered(world: &World) -> Vec<(u64, &Outcome)> {
    let delivered = world.seen.iter().filter_map(|(at, seen)| match seen {
        Seen::Delivered(_, outcome) => Some((*at, outcome)),
        _ => None,
    });
    delivered.collect()
}

#[test]
fn answer_before_escalation_is_delivered_immediately() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.pass(5_000);
    world.decide(9, &id, Action::Approve);
    world.pass(1_000_000);
    assert_eq!(
        told(&world),
        [(0, Change::Created), (5_000, Change::Decided)]
    );
    assert_eq!(delivered(&world), [(5_000, &Outcome::Answer(None))]);
    assert_eq!(world.disk[&id].status.as_str(), "approved");
}

#[test]
fn escalated_request_can_still_be_answered() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.pass(60_000);
    world.decide(9, &id, Action::Reject);
    world.pass(1_000_000);
    let expected = [
        (0, Change::Created),
        (30_000, Change::Escalated),
        (60_000, Change::Decided),
    ];
    assert_eq!(told(&world), expected);
    assert_eq!(delivered(&world), [(60_000, &Outcome::Rejected(None))]);
}

#[test]
fn timed_out_request_cannot_be_answered() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.pass(299_999);
    assert!(delivered(&world).is_empty());
    world.pass(300_000);
    let expected = [
        (0, Change::Created),
        (30_000, Change::Escalated),
        (300_000, Change::Expired),
    ];
    assert_eq!(told(&world), expected);
    assert_eq!(delivered(&world), [(300_000, &Outcome::TimedOut(300_000))]);
    assert_eq!(world.disk[&id].status.as_str(), "timed_out");
    world.decide(9, &id, Action::Approve);
    assert_eq!(
        world.seen.last(),
        Some(&(300_000, Seen::Replied(9, Err(DecisionError::Unknown))))
    );
    assert!(world.generating.is_empty());
    assert_eq!(world.broker.wake(), None);
}

#[test]
fn decision_after_the_deadline_is_late_without_tick() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.now = 300_000;
    world.decide(9, &id, Action::Approve);
    world.slow_disk = false;
    let louder = world.writing.remove(0);
    assert_eq!(louder.status.as_str(), "timed_out");
    world.write(&louder, true);
    let Seen::Replied(9, Err(DecisionError::Late(winner))) = &world.seen.last().unwrap().1 else {
        panic!("{:?}", world.seen);
    };
    assert_eq!(winner.status.as_str(), "timed_out");
}

#[test]
fn second_approver_learns_the_first_decision() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.decide(1, &id, Action::Approve);
    world.decide(2, &id, Action::Reject);
    world.slow_disk = false;
    let first = world.writing.remove(0);
    world.write(&first, true);
    let Seen::Replied(2, Err(DecisionError::Late(winner))) = &world.seen.last().unwrap().1 else {
        panic!("{:?}", world.seen);
    };
    assert_eq!(&*winner.decided.as_ref().unwrap().by, "p1");
    assert_eq!(delivered(&world).len(), 1);
}

#[test]
fn asker_that_leaves_withdraws_its_request() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.input(Input::Leave(1));
    world.decide(9, &id, Action::Approve);
    assert_eq!(world.disk[&id].status.as_str(), "withdrawn");
    assert!(world.generating.is_empty());
    assert_eq!(told(&world), [(0, Change::Created), (0, Change::Withdrawn)]);
}

#[test]
fn failed_write_is_not_announced() {
    let mut world = World::new();
    world.slow_disk = true;
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    assert!(world.seen.is_empty());
    let record = world.writing.remove(0);
    world.write(&record, false);
    let Outcome::Unavailable(why) = delivered(&world)[0].1 else {
        panic!("{:?}", world.seen);
    };
    assert_eq!(&**why, "the disk is full");
    assert!(told(&world).is_empty());
    world.decide(9, &id, Action::Approve);
    assert_eq!(
        world.seen.last().unwrap().1,
        Seen::Replied(9, Err(DecisionError::Unknown))
    );
}

#[test]
fn decision_that_is_not_stored_does_not_count() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.decide(9, &id, Action::Approve);
    let record = world.writing.remove(0);
    world.write(&record, false);
    assert!(matches!(
        world.seen.last().unwrap().1,
        Seen::Replied(9, Err(DecisionError::Unavailable(_)))
    ));
    assert!(delivered(&world).is_empty());
    world.slow_disk = false;
    world.decide(9, &id, Action::Reject);
    assert_eq!(delivered(&world), [(0, &Outcome::Rejected(None))]);
}

#[test]
fn failing_disk_does_not_delay_the_timeout() {
    let mut world = World::new();
    world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.now = 300_000;
    world.input(Input::Tick);
    let record = world.writing.remove(0);
    world.write(&record, false);
    assert_eq!(delivered(&world), [(300_000, &Outcome::TimedOut(300_000))]);
    world.slow_disk = false;
    world.pass(301_000);
    assert_eq!(world.disk[&record.id].status.as_str(), "timed_out");
    assert_eq!(delivered(&world).len(), 1);
}

#[test]
fn orphaned_answer_is_delivered_once() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.pass(1_000);
    world.crash();
    assert_eq!(world.disk[&id].status.as_str(), "orphaned");
    world.decide(9, &id, Action::Approve);
    assert!(delivered(&world).is_empty());
    world.raise(2, ask(Kind::ToolCall, "other"));
    assert!(
        delivered(&world).is_empty(),
        "another question is another question"
    );
    world.crash();
    world.raise(3, ask(Kind::ToolCall, "k"));
    assert_eq!(delivered(&world), [(1_000, &Outcome::Answer(None))]);
    world.raise(4, ask(Kind::ToolCall, "k"));
    assert_eq!(delivered(&world).len(), 1, "an answer is used once");
}

#[test]
fn kept_answer_expires() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.crash();
    world.decide(9, &id, Action::Approve);
    world.pass(KEEP);
    assert!(!world.disk[&id].is_live());
    world.raise(2, ask(Kind::ToolCall, "k"));
    assert!(delivered(&world).is_empty());
}

#[test]
fn repeated_request_continues_after_a_restart() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Elicitation, "k"));
    world.pass(10_000);
    world.crash();
    let again = world.raise(2, ask(Kind::Elicitation, "k"));
    assert!(!world.disk.contains_key(&again));
    assert_eq!(world.disk[&id].status.as_str(), "pending");
    world.pass(20_000);
    world.decide(9, &id, Action::Decline);
    let declined = Raw::parse(r#"{"action":"decline"}"#).unwrap();
    assert_eq!(
        delivered(&world),
        [(20_000, &Outcome::Answer(Some(declined)))]
    );
}

#[test]
fn model_is_not_called_again_after_crash() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.decide(8, &id, Action::Approve);
    world.decide(9, &id, Action::Approve);
    assert_eq!(world.generating.len(), 1);
    world.crash();
    assert!(world.generating.is_empty());
    assert_eq!(world.disk[&id].status.as_str(), "failed");
    world.decide(9, &id, Action::Approve);
    assert!(world.generating.is_empty());
}

#[test]
fn only_requests_without_an_asker_are_withdrawn() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Trust, "k"));
    world.input(Input::Withdraw(id.clone()));
    assert_eq!(world.disk[&id].status.as_str(), "pending");
    world.crash();
    assert_eq!(world.disk[&id].status.as_str(), "orphaned");
    world.input(Input::Withdraw(id.clone()));
    assert_eq!(world.disk[&id].status.as_str(), "withdrawn");
    assert_eq!(world.broker.waiting(), 0);
    // A request that is made again after the restart stays.
    let id = world.raise(2, ask(Kind::Trust, "l"));
    world.crash();
    world.raise(3, ask(Kind::Trust, "l"));
    world.input(Input::Withdraw(id.clone()));
    assert_eq!(world.disk[&id].status.as_str(), "pending");
}

#[test]
fn model_response_is_reviewed_if_configured() {
    let mut world = World::new();
    world.broker.set_generation(true, true);
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.decide(8, &id, Action::Approve);
    let draft =
        Raw::parse(r#"{"role":"assistant","content":{"type":"text","text":"raw"},"model":"m"}"#)
            .unwrap();
    let usage = switchboard_approvals::Usage {
        model: "m".into(),
        input_tokens: Some(1),
        output_tokens: Some(2),
        cost: None,
        seconds: 0.5,
    };
    world.input(Input::Generated {
        id: id.clone(),
        result: Ok((draft, usage)),
    });
    assert_eq!(world.disk[&id].status.as_str(), "reviewing");
    assert!(delivered(&world).is_empty());
    let mut decision = switchboard_approvals::Decision::new(Action::Approve, "p");
    decision.edits = Some(Raw::parse(r#"{"text":"better"}"#).unwrap());
    world.input(Input::Decide {
        decider: 9,
        id: id.clone(),
        decision,
    });
    let Outcome::Answer(Some(answer)) = delivered(&world)[0].1 else {
        panic!()
    };
    assert_eq!(
        answer.as_str(),
        r#"{"role":"assistant","content":{"type":"text","text":"better"},"model":"m"}"#
    );
}

fn reviewed(world: &mut World, edits: &'static str) -> std::sync::Arc<str> {
    world.broker.set_generation(true, true);
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    let mut decision = switchboard_approvals::Decision::new(Action::Approve, "first");
    decision.edits = Some(Raw::parse(edits).unwrap());
    world.input(Input::Decide {
        decider: 8,
        id: id.clone(),
        decision,
    });
    let draft = r#"{"role":"assistant","content":{"type":"text","text":"raw"},"model":"m"}"#;
    let usage = switchboard_approvals::Usage {
        model: "m".into(),
        input_tokens: None,
        output_tokens: None,
        cost: None,
        seconds: 0.5,
    };
    world.input(Input::Generated {
        id: id.clone(),
        result: Ok((Raw::parse(draft).unwrap(), usage)),
    });
    id
}

#[test]
fn first_approval_stays_on_record_after_review() {
    let mut world = World::new();
    let id = reviewed(&mut world, r#"{"maxTokens":7}"#);
    let mut decision = switchboard_approvals::Decision::new(Action::Approve, "second");
    decision.edits = Some(Raw::parse(r#"{"text":"better"}"#).unwrap());
    world.input(Input::Decide {
        decider: 9,
        id: id.clone(),
        decision,
    });
    let record = &world.disk[&id];
    let first = record.agreed.as_ref().unwrap();
    assert_eq!(&*first.by, "first");
    assert_eq!(first.edits.as_ref().unwrap().as_str(), r#"{"maxTokens":7}"#);
    let last = record.decided.as_ref().unwrap();
    assert_eq!(&*last.by, "second");
    let edits = last.edits.as_ref().unwrap();
    assert_eq!(edits.as_str(), r#"{"text":"better"}"#);
    // The model gets the request with the changes of the first approval.
    let (request, _) = record.effective_request();
    assert_eq!(request.member("maxTokens").unwrap().as_str(), "7");
    assert!(request.member("text").is_none());
}

#[test]
fn review_escalates_like_a_request() {
    let mut world = World::new();
    world.pass(40_000);
    let id = reviewed(&mut world, "{}");
    world.pass(80_000);
    let louder: Vec<_> = told(&world)
        .into_iter()
        .filter(|(_, why)| *why == Change::Escalated)
        .collect();
    assert_eq!(louder, [(70_000, Change::Escalated)]);
    assert_eq!(world.disk[&id].status.as_str(), "reviewing");
    world.pass(1_000_000);
    assert_eq!(delivered(&world).len(), 1);
    assert_eq!(delivered(&world)[0].0, 310_000);
}

#[test]
fn requests_wait_until_the_disk_is_loaded() {
    let mut world = World::new();
    world.broker = Broker::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.raise(2, ask(Kind::ToolCall, "l"));
    world.input(Input::Leave(2));
    assert!(world.disk.is_empty());
    world.input(Input::Loaded(Vec::new()));
    assert_eq!(world.disk.len(), 1);
    assert_eq!(told(&world), [(0, Change::Created)]);
    assert_eq!(world.disk[&id].status.as_str(), "pending");
}

#[test]
fn closed_request_makes_room_at_its_server() {
    let mut world = World::new();
    let first = world.raise(0, ask(Kind::ToolCall, "0"));
    for n in 1..OPEN_EACH as u64 {
        world.raise(n, ask(Kind::ToolCall, &n.to_string()));
    }
    assert_eq!(world.broker.waiting(), OPEN_EACH);
    let full = |world: &World| {
        let unavailable = |outcome: &Outcome| matches!(outcome, Outcome::Unavailable(_));
        let outcomes = delivered(world).into_iter();
        outcomes.filter(|(_, outcome)| unavailable(outcome)).count()
    };
    world.raise(10_001, ask(Kind::ToolCall, "more"));
    assert_eq!(full(&world), 1);
    let mut other = ask(Kind::ToolCall, "more");
    other.server = "t".into();
    world.raise(10_002, other);
    world.decide(99_999, &first, Action::Approve);
    world.raise(10_003, ask(Kind::ToolCall, "more"));
    assert_eq!(full(&world), 1);
    assert_eq!(world.broker.waiting(), OPEN_EACH + 1);
}

/// The askers that were refused.
fn turned_away(world: &World) -> Vec<u64> {
    let away = world.seen.iter().filter_map(|(_, seen)| match seen {
        Seen::Delivered(asker, Outcome::Unavailable(_)) => Some(*asker),
        _ => None,
    });
    away.collect()
}

/// A request of this client and length.
fn long(client: u64, asker: u64, bytes: usize) -> Ask {
    let mut ask = ask(Kind::ToolCall, &format!("{client} {asker}"));
    ask.holder.client = client;
    let arguments = Raw::object([("a", Raw::string(&"x".repeat(bytes)))]);
    ask.request = Raw::object([("name", Raw::string("t")), ("arguments", arguments)]);
    ask
}

#[test]
fn one_client_leaves_room_for_the_others() {
    let mut world = World::new();
    for asker in 1..=18 {
        world.raise(asker, long(7, asker, 900_000));
    }
    let fit = (BYTES_MAX / SHARES / 900_000) as u64;
    assert_eq!(turned_away(&world), (fit + 1..=18).collect::<Vec<_>>());
    let before = turned_away(&world).len();
    world.raise(100, long(8, 100, 900_000));
    assert_eq!(turned_away(&world).len(), before);
    // A client that disconnects makes room, even for itself.
    world.input(Input::Leave(1));
    world.raise(101, long(7, 101, 900_000));
    assert_eq!(turned_away(&world).len(), before);
    assert_eq!(world.broker.waiting() as u64, fit + 1);
}

#[test]
fn requests_of_one_client_are_counted() {
    let mut world = World::new();
    let most = (OPEN_MAX / SHARES) as u64;
    for asker in 1..=most + 1 {
        world.raise(asker, long(7, asker, 1));
    }
    assert_eq!(turned_away(&world), [most + 1]);
}

#[test]
fn clients_over_http_leave_room_for_pipes() {
    let mut world = World::new();
    let web = |client: u64| {
        let mut ask = long(client, client, 1);
        ask.holder.is_web = true;
        ask.server = client.to_string().into();
        ask
    };
    let most = (OPEN_MAX / 2) as u64;
    for client in 1..=most + 1 {
        world.raise(client, web(client));
    }
    assert_eq!(turned_away(&world), [most + 1]);
    world.raise(most + 2, long(most + 2, most + 2, 1));
    assert_eq!(turned_away(&world), [most + 1]);
    world.input(Input::Leave(1));
    world.raise(most + 3, web(most + 3));
    assert_eq!(turned_away(&world), [most + 1]);
}

#[test]
fn clients_over_http_leave_room_at_one_server() {
    let mut world = World::new();
    let of_one_server = |client: u64, is_web: bool| {
        let mut ask = long(client, client, 1_000_000);
        ask.holder.is_web = is_web;
        ask.server = "one".into();
        ask
    };
    for client in 1..=16 {
        world.raise(client, of_one_server(client, true));
    }
    let refused = turned_away(&world).len();
    assert!((8..16).contains(&refused), "{refused}");
    world.raise(17, of_one_server(17, false));
    assert_eq!(turned_away(&world).len(), refused);
}

#[test]
fn http_client_leaves_room_at_a_server() {
    let mut world = World::new();
    let web = |client: u64, asker: u64| {
        let mut ask = long(client, asker, 1);
        ask.holder.is_web = true;
        ask
    };
    let most = (OPEN_EACH / 8) as u64;
    for asker in 1..=most + 1 {
        world.raise(asker, web(7, asker));
    }
    assert_eq!(turned_away(&world), [most + 1]);
    world.raise(most + 2, web(8, most + 2));
    assert_eq!(turned_away(&world), [most + 1]);
    world.input(Input::Leave(1));
    world.raise(most + 3, web(7, most + 3));
    assert_eq!(turned_away(&world), [most + 1]);
}

#[test]
fn strangers_leave_room_for_clients_with_token() {
    let mut world = World::new();
    let web = |client: u64, is_stranger: bool| {
        let mut ask = long(client, client, 1);
        ask.holder.is_web = true;
        ask.holder.is_stranger = is_stranger;
        ask
    };
    let most = (OPEN_EACH / 4) as u64;
    for client in 1..=most + 1 {
        world.raise(client, web(client, true));
    }
    assert_eq!(turned_away(&world), [most + 1]);
    world.raise(most + 2, web(most + 2, false));
    assert_eq!(turned_away(&world), [most + 1]);
}

#[test]
fn server_questions_use_no_client_room() {
    let mut world = World::new();
    for asker in 1..=2 {
        let mut question = ask(Kind::Sampling, &format!("q{asker}"));
        question.holder.client = 7;
        let text = "x".repeat(4_000_000);
        question.request = Raw::object([("systemPrompt", Raw::string(&text))]);
        world.raise(asker, question);
    }
    assert!(turned_away(&world).is_empty());
    let mut call = long(7, 3, 900_000);
    call.server = "other".into();
    world.raise(3, call);
    assert!(turned_away(&world).is_empty());
    world.input(Input::Leave(1));
    world.input(Input::Leave(2));
    assert_eq!(world.broker.waiting(), 1);
}

#[test]
fn request_that_is_too_long_is_refused() {
    let mut world = World::new();
    world.raise(1, long(7, 1, REQUEST_BYTES));
    assert_eq!(turned_away(&world), [1]);
    assert_eq!(world.broker.waiting(), 0);
}
