//! Rules: any text as a rule, and any arguments to match.

#![allow(clippy::expect_used, reason = "to panic is what a check is for")]

use std::str;

use serde_json::json;
use switchboard_approvals::rules::{Action, Case, Guard, Kind, Rule, Rules};
use switchboard_wire::Raw;

/// The input is a rule, a line feed and arguments; without a line feed, all of it serves as the rule, the
/// value and the name.
///
/// A valid rule displays in a form that parses back, unless that form is prose. Evaluation terminates. Text
/// that matches a pattern is caught by it regardless of its other readings, and a call that an `allow` lets
/// pass is denied by a `deny` with the same pattern.
pub fn rules(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (rule, arguments) = text.split_once('\n').unwrap_or((text, text));
    if let Ok(rule) = Rule::parse_text(rule) {
        let shown = rule.to_string();
        let object = serde_json::to_value(&rule).expect("a rule is plain data");
        assert_eq!(Rule::parse(&object).as_ref(), Ok(&rule), "{shown}");
        if object.get("arguments").is_none()
            && object.get("annotations").is_none()
            && object.get("expires").is_none()
            && object.get("reason").is_none()
        {
            assert_eq!(Rule::parse_text(&shown).as_ref(), Ok(&rule), "{shown}");
        }
        judge(rule, arguments);
    }
    let value = Raw::object([("v", Raw::string(arguments))]);
    let verdict = |action: &str, pattern: &str| {
        let test = json!({ "action": action, "arguments": { "$.v": pattern } });
        let rule = Rule::parse(&test).ok()?;
        let rules = [rule, Rule::parse_text("ask *").expect("a rule")];
        let rules = Rules::new(rules.into(), [], Guard::Never).expect("two rules");
        let case = Case {
            arguments: Some(&value),
            ..Case::tool_call("s", "t")
        };
        Some(rules.judge(&case, 0).action)
    };
    let denied = verdict("deny", rule);
    if verdict("allow", rule) == Some(Action::Allow) {
        assert_eq!(denied, Some(Action::Deny), "{rule:?} {arguments:?}");
    }
    if rule == arguments && !rule.contains(['*', '?', '[']) && rule.len() < 1_000 {
        assert_eq!(denied.unwrap_or(Action::Deny), Action::Deny, "{rule:?}");
    }
}

/// Evaluates a case of every kind, with arbitrary arguments.
fn judge(rule: Rule, text: &str) {
    let arguments = Raw::parse(text.to_owned()).ok();
    let rules = Rules::new(vec![rule], [], Guard::Never).expect("one rule");
    for kind in [
        Kind::ToolCall,
        Kind::Resource,
        Kind::Prompt,
        Kind::Sampling,
        Kind::Elicitation,
    ] {
        let case = Case {
            kind,
            client: text,
            arguments: arguments.as_ref(),
            ..Case::tool_call("s", text)
        };
        let verdict = rules.judge(&case, 0);
        let is_plain = matches!(kind, Kind::ToolCall | Kind::Resource | Kind::Prompt);
        if is_plain && rules.asks_nothing(kind) {
            assert_eq!(verdict.action, Action::Allow, "{kind} {text:?}");
        }
    }
}
