//! Replaces texts in a configuration in place, so that it can be shown without secrets.

use std::path::Path;

use crate::error::Error;
use crate::{json, toml};

/// A function that returns the replacement for one text. Its arguments are the keys that lead to the
/// text, the preceding text if it is in a list (empty for the first), and the text itself.
pub type Replace<'a> = dyn FnMut(&[&str], Option<&str>, &str) -> Option<String> + 'a;

/// Copies a configuration with some texts replaced. The file extension selects TOML or JSON.
pub fn replace_texts(file: &Path, text: &str, replace: &mut Replace<'_>) -> Result<String, Error> {
    let is_toml = file
        .extension()
        .is_some_and(|extension| extension == "toml");
    let parts = if is_toml {
        toml::replaced(file, text, replace)?
    } else {
        json::replaced(file, text, replace)?
    };
    Ok(switchboard_jsonc::spliced(text, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_selected_texts_are_replaced() {
        let mut seen = Vec::new();
        let mut replace = |keys: &[&str], before: Option<&str>, text: &str| {
            seen.push((keys.join("."), before.map(str::to_owned)));
            (text == "x" && keys.last() == Some(&"k")).then(|| "\"m\"".to_owned())
        };
        let json = "\u{feff}{ // x\n \"a\": {\"k\": \"x\", \"x\": \"x\", \"k\": \"x\",},\n \"l\": [\"x\", {\"k\": \"x\"}] }";
        assert_eq!(
            replace_texts(Path::new("f"), json, &mut replace).unwrap(),
            "\u{feff}{ // x\n \"a\": {\"k\": \"\\\"m\\\"\", \"x\": \"x\", \"k\": \"\\\"m\\\"\",},\n \"l\": [\"x\", {\"k\": \"\\\"m\\\"\"}] }"
        );
        let toml = "k = 'x' # x\n[a.b]\nl = [\"x\", \"y\"]\nt = { k = \"x\", o = \"x\" }\n[a]\nk = \"x\"\n";
        assert_eq!(
            replace_texts(Path::new("f.toml"), toml, &mut replace).unwrap(),
            "k = \"\\\"m\\\"\" # x\n[a.b]\nl = [\"x\", \"y\"]\nt = { k = \"\\\"m\\\"\", o = \"x\" }\n[a]\nk = \"\\\"m\\\"\"\n"
        );
        for one in [("a.b.l", Some("")), ("a.b.l", Some("x")), ("a.b.t.k", None)] {
            let one = (one.0.to_owned(), one.1.map(str::to_owned));
            assert!(seen.contains(&one), "{one:?}: {seen:?}");
        }
    }
}
