//! The table of files, built at compile time.

use crate::File;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! file {
    ($path:expr, $name:literal, $content_type:ident) => {
        File {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../web/", $name)),
            etag: {
                const TAG: [u8; TAG_BYTES] = tag(include_bytes!(concat!("../web/", $name)));
                text(&TAG)
            },
        }
    };
}

macro_rules! files {
    ($($content_type:ident: $($name:literal),+;)+) => {
        &[
            file!("/", "index.html", HTML),
            $($(file!(concat!("/console/", $name), $name, $content_type),)+)+
        ]
    };
}

pub(crate) const FILES: &[File] = files! {
    STYLE: "base.css", "layout.css", "parts.css", "pages.css", "approvals.css", "memory.css";
    SCRIPT:
        "access-list.js",
        "access.js",
        "activity.js",
        "api.js",
        "app.js",
        "approval.js",
        "approvals.js",
        "call.js",
        "chart.js",
        "clients.js",
        "decide.js",
        "diff.js",
        "dom.js",
        "events.js",
        "first-steps.js",
        "force.js",
        "form.js",
        "graph-view.js",
        "held.js",
        "keys.js",
        "marks.js",
        "memory-edit.js",
        "memory-files.js",
        "memory-graph.js",
        "memory-list.js",
        "memory-merge.js",
        "memory-one.js",
        "memory-scope.js",
        "memory-store.js",
        "memory-tools.js",
        "memory.js",
        "model-answer.js",
        "new-token.js",
        "notices.js",
        "outcome.js",
        "overview.js",
        "payload.js",
        "profiles.js",
        "question.js",
        "queue-state.js",
        "rules.js",
        "server-filter.js",
        "server.js",
        "servers.js",
        "session.js",
        "sessions.js",
        "settings.js",
        "store.js",
        "tokens.js",
        "tool-call.js",
        "tool.js",
        "tools.js",
        "trust-request.js",
        "words.js";
    PICTURE: "icon.svg";
};

/// 16 digits and two quotes.
const TAG_BYTES: usize = 18;

/// The `ETag` of these bytes (FNV-1a). It distinguishes builds; it is not a security measure.
const fn tag(bytes: &[u8]) -> [u8; TAG_BYTES] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    let mut tag = [b'"'; TAG_BYTES];
    let mut digit = 1;
    while digit < TAG_BYTES - 1 {
        tag[digit] = DIGITS[(hash & 15) as usize];
        hash >>= 4;
        digit += 1;
    }
    tag
}

const fn text(tag: &'static [u8]) -> &'static str {
    match str::from_utf8(tag) {
        Ok(text) => text,
        // Digits and quotes are always valid UTF-8.
        Err(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::{file, files};

    /// Size limit for all files together. A page served from the same machine has no reason to be large.
    const BYTES_MAX: usize = 368 * 1024;
    const LINES_MAX: usize = 400;

    /// Functions and properties that turn text into markup or code.
    const FORBIDDEN: [&str; 12] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "setHTMLUnsafe",
        "createContextualFragment",
        "DOMParser",
        "srcdoc",
        "javascript:",
        "import(",
    ];

    fn text(file: &File) -> &'static str {
        str::from_utf8(file.bytes).unwrap()
    }

    fn scripts() -> impl Iterator<Item = &'static File> {
        files().iter().filter(|file| file.content_type == SCRIPT)
    }

    /// The texts between these two marks.
    fn between<'t>(text: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(open)
            .skip(1)
            .filter_map(move |rest| rest.split(close).next())
    }

    #[test]
    fn each_file_has_its_content_type() {
        for (path, content_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/console/app.js", "text/javascript; charset=utf-8"),
            ("/console/base.css", "text/css; charset=utf-8"),
            ("/console/icon.svg", "image/svg+xml"),
        ] {
            assert_eq!(file(path).unwrap().content_type, content_type, "{path}");
        }
        for file in files() {
            let expected = match file.path.rsplit_once('.') {
                Some((_, "js")) => "text/javascript; charset=utf-8",
                Some((_, "css")) => "text/css; charset=utf-8",
                Some((_, "svg")) => "image/svg+xml",
                _ => "text/html; charset=utf-8",
            };
            assert_eq!(file.content_type, expected, "{}", file.path);
        }
        for path in [
            "",
            "/console",
            "/console/",
            "/console/../Cargo.toml",
            "app.js",
        ] {
            assert!(file(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn every_file_is_in_the_table_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let there: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| match name.as_str() {
                "index.html" => "/".to_owned(),
                name => format!("/console/{name}"),
            })
            .collect();
        let listed: BTreeSet<String> = files().iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(there, listed);
        assert_eq!(listed.len(), files().len());
    }

    #[test]
    fn referenced_files_exist() {
        let page = text(file("/").unwrap());
        let named = between(page, "src=\"", "\"").chain(between(page, "href=\"", "\""));
        let mut seen = 0;
        for name in named.filter(|name| !name.starts_with('#')) {
            assert!(file(name).is_some(), "the page names {name}");
            seen += 1;
        }
        assert!(seen >= 4, "the page names its style and its script");
        let mut imports = 0;
        for script in scripts() {
            for line in text(script)
                .lines()
                .filter(|line| line.starts_with("import "))
            {
                let name = between(line, "\"./", "\"").next();
                let name = name.unwrap_or_else(|| panic!("{}: {line}", script.path));
                let path = format!("/console/{name}");
                assert!(file(&path).is_some(), "{} imports {name}", script.path);
                imports += 1;
            }
        }
        assert!(imports > 50);
    }

    #[test]
    fn imported_names_are_exported() {
        for script in scripts() {
            for line in text(script)
                .lines()
                .filter(|line| line.starts_with("import {"))
            {
                let names = between(line, "{", "}").next().unwrap();
                let from = between(line, "\"./", "\"").next().unwrap();
                let source = text(file(&format!("/console/{from}")).unwrap());
                for name in names.split(',').map(str::trim) {
                    let exported =
                        ["function", "async function", "const", "class"]
                            .iter()
                            .any(|kind| {
                                between(source, &format!("export {kind} "), "\n").any(|rest| {
                                    rest.strip_prefix(name)
                                        .is_some_and(|rest| rest.starts_with([' ', '(']))
                                })
                            });
                    assert!(exported, "{} imports {name} from {from}", script.path);
                    let uses = text(script).matches(name).count();
                    assert!(uses > 1, "{} does not use {name}", script.path);
                }
            }
        }
    }

    #[test]
    fn scripts_never_turn_text_into_markup() {
        for file in files() {
            for word in FORBIDDEN {
                assert!(!text(file).contains(word), "{} has {word}", file.path);
            }
        }
    }

    #[test]
    fn page_has_no_inline_script_style_or_handler() {
        let page = text(file("/").unwrap());
        assert!(!page.contains("<style"), "styles are files");
        for tag in between(page, "<", ">") {
            if tag.starts_with("script") {
                assert!(tag.contains("src=\"/console/"), "{tag}");
            }
            for attribute in tag.split_ascii_whitespace().skip(1) {
                let name = attribute.split('=').next().unwrap();
                assert!(name != "style" && !name.starts_with("on"), "{tag}");
            }
        }
        // The single script element is empty between its tags.
        assert!(page.contains("\"></script>"), "no script in the page");
        for script in scripts() {
            assert!(!text(script).contains("\"style\""), "{}", script.path);
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for file in files() {
            for scheme in ["http://", "https://"] {
                for rest in text(file).split(scheme).skip(1) {
                    // The namespace of SVG, and an example in a hint, are not loaded.
                    let known = ["www.w3.org/2000/svg", "example.com"];
                    let is_known = known.iter().any(|name| rest.starts_with(name));
                    assert!(
                        is_known,
                        "{}: {scheme}{}",
                        file.path,
                        rest.lines().next().unwrap()
                    );
                }
            }
            if file.content_type == STYLE {
                assert!(!text(file).contains("url("), "{}", file.path);
                assert!(!text(file).contains("@import"), "{}", file.path);
            }
        }
    }

    #[test]
    fn content_security_policy_has_no_exceptions() {
        let policy = crate::HEADERS
            .iter()
            .find(|(name, _)| *name == "Content-Security-Policy")
            .unwrap()
            .1;
        assert!(policy.starts_with("default-src 'none'; "));
        assert!(policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"));
        for way in ["unsafe", "blob:", "http", "*"] {
            assert!(!policy.contains(way), "{way}");
        }
        assert!(!policy.contains("  "), "one space between words");
    }

    #[test]
    fn etags_differ_between_files() {
        let tags: BTreeSet<&str> = files().iter().map(|file| file.etag).collect();
        assert_eq!(tags.len(), files().len());
        for tag in tags {
            assert_eq!(tag.len(), TAG_BYTES);
            assert!(tag.starts_with('"') && tag.ends_with('"'));
        }
        assert_ne!(tag(b"a"), tag(b"b"));
        assert_eq!(tag(b"a"), tag(b"a"));
    }

    #[test]
    fn files_stay_small() {
        let bytes: usize = files().iter().map(|file| file.bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        for file in files() {
            let lines = text(file).lines().count();
            assert!(lines <= LINES_MAX, "{} has {lines} lines", file.path);
        }
    }

    #[test]
    fn scripts_start_with_a_description() {
        for script in scripts() {
            assert!(text(script).starts_with("// "), "{}", script.path);
        }
    }
}
