//! The messages: of the sizes and shapes that pass through a gateway, with nothing in them that a typed model
//! does not know, so that all contenders have the same work.

use std::fmt::Write;

use bytes::Bytes;

pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) frame: Bytes,
    pub(super) direction: Direction,
}

/// The sender of a message. rmcp has one message type for each.
pub(super) enum Direction {
    FromServer,
    FromClient,
}

pub(super) fn all() -> [Sample; 4] {
    [
        Sample {
            name: "tools/call request",
            frame: request().into(),
            direction: Direction::FromClient,
        },
        Sample {
            name: "text result",
            frame: text_result().into(),
            direction: Direction::FromServer,
        },
        Sample {
            name: "tools/list, 50 tools",
            frame: tools(50).into(),
            direction: Direction::FromServer,
        },
        Sample {
            name: "structured result",
            frame: structured_result(180).into(),
            direction: Direction::FromServer,
        },
    ]
}

/// About 300 bytes.
fn request() -> String {
    r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search_issues","arguments":{"repository":"switchboard","query":"is:open label:\"needs triage\" sort:updated-desc","page":3,"per_page":50,"include_closed":false,"labels":["bug","regression"]},"_meta":{"progressToken":17}}}"#.to_owned()
}

/// About 1 KB of output from a tool that reads a file.
fn text_result() -> String {
    let line = r#"pub fn parse(input: &str) -> Result<Frame, \"Error\"> {\n    // line %\n    let mut at = 0;\n"#;
    let mut text = String::new();
    for number in 0..9 {
        text.push_str(&line.replace('%', &number.to_string()));
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":18,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// About 1.2 KB per tool: a description of a few sentences and a schema with seven parameters.
fn tools(count: usize) -> String {
    let mut tools = String::new();
    for number in 0..count {
        if number > 0 {
            tools.push(',');
        }
        let _ = write!(
            tools,
            concat!(
                r#"{{"name":"repository_search_{n}","title":"Search repository {n}","#,
                r#""description":"Searches the files of a repository for a pattern and gives the lines that match, each with its path and number. Use it to find where a name is defined or used; use read_file to see more of a file. Results are ordered by relevance and cut off at the limit.","#,
                r#""inputSchema":{{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{{"#,
                r#""pattern":{{"type":"string","description":"What to look for: a regular expression","minLength":1}},"#,
                r#""path":{{"type":"string","description":"Only below this folder","default":"."}},"#,
                r#""case":{{"type":"string","enum":["sensitive","insensitive","smart"],"default":"smart"}},"#,
                r#""include":{{"type":"array","items":{{"type":"string"}},"description":"Globs of files to search"}},"#,
                r#""context":{{"type":"integer","minimum":0,"maximum":20,"default":{n}}},"#,
                r#""limit":{{"type":"integer","minimum":1,"maximum":1000,"default":100}},"#,
                r#""hidden":{{"type":"boolean","description":"Search hidden files, too","default":false}}}},"#,
                r#""required":["pattern"],"additionalProperties":false}},"#,
                r#""annotations":{{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}}}"#,
            ),
            n = number,
        );
    }
    format!(r#"{{"jsonrpc":"2.0","id":19,"result":{{"tools":[{tools}]}}}}"#)
}

/// About 220 bytes per row: the result of a tool that runs a query.
fn structured_result(count: usize) -> String {
    let mut rows = String::new();
    for number in 0..count {
        if number > 0 {
            rows.push(',');
        }
        let _ = write!(
            rows,
            concat!(
                r#"{{"id":{n},"name":"service-{n}","region":"eu-central-1","healthy":{healthy},"#,
                r#""load":[0.{n},1.25,{n}.5],"version":{{"major":3,"minor":{n},"commit":"9f8e7d6c5b4a"}},"#,
                r#""owner":{{"team":"platform","contact":null}},"note":"restarted \"cleanly\" at 04:{n}"}}"#,
            ),
            n = number + 10,
            healthy = number % 7 != 0,
        );
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":20,"result":{{"content":[{{"type":"text","text":"{count} services"}}],"structuredContent":{{"services":[{rows}],"total":{count}}},"isError":false}}}}"#
    )
}
