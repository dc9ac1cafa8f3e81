//! The opening of a connection, and the client that the server sees.

use serde_json::{Value, json};

use crate::{
    client::{Client, Reason, Setup, check},
    revision::Revision,
};

/// Versions, names and capabilities.
pub(super) fn handshake(client: &mut Client) -> Result<(), Reason> {
    let greeting = client.greeting.clone();
    let info = if client.is_modern() {
        let versions = greeting["supportedVersions"].as_array();
        let own = json!(client.revision().as_str());
        let known = versions.is_some_and(|versions| versions.contains(&own));
        check!(known, "supportedVersions: {greeting}");
        check!(
            greeting["resultType"] == "complete",
            "resultType: {greeting}"
        );
        &greeting["_meta"]["io.modelcontextprotocol/serverInfo"]
    } else {
        let version = &greeting["protocolVersion"];
        check!(
            *version == client.revision().as_str(),
            "protocolVersion: {greeting}"
        );
        check!(
            greeting.get("resultType").is_none(),
            "resultType: {greeting}"
        );
        &greeting["serverInfo"]
    };
    check!(
        info["name"].is_string() && info["version"].is_string(),
        "serverInfo: {greeting}"
    );
    let capabilities = &greeting["capabilities"];
    let mut wanted = vec!["tools", "prompts", "resources", "logging"];
    if client.revision() >= Revision::Mar2025 && client.server.revision >= Revision::Mar2025 {
        wanted.push("completions");
    }
    for name in wanted {
        check!(
            capabilities[name].is_object(),
            "no capability {name}: {greeting}"
        );
    }
    check!(
        capabilities["tools"]["listChanged"] == true,
        "tools.listChanged: {greeting}"
    );
    check!(
        capabilities["resources"]["subscribe"] == true,
        "resources.subscribe: {greeting}"
    );
    check!(
        !client.is_modern() || capabilities.get("tasks").is_none(),
        "a modern client is offered core tasks: {greeting}"
    );
    Ok(())
}

/// The server sees the client's own name and capabilities if its revision has them in each request.
pub(super) fn identity(client: &mut Client) -> Result<(), Reason> {
    let mut setup = Setup {
        name: "somebody of their own".to_owned(),
        ..Setup::able(client.setup.side)
    };
    if client.revision() == Revision::Nov2025 {
        setup.capabilities["tasks"] = json!({ "list": {}, "cancel": {} });
    }
    let mut other = client.another(setup)?;
    let seen = other.told_by("test_session_info")?;
    let revision = client.server.revision;
    check!(
        seen["revision"] == revision.as_str(),
        "the server speaks {seen}"
    );
    let capabilities = &seen["capabilities"];
    if revision.is_modern() {
        let name = &seen["clientInfo"]["name"];
        check!(*name == "somebody of their own", "the server sees {seen}");
        let changes = &capabilities["roots"]["listChanged"];
        check!(changes.is_null(), "roots.listChanged: {seen}");
        check!(capabilities.get("tasks").is_none(), "tasks: {seen}");
        for (ability, _) in other.setup.capabilities.as_object().into_iter().flatten() {
            let known = ability == "tasks" || capabilities[ability].is_object();
            check!(known, "the server does not see {ability}: {seen}");
        }
        let elicits = client.revision() >= Revision::Jun2025;
        let seen_to = capabilities.get("elicitation").is_some();
        check!(seen_to == elicits, "elicitation: {seen}");
    } else {
        // One session serves all clients, so it has the gateway's name.
        check!(
            seen["clientInfo"]["name"].is_string(),
            "the server sees {seen}"
        );
    }
    Ok(())
}

pub(super) fn ping(client: &mut Client) -> Result<(), Reason> {
    let result = client.result("ping", json!({}))?;
    check!(
        result == Value::Object(serde_json::Map::default()),
        "{result}"
    );
    Ok(())
}
