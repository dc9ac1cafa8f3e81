//! Integration tests of the public interface.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod fits;
mod pages;
mod stores;

use switchboard_results::{Budget, Cut, Fit, Reader, ResultId, Structured, fit};
use switchboard_wire::Raw;

fn raw(text: impl Into<String>) -> Raw {
    Raw::parse(text.into()).unwrap()
}

fn text_block(text: &str) -> Raw {
    Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
}

fn image_block(bytes: usize) -> Raw {
    Raw::object([
        ("type", Raw::string("image")),
        ("data", Raw::string(&"A".repeat(bytes))),
        ("mimeType", Raw::string("image/png")),
    ])
}

fn result(blocks: impl IntoIterator<Item = Raw>) -> Raw {
    Raw::object([("content", Raw::array(blocks))])
}

fn budget(bytes: usize) -> Budget {
    Budget {
        bytes,
        tokens: bytes,
        media_bytes: 10_000,
    }
}

fn cut(result: &Raw, budget: &Budget, structured: Structured) -> Box<Cut> {
    match fit(result, budget, structured) {
        Fit::Cut(cut) => cut,
        Fit::Whole => panic!("it fits: {result}"),
    }
}

/// The texts of the blocks of a result.
fn texts(result: &Raw) -> Vec<String> {
    let blocks = result.member("content").unwrap().elements().unwrap();
    let texts = blocks.iter().map(|block| {
        let resource = block.member("resource");
        let text = resource.as_ref().unwrap_or(block).member("text");
        text.map_or_else(String::new, |text| text.to_text().unwrap())
    });
    texts.collect()
}

/// The tool that reads the rest of a result.
fn reader(id: &ResultId) -> Reader<'_> {
    Reader {
        tool: "read_result",
        id,
    }
}
