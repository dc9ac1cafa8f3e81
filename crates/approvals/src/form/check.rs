//! Validation of answers. Unlike for the arguments of tools, a doubtful value is rejected, because the user
//! can be asked again.

use switchboard_schema::Checker;
use switchboard_wire::Raw;

use switchboard_text::nearest;

use super::field::{Choice, Field, Kind};
use super::{FieldError, Form, Mode};
use switchboard_wire::tree::Decimal;

/// The longest answer, in bytes.
const ANSWER_BYTES: usize = 1024 * 1024;

pub(super) fn check(form: &Form, content: Option<&Raw>) -> Result<Raw, Vec<FieldError>> {
    let content = content.filter(|content| content.as_bytes() != b"null");
    let whole = |message: String| {
        vec![FieldError {
            path: String::new(),
            message,
        }]
    };
    match &form.mode {
        Mode::Refused { why } => return Err(whole(why.clone())),
        Mode::Url(_) if content.is_some_and(|content| content.as_bytes() != b"{}") => {
            return Err(whole(
                "a request to open an address takes no content".to_owned(),
            ));
        }
        Mode::Url(_) => return Ok(Raw::empty_object()),
        Mode::Form { .. } | Mode::Raw { .. } => {}
    }
    let content = content.cloned().unwrap_or_else(Raw::empty_object);
    if content.as_bytes().len() > ANSWER_BYTES {
        return Err(whole(format!(
            "the answer is longer than {ANSWER_BYTES} bytes"
        )));
    }
    let Some(mut members) = content.members() else {
        return Err(whole("the answer must be an object".to_owned()));
    };
    if let Some(name) = twice(&members) {
        return Err(vec![problem(&name, "is given twice".to_owned())]);
    }
    if let Mode::Form { fields } = &form.mode {
        fill_in(fields, &mut members);
        let problems = of_fields(fields, &members);
        if !problems.is_empty() {
            return Err(problems);
        }
    }
    let answer = Raw::object(
        members
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    // All other constraints of the schema. A schema that cannot be compiled is left to the server.
    let checker = form
        .schema
        .as_ref()
        .and_then(|schema| Checker::compile(schema).ok());
    match checker.map(|checker| checker.check(&answer)) {
        Some(Err(mismatches)) => Err(mismatches
            .as_slice()
            .iter()
            .map(|mismatch| FieldError {
                path: pointer(&mismatch.path),
                message: match &mismatch.hint {
                    Some(hint) => format!("{}; {hint}", mismatch.message),
                    None => mismatch.message.clone(),
                },
            })
            .collect()),
        Some(Ok(())) | None => Ok(answer),
    }
}

fn twice(members: &[(String, Raw)]) -> Option<String> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let pair = names.windows(2).find(|pair| pair[0] == pair[1]);
    pair.map(|pair| pair[0].to_owned())
}

fn fill_in(fields: &[Field], members: &mut Vec<(String, Raw)>) {
    for field in fields {
        let answered = members.iter().any(|(name, _)| *name == field.name);
        if let (false, Some(default)) = (answered, &field.default) {
            members.push((field.name.clone(), default.clone()));
        }
    }
}

fn of_fields(fields: &[Field], members: &[(String, Raw)]) -> Vec<FieldError> {
    let mut problems = Vec::new();
    for field in fields {
        match members.iter().find(|(name, _)| *name == field.name) {
            Some((_, value)) => {
                problems.extend(field.problem(value).map(|why| problem(&field.name, why)));
            }
            None if field.required => {
                problems.push(problem(&field.name, "is required".to_owned()));
            }
            None => {}
        }
    }
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    for (name, _) in members
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()))
    {
        let why = match nearest(name, names.iter().copied()) {
            Some(near) => format!("is not a field of the form; did you mean `{near}`?"),
            None => "is not a field of the form".to_owned(),
        };
        problems.push(problem(name, why));
    }
    problems
}

impl Field {
    /// The error of a value for this field, if there is one.
    pub(super) fn problem(&self, value: &Raw) -> Option<String> {
        match &self.kind {
            Kind::Flag => {
                let flag = matches!(value.as_bytes(), b"true" | b"false");
                (!flag).then(|| "must be true or false".to_owned())
            }
            Kind::Text {
                format, min, max, ..
            } => {
                let Some(text) = value.to_text() else {
                    return Some("must be a string".to_owned());
                };
                let length = text.chars().count() as u64;
                let format = format.as_ref().and_then(|format| format.problem(&text));
                bounds(length, *min, *max, "characters").or(format.map(str::to_owned))
            }
            Kind::Number { integer, min, max } => number(value, *integer, *min, *max),
            Kind::Choice { options } => {
                let chosen = value.to_text();
                let known = chosen.is_some_and(|chosen| is_option(options, &chosen));
                (!known).then(|| format!("must be one of {}", list(options)))
            }
            Kind::Choices { options, min, max } => {
                let Some(chosen) = value.read_owned::<Vec<String>>().ok() else {
                    return Some("must be a list of strings".to_owned());
                };
                if chosen.iter().any(|chosen| !is_option(options, chosen)) {
                    return Some(format!("must contain only {}", list(options)));
                }
                bounds(chosen.len() as u64, *min, *max, "values")
            }
        }
    }
}

fn is_option(options: &[Choice], value: &str) -> bool {
    options.iter().any(|option| option.value == value)
}

fn bounds(is: u64, min: Option<u64>, max: Option<u64>, what: &str) -> Option<String> {
    match (min, max) {
        (Some(min), _) if is < min => Some(format!("has too few {what}, the minimum is {min}")),
        (_, Some(max)) if is > max => Some(format!("has too many {what}, the maximum is {max}")),
        _ => None,
    }
}

fn number(value: &Raw, integer: bool, min: Option<f64>, max: Option<f64>) -> Option<String> {
    let spelled = value.as_str();
    let is_number = spelled.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let Some(number) = spelled.parse::<f64>().ok().filter(|_| is_number) else {
        return Some("must be a number".to_owned());
    };
    if integer && !Decimal::read(spelled).is_integer() {
        return Some("must be a whole number".to_owned());
    }
    match (min, max) {
        (Some(min), _) if number < min => Some(format!("must be at least {min}")),
        (_, Some(max)) if number > max => Some(format!("must be at most {max}")),
        _ => None,
    }
}

/// Lists the first options.
fn list(options: &[Choice]) -> String {
    const SHOWN: usize = 12;
    let values = options
        .iter()
        .take(SHOWN)
        .map(|option| format!("`{}`", option.value));
    let mut list = values.collect::<Vec<_>>().join(", ");
    if options.len() > SHOWN {
        list.push_str(", …");
    }
    list
}

fn problem(name: &str, message: String) -> FieldError {
    FieldError {
        path: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        message,
    }
}

/// Converts `arguments.a["b c"][0]` into a JSON pointer, `/a/b c/0`.
fn pointer(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path.strip_prefix("arguments").unwrap_or(path);
    while !rest.is_empty() {
        let (step, after) = if let Some(inner) = rest.strip_prefix("[\"") {
            inner.split_once("\"]").unwrap_or((inner, ""))
        } else if let Some(inner) = rest.strip_prefix('[') {
            inner.split_once(']').unwrap_or((inner, ""))
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
        };
        out.push('/');
        out.push_str(&step.replace('~', "~0").replace('/', "~1"));
        rest = after;
    }
    out
}
