//! Keywords for values without parts: types, choices, numbers and texts.

use switchboard_wire::tree::{Decimal, Json, Object};

use crate::limits::CHOICES;
use crate::run::{Run, Verdict};
use crate::text;

impl<'c> Run<'c, '_> {
    /// Checks `type`.
    pub(crate) fn types(&mut self, types: &Json<'_>, value: &Json<'_>) -> Verdict {
        let types = match types {
            Json::Array(types) => types,
            one => std::slice::from_ref(one),
        };
        // The number has to be parsed to test if it is an integer.
        if let Json::Number(number) = value
            && !self.charge(number.len() as u64 / 16)
        {
            return Verdict::Perhaps;
        }
        let mut words = Vec::new();
        for kind in types {
            let Some(word) = kind.as_text().and_then(article) else {
                return Verdict::Perhaps;
            };
            if is_of(value, kind) {
                return Verdict::Yes;
            }
            words.push(word);
        }
        if words.is_empty() {
            return Verdict::Perhaps;
        }
        self.no_kind(value, || (words.join(" or "), hint(types, value)))
    }

    /// Checks `enum`.
    pub(crate) fn enumeration(&mut self, keyword: &Json<'_>, value: &Json<'_>) -> Verdict {
        let Some(choices) = keyword.as_array().filter(|choices| !choices.is_empty()) else {
            return Verdict::Perhaps;
        };
        let Some(own) = self.canonical(value) else {
            return Verdict::Perhaps;
        };
        for choice in choices {
            match self.canonical(choice) {
                Some(choice) if choice == own => return Verdict::Yes,
                Some(_) => {}
                None => return Verdict::Perhaps,
            }
        }
        let names = || choices.iter().filter_map(Json::as_text);
        let wrong = value.as_text();
        let wrong = wrong.filter(|wrong| self.charge_search(wrong, names()));
        self.no_kind(value, || {
            let mut shown: Vec<String> = choices.iter().take(CHOICES).map(text::value).collect();
            if choices.len() > CHOICES {
                shown.push(format!("… ({} in total)", choices.len()));
            }
            let meant = wrong.and_then(|wrong| text::nearest(wrong, names()));
            let hint = meant.map(|name| format!("did you mean {}?", text::quoted(name, 64)));
            let one = if shown.len() > 1 { "one of " } else { "" };
            (format!("{one}{}", shown.join(", ")), hint)
        })
    }

    /// Checks `const`.
    pub(crate) fn constant(&mut self, keyword: &Json<'_>, value: &Json<'_>) -> Verdict {
        match (self.canonical(keyword), self.canonical(value)) {
            (Some(expected), Some(own)) if expected == own => Verdict::Yes,
            (Some(_), Some(_)) => self.no_kind(value, || (text::value(keyword), None)),
            _ => Verdict::Perhaps,
        }
    }

    /// Returns the canonical form of a value, if the steps suffice.
    pub(crate) fn canonical(&mut self, value: &Json<'_>) -> Option<String> {
        let canonical = value.canonical().ok()?;
        self.charge(1 + canonical.len() as u64 / 16)
            .then_some(canonical)
    }

    pub(crate) fn number(
        &mut self,
        schema: &Object<'_>,
        name: &str,
        keyword: &Json<'_>,
        number: &str,
    ) -> Verdict {
        // Up to draft 4, the exclusive keywords were flags on the other two.
        let exclusive = |name| schema.get(name) == Some(&Json::Bool(true));
        let (words, fits): (_, fn(&Decimal, &Decimal) -> Option<bool>) = match (name, keyword) {
            ("minimum", _) if exclusive("exclusiveMinimum") => ("more than", |n, k| Some(n > k)),
            ("maximum", _) if exclusive("exclusiveMaximum") => ("less than", |n, k| Some(n < k)),
            ("exclusiveMinimum" | "exclusiveMaximum", Json::Bool(_)) => return Verdict::Yes,
            ("minimum", _) => ("at least", |n, k| Some(n >= k)),
            ("maximum", _) => ("at most", |n, k| Some(n <= k)),
            ("exclusiveMinimum", _) => ("more than", |n, k| Some(n > k)),
            ("exclusiveMaximum", _) => ("less than", |n, k| Some(n < k)),
            ("multipleOf" | "divisibleBy", _) => ("a multiple of", Decimal::is_multiple_of),
            _ => return Verdict::Yes,
        };
        let Json::Number(bound) = keyword else {
            return Verdict::Perhaps;
        };
        if !self.charge((number.len() + bound.len()) as u64 / 16) {
            return Verdict::Perhaps;
        }
        match fits(&Decimal::read(number), &Decimal::read(bound)) {
            Some(true) => Verdict::Yes,
            Some(false) => self.no(|| {
                let (bound, number) = (text::cut(bound, 40), text::cut(number, 40));
                format!("must be {words} {bound}, not {number}")
            }),
            None => Verdict::Perhaps,
        }
    }

    pub(crate) fn text(&mut self, name: &str, keyword: &'c Json<'c>, text: &str) -> Verdict {
        match name {
            "minLength" | "maxLength" => {
                if !self.charge(text.len() as u64 / 16) {
                    return Verdict::Perhaps;
                }
                self.size(name == "minLength", keyword, "character", || {
                    text.chars().count()
                })
            }
            "pattern" => self.pattern(keyword, text),
            // Checking formats is optional for a validator.
            "format" | "contentEncoding" | "contentMediaType" => Verdict::Perhaps,
            _ => Verdict::Yes,
        }
    }

    fn pattern(&mut self, keyword: &'c Json<'c>, text: &str) -> Verdict {
        let Some(spelled) = keyword.as_text() else {
            return Verdict::Perhaps;
        };
        match self.matches(spelled, text) {
            Some(true) => Verdict::Yes,
            Some(false) => self.no(|| {
                let (pattern, text) = (text::cut(spelled, 100), text::quoted(text, 60));
                format!("must match the pattern {pattern}, but is {text}")
            }),
            None => Verdict::Perhaps,
        }
    }

    /// Returns `true` if a pattern of the schema matches; `None` if that is unknown.
    pub(crate) fn matches(&mut self, pattern: &str, text: &str) -> Option<bool> {
        let pattern = self.schema.patterns.get(pattern)?;
        if !self.charge(pattern.steps(text)) {
            return None;
        }
        pattern.matches(text)
    }

    /// Checks a minimum or maximum count.
    pub(crate) fn size(
        &mut self,
        least: bool,
        keyword: &Json<'_>,
        unit: &str,
        count: impl FnOnce() -> usize,
    ) -> Verdict {
        let Json::Number(bound) = keyword else {
            return Verdict::Perhaps;
        };
        if !self.charge(bound.len() as u64 / 16) {
            return Verdict::Perhaps;
        }
        let count = count();
        let (own, limit) = (Decimal::read(&count.to_string()), Decimal::read(bound));
        if if least { own >= limit } else { own <= limit } {
            return Verdict::Yes;
        }
        self.no(|| {
            let most = if least { "at least" } else { "at most" };
            let bound = text::cut(bound, 40);
            let s = if &*bound == "1" { "" } else { "s" };
            format!("must have {most} {bound} {unit}{s}, but has {count}")
        })
    }
}

/// A type with its article.
fn article(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "string" => "a string",
        "number" => "a number",
        "integer" => "an integer",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "an object",
        "null" => "null",
        _ => return None,
    })
}

pub(crate) fn is_of(value: &Json<'_>, kind: &Json<'_>) -> bool {
    match (value, kind.as_text().unwrap_or_default()) {
        (Json::Number(number), "integer") => Decimal::read(number).is_integer(),
        (Json::Null, "null")
        | (Json::Bool(_), "boolean")
        | (Json::Number(_), "number")
        | (Json::Text(_), "string")
        | (Json::Array(_), "array")
        | (Json::Object(_), "object") => true,
        _ => false,
    }
}

/// Returns advice for common mistakes of callers.
fn hint(types: &[Json<'_>], value: &Json<'_>) -> Option<String> {
    let wants = |kind: &str| types.iter().any(|wanted| wanted.as_text() == Some(kind));
    let shown = text::value(value);
    match value {
        Json::Text(text) => {
            let inner = text.trim();
            let number = inner.len() <= 32 && inner.parse::<f64>().is_ok_and(f64::is_finite);
            let bare = (wants("number") || wants("integer")) && number
                || wants("boolean") && matches!(inner, "true" | "false");
            let json = wants("object") && inner.starts_with('{')
                || wants("array") && inner.starts_with('[');
            if bare {
                let kind = if number { "a number" } else { "a boolean" };
                Some(format!("pass {inner} as {kind}, not as a string"))
            } else if json {
                Some("pass the value itself, not a string with its JSON text".to_owned())
            } else {
                wants("array")
                    .then(|| "put it in an array, even if it is the only element".to_owned())
            }
        }
        Json::Number(_) | Json::Bool(_) if wants("string") => {
            Some(format!("write \"{shown}\" in quotation marks"))
        }
        Json::Number(_) | Json::Object(_) if wants("array") => {
            Some("put it in an array, even if it is the only element".to_owned())
        }
        _ => None,
    }
}
