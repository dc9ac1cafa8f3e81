//! Answers to a form: from the command line, or field by field on a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use switchboard_approvals::form::{Choice, Field, FieldError, Form, Kind, Mode};
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;

use super::{decide::object, show};

/// The answers to a form, validated.
pub(super) fn content(
    form: &Form,
    content: Option<&str>,
    fields: &[String],
    yes: bool,
) -> Result<Raw, Error> {
    let given = if let Some(content) = content {
        object(content, "the answers")?
    } else if !fields.is_empty() {
        from_fields(form, fields)?
    } else if yes {
        // The check fills in the defaults of the form.
        Raw::empty_object()
    } else if matches!(form.mode, Mode::Form { .. }) && io::stdin().is_terminal() {
        return ask(form);
    } else {
        return Err(Error::usage("the question needs an answer")
            .hint("use --content '{\"NAME\": VALUE}', or --field NAME=VALUE for each field"));
    };
    form.check(Some(&given))
        .map_err(|problems| unfit(&problems))
}

fn unfit(problems: &[FieldError]) -> Error {
    let list: Vec<String> = problems.iter().map(sentence).collect();
    let message = format!("the answer is invalid: {}", list.join("; "));
    Error::usage(message).hint("correct the values and try again; nothing was sent")
}

fn sentence(problem: &FieldError) -> String {
    let path = problem.path.trim_start_matches('/');
    visible_line(format!("{path} {}", problem.message).trim())
}

fn from_fields(form: &Form, given: &[String]) -> Result<Raw, Error> {
    let mut members = Vec::new();
    for one in given {
        let Some((name, value)) = one.split_once('=') else {
            let message = format!("--field {} has no value", visible_line(one));
            return Err(Error::usage(message).hint("use --field NAME=VALUE"));
        };
        let field = form.fields().iter().find(|field| field.name == name);
        let value = match field {
            Some(field) => typed(field, value).map_err(|why| {
                Error::usage(format!(
                    "the answer is invalid: {} {why}",
                    visible_line(name)
                ))
            })?,
            // The check rejects unknown fields and names the known ones.
            None => Raw::string(value),
        };
        members.push((name, value));
    }
    Ok(Raw::object(members))
}

/// Converts typed text to the type of the field.
fn typed(field: &Field, text: &str) -> Result<Raw, String> {
    match &field.kind {
        Kind::Text { .. } => Ok(Raw::string(text)),
        Kind::Number { .. } => {
            let text = text.trim();
            let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            Raw::parse(text.to_owned())
                .ok()
                .filter(|_| is_number)
                .ok_or_else(|| "must be a number".to_owned())
        }
        Kind::Flag => {
            let text = text.trim().to_ascii_lowercase();
            let flag = match text.as_str() {
                "true" | "yes" | "y" => "true",
                "false" | "no" | "n" => "false",
                _ => return Err("must be yes or no".to_owned()),
            };
            Raw::parse(flag).map_err(|error| error.to_string())
        }
        Kind::Choice { options } => Ok(Raw::string(chosen(options, text))),
        Kind::Choices { options, .. } => {
            if text.trim_start().starts_with('[') {
                return Raw::parse(text.trim().to_owned()).map_err(|error| error.to_string());
            }
            let texts = text
                .split(',')
                .map(str::trim)
                .filter(|text| !text.is_empty());
            Ok(Raw::array(
                texts.map(|text| Raw::string(chosen(options, text))),
            ))
        }
    }
}

/// The value of the option that the user chose by value or title. Text that matches no option is returned as
/// it is, and the check rejects it.
fn chosen<'a>(options: &'a [Choice], text: &'a str) -> &'a str {
    let text = text.trim();
    let by = |is_it: &dyn Fn(&Choice) -> bool| options.iter().find(|option| is_it(option));
    let found = by(&|option| option.value == text)
        .or_else(|| by(&|option| option.title.eq_ignore_ascii_case(text)));
    found.map_or(text, |option| option.value.as_str())
}

/// Asks for each field until the answer is valid.
fn ask(form: &Form) -> Result<Raw, Error> {
    let mut members: Vec<(&str, Raw)> = Vec::new();
    for field in form.fields() {
        print::data(&format!(
            "\n{}\n{}\n",
            visible_line(&field.name),
            indented(&show::about(field))
        ))?;
        if field.is_secret() {
            print::warn(
                "this looks like a password or key, and the server receives it as you type it; if you are not sure, leave it empty or press Ctrl-D to cancel",
            );
        }
        loop {
            let answer = line(field)?;
            if answer.is_empty() {
                match (&field.default, field.required) {
                    (None, true) => print::warn("this field is required"),
                    // The check fills in the default.
                    _ => break,
                }
                continue;
            }
            match fits(form, field, &answer) {
                Ok(value) => {
                    members.push((&field.name, value));
                    break;
                }
                Err(why) => print::warn(&why),
            }
        }
    }
    form.check(Some(&Raw::object(members)))
        .map_err(|problems| unfit(&problems))
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// Reads a line from the terminal, without its line break.
fn line(field: &Field) -> Result<String, Error> {
    let cannot = |error: &io::Error| Error::new(format!("cannot ask on the terminal: {error}"));
    let default = field.default.as_ref().map(pretty);
    let default = default.map(|default| format!(" [{default}]"));
    let mut to = io::stderr();
    write!(
        to,
        "{}{}: ",
        visible_line(&field.name),
        default.unwrap_or_default()
    )
    .and_then(|()| to.flush())
    .map_err(|error| cannot(&error))?;
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    if read.map_err(|error| cannot(&error))? == 0 {
        return Err(Error::new("nothing was sent"));
    }
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}

/// The answer to one field, if it is valid on its own.
fn fits(form: &Form, field: &Field, answer: &str) -> Result<Raw, String> {
    let value = typed(field, answer)?;
    let alone = Raw::object([(field.name.as_str(), value.clone())]);
    let path = format!("/{}", field.name.replace('~', "~0").replace('/', "~1"));
    // The other fields are still missing, so their errors are ignored.
    let problems = form.check(Some(&alone)).err().unwrap_or_default();
    match problems.iter().find(|problem| problem.path == path) {
        Some(problem) => Err(visible_line(&problem.message)),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &str) -> Form {
        let params = format!(
            r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{properties}}}}}"#
        );
        Form::read(&Raw::parse(params).unwrap())
    }

    #[test]
    fn answers_have_the_types_of_the_fields() {
        let form = form(
            r#"{"name":{"type":"string"},"age":{"type":"integer","minimum":0},"ok":{"type":"boolean"},
               "size":{"type":"string","enum":["s","m"],"enumNames":["Small","Middle"]},
               "tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}"#,
        );
        for (fields, expected) in [
            (&["name=12", "age=7"][..], r#"{"name":"12","age":7}"#),
            (&["ok=Yes", "name=a=b"], r#"{"ok":true,"name":"a=b"}"#),
            (&["size=middle"], r#"{"size":"m"}"#),
            (&["tags=a, b"], r#"{"tags":["a","b"]}"#),
            (&[r#"tags=["b"]"#], r#"{"tags":["b"]}"#),
        ] {
            let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
            let answer = content(&form, None, &fields, true).unwrap();
            assert_eq!(answer.as_str(), expected);
        }
        for (field, why) in [
            ("age=x", "age must be a number"),
            ("age=1.5", "age must be a whole number"),
            ("age=-1", "age must be at least 0"),
            ("ok=perhaps", "ok must be yes or no"),
            ("size=xl", "size must be one of"),
            ("aeg=1", "did you mean `age`?"),
            ("age", "--field age has no value"),
        ] {
            let failure = content(&form, None, &[field.to_owned()], true).unwrap_err();
            assert!(failure.message().contains(why), "{failure}");
        }
    }
}
