//! The exact messages for invalid configurations: position, problem and hint.

use super::{config, malformed, problems};

const ODD_ADDRESS: &str = "2:9: \"url\" has a character that is not allowed in a URL (remove spaces, backslashes and the part after a #; in a password, write %5C for a backslash and %23 for #)";

fn check(text: &str, expected: &[&str]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|line| format!("switchboard.json:{line}"))
        .collect();
    assert_eq!(problems(text), expected, "{text}");
}

/// Checks an entry on line 2, from column 8.
fn check_entry(entry: &str, expected: &[&str]) {
    check(
        &format!("{{\"mcpServers\": {{\n  \"s\": {entry}\n}}}}"),
        expected,
    );
}

#[test]
fn syntax() {
    for (text, expected) in [
        ("{", "1:1: this object is not closed: a } is missing"),
        ("{\n\"a\"", "1:1: this object is not closed: a } is missing"),
        (
            "{\"view\": [",
            "1:10: this list is not closed: a ] is missing",
        ),
        ("{\"view\":", "1:9: expected a value, but the file ends"),
        (
            "{\"view\" \"auto\"}",
            "1:9: expected a : after the key, not \"",
        ),
        (
            "{\"view: 1}",
            "1:2: this string is not closed: a \" is missing",
        ),
        (
            "{\"view\": \"auto\n\"}",
            "1:10: this string does not end on its line: a \" is missing",
        ),
        (
            "{'view': 1}",
            "1:2: expected a key in double quotes, not ' (put strings in double quotes)",
        ),
        ("{view: 1}", "1:2: expected a key in double quotes, not v"),
        ("{} {}", "1:4: expected the end of the file, not {"),
        (
            "{\"view\": auto}",
            "1:10: expected a value, not a bare word (put strings in double quotes)",
        ),
        (
            "{\"view\": True}",
            "1:10: \"True\" is not a value (write true)",
        ),
        ("{\"view\": 01}", "1:10: \"01\" is not a number"),
        ("{\"view\": 1.e3}", "1:10: \"1.e3\" is not a number"),
        ("{\"view\": -}", "1:10: \"-\" is not a number"),
        ("{\"view\": 1e+-3}", "1:10: \"1e+-3\" is not a number"),
        ("{\"view\": +1}", "1:10: expected a value, not +"),
        (
            "{\"view\": \"a\\x\"}",
            "1:12: unknown escape in a string (write \\\\ for a backslash)",
        ),
        (
            "{\"view\": \"\\u12g4\"}",
            "1:11: \\u must have four hexadecimal digits",
        ),
        (
            "{\"view\": \"\\ud800\"}",
            "1:11: this is half of a surrogate pair (write both halves)",
        ),
        (
            "{\"view\": \"a\tb\"}",
            "1:12: write this character as \\u0009 in a string",
        ),
        (
            "{}\n/* x",
            "2:1: this comment is not closed: a */ is missing",
        ),
        (
            "{\n# x\n}",
            "2:1: expected a key in double quotes, not # (start comments with //)",
        ),
        (
            "{\u{a0}\"view\": 1}",
            "1:2: expected a key in double quotes, not character U+00A0",
        ),
        (
            "{\"view\": \"auto\",, }",
            "1:17: expected a key in double quotes, not ,",
        ),
        ("{\"view\": [1}", "1:12: expected a comma or ], not }"),
        (
            "[]",
            "1:1: the configuration must be an object, not a list (put everything in { })",
        ),
    ] {
        check(text, &[expected]);
    }
}

#[test]
fn columns_count_characters_and_lines_count_line_ends() {
    check(
        "\u{feff}{\"x\": 1}",
        &["1:2: unknown key \"x\" (remove it; `switchboard schema` lists the keys)"],
    );
    check(
        "{ /* grüße */ \"view\": \"ä\",\r\n\t\"listen\": 5 }",
        &[
            "1:23: \"view\" must be \"auto\", \"search\" or \"direct\", not \"ä\"",
            "2:12: \"listen\" must be a string, not a number (put it in double quotes)",
        ],
    );
}

#[test]
fn all_problems_are_reported_in_order() {
    check(
        r#"{
  "veiw": "auto",
  "view": "serach"
  "mcpServers": {
    "a": { "comand": "npx" },
    "b": { "command": "npx", "args": "-y", "env": {"A": 1, "B": "${C}"} },
    "b": { "url": "https://example.com" },
    "c/d": { "command": "npx" },
    "e": 7
  },
  "auth": { "mcp": "off", "api": 1 },
  "shutdown": { "totalTimeoutMs": 0 }
}"#,
        &[
            "2:3: unknown key \"veiw\" (did you mean \"view\"?)",
            "3:11: \"view\" must be \"auto\", \"search\" or \"direct\", not \"serach\" (did you mean \"search\"?)",
            "3:19: a comma is missing here",
            "5:12: unknown key \"comand\" (did you mean \"command\"?)",
            "6:38: \"args\" must be a list of strings, not a string (put it in square brackets)",
            "6:57: \"A\" in \"env\" must be a string, not a number (put it in double quotes)",
            "6:65: unknown reference \"${C}\" (write ${env:C} for a variable, ${secret:C} for a secret, or $${ for a literal ${)",
            "7:5: duplicate key \"b\" (the first one is at 6:5; remove one of them)",
            "8:5: a server's name may not contain / or control characters (remove these characters)",
            "9:10: the server \"e\" must be an object, not a number",
            "11:20: \"mcp\" must be \"token\" or \"none\", not \"off\"",
            "11:27: unknown key \"api\" (the keys here are mcp)",
            "12:35: \"totalTimeoutMs\" must be a whole number from 1 to 86400000, not 0",
        ],
    );
}

#[test]
fn transport_problems_are_reported() {
    for (entry, expected) in [
        (
            "{}",
            "2:3: the server \"s\" has no \"command\", \"url\" or \"image\" (add a \"command\" to start, a \"url\" to connect to, or an \"image\" to run)",
        ),
        (
            r#"{"command": "a", "url": "http://b"}"#,
            "2:25: the server \"s\" has both \"command\" and \"url\" (keep one of them, or define two servers)",
        ),
        (
            r#"{"url": "http://b", "serverUrl": "http://c"}"#,
            "2:28: the server \"s\" has both \"url\" and \"serverUrl\" (keep one of them, or define two servers)",
        ),
        (r#"{"command": " "}"#, "2:9: \"command\" is empty"),
        (
            r#"{"command": ["npx", "-y"]}"#,
            "2:20: \"command\" must be a string, not a list (keep the program here and move the rest to \"args\")",
        ),
        (
            r#"{"url": "example.com/mcp"}"#,
            "2:9: \"url\" is not a URL (start it with http:// or https:// and a host, without spaces)",
        ),
        (
            r#"{"url": "ws://example.com"}"#,
            "2:9: \"url\" is not a URL (start it with http:// or https:// and a host, without spaces)",
        ),
        (
            r#"{"url": "http://127.0.0.1:1#@api.example/mcp"}"#,
            ODD_ADDRESS,
        ),
        (
            r#"{"url": "http://127.0.0.1:1\\@api.example/mcp"}"#,
            ODD_ADDRESS,
        ),
        (r#"{"url": "${env:HOST}\\@api.example"}"#, ODD_ADDRESS),
        (
            r#"{"url": "http:///x"}"#,
            "2:9: \"url\" is not a URL (start it with http:// or https:// and a host, without spaces)",
        ),
        (
            r#"{"image": "-v"}"#,
            "2:9: \"image\" is not the name of an image (use the notation of the engine, such as \"mcp/time\")",
        ),
        (
            r#"{"command": "a", "headers": {"X": "y"}}"#,
            "2:25: \"headers\" has no effect for a server with \"command\" (remove it, or pass it to the program through \"env\" or \"args\")",
        ),
        (
            r#"{"serverUrl": "http://a", "env": {"X": "y"}}"#,
            "2:34: \"env\" has no effect for a server with \"serverUrl\" (remove it, or send it in \"headers\")",
        ),
        (
            r#"{"command": "a", "isolation": {"pids": 1}}"#,
            "2:25: \"isolation\" has no effect for a server with \"command\" (use \"image\" instead of \"command\")",
        ),
        (
            r#"{"image": "a", "cwd": "/x"}"#,
            "2:23: \"cwd\" has no effect for a server with \"image\" (set \"runArgs\" in \"isolation\" to [\"--workdir\", \"DIR\"])",
        ),
        (
            r#"{"command": "a", "type": "sse"}"#,
            "2:25: \"sse\" contradicts \"command\" (remove \"type\", or change it to match \"command\")",
        ),
        (
            r#"{"url": "http://a", "type": "stdio"}"#,
            "2:28: \"stdio\" contradicts \"url\" (remove \"type\", or change it to match \"url\")",
        ),
        (
            r#"{"url": "http://a", "type": "sse", "transport": "http"}"#,
            "2:43: \"type\" and \"transport\" contradict each other (keep one of them)",
        ),
        (
            r#"{"url": "http://a", "type": "websocket"}"#,
            "2:36: \"type\" must be \"stdio\", \"local\", \"http\", \"streamable-http\", \"streamableHttp\", \"streamable_http\", \"remote\", \"http-only\" or \"sse\", not \"websocket\"",
        ),
        (
            r#"{"url": "http://a", "headers": {"a b": "c"}}"#,
            "2:40: \"a b\" is not a valid header name",
        ),
        (
            r#"{"url": "http://a", "headers": {"a": "c\r\nd: e"}}"#,
            "2:45: a header's value must be a single line",
        ),
        (
            r#"{"command": "a", "env": {"A=B": "c"}}"#,
            "2:33: \"A=B\" is not a valid variable name",
        ),
        (
            r#"{"command": "a", "args": ["\u0000"]}"#,
            "2:34: this string contains the character U+0000, which is not allowed",
        ),
    ] {
        check_entry(entry, &[expected]);
    }
}

#[test]
fn sign_in_problems_are_reported() {
    for (entry, expected) in [
        (
            r#"{"command": "a", "oauth": {"clientId": "x"}}"#,
            "2:25: \"oauth\" has no effect for a server with \"command\" (remove it)",
        ),
        (
            r#"{"url": "http://a", "headers": {"authorization": "x"}, "oauth": {}}"#,
            "2:63: \"oauth\" has no effect beside the header \"Authorization\" (remove one of them)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientSecret": "x"}}"#,
            "2:38: \"clientSecret\" has no effect without \"clientId\" (add \"clientId\", the ID of the client that you have registered)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": ""}}"#,
            "2:38: \"clientId\" is empty",
        ),
        (
            r#"{"url": "http://a", "oauth": {"client_id": "x"}}"#,
            "2:38: unknown key \"client_id\" (did you mean \"clientId\"?)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"grant": "client_credentials"}}"#,
            "2:38: a client that signs in for itself needs \"clientId\", and \"clientSecret\" or \"privateKey\" (add them, or remove \"grant\")",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "clientSecret": "y", "privateKey": "z"}}"#,
            "2:76: \"privateKey\" replaces \"clientSecret\" (remove one of them)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "assertionFile": "/y"}}"#,
            "2:55: \"assertionFile\" has no effect without \"grant\": \"jwt_bearer\" (set this grant, or remove the key)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "grant": "jwt_bearer"}}"#,
            "2:55: the assertion comes from either \"assertionFile\" or \"identityProvider\" (add one of them)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"grant": "jwt_bearer", "assertionFile": "/y"}}"#,
            "2:38: a client that presents an assertion needs \"clientId\" (add it, or remove \"grant\")",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "grant": "jwt_bearer", "assertionFile": "token"}}"#,
            "2:78: \"assertionFile\" is not the path of a file (write the whole path, which begins with /)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "identityProvider": {"tokenUrl": "https://b", "idTokenFile": "/c"}}}"#,
            "2:75: \"identityProvider\" needs \"clientId\"",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "x", "keyId": "y"}}"#,
            "2:55: \"keyId\" has no effect without \"privateKey\" (add the key, or remove its ID)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"redirectUri": "http://127.0.0.1/x", "grant": "device_code"}}"#,
            "2:38: \"redirectUri\" has no effect with \"grant\": \"device_code\" (remove one of them)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientMetadataUrl": "http://b/c"}}"#,
            "2:38: \"clientMetadataUrl\" is not an https:// URL (copy it from the documentation of the provider)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"authorizationParameters": {"state": "x", "prompt": "none"}}}"#,
            "2:38: the gateway sets the parameter \"state\" itself (remove it; \"clientId\", \"redirectUri\", \"scopes\" and \"resource\" have keys of their own)",
        ),
    ] {
        check_entry(entry, &[expected]);
    }
}

#[test]
fn trust_is_a_word_or_a_flag() {
    check_entry(
        r#"{"command": "a", "trust": "alwys"}"#,
        &[
            "2:34: \"trust\" must be \"first\", \"ask\" or \"always\" or true or false, not \"alwys\" (did you mean \"always\"?)",
        ],
    );
}

#[test]
fn invalid_values_of_a_server_are_reported() {
    for (entry, expected) in [
        (
            r#"{"command": "a", "enabled": true, "disabled": true}"#,
            "2:42: \"enabled\" and \"disabled\" contradict each other (keep one of them)",
        ),
        (
            r#"{"command": "a", "enabled": "true"}"#,
            "2:36: \"enabled\" must be true or false, not a string (write it without quotes)",
        ),
        (
            r#"{"command": "a", "timeout": 1800}"#,
            "2:25: 1800 is ambiguous: it may be seconds or milliseconds (replace \"timeout\" with \"requestTimeoutMs\", in milliseconds)",
        ),
        (
            r#"{"command": "a", "timeout": 1000}"#,
            "2:25: 1000 is ambiguous: it may be seconds or milliseconds (replace \"timeout\" with \"requestTimeoutMs\", in milliseconds)",
        ),
        (
            r#"{"command": "a", "timeout": 3600}"#,
            "2:25: 3600 is ambiguous: it may be seconds or milliseconds (replace \"timeout\" with \"requestTimeoutMs\", in milliseconds)",
        ),
        (
            r#"{"command": "a", "maxInFlight": 0}"#,
            "2:40: \"maxInFlight\" must be a whole number from 1 to 65536, not 0",
        ),
        (
            r#"{"command": "a", "maxInFlight": 1.5}"#,
            "2:40: \"maxInFlight\" must be a whole number from 1 to 65536, not 1.5",
        ),
        (
            r#"{"command": "a", "maxInFlight": 99999999999999999999}"#,
            "2:40: \"maxInFlight\" must be a whole number from 1 to 65536, not 99999999999999999999",
        ),
        (
            r#"{"command": "a", "start": "now"}"#,
            "2:34: \"start\" must be \"lazy\" or \"eager\", not \"now\"",
        ),
        (
            r#"{"command": "a", "tools": 1}"#,
            "2:34: \"tools\" must be an object or a list of strings, not a number",
        ),
        (
            r#"{"command": "a", "tools": {"alow": []}}"#,
            "2:35: unknown key \"alow\" (did you mean \"allow\"?)",
        ),
        (
            r#"{"command": "a", "tools": ["a"], "includeTools": ["b"]}"#,
            "2:41: \"includeTools\" and \"tools\" both list the tools to show (keep one of them)",
        ),
        (
            r#"{"command": "a", "approve": "write"}"#,
            "2:36: \"approve\" must be \"never\", \"destructive\", \"writes\" or \"all\", not \"write\" (did you mean \"writes\"?)",
        ),
        (
            r#"{"command": "a", "requestTimeout": 5}"#,
            "2:25: unknown key \"requestTimeout\" (did you mean \"requestTimeoutMs\"?)",
        ),
        (
            r#"{"command": "a", "workingDirectory": "/"}"#,
            "2:25: unknown key \"workingDirectory\" (did you mean \"cwd\"?)",
        ),
        (
            r#"{"command": "a", "flavour": "sweet"}"#,
            "2:25: unknown key \"flavour\" (remove it; `switchboard schema` lists the keys)",
        ),
        (
            r#"{"image": "a", "isolation": {"memory": "much"}}"#,
            "2:37: \"memory\" is not an amount of memory (write it like \"512m\" or \"2g\")",
        ),
        (
            r#"{"image": "a", "isolation": {"cpus": "all"}}"#,
            "2:37: \"cpus\" must be a number above 0",
        ),
        (
            r#"{"image": "a", "isolation": {"cpus": -1}}"#,
            "2:45: \"cpus\" must be a number above 0 or a string, not a number",
        ),
        (
            r#"{"image": "a", "isolation": {"mounts": ["/data"]}}"#,
            "2:48: a mount needs a source and a target (write \"SOURCE:TARGET\")",
        ),
        (
            r#"{"image": "a", "isolation": {"network": ""}}"#,
            "2:37: \"network\" is empty (write a name, true for the engine's default network, or false for none)",
        ),
        (
            r#"{"image": "a", "isolation": {"engine": ""}}"#,
            "2:37: \"engine\" is empty",
        ),
        (
            r#"{"image": "a", "isolation": {"volumes": []}}"#,
            "2:37: unknown key \"volumes\" (did you mean \"mounts\"?)",
        ),
    ] {
        check_entry(entry, &[expected]);
    }
}

#[test]
fn malformed_reference_concerns_its_server_alone() {
    for (entry, expected) in [
        (
            r#"{"command": "a", "args": ["--root=${projct}"]}"#,
            "3:34: unknown reference \"${projct}\" (did you mean ${project}?)",
        ),
        (
            r#"{"command": "a", "cwd": "${secret:../x}"}"#,
            "3:32: \"../x\" is not a valid name for a secret (use up to 128 letters, digits, _, - and dots, with no dot at the start)",
        ),
        (
            r#"{"command": "${HOME}/a", "env": {"A": "${Client}"}}"#,
            "3:20: unknown reference \"${HOME}\" (write ${env:HOME} for a variable, ${secret:HOME} for a secret, or $${ for a literal ${)",
        ),
        (
            r#"{"env": {"A": "${Client}"}, "command": "${HOME}/a"}"#,
            "3:22: unknown reference \"${Client}\" (did you mean ${client}?)",
        ),
        (
            r#"{"url": "${env:}"}"#,
            "3:16: \"\" is not a valid variable name (write ${env:NAME})",
        ),
        (
            r#"{"url": "http://a", "headers": {"A": "${project.nme}"}}"#,
            "3:45: unknown reference \"${project.nme}\" (did you mean ${project.name}?)",
        ),
        (
            r#"{"url": "http://a", "oauth": {"clientId": "${cliemt}"}}"#,
            "3:50: unknown reference \"${cliemt}\" (did you mean ${client}?)",
        ),
        (
            r#"{"image": "${project", "args": ["a"]}"#,
            "3:18: a ${ in this string has no closing } (add the }, or write $${ for a literal ${)",
        ),
        (
            r#"{"image": "a", "isolation": {"mounts": ["${projct}:/a"]}}"#,
            "3:48: unknown reference \"${projct}\" (did you mean ${project}?)",
        ),
        (
            r#"{"image": "a", "isolation": {"runArgs": ["-v=${projct}"]}}"#,
            "3:49: unknown reference \"${projct}\" (did you mean ${project}?)",
        ),
    ] {
        let good = r#"{"command": "a", "args": ["${project}", "$${projct}"]}"#;
        let text = format!("{{\"mcpServers\": {{\n  \"g\": {good},\n  \"s\": {entry}\n}}}}");
        let told = malformed(&text, "s");
        let expected = format!("switchboard.json:{expected}");
        assert_eq!(told.as_deref(), Some(&*expected), "{text}");
        assert_eq!(malformed(&text, "g"), None);
        // Another problem rejects the file, and then all are reported.
        let wrong = text.replacen('{', "{\"veiw\": 1, ", 1);
        let all = problems(&wrong);
        assert!(all[0].contains("did you mean \"view\"?"), "{all:?}");
        assert!(all.contains(&expected), "{all:?}");
    }
}

#[test]
fn address_reachable_by_others_is_refused() {
    check(
        r#"{"listen": "0.0.0.0:7777"}"#,
        &[
            "1:2: \"listen\": the gateway listens on loopback addresses only, because it has no TLS and every machine on the network could use its servers (use 127.0.0.1:PORT; to reach it from another machine, use a tunnel or a proxy with TLS)",
        ],
    );
    check(
        r#"{"listen": "7777"}"#,
        &["1:2: \"listen\": the address must be HOST:PORT, such as 127.0.0.1:7777"],
    );
}

#[test]
fn provider_needs_kind_and_model() {
    check(
        r#"{"sampling": {"provider": {"apiKey": "${KEY}"}}}"#,
        &[
            "1:27: \"provider\" needs \"kind\"",
            "1:27: \"provider\" needs \"model\"",
            "1:38: unknown reference \"${KEY}\" (write ${env:KEY} for a variable, ${secret:KEY} for a secret, or $${ for a literal ${)",
        ],
    );
}

#[test]
fn problems_of_approvals_are_reported() {
    check(
        r#"{"approvals": {"tools": "never", "rules": ["ask", {"action": "aks"}, 1e999]}}"#,
        &[
            "1:25: \"tools\" must be \"rules\", \"destructive\", \"writes\" or \"all\", not \"never\"",
            "1:44: \"rules\": invalid rule \"ask\": it names no tools (write `*` for all) (write `ACTION [KIND] SERVER:TOOL [@CLIENT]`, as in `ask files:delete_* @claude*`)",
            "1:51: \"rules\": unknown action \"aks\" (did you mean `ask`?)",
            "1:70: this number is too large",
            "1:70: \"rules\": a rule must be a string such as `ask files:delete_*`, or an object",
        ],
    );
    check(
        r#"{"approvals": {"webhook": {"url": "ftp://a", "secret": "", "on": ["escalate"]}}}"#,
        &[
            "1:28: \"url\" is not a URL (start it with http:// or https:// and a host, without spaces)",
            "1:46: \"secret\" is empty, so the gateway cannot sign messages",
            "1:67: \"on\" must be \"created\", \"escalated\", \"changed\", \"decided\", \"expired\", \"withdrawn\" or \"delivered\", not \"escalate\" (did you mean \"escalated\"?)",
        ],
    );
    check(
        r#"{"approvals": {"webhook": {"on": "decided"}, "notify": true}}"#,
        &[
            "1:27: \"webhook\" needs \"url\"",
            "1:27: \"webhook\" needs \"secret\"",
            "1:34: \"on\" must be a list of \"created\", \"escalated\", \"changed\", \"decided\", \"expired\", \"withdrawn\" or \"delivered\", not a string (put it in square brackets)",
            "1:56: \"notify\" must be \"auto\" or \"off\", not true or false",
        ],
    );
}

#[test]
fn problems_of_prices_are_reported() {
    check(
        r#"{"sampling": {"provider": {"kind": "openai", "model": "m", "maxTokens": 0, "prices": {"input": -1}}}}"#,
        &[
            "1:73: \"maxTokens\" must be a whole number from 1 to 1073741824, not 0",
            "1:86: \"prices\" needs \"output\"",
            "1:96: \"input\" must be a number of at least 0, not -1",
        ],
    );
}

#[test]
fn no_message_repeats_a_secret() {
    let text = r#"{"mcpServers": {"s": {
        "url": "s3cret url", "args": ["s3cret"], "env": {"A": "s3cret ${"},
        "headers": {"A": "s3cret\n ${", "B": ["s3cret"]} } },
        "sampling": {"provider": {"kind": "s", "model": "m", "apiKey": "s3cret${"}},
        "approvals": {"webhook": {"url": "s3cret", "secret": "s3cret${"}} }"#;
    let problems = problems(text);
    assert!(problems.len() >= 6, "{problems:#?}");
    for line in problems {
        assert!(!line.contains("s3cret"), "{line}");
    }
}

#[test]
fn long_report_is_truncated() {
    let keys: Vec<_> = (0..500).map(|at| format!("\"key {at}\": 1")).collect();
    let problems = problems(&format!("{{{}}}", keys.join(",\n")));
    assert_eq!(problems.len(), 101);
    assert_eq!(
        problems[100],
        "switchboard.json:100:1: 400 more problems are not shown"
    );
}

#[test]
fn comments_commas_and_empty_texts_are_valid() {
    for text in [
        "",
        " \n",
        "\u{feff}",
        "// nothing yet",
        "/* nothing */ /* yet */",
        "{}",
        "\u{feff}{ /**/ \"mcpServers\" /* a */ : // b\r\n { } , /* ** / */ }",
        "{\"mcpServers\": {},}//",
    ] {
        assert_eq!(
            config(text),
            switchboard_config::Config::default(),
            "{text:?}"
        );
    }
}

#[test]
fn inherited_variables_are_checked() {
    check_entry(
        r#"{"command": "x", "inheritEnv": ["AWS_*", ""]}"#,
        &[
            r#"2:40: "AWS_*" is not a valid variable name (write one name, such as "KUBECONFIG")"#,
            r#"2:49: "" is not a valid variable name (write one name, such as "KUBECONFIG")"#,
        ],
    );
    check_entry(
        r#"{"image": "x", "inheritEnv": ["TZ"]}"#,
        &[
            r#"2:23: "inheritEnv" has no effect for a server with "image" (set the variable in "env", such as {"TZ": "${env:TZ}"})"#,
        ],
    );
    check_entry(
        r#"{"url": "http://h/", "inheritEnv": true}"#,
        &[r#"2:29: "inheritEnv" has no effect for a server with "url" (remove it)"#],
    );
}

#[test]
fn pasted_secrets_are_not_quoted() {
    let token = "ghp_Zx9QwErTy1234567890AbCdEfGhIjKlMnOpQ";
    for text in [
        format!(
            "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"env\": {{\"KEY\": {token}}}}}}}}}"
        ),
        format!("{{\"{token}\": 1}}"),
        format!("{{\"view\": \"{token}\"}}"),
        format!("{{\"view\": \"auto\", \"view\": \"{token}\"}}"),
        format!("{{\"sampling\": {{\"provider\": {{\"apiKey\": \"${{{token}}}\"}}}}}}"),
    ] {
        let shown = problems(&text).join("\n");
        assert!(!shown.is_empty(), "{text}");
        assert!(!shown.contains(&token[8..30]), "{shown}");
    }
    let text = format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"${{{token}}}\"}}}}}}");
    let shown = malformed(&text, "a").unwrap();
    assert!(!shown.contains(&token[8..30]), "{shown}");
}

#[test]
fn overrides() {
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"name": "c"}, "b": {"name": "c"}}}"#,
        &[
            "2:59: the overrides of \"a\" and \"b\" have the same name, \"c\" (change the \"name\" of one of them)",
        ],
    );
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"name": "b"}, "b": {"description": "x"}}}"#,
        &[
            "2:59: the overrides of \"a\" and \"b\" have the same name, \"b\" (change the \"name\" of one of them)",
        ],
    );
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"name": "b"}, "b": {"hidden": true}}}"#,
        &[],
    );
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"name": "b c"}, "b": 1}}"#,
        &[
            "2:45: \"b c\" is not a valid tool name (use at most 64 letters, digits, \"_\", \"-\" and \".\")",
            "2:66: the override \"b\" must be an object, not a number",
        ],
    );
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"arguments": {"r": {}, "s": {"fixed": 1}}}}}"#,
        &[
            "2:59: the override of the argument \"r\" is empty (set its \"value\", or \"hidden\" to true)",
            "2:74: unknown key \"fixed\" (did you mean \"value\"?)",
        ],
    );
    check(
        r#"{"profiles": {"p": {"memory": {"namespace": " "}}}}"#,
        &["1:32: \"namespace\" is empty (name a namespace, such as \"work\")"],
    );
    check(
        r#"{"mcpServers": {"memory": {"command": "x"}}, "profiles": {"p": {"memory": {"namespace": "a"}}}}"#,
        &[
            "1:76: \"namespace\" has no effect: the server \"memory\" replaces the built-in memory (rename that server, or remove this key)",
        ],
    );
    check_entry(
        r#"{"command": "x", "overrides": {"a": {"annotations": {"readOnlyHint": true, "destructiveHint": true}}}}"#,
        &[
            "2:45: \"readOnlyHint\" and \"destructiveHint\" contradict each other (keep one of them)",
        ],
    );
}
