//! Requests of a server to its client, in the form of either revision.

use serde_json::{Value, json};

use crate::{
    client::{
        Client, Person, Reason, Setup, call_of, check,
        person::{ROOT, SAMPLED},
        text_of,
    },
    revision::Revision,
};

/// The questions of this method that were asked during `act`.
fn asked(
    client: &mut Client,
    method: &str,
    act: impl FnOnce(&mut Client) -> Result<Value, Reason>,
) -> Result<(Vec<Value>, Value), Reason> {
    let before = client.asked.len();
    let result = act(client)?;
    let questions: Vec<_> = client.asked[before..]
        .iter()
        .filter(|(asked, _)| asked == method)
        .map(|(_, params)| params.clone())
        .collect();
    check!(!questions.is_empty(), "{method} was never asked: {result}");
    Ok((questions, result))
}

pub(super) fn form(client: &mut Client) -> Result<(), Reason> {
    let arguments = json!({ "message": "Who goes there?" });
    let (questions, result) = asked(client, "elicitation/create", |client| {
        client.call("test_elicitation", arguments.clone())
    })?;
    check!(questions.len() == 1, "asked {} times", questions.len());
    let question = &questions[0];
    check!(question["message"] == "Who goes there?", "{question}");
    check!(
        question["requestedSchema"]["type"] == "object",
        "{question}"
    );
    let text = text_of(&result).unwrap_or_default();
    check!(
        text.contains("accept") && text.contains("octo"),
        "the answer was lost: {result}"
    );

    client.person = Person::Unwilling;
    let declined = client.text("test_elicitation", arguments);
    client.person = Person::Kind;
    let declined = declined?;
    check!(
        declined.contains("decline"),
        "the refusal was lost: {declined}"
    );
    Ok(())
}

pub(super) fn url(client: &mut Client) -> Result<(), Reason> {
    let (questions, _) = asked(client, "elicitation/create", |client| {
        client.call("test_url_elicitation", json!({}))
    })?;
    is_url(client, &questions[0])
}

fn is_url(client: &Client, question: &Value) -> Result<(), Reason> {
    check!(
        question["mode"] == "url" && question["url"].is_string(),
        "{question}"
    );
    let has_id = question["elicitationId"].is_string();
    check!(has_id != client.is_modern(), "elicitationId: {question}");
    Ok(())
}

/// A call that first needs a visit to a page: an error in 2025-11-25, a question in 2026-07-28.
pub(super) fn url_required(client: &mut Client) -> Result<(), Reason> {
    let params = call_of("test_url_required", json!({}));
    if !client.is_modern() && !client.server.revision.is_modern() {
        let error = client.error("tools/call", params)?;
        check!(error["code"] == -32042, "{error}");
        is_url(client, &error["data"]["elicitations"][0])?;
        // As far as the server can know, the page has been visited.
        client.call("test_url_required", json!({}))?;
        return Ok(());
    }
    let (questions, _) = asked(client, "elicitation/create", |client| {
        client.call("test_url_required", json!({}))
    })?;
    is_url(client, &questions[0])
}

/// Several questions at once, and several rounds of them.
pub(super) fn rounds(client: &mut Client) -> Result<(), Reason> {
    let tool = "test_input_required_result_multiple_inputs";
    let before = client.asked.len();
    client.call(tool, json!({}))?;
    let mut methods: Vec<_> = client.asked[before..]
        .iter()
        .map(|(method, _)| method.clone())
        .collect();
    methods.sort();
    let wanted = ["elicitation/create", "roots/list", "sampling/createMessage"];
    check!(methods == wanted, "{tool} asked {methods:?}");

    let tool = "test_input_required_result_multi_round";
    let (questions, _) = asked(client, "elicitation/create", |client| {
        client.call(tool, json!({}))
    })?;
    check!(
        questions.len() == 2,
        "{tool} asked {} times",
        questions.len()
    );
    Ok(())
}

pub(super) fn sampling(client: &mut Client) -> Result<(), Reason> {
    let (questions, result) = asked(client, "sampling/createMessage", |client| {
        client.call("test_sampling", json!({ "prompt": "Say something." }))
    })?;
    let question = &questions[0];
    check!(
        question.to_string().contains("Say something."),
        "{question}"
    );
    let text = text_of(&result).unwrap_or_default();
    check!(text.contains(SAMPLED), "the answer was lost: {result}");
    Ok(())
}

pub(super) fn roots(client: &mut Client) -> Result<(), Reason> {
    let (_, result) = asked(client, "roots/list", |client| {
        client.call("test_roots", json!({}))
    })?;
    let text = text_of(&result).unwrap_or_default();
    check!(text.contains(ROOT), "the answer was lost: {result}");
    Ok(())
}

/// A client that declares no capabilities is not asked, and its call still ends.
pub(super) fn mute(client: &mut Client) -> Result<(), Reason> {
    let mut mute = client.another(Setup::mute(client.setup.side))?;
    mute.person = Person::Silent;
    let mut tools = vec![("test_sampling", json!({ "prompt": "Say something." }))];
    if client.server.revision >= Revision::Jun2025 {
        tools.push(("test_elicitation", json!({ "message": "Who goes there?" })));
    }
    for (tool, arguments) in tools {
        let answer = mute.ask("tools/call", call_of(tool, arguments))?;
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        check!(failed, "{tool} did not fail: {answer}");
        let code = &answer["error"]["code"];
        check!(
            client.is_modern() || ![-32020, -32021, -32022].iter().any(|known| code == known),
            "an older client got {answer}"
        );
        check!(
            mute.asked.is_empty(),
            "it was asked all the same: {:?}",
            mute.asked
        );
    }
    Ok(())
}
