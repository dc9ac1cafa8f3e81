//! Overrides: shows tools as the owner has changed them, and completes calls to them.

use std::collections::BTreeMap;

use serde_json::Value;
use switchboard_base::error::Error;
use switchboard_catalog::{Offers, Presented};
use switchboard_config::{Argument, Override, Overrides};
use switchboard_text::nearest;
use switchboard_wire::{Raw, RawError};

/// The definition of a tool as the owner has changed it. A definition that cannot be changed is hidden: clients would
/// see it without the override.
pub fn present(changes: &Override, tool: &Raw) -> Presented {
    if changes.hidden {
        return Presented::Hidden;
    }
    apply(changes, tool).map_or(Presented::Hidden, Presented::Changed)
}

fn apply(changes: &Override, tool: &Raw) -> Result<Raw, RawError> {
    let mut tool = tool.clone();
    let texts = [
        ("name", &changes.name),
        ("description", &changes.description),
    ];
    for (member, text) in texts {
        if let Some(text) = text {
            tool = tool.with_member(member, &Raw::string(text))?;
        }
    }
    if let Some(annotations) = &changes.annotations {
        let own = tool.member("annotations").filter(Raw::is_object);
        let mut all = own.unwrap_or_else(Raw::empty_object);
        for (name, value) in annotations.members().unwrap_or_default() {
            all = all.without(&[&name]).with_member(&name, &value)?;
        }
        tool = tool.with_member("annotations", &all)?;
        // Clients prefer the title outside the annotations.
        if let Some(title) = annotations.member("title")
            && tool.member("title").is_some()
        {
            tool = tool.with_member("title", &title)?;
        }
    }
    if !changes.arguments.is_empty()
        && let Some(schema) = tool.member("inputSchema").filter(Raw::is_object)
    {
        let names: Vec<&str> = changes.arguments.keys().map(String::as_str).collect();
        tool = tool.with_member("inputSchema", &without_arguments(schema, &names)?)?;
    }
    Ok(tool)
}

/// The keywords of a schema that map arguments to what they require: names, or a schema for the same object.
const DEPENDENCIES: [&str; 3] = ["dependentRequired", "dependentSchemas", "dependencies"];

/// A schema of arguments without these, and without conditions on them: a call that the tool accepts with the fixed
/// arguments has to fit. Does the same in its subschemas for the same object.
fn without_arguments(mut schema: Raw, names: &[&str]) -> Result<Raw, RawError> {
    if !schema.is_object() {
        return Ok(schema);
    }
    if let Some(properties) = schema.member("properties") {
        schema = schema.with_member("properties", &properties.without(names))?;
    }
    for member in DEPENDENCIES {
        let Some(of) = schema
            .member(member)
            .and_then(|of| of.without(names).members())
        else {
            continue;
        };
        let kept = of.into_iter().map(|(name, required)| {
            let required = match required.elements() {
                Some(required) => without_names(required, names),
                None => without_arguments(required, names)?,
            };
            Ok((name, required))
        });
        let kept: Vec<_> = kept.collect::<Result<_, RawError>>()?;
        let kept = Raw::object(
            kept.iter()
                .map(|(name, required)| (&**name, required.clone())),
        );
        schema = schema.with_member(member, &kept)?;
    }
    if let Some(required) = schema.member("required").and_then(|of| of.elements()) {
        schema = schema.with_member("required", &without_names(required, names))?;
    }
    // The fixed arguments count, too.
    schema = schema.without(&["minProperties"]);
    let is_about = |member: &str| {
        schema
            .member(member)
            .is_some_and(|one| mentions(&one, names))
    };
    let mut dropped = Vec::new();
    if is_about("not") {
        dropped.push("not");
    }
    if is_about("if") {
        dropped.extend(["if", "then", "else"]);
    }
    // Without the argument that distinguishes them, several of the schemas may fit.
    let distinguishes = is_about("oneOf");
    schema = schema.without(&dropped);
    for member in ["then", "else"] {
        if let Some(one) = schema.member(member) {
            schema = schema.with_member(member, &without_arguments(one, names)?)?;
        }
    }
    for member in ["allOf", "anyOf", "oneOf"] {
        let Some(all) = schema.member(member).and_then(|all| all.elements()) else {
            continue;
        };
        let all = all.into_iter().map(|one| without_arguments(one, names));
        let all = Raw::array(all.collect::<Result<Vec<_>, _>>()?);
        if member != "oneOf" || !distinguishes {
            schema = schema.with_member(member, &all)?;
            continue;
        }
        schema = schema.without(&["oneOf"]);
        if schema.member("anyOf").is_none() {
            schema = schema.with_member("anyOf", &all)?;
        }
    }
    Ok(schema)
}

/// The list without the texts that are one of these names.
fn without_names(list: Vec<Raw>, names: &[&str]) -> Raw {
    let is_kept = |name: &Raw| name.to_text().is_none_or(|name| !names.contains(&&*name));
    Raw::array(list.into_iter().filter(is_kept))
}

/// Tests if a schema names one of these arguments anywhere.
fn mentions(schema: &Raw, names: &[&str]) -> bool {
    if let Some(members) = schema.members() {
        let mut members = members.iter();
        return members.any(|(name, value)| names.contains(&&**name) || mentions(value, names));
    }
    if let Some(elements) = schema.elements() {
        return elements.iter().any(|element| mentions(element, names));
    }
    schema.to_text().is_some_and(|text| names.contains(&&*text))
}

/// The arguments of a call with the ones that the owner has fixed. Fails if the client has set one of them, under any
/// spelling that a server might accept.
pub fn complete(changes: &Override, arguments: Option<Raw>) -> Result<Raw, Error> {
    let given = arguments.filter(|given| given.as_bytes() != b"null");
    let mut all = given.unwrap_or_else(Raw::empty_object);
    if !all.is_object() {
        return Err(Error::invalid_params("`arguments` must be an object"));
    }
    for name in changes.arguments.keys() {
        if !matches!(all.distinct_member(&[name]), Ok(None)) {
            let message = format!("`{name}` is not an argument of this tool; leave it out");
            return Err(Error::invalid_params(message));
        }
    }
    for (name, argument) in &changes.arguments {
        if let Argument::Fixed(value) = argument {
            // It is not among them, as was just checked.
            let completed = all.with_new_member(name, value);
            all = completed.map_err(|error| Error::invalid_params(error.to_string()))?;
        }
    }
    Ok(all)
}

/// Checks that arguments which an approver has edited still have the values that the owner has fixed.
pub fn check(changes: &Override, arguments: &Raw) -> Result<(), Error> {
    for (name, argument) in &changes.arguments {
        let found = arguments.distinct_member(&[name]);
        let is_kept = match (argument, found) {
            (Argument::Fixed(value), Ok(Some(found))) => {
                let [fixed, found] = [value, &found].map(|value| value.read::<Value>().ok());
                fixed.is_some() && fixed == found
            }
            (Argument::Hidden, Ok(None)) => true,
            _ => false,
        };
        if !is_kept {
            let message = format!(
                "the approver changed the argument `{name}`, which the configuration fixes, so the tool was not called"
            );
            return Err(Error::invalid_params(message));
        }
    }
    Ok(())
}

/// The overrides that do not have the effect that the owner wants, one sentence each.
pub(crate) fn problems(overrides: &Overrides, offers: &Offers) -> Vec<String> {
    if overrides.is_empty() || offers.unlisted {
        return Vec::new();
    }
    let named = |tool| Some((Raw::member(tool, "name")?.to_text()?, tool));
    let tools: BTreeMap<String, &Raw> = offers.tools.iter().filter_map(named).collect();
    let mut problems = Vec::new();
    for (name, changes) in overrides.iter() {
        if let Some(new_name) = changes.name.as_deref().filter(|new_name| {
            overrides.new_name(new_name).is_none() && tools.contains_key(*new_name)
        }) {
            problems.push(format!(
                "the tool `{new_name}` of the server is hidden: an override gives its name to `{name}`"
            ));
        }
        if let Some(tool) = tools.get(name) {
            problems.extend(of_arguments(name, changes, tool));
            continue;
        }
        let names = tools.keys().map(String::as_str);
        let meant = nearest(name, names).map(|meant| format!("; did you mean `{meant}`?"));
        problems.push(format!(
            "the override of `{name}` has no effect: the server has no such tool{}",
            meant.unwrap_or_default()
        ));
    }
    problems
}

/// The problems with the arguments of one override.
fn of_arguments(name: &str, changes: &Override, tool: &Raw) -> Vec<String> {
    if changes.hidden {
        return Vec::new();
    }
    if apply(changes, tool).is_err() {
        return vec![format!(
            "`{name}` is hidden: its definition has two members with one name, so the override cannot be applied"
        )];
    }
    let schema = tool.member("inputSchema");
    let member = |name: &str| schema.as_ref().and_then(|schema| schema.member(name));
    let properties = member("properties");
    let required = member("required").and_then(|required| required.elements());
    let mut problems = Vec::new();
    for (argument, change) in &changes.arguments {
        let is_known = (properties.as_ref()).is_some_and(|all| all.member(argument).is_some());
        let is_it = |name: &Raw| name.to_text().as_deref() == Some(argument);
        let is_required = (required.as_ref()).is_some_and(|names| names.iter().any(is_it));
        if !is_known {
            problems.push(format!(
                "the override of `{name}` names the argument `{argument}`, which is not in the tool's schema"
            ));
        } else if is_required && *change == Argument::Hidden {
            problems.push(format!(
                "the override of `{name}` hides the argument `{argument}`, which the tool requires: set its \"value\""
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(json: &str) -> Overrides {
        let config = format!(r#"{{"mcpServers":{{"s":{{"command":"x","overrides":{json}}}}}}}"#);
        let config = switchboard_config::parse(&config, "test").unwrap();
        config.servers["s"].overrides.clone()
    }

    fn raw(json: &'static str) -> Raw {
        Raw::parse(json).unwrap()
    }

    const CREATE: &str = r#"{"name":"create","description":"Old.","inputSchema":{"type":"object","properties":{"repo":{"type":"string"},"title":{"type":"string"}},"required":["title","repo"]},"annotations":{"readOnlyHint":false,"x":1}}"#;

    #[test]
    fn definition_is_changed_and_the_rest_kept() {
        let all = overrides(
            r#"{"create":{"name":"new_issue","description":"New.","annotations":{"readOnlyHint":true,"title":"T"},"arguments":{"repo":{"value":"acme/app"}}}}"#,
        );
        let changed = apply(all.get("create").unwrap(), &raw(CREATE)).unwrap();
        assert_eq!(
            changed.as_str(),
            r#"{"name":"new_issue","description":"New.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]},"annotations":{"x":1,"readOnlyHint":true,"title":"T"}}"#
        );
        assert_eq!(problems(&all, &offers()), [""; 0]);
    }

    fn offers() -> Offers {
        Offers {
            tools: vec![raw(CREATE)],
            ..Offers::default()
        }
    }

    #[test]
    fn fixed_arguments_cannot_be_set_in_any_spelling() {
        let all = overrides(
            r#"{"create":{"arguments":{"repo":{"value":"acme/app"},"token":{"hidden":true}}}}"#,
        );
        let changes = all.get("create").unwrap();
        let completed = complete(changes, Some(raw(r#"{"title":"x"}"#))).unwrap();
        assert_eq!(completed.as_str(), r#"{"title":"x","repo":"acme/app"}"#);
        let completed = complete(changes, None).unwrap();
        assert_eq!(completed.as_str(), r#"{"repo":"acme/app"}"#);
        for wrong in [
            r#"{"repo":"acme/app"}"#,
            r#"{"r\u0065po":"other"}"#,
            r#"{"Repo":"other"}"#,
            r#"{"token":null}"#,
            r#"{"TOKEN":1,"token":2}"#,
            r#"["repo"]"#,
        ] {
            assert!(complete(changes, Some(raw(wrong))).is_err(), "{wrong}");
        }
    }

    #[test]
    fn overrides_without_their_effect_are_reported() {
        let all = overrides(
            r#"{"creat":{"hidden":true},"create":{"arguments":{"title":{"hidden":true},"rpo":{"value":1}}}}"#,
        );
        let found = problems(&all, &offers());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("did you mean `create`?"), "{found:?}");
        assert!(found[1].contains("`rpo`, which is not in"), "{found:?}");
        assert!(
            found[2].contains("`title`, which the tool requires"),
            "{found:?}"
        );
        let unlisted = Offers {
            unlisted: true,
            ..Offers::default()
        };
        assert_eq!(problems(&all, &unlisted), [""; 0]);
    }

    /// The schema of a tool with `repo` fixed.
    fn without_repo(schema: &str) -> String {
        let all = overrides(r#"{"create":{"arguments":{"repo":{"value":1}}}}"#);
        let tool = format!(r#"{{"name":"create","inputSchema":{schema}}}"#);
        let tool = Raw::parse(tool).unwrap();
        let changed = apply(all.get("create").unwrap(), &tool).unwrap();
        changed.member("inputSchema").unwrap().as_str().to_owned()
    }

    #[test]
    fn combined_schemas_lose_the_argument() {
        for (schema, expected) in [
            (
                r#"{"anyOf":[{"required":["repo"]},{"required":["title"],"allOf":[{"properties":{"repo":{}}}]}]}"#,
                r#"{"anyOf":[{"required":[]},{"required":["title"],"allOf":[{"properties":{}}]}]}"#,
            ),
            (
                r#"{"dependentRequired":{"repo":["title"],"title":["repo","body"]}}"#,
                r#"{"dependentRequired":{"title":["body"]}}"#,
            ),
            (
                r#"{"dependencies":{"title":["repo"],"body":{"required":["repo"]}}}"#,
                r#"{"dependencies":{"title":[],"body":{"required":[]}}}"#,
            ),
            (
                r#"{"if":{"required":["a"]},"then":{"required":["repo"]},"else":false}"#,
                r#"{"if":{"required":["a"]},"then":{"required":[]},"else":false}"#,
            ),
        ] {
            assert_eq!(without_repo(schema), expected);
        }
    }

    #[test]
    fn conditions_on_the_argument_are_dropped() {
        for (schema, expected) in [
            (
                r#"{"if":{"properties":{"repo":{"const":2}}},"then":{"required":["title"]},"else":{}}"#,
                "{}",
            ),
            (
                r#"{"not":{"required":["repo"]},"type":"object"}"#,
                r#"{"type":"object"}"#,
            ),
            (
                r#"{"not":{"required":["title"]}}"#,
                r#"{"not":{"required":["title"]}}"#,
            ),
            (r#"{"minProperties":2}"#, "{}"),
            (
                r#"{"oneOf":[{"properties":{"repo":{"const":1}}},{"properties":{"repo":{"const":2}}}]}"#,
                r#"{"anyOf":[{"properties":{}},{"properties":{}}]}"#,
            ),
            (
                r#"{"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
                r#"{"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
            ),
        ] {
            assert_eq!(without_repo(schema), expected);
        }
    }

    #[test]
    fn ambiguous_definition_is_hidden() {
        let all = overrides(r#"{"create":{"description":"New."}}"#);
        let twice = raw(r#"{"name":"create","description":"a","description":"b"}"#);
        let changes = all.get("create").unwrap();
        assert!(matches!(present(changes, &twice), Presented::Hidden));
    }
}
