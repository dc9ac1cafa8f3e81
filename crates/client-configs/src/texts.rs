//! Replacing texts of a configuration at their places, so that it can be shown without secrets.

use std::path::Path;

use crate::error::Error;
use crate::{json, toml};

/// Decides about one text. It gets the keys that lead to it, the text before it if it stands in a list (empty for the
/// first), and the text itself.
pub type Replace<'a> = dyn FnMut(&[&str], Option<&str>, &str) -> Option<String> + 'a;

/// A copy of a configuration with other texts in the place of some. The name of the file says whether it is TOML or
/// JSON.
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
    fn texts_are_replaced_at_their_places_only() {
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
