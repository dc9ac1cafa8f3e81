//! Lists in pages.

use switchboard_catalog::{BadCursor, Catalog, Kind, Offers, Page, limits};
use switchboard_wire::Raw;

use crate::{named, part, raw, tools};

fn numbered(range: impl IntoIterator<Item = usize>) -> Offers {
    tools(range.into_iter().map(|n| format!("t{n:05}")))
}

/// All pages, each requested with the cursor of the previous one.
fn walk<'a>(page: impl Fn(Option<&str>) -> Result<Page<'a>, BadCursor>) -> Vec<Page<'a>> {
    let mut pages: Vec<Page<'a>> = Vec::new();
    loop {
        let cursor = pages.last().map(|page| page.next_cursor().unwrap());
        let next = page(cursor).unwrap();
        pages.push(next);
        if next.next_cursor().is_none() {
            return pages;
        }
    }
}

fn names<'a>(page: &Page<'a>) -> Vec<&'a str> {
    page.items().map(|item| item.exposed()).collect()
}

#[test]
fn pages_add_up_to_the_list() {
    let catalog = Catalog::from_parts([
        part("a", numbered(0..350)),
        part("b", tools([""; 0])),
        part("c", numbered(0..250)),
    ]);
    let all: Vec<_> = catalog.tools().map(|tool| tool.exposed_raw()).collect();
    let pages = walk(|cursor| catalog.page(Kind::Tool, cursor));
    assert_eq!(pages.len(), 3);
    let listed: Vec<_> = pages
        .iter()
        .flat_map(|page| {
            page.encoded(&[])
                .member("tools")
                .unwrap()
                .elements()
                .unwrap()
        })
        .collect();
    assert_eq!(listed, all);
    for page in &pages {
        let cursor = page
            .encoded(&[])
            .member("nextCursor")
            .and_then(|cursor| cursor.to_text());
        assert_eq!(cursor.as_deref(), page.next_cursor());
    }

    let server = catalog.server("c").unwrap();
    let pages = walk(|cursor| server.page(Kind::Tool, cursor));
    let own: Vec<_> = pages
        .iter()
        .flat_map(|page| {
            page.encoded(&[])
                .member("tools")
                .unwrap()
                .elements()
                .unwrap()
        })
        .collect();
    assert_eq!(own, server.offers().tools);
    assert_eq!(pages.len(), 2);
}

#[test]
fn page_bytes_are_bounded_except_for_huge_items() {
    let tool = |n: usize, size: usize| {
        raw(format!(
            r#"{{"name":"t{n}","description":"{}"}}"#,
            "x".repeat(size)
        ))
    };
    let large = 400 * 1024;
    let offers = Offers {
        tools: vec![
            tool(0, large),
            tool(1, large),
            tool(2, large),
            tool(3, 3 * limits::PAGE_BYTES),
            tool(4, 1),
        ],
        ..Offers::default()
    };
    let catalog = Catalog::from_parts([part("a", offers)]);
    let pages = walk(|cursor| catalog.page(Kind::Tool, cursor));
    let names: Vec<_> = pages.iter().map(names).collect();
    assert_eq!(
        names,
        [
            vec!["a__t0", "a__t1"],
            vec!["a__t2"],
            vec!["a__t3"],
            vec!["a__t4"]
        ]
    );
}

#[test]
fn empty_list_is_one_empty_page() {
    let catalog = Catalog::default();
    for (kind, text) in Kind::ALL.into_iter().zip([
        r#"{"tools":[]}"#,
        r#"{"prompts":[]}"#,
        r#"{"resources":[]}"#,
        r#"{"resourceTemplates":[]}"#,
    ]) {
        let page = catalog.page(kind, None).unwrap();
        assert_eq!(page.encoded(&[]).as_str(), text);
        assert_eq!((page.next_cursor(), page.items().count()), (None, 0));
    }
}

#[test]
fn page_is_encoded_once() {
    let catalog = Catalog::from_parts([part("a", numbered(0..300))]);
    let place = |raw: &Raw| raw.as_bytes().as_ptr();
    let first = catalog.page(Kind::Tool, None).unwrap();
    let second = catalog.page(Kind::Tool, first.next_cursor()).unwrap();
    for page in [first, second] {
        assert_eq!(place(&page.encoded(&[])), place(&page.encoded(&[])));
        let members = |ttl| {
            [
                ("resultType", raw(r#""complete""#)),
                ("ttlMs", Raw::number(ttl)),
            ]
        };
        let stamped = page.encoded(&members(5));
        assert_eq!(place(&stamped), place(&page.encoded(&members(5))));
        assert!(
            stamped
                .as_str()
                .ends_with(r#","resultType":"complete","ttlMs":5}"#)
        );
        assert!(
            page.encoded(&members(6))
                .as_str()
                .ends_with(r#""ttlMs":6}"#)
        );
    }
    let again = catalog.page(Kind::Tool, None).unwrap();
    assert_eq!(place(&again.encoded(&[])), place(&first.encoded(&[])));
    // The pages of one server outlive the catalog that first served them.
    let own = catalog.server("a").unwrap().page(Kind::Tool, None).unwrap();
    let next = catalog.with("b", Some(part("b", numbered(0..1))));
    let own_again = next.server("a").unwrap().page(Kind::Tool, None).unwrap();
    assert_eq!(place(&own.encoded(&[])), place(&own_again.encoded(&[])));
}

/// The names on the pages after `cursor` in `catalog`.
fn rest<'a>(catalog: &'a Catalog, cursor: &str) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut cursor = Some(cursor.to_owned());
    while let Some(at) = cursor {
        let page = catalog.page(Kind::Tool, Some(&at)).unwrap();
        out.extend(names(&page));
        cursor = page.next_cursor().map(str::to_owned);
    }
    out
}

#[test]
fn cursor_survives_changes_of_the_list() {
    let base = Catalog::from_parts([part("m", numbered(0..450)), part("z", numbered(0..3))]);
    let page = base.page(Kind::Tool, None).unwrap();
    let cursor = page.next_cursor().unwrap();
    let expected: Vec<_> = base.tools().skip(200).map(|tool| tool.exposed()).collect();
    assert_eq!(rest(&base, cursor), expected);

    // With a server or tools inserted before, no item is repeated or missed.
    let more = base.with("a", Some(part("a", numbered(0..77))));
    assert_eq!(rest(&more, cursor), expected);
    let shifted = base.with("m", Some(part("m", numbered((900..950).chain(0..450)))));
    assert_eq!(rest(&shifted, cursor), expected);

    // The last item that was seen is gone: continue at its position.
    let without = base.with(
        "m",
        Some(part("m", numbered((0..450).filter(|n| *n != 199)))),
    );
    assert_eq!(rest(&without, cursor), expected);
    // Its whole list, or its server, is gone: continue with the next server.
    let emptied = base.with("m", Some(part("m", Offers::default())));
    assert_eq!(
        rest(&emptied, cursor),
        ["z__t00000", "z__t00001", "z__t00002"]
    );
    let gone = base.with("m", None);
    assert_eq!(rest(&gone, cursor), ["z__t00000", "z__t00001", "z__t00002"]);
    assert_eq!(rest(&Catalog::default(), cursor), [""; 0]);
}

#[test]
fn foreign_cursor_is_rejected() {
    let offers = |server: &str| Offers {
        prompts: (0..300).map(|n| named(&format!("{server}{n}"))).collect(),
        ..numbered(0..300)
    };
    let catalog = Catalog::from_parts([part("a", offers("a")), part("b", offers("b"))]);
    let cursor = catalog
        .page(Kind::Tool, None)
        .unwrap()
        .next_cursor()
        .unwrap();
    let (a, b) = (catalog.server("a").unwrap(), catalog.server("b").unwrap());
    let own = a.page(Kind::Tool, None).unwrap().next_cursor().unwrap();
    assert!(catalog.page(Kind::Tool, Some(cursor)).is_ok());
    assert!(a.page(Kind::Tool, Some(own)).is_ok());
    // Of another kind, view or server.
    assert_eq!(
        catalog.page(Kind::Prompt, Some(cursor)).unwrap_err(),
        BadCursor
    );
    assert_eq!(catalog.page(Kind::Tool, Some(own)).unwrap_err(), BadCursor);
    assert_eq!(a.page(Kind::Tool, Some(cursor)).unwrap_err(), BadCursor);
    assert_eq!(b.page(Kind::Tool, Some(own)).unwrap_err(), BadCursor);
    // Made up, truncated, changed, too long.
    let mut bad = vec![
        String::new(),
        "200".into(),
        "!".into(),
        "é".into(),
        "A".repeat(5_000),
        "A".repeat(4_000),
    ];
    bad.extend((0..cursor.len()).map(|length| cursor[..length].to_owned()));
    for at in 0..cursor.len() {
        let mut changed = cursor.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        bad.push(String::from_utf8(changed).unwrap());
    }
    for cursor in bad {
        assert_eq!(
            catalog.page(Kind::Tool, Some(&cursor)).unwrap_err(),
            BadCursor,
            "{cursor}"
        );
    }
}
