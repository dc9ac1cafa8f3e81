//! Completions, as rules look at them: the prompt or resource that is being written, as far as it is written.

use switchboard_client::Raw;

use crate::failure::Failure;

/// Tests that every reader of a completion reads the same values in it.
pub(crate) fn check(params: &Raw) -> Result<(), Failure> {
    let distinct = |of: &Raw, names: &[&str]| {
        let member = of.distinct_member(names);
        member.map_err(|error| Failure::invalid_params(error.to_string()))
    };
    let is_text = |value: Option<&Raw>| value.is_some_and(|value| value.to_text().is_some());
    if let Some(argument) = params.member("argument")
        && !(is_text(distinct(&argument, &["name", "value"])?.as_ref())
            && is_text(argument.member("value").as_ref()))
    {
        let message = "`argument.name` and `argument.value` have to be strings";
        return Err(Failure::invalid_params(message));
    }
    let Some(context) = params.member("context") else {
        return Ok(());
    };
    let given = distinct(&context, &["arguments"])?.unwrap_or_else(Raw::empty_object);
    let values = given.members().unwrap_or_default();
    if switchboard_approvals::says_twice(&given)
        || !values.iter().all(|(_, value)| is_text(Some(value)))
    {
        let message = "`context.arguments` has to hold strings, each under a name of its own";
        return Err(Failure::invalid_params(message));
    }
    Ok(())
}

/// The arguments of a prompt that is being filled in.
pub(super) fn completed(params: Option<&Raw>) -> Raw {
    let values = values(params);
    let members = values
        .iter()
        .map(|(name, value)| (&**name, Raw::string(value)));
    Raw::object(members)
}

/// The URI that a template stands for. Its end is not written yet.
pub(super) fn expanded(template: &str, params: Option<&Raw>) -> String {
    let values = values(params);
    let typed = params.and_then(|params| params.member("argument")?.member("name")?.to_text());
    let mut uri = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        uri.push_str(before);
        let Some((names, after)) = after.split_once('}') else {
            return uri + rest;
        };
        for name in names
            .trim_start_matches(['+', '#', '.', '/', ';', '?', '&'])
            .split(',')
        {
            let name = name.split(['*', ':']).next().unwrap_or_default();
            let value = values.iter().find(|(known, _)| known == name);
            uri.push_str(value.map_or("", |(_, value)| value));
            // What is not said may become anything.
            if value.is_none() || typed.as_deref() == Some(name) {
                uri.push('*');
            }
        }
        rest = after;
    }
    uri + rest
}

/// The values that a completion goes by: those given before, and the one that is typed.
fn values(params: Option<&Raw>) -> Vec<(String, String)> {
    let member = |name: &str| params.and_then(|params| params.member(name));
    let given = member("context").and_then(|context| context.member("arguments")?.members());
    let given = given.unwrap_or_default().into_iter();
    let mut values: Vec<_> = given
        .filter_map(|(name, value)| Some((name, value.to_text()?)))
        .collect();
    let typed = member("argument").and_then(|typed| {
        Some((
            typed.member("name")?.to_text()?,
            typed.member("value")?.to_text()?,
        ))
    });
    if let Some(typed) = typed {
        values.retain(|(name, _)| *name != typed.0);
        values.push(typed);
    }
    values
}
