//! Texts that a shell or curl expands to `..` or to a host, and similar harmless texts.

use proptest::prelude::*;
use serde_json::json;
use switchboard_approvals::rules::Action;

use crate::evasions::assert_all;
use crate::spellings::of_text;

/// Paths that may lead from `/tmp` to `/etc/passwd`.
const CLIMBS: &[&str] = &[
    "/tmp/{..,x}/etc/passwd",
    "/tmp/{x,..}/etc/passwd",
    "/tmp/{..}/etc/passwd",
    "/tmp/.{.}/etc/passwd",
    "/tmp/.{.,q}/etc/passwd",
    "/tmp/{.,q}./etc/passwd",
    "/tmp/{.,q}{q,.}/etc/passwd",
    "/tmp/{{a,.},b}./etc/passwd",
    "/tmp/{,x}../etc/passwd",
    "/tmp/.{,x}./etc/passwd",
    "/tmp/{../etc/passwd,x}",
    "/tmp/{x/..,..}/etc/passwd",
    "/tmp{/..,x}/etc/passwd",
    "/tmp/{..;a,x}/etc/passwd",
    "/tmp/%7b..,x%7d/etc/passwd",
    "/tmp/\u{ff5b}..,x\u{ff5d}/etc/passwd",
    "/tmp\\{..,x}\\etc\\passwd",
    "/tmp/{'..',x}/etc/passwd",
    "/tmp/{\"..\",x}/etc/passwd",
    "/tmp/{\\..,x}/etc/passwd",
    "/tmp/{(,..}/etc/passwd",
    "/tmp/{[,..}/etc/passwd",
    "/tmp/.{.}?x",
    "/tmp/{x},..}/etc/passwd",
    "/tmp/{x\\},..}/etc/passwd",
    "/tmp/{\"}\",..}/etc/passwd",
    "/tmp/{..,\\{}/etc/passwd",
    "/tmp/{..,\"{\"}/etc/passwd",
    "/tmp/{\\},..,\\{}/etc/passwd",
    "{..,x}/etc/passwd",
    "file:///tmp/{..,x}/etc/passwd",
    "file:///tmp/.{.}/etc/passwd",
    "~/{..,x}/etc/passwd",
    "/tmp/.*/etc/passwd",
    "/tmp/..*/etc/passwd",
    "/tmp/.?/etc/passwd",
    "/tmp/.[.]/etc/passwd",
    "/tmp/.[!a]/etc/passwd",
    "/tmp/.[+-0]/etc/passwd",
    "/tmp/.[[:punct:]]/etc/passwd",
    "/tmp/[.][.]/etc/passwd",
    "/tmp/[.]./etc/passwd",
    "/tmp/[..]/etc/passwd",
    "/tmp/@(..|x)/etc/passwd",
    "/tmp/@(..)/etc/passwd",
    "/tmp/(..)/etc/passwd",
    "/tmp/+(.)/etc/passwd",
    "/tmp/.!(x)/etc/passwd",
    "/tmp/..?(x)/etc/passwd",
    "/tmp/.$x./etc/passwd",
    "/tmp/.$@./etc/passwd",
    "/tmp/$'..'/etc/passwd",
    "/tmp/$\"..\"/etc/passwd",
    "/tmp/$'\\x2e\\x2e'/etc/passwd",
    "$'/etc/x'",
    "src/.\\./.\\./.\\./etc/passwd",
    "$\"/etc/x\"",
];

#[test]
fn expansions_that_may_climb_are_denied() {
    for text in CLIMBS {
        assert_all(Action::Deny, &[("/etc/*", text), ("matches ^/etc/", text)]);
        assert_eq!(
            of_text("ask", &json!("/etc/*"), text),
            Action::Ask,
            "{text}"
        );
    }
    for text in CLIMBS.iter().filter(|text| text.starts_with("/tmp/")) {
        for test in [json!("/tmp/*"), json!({ "matches": "^/tmp/" })] {
            let found = of_text("allow", &test, text);
            assert_eq!(found, Action::Ask, "{test} {text}");
        }
    }
}

#[test]
fn expansions_without_dots_are_allowed() {
    for text in [
        "/data/{a,b}/x",
        "/data/{a,b}.{txt,md}",
        "/data/{a..z}/x",
        "/data/{1..3}/x",
        "/data/*.txt",
        "/data/*.*",
        "/data/*",
        "/data/*/x",
        "/data/**/x",
        "/data/**/.*rc",
        "/data/.*rc",
        "/data/.[a-z]*",
        "/data/.??*",
        "/data/??/x",
        "/data/.{git,hg}/config",
        "/data/...*",
        "/data/[id]/page.tsx",
        "/data/[...slug]/page.tsx",
        "/data/[[...slug]]/page.tsx",
        "/data/(group)/page.tsx",
        "/data/(..)photo/page.tsx",
        "/data/Report (1).pdf",
        "/data/{x,..y}/z",
        "/data/$x/y.txt",
        "/data/it's $5.txt",
    ] {
        let found = of_text("allow", &json!("/data/*"), text);
        assert_eq!(found, Action::Allow, "{text}");
        assert_all(
            Action::Allow,
            &[
                ("/etc/*", text),
                ("~/.ssh/*", text),
                ("matches ^/etc/", text),
            ],
        );
    }
    assert_all(
        Action::Allow,
        &[
            ("/etc/*", "let Foo { a, .. } = x/y;"),
            ("/etc/*", "{ a, .. }"),
            ("/etc/*", "grep 'x$' notes"),
            ("/etc/*", "grep 'a\\.b$' notes"),
            ("/etc/*", "src/**/*.rs"),
            ("/etc/*", "https://\u{645}\u{663}.example/x"),
            ("/etc/*", "*.*"),
            ("matches /internal/", "see (../x) and [..] there"),
        ],
    );
}

#[test]
fn addresses_that_may_climb_are_denied() {
    for path in [
        "{..,x}/admin/y",
        ".{.}/admin/y",
        ".{.,q}/admin/y",
        "%7B..,x%7D/admin/y",
        ".[.]/admin/y",
        "{../admin/y,x}",
    ] {
        let text = format!("http://127.0.0.1:18762/pub/{path}");
        assert_all(Action::Deny, &[("http://127.0.0.1:18762/admin/*", &text)]);
        let found = of_text("allow", &json!("http://127.0.0.1:18762/pub/*"), &text);
        assert_eq!(found, Action::Ask, "{text}");
    }
    let across = "http://127.0.0.1:18762{/pub/..,/x}/admin/y";
    assert_all(Action::Deny, &[("http://127.0.0.1:18762/admin/*", across)]);
    for path in ["{a,b}/x", "[1-3].txt", "x?q=.*", "*.js", "a.b?c=d"] {
        let text = format!("http://127.0.0.1:18762/pub/{path}");
        let found = of_text("allow", &json!("http://127.0.0.1:18762/pub/*"), &text);
        assert_eq!(found, Action::Allow, "{text}");
        assert_all(Action::Allow, &[("http://127.0.0.1:18762/admin/*", &text)]);
    }
    // Other hosts cannot be reached.
    assert_all(
        Action::Allow,
        &[
            ("http://ok.example/*", "http://x.example/{..,x}/y"),
            ("/etc/*", "http://x.example/{..,x}/etc/y"),
        ],
    );
}

#[test]
fn expanded_hosts_without_scheme_are_denied() {
    let metadata = "http://169.254.169.254/*";
    for text in [
        "{169.254.169.254}/x",
        "169.254.169.{254}:80/x",
        "169.254.169.254:{80}/x",
        "169.254.169.[254-254]/x",
        "169.254.169.[1-254]/x",
        "[1-1]69.254.169.254/x",
        "{169.254.169.254/x}",
        "{x,169.254.169.254/x}",
        "169.254.169.{254/x}",
        "u@169.254.169.{254}/x",
        "285203916{6}/x",
        "[2-2]852039166/x",
        "285203916[5-7]/x",
        "http://285203916{6}/x",
        "http://285203916[5-7]/x",
        "http://u@285203916{5,6}:80/x",
        "0xA9FEA9F{E}/x",
        "{169.254.169.254}",
        "169.254.169.{253,254}",
        "169.254.169.[254-254]",
        "{http}://{169.254.169.254}/x",
        "{http}://[1-1]69.254.169.254/x",
        "169.254.169.254\\x",
        // There are too many spellings to look at.
        "{http}://x[1-250]/a;b%252525252541?c/../d",
    ] {
        assert_all(Action::Deny, &[(metadata, text)]);
    }
    // There are too many hosts to list, so it may be any.
    let many = format!("285203916{{{}6}}/x", "a,".repeat(300));
    let long = format!("285203916{{6}}/{}", "x".repeat(1_000));
    for text in [many, long] {
        assert_all(Action::Deny, &[(metadata, &text)]);
        let text = format!("http://{text}");
        assert_all(Action::Deny, &[(metadata, &text)]);
    }
    assert_all(
        Action::Deny,
        &[
            ("http://localhost*", "localhos{t}/"),
            ("http://localhost*", "loca{l}host:80/"),
            ("http://localhost*", "{x,localhost}/"),
            ("http://localhost*", "localhos{t}"),
            ("http://intranet:8080/*", "intrane{t}:8080/x"),
            ("https://admin.example/*", "admin.exampl{e}/x"),
            ("https://db01.corp/*", "db[01-01].corp"),
            ("https://admin.example/*", "{admin,www}.example/x"),
            ("http://[::1]/*", "[::{1}]/x"),
            ("http://[::1]/*", "http://[::{1}]/x"),
        ],
    );
    for text in [
        "169.254.168.{254}/x",
        "10.0.0.[1-254]/x",
        "http://10.0.0.[1-254]/x",
        "{id}/x",
        "{a,b}/x",
        "[id]/page.tsx",
        "src/{a.b,c}/x",
        "*.{txt,md}",
        "{a.txt,b.txt}",
        "[1.5,2.5]",
        "{a:1}",
        "{\"a.b\":\"c/d\"}",
        "{ a.b / c }",
    ] {
        assert_all(Action::Allow, &[(metadata, text), ("http://o*", text)]);
    }
}

#[test]
fn braces_are_expanded_before_parsing_addresses() {
    let metadata = "http://169.254.169.254/*";
    let local = "http://127.0.0.1:18762/*";
    let admin = "http://127.0.0.1:18762/admin/*";
    assert_all(
        Action::Deny,
        &[
            (metadata, "http://u{@}169.254.169.254/x"),
            (metadata, "u{@}169.254.169.254/x"),
            (metadata, "{http://169.254.169.254}/x"),
            (metadata, "htt{p://169.254.169.254}/x"),
            (metadata, "{http://ok/,http://169.254.169.254/}x"),
            (metadata, "%7bhttp://169.254.169.254%7d/x"),
            (metadata, "\"{http://169.254.169.254}/x\""),
            (metadata, "http://u{@}169.254.169.254/x y"),
            ("https://admin.example/*", "https://u{@}admin.example/x"),
            ("https://admin.example/*", "https://u{@}admin.example"),
            ("/etc/*", "{file:///etc}/passwd"),
            ("/etc/*", "file{:///etc}/passwd"),
            ("/etc/*", "file://{/x,/etc/passwd}"),
            ("/etc/*", "{file:///x,file:///etc/passwd}"),
            ("matches ^/etc/", "{file:///etc}/passwd"),
            ("file:///etc/*", "{file:///etc}/x"),
            (local, "{u@}127.0.0.1:18762/admin/x"),
            (local, "http://u{:p@,:q@}127.0.0.1:18762/admin/x"),
            (local, "u{\\@}127.0.0.1:18762/admin/x"),
            (local, "http://ok{/,@127.0.0.1:18762/admin/}x"),
            (local, "{/x,127.0.0.1:18762/admin/x}"),
            (local, "127{/y,.0.0.1:18762/admin/x}"),
            (local, "{x/,127.0.0.1:18762/admin/}x"),
            (local, "http://[::ffff:7f00:1]:{18762}/admin/x"),
            (local, "u\\@127.0.0.[1-300]:18762/admin/x"),
            (admin, "[::ffff:7f00:1]:18762/pub/{.\\.,x}/admin/x"),
            (admin, "{http}://u%23@127.0.0.1:18762/%61dmin/x"),
            (admin, "{x\\},127.0.0.1:18762/admin/x}"),
            (admin, "{x\\},http}://127.0.0.1:18762/admin/x"),
            (admin, "htt{x\\},p}://127.0.0.1:18762/admin/x"),
            (admin, "{x\\{,http}://127.0.0.1:18762/admin/x"),
            (admin, "{a b,http://127.0.0.1:18762/admin/x}"),
            (admin, "{a b,http}://127.0.0.1:18762/admin/x"),
            (admin, "127.0.0.[1- 1]:18762/admin/x"),
            (admin, "127.0.0.[1-1: 1]:18762/admin/x"),
            (admin, "{a},http}://127.0.0.1:18762/admin/x"),
            (admin, "{\"}\",http}://127.0.0.1:18762/admin/x"),
            (admin, "127.0.0.{1..3}:18762/admin/x"),
            (admin, "{1..3}27.0.0.1:18762/admin/x"),
            (admin, "htt{p..p}://127.0.0.1:18762/admin/x"),
            (local, "12{7.0.0,x y}.1:18762/x"),
            (local, "12{7\u{a0},7}.0.0.1:18762/x"),
            ("*127.0.0.1*", "12{7.0.0,x y}.1:18762/x"),
            ("*127.0.0.1*", "127.0.0.[1- 1]:18762/x"),
            ("*://127.0.0.1:18762/*", "http://127.0.0.[1- 1]:18762/x"),
            (metadata, "{u:p@169.254.169.254}:80/x"),
            (metadata, "{u:p@}169.254.169.254:/x"),
            (metadata, "{u:p@2852039166}/x"),
            ("http://evil.test/*", "{u:p@evil.test}:80/x"),
            ("/etc/*", "file:///%6{5}tc/passwd?[a-z][a-z]"),
            ("matches ^/etc/", "file:///%6{5}tc/passwd?[a-z][a-z]"),
            (metadata, "htt{p}://169.254.169.254:80/x?[a-z][a-z]"),
            (metadata, "htt{p}://169.254.169.254:[1-99]/x"),
            (metadata, "h[t-t]tp://169.254.169.254:[1-99]/x"),
            (metadata, "htt{p}://169.254.169.254?[a-z][a-z]"),
            (metadata, "htt{p}://0251.0376.0251.0376/x?[a-z][a-z]"),
            (metadata, "htt{p..p}://169.254.169.254:80/x"),
            ("http://evil.test/*", "htt{p}://evil.test:/x?[a-z][a-z]"),
            ("http://evil.test/*", "htt{p}://evil.test:[1-99]/x"),
            ("http://evil.test/*", "http://evil.test:[1-99]/x"),
            (
                "http://evil.test/admin/*",
                "htt{p}://evil.test/./admin/x?[a-z][a-z]",
            ),
            (
                "http://evil.test/admin/*",
                "http://evil.test/%6{1}dmin/x?[a-z][a-z]",
            ),
            ("~/.ssh/*", "{file}:///var/home/me/.ssh/id_[a-z][a-z]"),
            ("~/.ssh/*", "{x,~root}/.ssh/id{,1}{,2}{,3}{,4}{,5}{,6}"),
            ("~/.ssh/*", "{x,$HOME}/.ssh/id{,1}{,2}{,3}{,4}{,5}{,6}"),
            ("file:///etc/ssh/*", "{file}:///etc//ssh/x?[a-z][a-z]"),
            ("/etc/passwd", "{file}:///etc/passwd?[a-z][a-z]"),
            ("*/etc/shadow", "/e{t..t}c/./shadow"),
            ("*/etc/shadow", "/e{t..t}c//shadow"),
            ("*/etc/shadow", "/e{t..t}c/shadow\"\""),
            ("*/.ssh/id_rsa", "~/.s{s..s}h/./id_rsa"),
            (metadata, "{x\\},http}://2852039166/x"),
            (metadata, "{a},http}://2852039166/x"),
            (metadata, "{?,http://285203916[0-99]}/x"),
            (metadata, "{a b,http}://169.254.169.254:80/x"),
            (metadata, "http://285203916[5- 7]/x"),
            (metadata, "http://0251.0376.0251.[0300-0400]/x"),
            (metadata, "http://169.254.0[200-300].254/x"),
            (metadata, "http://285203916[5-9999999999]/x"),
            (metadata, "http://285203916{7..6}/x"),
            (metadata, "285203916[0-99]"),
            (
                "matches ^http://169\\.254\\.169\\.254/",
                "http://169.254.169.[100-254]/x",
            ),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            (metadata, "{http://169.254.169.253}/x"),
            (metadata, "https://ok.example/x?filter={\"a\":[1,2]}"),
            ("/etc/*", "{file:///tmp}/passwd"),
            (local, "http://[2001:db8::1]:{18762}/admin/x"),
            (admin, "http://127.0.0.1:18762/pub/{a,b}/admin"),
        ],
    );
    // Everyday texts with braces.
    let objects = "{\"id\":1,\"name\":\"Ann\"},".repeat(8);
    for text in [
        format!("{{\"users\":[{objects}{{}}],\"meta\":{{\"total\":4}}}}"),
        format!("{{\"title\":\"x\",\"body\":\"{}\"}}", "b".repeat(600)),
        format!("https://api.example/v1?filter={{\"and\":[{objects}]}}"),
        format!("[{}0]", "1,".repeat(199)),
        format!("[docs](https://docs.example/{})", "x".repeat(600)),
        format!("{{\"users\":[{objects}{{}}],\"note\":\"two words\"}}"),
        "body{margin:0}".repeat(30),
        format!("a{{b:url(https://cdn1.example/x)}}{}", ".c{d:e}".repeat(60)),
        "{'a': 1, 'b': 2}".to_owned(),
        "items[0-1000]".to_owned(),
        "a[1-300].log".to_owned(),
        "[1024-65535]".to_owned(),
        "[a-zA-Z]{1,3}[0-9]{1,3}[a-z]{1,3}".to_owned(),
        "^[a-z0-9]+[A-Z0-9]{1,3}[0-9]{2,4}$".to_owned(),
        "{src,test,docs,lib}/**/{a,b,c,d}/{x,y,z}/*.{ts,js,rs,py,go,rb,c,h}".to_owned(),
        "a{b:c,d:e}".repeat(9),
        ".a{color:red}.b{margin:0}".repeat(30),
    ] {
        for pattern in [
            "*secret*",
            "*.env",
            "matches DROP TABLE",
            "/etc/*",
            "~/.ssh/*",
            metadata,
        ] {
            assert_all(Action::Allow, &[(pattern, &text)]);
        }
    }
    // A host without braces is certain, however long the rest is.
    let long = format!("https://ok.example/{}{{a,b}}", "x".repeat(2_000));
    assert_all(Action::Allow, &[(metadata, &long), ("*secret*", &long)]);
}

#[test]
fn braces_in_a_host_need_approval() {
    let allowed = |pattern: &str, text: &str| of_text("allow", &json!(pattern), text);
    for (pattern, text) in [
        ("https://*.example/*", "https://x{.example/,@evil.test}/x"),
        ("https://*.example/*", "https://x{.example/a,.evil.test/b}"),
        ("file:///srv/*", "file:///srv/%2[e-e]%2[e-e]/etc/passwd"),
        ("file:///srv/*", "file:///srv/.%2{e,f}/etc/passwd"),
        (
            "http://good.test/pub/*",
            "http://good.test/pub/%2{e,f}%2{e,f}/admin",
        ),
    ] {
        assert_eq!(allowed(pattern, text), Action::Ask, "{text}");
    }
    let text = "http://good.test/pub/{a,b}/c";
    assert_eq!(allowed("http://good.test/pub/*", text), Action::Allow);
}

#[test]
fn texts_with_too_many_spellings_are_denied() {
    let texts = [
        "http://169.254.169.[1-400]/x".to_owned(),
        format!("http://285203916{{6}}/{}", "x".repeat(600)),
        format!("http://285203916{{{}6}}/x", "a,".repeat(300)),
    ];
    for text in texts {
        for pattern in [
            "*://169.254.169.254/*",
            "http*://169.254.169.254*",
            "*169.254.169.254*",
            "matches 169.254",
        ] {
            assert_all(Action::Deny, &[(pattern, &text)]);
        }
    }
}

#[test]
fn bare_hosts_match_patterns_that_name_them() {
    let metadata = "http://169.254.169.254/*";
    assert_all(
        Action::Deny,
        &[
            (metadata, "2852039166"),
            (metadata, "0xA9FEA9FE"),
            (metadata, "169.254.43518"),
            (metadata, "u@2852039166"),
            (metadata, " 2852039166 "),
            ("http://2852039166/*", "169.254.43518"),
            ("https://admin.example/*", "admin.example"),
            ("https://admin.example/*", "ADMIN.example."),
            ("https://admin.example/*", "%61dmin.example"),
            ("https://admin.example", "admin.example"),
            ("https://münchen.example/*", "xn--mnchen-3ya.example"),
            ("http://localhost*", "localhost"),
            ("http://localhost/*", "LOCALHOST"),
            ("http://localhost:8080/*", "localhost:8080"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            (metadata, "2852039167"),
            (metadata, "169"),
            ("http://*", "notes.txt"),
            ("http://*", "localhost"),
            ("http://n*", "notes.txt"),
            ("https://*.example/*", "admin.example"),
            ("https://admin.example/secret/*", "admin.example"),
            ("https://admin.example:8443/*", "admin.example"),
            ("ftp://admin.example/*", "admin.example"),
            ("https://admin.example/*", "www.admin.example"),
            ("https://admin.example/*", "see admin.example"),
            ("https://admin.example/*", "docs/admin.example"),
        ],
    );
}

#[test]
fn work_on_long_expansions_is_bounded() {
    let parts = ["{", "{,", "[", "[.", "(", "+(.", "{.,", "$", "{[(", ".*"];
    let closed = [
        "{a}", "{a b,", "{a,b}", "x\\},", "'{", "{a},", "[1-64]", "{1..9}", "{{a}}",
    ];
    for part in parts.into_iter().chain(closed) {
        let text = part.repeat(20_000 / part.len());
        let text = if part.contains('}') { text } else { text + "}" };
        for text in [format!("/tmp/{text}"), format!("{text}.example/x"), text] {
            of_text("deny", &json!("http://x.example/*"), &text);
            of_text("allow", &json!("/tmp/*"), &text);
        }
    }
    // None of its readings is complete, so none is counted.
    for nothing in ["[2-1]", "{2..1}", "[b-a]"] {
        let text = format!("{nothing}{}", "{,}".repeat(50));
        of_text("deny", &json!("http://x.example/*"), &text);
        of_text("deny", &json!("http://x.example/*"), &format!("{text}/x"));
    }
}

/// The words that a shell makes of braces, in a simple implementation.
fn words(text: &str) -> Vec<String> {
    let Some(open) = text.rfind('{') else {
        return vec![text.to_owned()];
    };
    let close = open + text[open..].find('}').unwrap();
    let parts = text[open + 1..close].split(',');
    parts
        .flat_map(|part| words(&format!("{}{part}{}", &text[..open], &text[close + 1..])))
        .collect()
}

/// A text with balanced braces.
fn braced() -> impl Strategy<Value = String> {
    let leaf = "(\\.|\\.\\.|/|a|){1,3}";
    leaf.prop_recursive(3, 12, 3, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..3);
        (inner.clone(), list, inner)
            .prop_map(|(before, list, after)| format!("{before}{{{}}}{after}", list.join(",")))
    })
}

/// An address with braces around a part of it, next to another alternative.
fn wrapped(address: &'static str) -> impl Strategy<Value = String> {
    let end = address.len();
    let other = "(x|/x|x/|http://ok/|)";
    (0..=end, 0..=end, other, any::<bool>()).prop_map(move |(one, two, other, is_first)| {
        let (from, to) = (one.min(two), one.max(two));
        let part = &address[from..to];
        let list = if is_first {
            format!("{part},{other}")
        } else {
            format!("{other},{part}")
        };
        format!("{}{{{list}}}{}", &address[..from], &address[to..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn braces_around_any_part_hide_nothing(
        web in wrapped("http://u:p@127.0.0.1:18762/admin/x"),
        bare in wrapped("u@127.0.0.1:18762/admin/x"),
        file in wrapped("file:///sec/a"),
    ) {
        let admin = json!("http://127.0.0.1:18762/admin/*");
        prop_assert_eq!(of_text("deny", &admin, &web), Action::Deny, "{}", web);
        prop_assert_eq!(of_text("deny", &admin, &bare), Action::Deny, "{}", bare);
        prop_assert_eq!(of_text("deny", &json!("/sec/*"), &file), Action::Deny, "{}", file);
    }

    #[test]
    fn braces_climb_if_an_expansion_does(text in braced()) {
        let text = format!("/tmp/{text}/x");
        let climbs = words(&text).iter().any(|word| word.split('/').any(|part| part == ".."));
        if climbs {
            prop_assert_eq!(of_text("deny", &json!("/etc/*"), &text), Action::Deny);
            prop_assert_eq!(of_text("allow", &json!("/tmp/*"), &text), Action::Ask);
        } else if text.matches('{').count() == 1 {
            // With several groups, one program joins parts that another separates.
            prop_assert_eq!(of_text("deny", &json!("/etc/*"), &text), Action::Allow);
        }
    }
}

#[test]
fn single_label_hosts_match_in_braces() {
    for text in [
        "localhos{t}",
        "{localhost,x}",
        "{x y,localhost}",
        "[k-l]ocalhost",
        "[a-z][a-z]calhost",
        "[a-z][a-z]calhos{t}/",
    ] {
        assert_all(Action::Deny, &[("http://localhost/*", text)]);
    }
    for text in ["intrane{t}", "i[n-n]tranet", "{x,intranet}"] {
        assert_all(Action::Deny, &[("http://intranet/*", text)]);
    }
    assert_all(
        Action::Allow,
        &[
            ("http://localhost/*", "localhos{s}"),
            ("http://localhost/*", "[a-k]ocalhost"),
            ("http://localhost/*", "[a-k][a-z]calhost"),
            ("http://intranet/*", "{a,b}"),
            ("http://intranet/*", "let a = {\"intranet\": b};"),
        ],
    );
}

/// Everyday code and content.
const HARMLESS: &[&str] = &[
    "let d = s[i-1] + s[j-1] + t[i-1] + t[j-1] + u[i-1] + u[j-1];",
    "x[i-1]x[i-1]x[i-1]x[i-1]x[i-1]x[i-1]",
    "for (i = 1; i < n; i++) a[i] = a[i-1] + a[i-2] + b[i-1] * a[i-1] - a[i-1] + c[j-1];",
    "\\d{4}-\\d{2}",
    "\\p{L}+",
    "\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}",
    "// Adds `one`.",
    "// Adds `one` to `two` and returns the `sum`.",
    "/* a */ b { c: d }",
    "/* Colours. */\nbody { color: red; margin: 0 auto }\n",
    "{'a': 1, 'b': [1, 2], 'c': {'d': 'e'}}",
    "{ a: 1, b: 'two words', c: x / y }",
    "if (a) { b(); } else { c(d, e); }",
    "body { margin: 0 } a { color: red, blue }",
    "match x { Some(a) => a, None => b }",
    "echo \"{a,b}\" 'c d'",
    "x = {i: i * 2 for i in range(10)}",
];

#[test]
fn everyday_code_is_allowed() {
    let dict = |n: usize| {
        let members: Vec<String> = (0..n)
            .map(|n| format!("'key_{n}': 'two words {n}'"))
            .collect();
        format!("{{{}}}", members.join(", "))
    };
    let code = "fn f(x: u8) -> u8 { if x > 1 { g(x, 2) } else { h(x) } }\n".repeat(40);
    let css = "a { color: red; margin: 0, 1 } b > c { d: e }\n".repeat(40);
    let harmless = HARMLESS.iter().map(|text| (*text).to_owned());
    for text in harmless.chain([dict(5), dict(50), dict(200), code, css]) {
        for pattern in [
            "*secret*",
            "*rm *",
            "*.env",
            "/etc/*",
            "~/.ssh/*",
            "http://169.254.169.254/*",
            "http://localhost/*",
            "matches ^/etc/",
        ] {
            assert_all(Action::Allow, &[(pattern, &text)]);
        }
    }
}

#[test]
fn spaces_and_escapes_in_braces_hide_nothing() {
    let local = "http://127.0.0.1:18762/*";
    let metadata = "http://169.254.169.254/*";
    assert_all(
        Action::Deny,
        &[
            ("/etc/*", "file://{x\\},/%}65tc/passwd"),
            ("/etc/*", "fil{e:///%6,a b}5tc/passwd"),
            ("/etc/*", "file:///%6{#,x\\},5tc/p}asswd"),
            ("/etc/passwd", "f{a b,il}e:///etc//passwd"),
            ("/etc/passwd", "f{\\},il}e:///etc/./passwd"),
            (local, "{x\\},127.0.0.1:18762}"),
            (local, "12{7.0.0.1:18762,x y}"),
            (local, "127.0.0.1:{a b,18762}"),
            (local, "h{a b,tt}p://127.0.0.1:18762"),
            (local, "{x\\},12%}37.0.0.1:18762/x"),
            (local, "12{-1..7}.0.0.1:18762/x"),
            (local, "{a,\"x } y\",12}7.0.0.1:18762/x"),
            (local, "{\"a b\",http}://127.0.0.1:18762/x"),
            (local, "{a,{b,{12,c}}7}.0.0.1:18762/x"),
            (
                "http://127.0.0.1:18762/admin/*",
                "h{ttp://127.1:18762/adm,a b}in/x",
            ),
            (metadata, "{x\\},169.254.169.254}"),
            (metadata, "169.254.169.25{4,x y}"),
            ("matches ^/etc/", "f{a b,il}e:///etc/passwd"),
            ("matches /\\.ssh/", "~/.s{\\},s}h/x"),
        ],
    );
    let equals = json!({ "equals": "/etc/passwd" });
    for text in ["f{a b,il}e:///etc//passwd", "f{\\},il}e:///etc/./passwd"] {
        assert_eq!(of_text("deny", &equals, text), Action::Deny, "{text}");
    }
    // Even among too many alternatives to list.
    let many = "x,".repeat(70);
    for text in [
        format!("{{a b,{many}file:///%65tc/passwd}}"),
        format!("{{a b,{many}/etc/passwd}}"),
        format!("{{a b,{many}file:///}}etc/passwd"),
    ] {
        assert_all(Action::Deny, &[("/etc/*", &text)]);
    }
}
