//! The colours of the most common outputs, with named escape codes.

use super::{golden::Book, rich::Rich, stage::Stage};

pub(super) const FILES: &[&str] = &["colour"];

#[test]
fn at_80_columns() {
    let mut book = Book::new(80);
    book.scene("no gateway");
    let alone = Stage::new(80).in_colour();
    book.run("colour", &alone, &[&["status"], &["lsit"], &["--help"]]);
    book.scene("servers in every state");
    let rich = Rich::new(Stage::new(80).in_colour());
    book.run(
        "colour",
        &rich.stage,
        &[
            &["status"],
            &["list"],
            &["tools", "sky"],
            &["trust", "show", "sky:forecast"],
            &["doctor"],
            &["connect"],
            &["--color", "never", "list"],
        ],
    );
    book.check(FILES);
}
