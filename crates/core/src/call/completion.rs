//! Completions as rules see them: the prompt or resource as far as the user has typed it.

use switchboard_base::error::Error;
use switchboard_client::Raw;

/// Checks that every reader of a completion reads the same values in it.
pub(crate) fn check(params: &Raw) -> Result<(), Error> {
    let distinct = |of: &Raw, names: &[&str]| {
        let member = of.distinct_member(names);
        member.map_err(|error| Error::invalid_params(error.to_string()))
    };
    let is_text = |value: Option<&Raw>| value.is_some_and(|value| value.to_text().is_some());
    if let Some(argument) = params.member("argument")
        && !(is_text(distinct(&argument, &["name", "value"])?.as_ref())
            && is_text(argument.member("value").as_ref()))
    {
        let message = "`argument.name` and `argument.value` must be strings";
        return Err(Error::invalid_params(message));
    }
    let Some(context) = params.member("context") else {
        return Ok(());
    };
    let given = distinct(&context, &["arguments"])?.unwrap_or_else(Raw::empty_object);
    let values = given.members().unwrap_or_default();
    if switchboard_approvals::says_twice(&given)
        || !values.iter().all(|(_, value)| is_text(Some(value)))
    {
        let message = "`context.arguments` must contain strings only, each under its own name";
        return Err(Error::invalid_params(message));
    }
    Ok(())
}

/// The arguments of a prompt that the user is filling in.
pub(super) fn completed(params: Option<&Raw>) -> Raw {
    let values = values(params);
    let members = values
        .iter()
        .map(|(name, value)| (&**name, Raw::string(value)));
    Raw::object(members)
}

/// Expands a URI template (RFC 6570) with the values that are known so far. Values are not encoded,
/// because a server may take them verbatim.
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
        let operator = names.chars().next().and_then(Operator::of);
        let names = operator.as_ref().map_or(names, |_| &names[1..]);
        let operator = operator.unwrap_or(Operator::PLAIN);
        let mut sign = operator.first;
        for variable in names.split(',') {
            let name = variable.trim_end_matches('*');
            let Some((_, value)) = values.iter().find(|(known, _)| known == name) else {
                // A missing or partial value may become anything, and its separator may change with
                // it.
                uri.push('*');
                sign = "";
                continue;
            };
            uri.push_str(sign);
            if operator.is_named {
                uri.push_str(name);
                if !(value.is_empty() && operator.first == ";") {
                    uri.push('=');
                }
            }
            uri.push_str(value);
            if typed.as_deref() == Some(name) {
                uri.push('*');
            }
            sign = operator.between;
        }
        rest = after;
    }
    uri.push_str(rest);
    match file_host(&uri) {
        // The path may change with the host.
        Some(host) if host.contains('*') => "file:///*".to_owned(),
        _ => uri,
    }
}

/// The host of a `file:` URI.
fn file_host(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let is_file = scheme.eq_ignore_ascii_case("file");
    is_file.then(|| rest.split('/').next().unwrap_or_default())
}

/// The way in which an expression joins its values.
struct Operator {
    first: &'static str,
    between: &'static str,
    is_named: bool,
}

impl Operator {
    const PLAIN: Self = Self::new("", ",", false);

    const fn new(first: &'static str, between: &'static str, is_named: bool) -> Self {
        Self {
            first,
            between,
            is_named,
        }
    }

    fn of(sign: char) -> Option<Self> {
        Some(match sign {
            '+' => Self::PLAIN,
            '#' => Self::new("#", ",", false),
            '.' => Self::new(".", ".", false),
            '/' => Self::new("/", "/", false),
            ';' => Self::new(";", ";", true),
            '?' => Self::new("?", "&", true),
            '&' => Self::new("&", "&", true),
            _ => return None,
        })
    }
}

/// The values of a completion: those given before, and the one being typed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded_with_separators() {
        let of = |template: &str| {
            let params = r#"{"argument":{"name":"x","value":"a/b"},"context":{"arguments":{"y":"c","e":""}}}"#;
            expanded(template, Some(&Raw::parse(params).unwrap()))
        };
        for (template, uri) in [
            ("f:/{x}", "f:/a/b*"),
            ("f:/{+x}{z}", "f:/a/b**"),
            ("f:{#y,x}", "f:#c,a/b*"),
            ("f:h{.y,x}", "f:h.c.a/b*"),
            ("f://{/x*}", "f:///a/b*"),
            ("f:{/y,z,x}", "f:/c*a/b*"),
            ("f:{;y,e,x}", "f:;y=c;e;x=a/b*"),
            ("f:{?y,e}{&x}", "f:?y=c&e=&x=a/b*"),
            ("f:{?z,y}", "f:*y=c"),
            ("f:{x:3}{y:9}", "f:**"),
            ("f:{|x}{", "f:*{"),
            ("f:{é}{}", "f:**"),
            ("file://{+z}/{x}", "file:///*"),
            ("File:{/z,x}", "file:///*"),
            ("file://h{/x}", "file://h/a/b*"),
        ] {
            assert_eq!(of(template), uri, "{template}");
        }
    }
}
