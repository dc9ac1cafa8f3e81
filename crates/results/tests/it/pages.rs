//! Reading a kept result in pages.

use std::sync::Arc;

use proptest::prelude::*;
use switchboard_results::{Kept, Structured};
use switchboard_wire::Raw;

use crate::{budget, cut, image_block, result, text_block, texts};

fn kept(texts: &[String]) -> Arc<Kept> {
    let mut blocks: Vec<_> = texts.iter().map(|text| text_block(text)).collect();
    // An image that does not fit, so that everything is kept.
    blocks.push(image_block(20_000));
    Arc::clone(cut(&result(blocks), &budget(300), Structured::MayGo).kept())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z .\n]{0,300}",
        "[é\u{4e00}-\u{4fff}😀🇩🇪e\u{301}\u{200d}]{0,100}",
        prop::collection::vec("[a-z,\"\\\\é\\[\\]{}]{0,9}", 0..40).prop_map(|words| {
            Raw::array(words.iter().map(|word| Raw::string(word)))
                .as_str()
                .replace("\",\"", "\", \"")
        }),
    ]
}

proptest! {
    #[test]
    fn pages_put_together_are_the_whole(parts in prop::collection::vec(any_text(), 1..4), limit in 0_usize..200, bytes in 300_usize..900) {
        let kept = kept(&parts);
        let budget = budget(bytes);
        let total: usize = parts.iter().map(String::len).sum::<usize>() + 1;
        prop_assert_eq!(kept.total(), total);
        let mut all = String::new();
        let image = image_block(20_000);
        let mut images = 0;
        let mut at = Some(0);
        while let Some(offset) = at {
            let page = kept.read(offset, Some(limit), &budget);
            prop_assert_eq!((page.offset, page.total), (offset, total));
            prop_assert!(!page.content.is_empty());
            let texts = texts(&result(page.content.clone()));
            let size: usize = texts.iter().map(String::len).sum();
            prop_assert!(size <= limit.clamp(4, bytes), "{} of {}", size, limit);
            images += page.content.iter().filter(|block| **block == image).count();
            all.extend(texts);
            prop_assert!(page.next.is_none_or(|next| next > offset && next < total));
            at = page.next;
        }
        prop_assert_eq!(all, parts.concat());
        prop_assert_eq!(images, 1);
    }

    #[test]
    fn any_offset_can_be_read(parts in prop::collection::vec(any_text(), 1..3), offset in 0_usize..1000, limit in prop::option::of(0_usize..5000)) {
        let kept = kept(&parts);
        let page = kept.read(offset, limit, &budget(500));
        let all = parts.concat();
        if offset >= kept.total() {
            prop_assert!(page.content.is_empty() && page.next.is_none());
        } else {
            prop_assert!(page.offset <= offset && offset - page.offset < 4);
            let text = texts(&result(page.content)).concat();
            prop_assert!(all[page.offset.min(all.len())..].starts_with(&text));
        }
    }
}

#[test]
fn a_page_says_where_to_read_on() {
    let id = crate::stores::an_id();
    let text = "One line of text.\n".repeat(100);
    let kept = kept(std::slice::from_ref(&text));
    let page = kept.read(0, Some(200), &budget(1000));
    let shown = texts(&page.to_result(crate::reader(&id)));
    assert_eq!(shown[0], text[..198]);
    assert_eq!(
        shown[1],
        format!("[Bytes 0 to 198 of 1801. Next: read_result {{\"id\":\"{id}\",\"offset\":198}}]")
    );
    let last = kept.read(1800, None, &budget(1000));
    assert_eq!(
        texts(&last.to_result(crate::reader(&id)))[1],
        "[Bytes 1800 to 1801 of 1801: this is the end.]"
    );
    let beyond = kept.read(9999, None, &budget(1000));
    assert_eq!(
        texts(&beyond.to_result(crate::reader(&id))),
        ["[The result ends at byte 1801: nothing is left.]"]
    );
}

#[test]
fn limit_beyond_the_budget_is_capped() {
    let text = "One line of text.\n".repeat(1000);
    let page = kept(&[text]).read(0, Some(usize::MAX), &budget(1000));
    assert!(texts(&result(page.content))[0].len() <= 1000);
    assert!(page.next.is_some_and(|next| next > 300));
}
