//! The shown part of a result.

use proptest::prelude::*;
use switchboard_results::{Budget, Fit, Structured, estimate_tokens, fit, limits};
use switchboard_wire::Raw;

use crate::{budget, cut, image_block, raw, result, text_block, texts};

fn lines() -> String {
    let lines: Vec<_> = (0..400)
        .map(|n| format!("This is line {n} of many.\n"))
        .collect();
    lines.concat()
}

#[test]
fn what_fits_stays_as_it_is() {
    let small = r#"{"content":[{"type":"text","text":"ok"}],"structuredContent":{"a":1}}"#;
    for (json, budget) in [
        (small, budget(1000)),
        (
            small,
            Budget {
                bytes: 1000,
                tokens: 70,
                media_bytes: 0,
            },
        ),
        // Values that are not tool results are left alone, regardless of their size.
        (
            r#"{"tools":["a very long list of tools that is not content at all"]}"#,
            budget(10),
        ),
        (
            r#"["a very long list of tools that is not content at all"]"#,
            budget(10),
        ),
        (
            r#"{"content":"a very long list of tools that is not content at all"}"#,
            budget(10),
        ),
    ] {
        assert!(
            matches!(fit(&raw(json), &budget, Structured::MayGo), Fit::Whole),
            "{json}"
        );
    }
    // An image does not count as text, and texts are measured without escapes.
    let image = result([image_block(9000), text_block("a page")]);
    let with_image = Budget {
        bytes: 1000,
        tokens: 5000,
        media_bytes: 10_000,
    };
    assert!(matches!(
        fit(&image, &with_image, Structured::MayGo),
        Fit::Whole
    ));
    let escaped = result([text_block(&"\n".repeat(900))]);
    assert!(matches!(
        fit(&escaped, &budget(1000), Structured::MayGo),
        Fit::Whole
    ));
}

#[test]
fn texts_are_cut_between_lines_with_a_note() {
    let json = format!(
        r#"{{"content":[{{"type":"text","text":{},"annotations":{{"priority":1.0}}}}], "isError" : true,"x-other":[1.50]}}"#,
        Raw::string(&lines())
    );
    let cut = cut(&raw(json), &budget(1000), Structured::MayGo);
    let id = crate::stores::an_id();
    let shown = cut.shown(Some(crate::reader(&id)));
    assert!(
        shown
            .as_str()
            .ends_with(r#"], "isError" : true,"x-other":[1.50]}"#),
        "{shown}"
    );
    assert!(shown.as_str().contains(r#""annotations":{"priority":1.0}"#));
    let texts = texts(&shown);
    let [text, note] = &*texts else {
        panic!("{texts:?}")
    };
    assert!(lines().starts_with(text) && text.ends_with("of many.\n") && text.len() > 500);
    assert_eq!(
        *note,
        format!(
            "[Truncated: these are the first {} of {} bytes. Next: read_result {{\"id\":\"{id}\",\"offset\":{}}}]",
            text.len(),
            lines().len(),
            text.len()
        )
    );
    let gone = crate::texts(&cut.shown(None)).pop().unwrap();
    assert!(
        gone.ends_with("The rest is too large to keep; ask the tool for less]"),
        "{gone}"
    );
}

#[test]
fn json_is_cut_between_elements_and_stays_json() {
    let rows: Vec<_> = (0..900)
        .map(|n| format!(r#"{{"id":{n},"name":"row, {n}"}}"#))
        .collect();
    let text = format!(
        r#"{{"total":900,"rows":[{}],"more":false}}"#,
        rows.join(", ")
    );
    let cut = cut(
        &result([text_block(&text)]),
        &budget(1000),
        Structured::MayGo,
    );
    let texts = texts(&cut.shown(None));
    let shown = raw(&*texts[0]);
    let elements = shown.member("rows").unwrap().elements().unwrap();
    assert_eq!(shown.member("total").unwrap().as_str(), "900");
    for (element, row) in elements.iter().zip(&rows) {
        assert_eq!(element.as_str(), row);
    }
    let count = elements.len();
    assert!((10..40).contains(&count), "{count}");
    assert!(
        texts[1].contains(&format!("elements 0 to {} of 900", count - 1)),
        "{}",
        texts[1]
    );
    // The next page begins with the next element.
    let next: usize = texts[1]
        .split(" of ")
        .next()
        .unwrap()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let page = cut.kept().read(next, None, &budget(1000));
    let first = crate::texts(&result(page.content)).remove(0);
    assert!(first.starts_with(&rows[count]), "{first}");
}

#[test]
fn large_images_get_a_note_and_are_readable() {
    let blocks = [
        text_block("Before"),
        image_block(400_000),
        text_block("After"),
        image_block(2000),
    ];
    let cut = cut(&result(blocks.clone()), &budget(5000), Structured::MayGo);
    let id = crate::stores::an_id();
    let shown = cut.shown(Some(crate::reader(&id)));
    assert_eq!(
        texts(&shown),
        [
            "Before".to_owned(),
            format!(
                "[Not shown: image/png, 300 kB. To get it: read_result {{\"id\":\"{id}\",\"offset\":6}}]"
            ),
            "After".to_owned(),
            String::new(),
        ]
    );
    assert_eq!(
        shown.member("content").unwrap().elements().unwrap()[3],
        blocks[3]
    );
    let page = cut.kept().read(6, None, &budget(5000));
    assert_eq!(page.content, [blocks[1].clone()]);
    assert_eq!(page.next, Some(7));
    let page = cut.kept().read(7, None, &budget(5000));
    assert_eq!(page.content, blocks[2..]);
    assert_eq!(page.next, None);
}

#[test]
fn number_of_notes_is_bounded() {
    let blocks = (0..500).map(|_| image_block(20_000));
    let cut = cut(&result(blocks), &budget(5000), Structured::MayGo);
    let texts = texts(&cut.shown(None));
    assert_eq!(texts.len(), 9);
    assert!(
        texts[8].starts_with("[Not shown, because it is too large: more blocks of this kind."),
        "{}",
        texts[8]
    );
    assert_eq!(cut.kept().total(), 500);
}

#[test]
fn embedded_resources_are_cut_in_their_text() {
    let block = raw(format!(
        r#"{{"type":"resource","resource":{{"uri":"file:///a.txt","mimeType":"text/plain","text":{}}}}}"#,
        Raw::string(&lines())
    ));
    let shown = cut(&result([block]), &budget(1000), Structured::MayGo).shown(None);
    let block = shown
        .member("content")
        .unwrap()
        .elements()
        .unwrap()
        .remove(0);
    assert!(block.as_str().starts_with(r#"{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"This is line 0"#));
    assert!(texts(&shown)[0].len() < 1000);
}

fn structured(rows: usize) -> Raw {
    let rows: Vec<_> = (0..rows)
        .map(|n| format!(r#"{{"id":{n},"word":"w{n}"}}"#))
        .collect();
    raw(format!(
        r#"{{"rows":[{}],"total":{}}}"#,
        rows.join(","),
        rows.len()
    ))
}

fn with_structured(text: &str, structured: &Raw) -> Raw {
    result([text_block(text)])
        .with_member("structuredContent", structured)
        .unwrap()
}

#[test]
fn repeated_structured_content_is_dropped_first() {
    let value = structured(500);
    let spaced = value.as_str().replace(',', ",\n ");
    let twice = with_structured(&spaced, &value);
    // Repeated content counts once.
    let once = Budget {
        bytes: spaced.len() + 200,
        tokens: 100_000,
        media_bytes: 0,
    };
    assert!(matches!(fit(&twice, &once, Structured::Keep), Fit::Whole));

    let cut_ = cut(&twice, &budget(2000), Structured::MayGo);
    assert_eq!(cut_.shown(None).member("structuredContent"), None);
    assert_eq!(cut_.kept().total(), spaced.len());
    for wrapped in [
        Raw::object([("result", Raw::string(&lines()))]),
        Raw::object([("result", Raw::array([Raw::string(&lines())]))]),
    ] {
        let cut_ = cut(
            &with_structured(&lines(), &wrapped),
            &budget(2000),
            Structured::MayGo,
        );
        assert_eq!(cut_.kept().total(), lines().len(), "told once");
    }
}

#[test]
fn required_structured_content_loses_elements() {
    let value = structured(500);
    let cut_ = cut(
        &with_structured(value.as_str(), &value),
        &budget(2000),
        Structured::Keep,
    );
    let shown = cut_.shown(None);
    let kept = shown.member("structuredContent").unwrap();
    assert_eq!(kept.member("total").unwrap().as_str(), "500");
    let count = kept.member("rows").unwrap().elements().unwrap().len();
    assert!((10..100).contains(&count), "{count}");
    assert!(
        texts(&shown)
            .last()
            .unwrap()
            .contains("The structured content is truncated, too.")
    );
    assert!(shown.as_bytes().len() < 3000);

    // If the text says something else, the whole structured content follows the text.
    let cut_ = cut(
        &with_structured("Found 500 rows.", &value),
        &budget(2000),
        Structured::Keep,
    );
    let texts = texts(&cut_.shown(None));
    assert_eq!(texts[0], "Found 500 rows.");
    assert!(
        texts[1].starts_with("[Truncated: these are the first 15 of "),
        "{}",
        texts[1]
    );
    let page = cut_.kept().read(15, Some(1000), &budget(2000));
    assert!(
        value
            .as_str()
            .starts_with(&crate::texts(&result(page.content))[0])
    );
}

#[test]
fn optional_structured_content_becomes_text() {
    let value = structured(500);
    let cut_ = cut(
        &with_structured("Found 500 rows.", &value),
        &budget(2000),
        Structured::MayGo,
    );
    let shown = cut_.shown(None);
    assert_eq!(shown.member("structuredContent"), None);
    let texts = texts(&shown);
    assert_eq!((texts.len(), &*texts[0]), (3, "Found 500 rows."));
    assert!(raw(&*texts[1]).member("rows").is_some());
    assert_eq!(cut_.kept().total(), 15 + value.as_bytes().len());
    // Without other content, it is all that is shown.
    let alone = Raw::object([("structuredContent", value.clone())]);
    let shown = cut(&alone, &budget(2000), Structured::MayGo).shown(None);
    assert!(raw(&*crate::texts(&shown)[0]).member("rows").is_some());
    // It stays if only something else is too large.
    let small = structured(3);
    let image = result([image_block(50_000)])
        .with_member("structuredContent", &small)
        .unwrap();
    let shown = cut(&image, &budget(2000), Structured::MayGo).shown(None);
    assert_eq!(shown.member("structuredContent"), Some(small));
}

#[test]
fn duplicate_members_are_harmless() {
    let json = format!(
        r#"{{"content":[],"content":[{}],"isError":false}}"#,
        text_block(&lines())
    );
    let shown = cut(&raw(json), &budget(1000), Structured::MayGo).shown(None);
    assert_eq!(texts(&shown).len(), 2);
    assert_eq!(shown.member("isError").unwrap().as_str(), "false");
}

/// Blocks of all kinds, and other members that results have.
fn any_result() -> impl Strategy<Value = Raw> {
    let text = prop_oneof![
        "[a-z .\n]{0,400}",
        "[\u{4e00}-\u{4fff}。😀e\u{301}\u{200d}]{0,150}",
        prop::collection::vec("[a-z,\"\\\\é]{0,9}", 0..60).prop_map(|words| {
            let rows = words
                .iter()
                .map(|word| Raw::object([("word", Raw::string(word))]));
            Raw::array(rows).as_str().to_owned()
        }),
    ];
    let block = prop_oneof![
        4 => text.clone().prop_map(|text| text_block(&text)),
        1 => (0_usize..20_000).prop_map(image_block),
        1 => text.clone().prop_map(|text| {
            let resource = Raw::object([("uri", Raw::string("file:///x")), ("text", Raw::string(&text))]);
            Raw::object([("type", Raw::string("resource")), ("resource", resource)])
        }),
        1 => Just(raw(r#"{"type":"resource_link","uri":"file:///y","name":"y"}"#)),
        1 => Just(raw("17")),
    ];
    let structured =
        prop::option::of(text.prop_map(|text| Raw::object([("value", Raw::string(&text))])));
    (prop::collection::vec(block, 0..5), structured).prop_map(|(blocks, structured)| {
        let result = result(blocks)
            .with_member("x-other", &raw("[1.0]"))
            .unwrap();
        match structured {
            Some(structured) => result
                .with_member("structuredContent", &structured)
                .unwrap(),
            None => result,
        }
    })
}

proptest! {
    #[test]
    fn shown_part_fits_and_rest_is_kept(result in any_result(), bytes in 500_usize..3000, keep: bool) {
        let budget = Budget { bytes, tokens: bytes, media_bytes: 10_000 };
        let structured = if keep { Structured::Keep } else { Structured::MayGo };
        let Fit::Cut(cut) = fit(&result, &budget, structured) else {
            return Ok(());
        };
        let id = crate::stores::an_id();
        let shown = cut.shown(Some(crate::reader(&id)));
        prop_assert_eq!(shown.member("x-other").unwrap(), raw("[1.0]"));
        if keep {
            prop_assert_eq!(shown.member("structuredContent").is_some(), result.member("structuredContent").is_some());
        }
        // Texts (with notes) and structured content are within the budget, except for the frames of
        // blocks, escapes, and texts too short to be shortened.
        let texts = texts(&shown);
        let structured = shown.member("structuredContent").and_then(|value| value.member("value")?.to_text());
        let structured = structured.map_or(0, |text| text.len());
        let size: usize = texts.iter().map(String::len).sum::<usize>() + structured;
        prop_assert!(size <= bytes + limits::NOTE_BYTES + 200, "{} for {}", size, bytes);
        let tokens: usize = texts.iter().map(|text| estimate_tokens(text)).sum();
        prop_assert!(tokens <= bytes + 200);
        for note in texts.iter().filter(|text| text.starts_with('[') && text.contains("read_result")) {
            prop_assert!(note.len() <= limits::NOTE_BYTES, "{}", note);
        }
        // The kept result contains every text of the result, in order.
        let (mut all, mut at) = (String::new(), Some(0));
        while let Some(offset) = at {
            let page = cut.kept().read(offset, None, &budget);
            all.extend(crate::texts(&crate::result(page.content)));
            prop_assert!(page.next.is_none_or(|next| next > offset));
            at = page.next;
        }
        let original: String = crate::texts(&result).concat();
        prop_assert!(all.starts_with(&original));
    }
}
