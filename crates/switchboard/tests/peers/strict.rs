//! Signing in at `oidc-provider` where tokens are bound to a key (DPoP) with a nonce in each proof, and where no resource is
//! assumed that the client does not name.

use serde_json::{Value, json};
use switchboard_test_support::{
    Home, Tools,
    provider::{Provider, browse, enter},
};

use crate::login::{Login, add, assert_no_token, text};

#[test]
fn code_of_the_browser_gives_bound_tokens() {
    check("authorization_code");
}

#[test]
fn code_of_the_user_gives_bound_tokens() {
    check("device_code");
}

/// Signs in, and uses and renews the tokens.
#[track_caller]
fn check(grant: &str) {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::strict(&tools, 3_600);
    let oauth = json!({ "grant": grant });
    home.set_servers(json!({ "notes": { "url": provider.url(), "oauth": oauth } }));
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let mut login = Login::start(&home);
    let seen = if grant == "device_code" {
        let code = login.line();
        enter(&tools, &login.url, &code, "yes")
    } else {
        browse(&tools, &login.url, "yes")
    };
    assert!(seen.status.success(), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    // The key is kept with the tokens.
    provider.expire();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    serve.stop();
    provider.expire();
    let serve = home.serve();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    let book = provider.book();
    assert_eq!([&book["refreshes"], &book["reused"]], [2, 0], "{book}");
    let is_expected = |error: &Value| {
        let error = error.as_str().unwrap_or_default();
        error.contains("nonce") || error.contains("pending")
    };
    let errors = book["errors"].as_array().unwrap();
    assert!(errors.iter().all(is_expected), "{book}");
    assert!(
        errors.iter().any(|it| it.to_string().contains("nonce")),
        "{book}"
    );
    assert_no_token(&home, &provider, serve.pid());
}
