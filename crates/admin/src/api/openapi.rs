//! The description of the REST interface.

use axum::response::IntoResponse;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use switchboard_rest::OPENAPI as DESCRIPTION;

pub(super) async fn show() -> impl IntoResponse {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], DESCRIPTION)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::{
        super::{ROUTES, Verb},
        *,
    };

    const fn verb(verb: Verb) -> &'static str {
        match verb {
            Verb::Get => "get",
            Verb::Post => "post",
            Verb::Delete => "delete",
        }
    }

    #[test]
    fn description_has_every_route_and_no_other() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let mut described = BTreeSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (verb, operation) in item.as_object().unwrap() {
                if verb != "parameters" {
                    described.insert((path.clone(), verb.clone()));
                    assert!(operation["responses"].is_object(), "{verb} {path}");
                    assert!(operation["summary"].is_string(), "{verb} {path}");
                }
            }
        }
        let routed = ROUTES
            .iter()
            .map(|route| (route.path.to_owned(), verb(route.verb).to_owned()))
            .collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn enumerations_match_those_of_the_gateway() {
        use switchboard_base::health::ServerState;
        use switchboard_rest::words;
        use switchboard_store::OutcomeKind;

        assert_eq!(
            words::ServerState::ALL,
            ServerState::ALL.map(ServerState::as_str)
        );
        assert_eq!(
            words::Outcome::ALL,
            OutcomeKind::ALL.map(OutcomeKind::as_str)
        );
        let kinds = switchboard_approvals::Kind::ALL;
        assert_eq!(
            words::ApprovalKind::ALL,
            kinds.map(switchboard_approvals::Kind::as_str)
        );
        let statuses = switchboard_approvals::Status::ALL;
        assert_eq!(
            words::ApprovalStatus::ALL,
            statuses.map(switchboard_approvals::Status::as_str)
        );
    }

    #[test]
    fn description_has_the_common_error_statuses() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (verb, operation) in item.as_object().unwrap() {
                let mut wanted = Vec::new();
                if verb != "parameters" && operation["security"].is_null() {
                    wanted.extend(["401", "403", "503"]);
                }
                if !operation["requestBody"].is_null() {
                    wanted.extend(["400", "413", "415"]);
                }
                for status in wanted {
                    let told = &operation["responses"][status];
                    assert!(told.is_object(), "{verb} {path} {status}");
                }
            }
        }
    }

    #[test]
    fn references_in_the_description_resolve() {
        fn check(part: &Value, whole: &Value) {
            match part {
                Value::Object(members) => {
                    if let Some(Value::String(to)) = members.get("$ref") {
                        let pointer = to.strip_prefix('#').unwrap();
                        assert!(whole.pointer(pointer).is_some(), "{to}");
                    }
                    members.values().for_each(|member| check(member, whole));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, whole)),
                _ => {}
            }
        }
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        check(&description, &description);
    }
}
