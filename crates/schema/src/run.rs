//! One check: every keyword that applies to a value, and combinations of schemas.

use std::mem;

use switchboard_wire::tree::{Json, Object};

use crate::error::{Finding, Kind, Segment, ValidationError, path};
use crate::limits::{CANDIDATES, CHOICES, FRAMES, MISMATCHES, NAME_CHARACTERS};
use crate::reference;
use crate::schema::Schema;
use crate::text;

/// The verdict of a schema on a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
    /// Unknown: something is not supported, or would be too much work.
    Perhaps,
}

impl Verdict {
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Perhaps, _) | (_, Self::Perhaps) => Self::Perhaps,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

/// The state of one check. `'c` is the lifetime of the schema, `'v` that of the value.
pub(crate) struct Run<'c, 'v> {
    pub(crate) schema: &'c Schema,
    steps: u64,
    frames: usize,
    explain: bool,
    /// An unknown member may be an alias of a known one.
    pub(crate) aliases: bool,
    findings: Vec<Finding>,
    pub(crate) path: Vec<Segment<'v>>,
}

impl<'c, 'v> Run<'c, 'v> {
    pub(crate) fn new(schema: &'c Schema, steps: u64) -> Self {
        Self {
            schema,
            steps,
            frames: 0,
            explain: false,
            aliases: false,
            findings: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Explains mismatches, instead of stopping at the first.
    pub(crate) fn explaining(mut self) -> Self {
        self.explain = true;
        self
    }

    /// Leaves unknown members, and the known ones that they may stand for, to the server.
    pub(crate) fn with_aliases(mut self) -> Self {
        self.aliases = true;
        self
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    pub(crate) fn eval(&mut self, schema: &'c Json<'c>, value: &'v Json<'v>) -> Verdict {
        if self.frames >= FRAMES || !self.charge(1) {
            return Verdict::Perhaps;
        }
        self.frames += 1;
        let verdict = match schema {
            Json::Bool(true) => Verdict::Yes,
            Json::Bool(false) => self.no(|| "is not allowed here".to_owned()),
            Json::Object(object) => self.keywords(object, value),
            _ => Verdict::Perhaps,
        };
        self.frames -= 1;
        verdict
    }

    /// Deducts steps from the remaining ones. Returns `false` if they do not suffice.
    pub(crate) fn charge(&mut self, steps: u64) -> bool {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    /// Charges for the search of a similar name, if that search is needed. Returns `false` if it is
    /// not, or if the steps do not suffice.
    pub(crate) fn charge_search<'a>(
        &mut self,
        wrong: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> bool {
        let length = |name: &str| name.len().min(NAME_CHARACTERS) as u64;
        let letters: u64 = names.take(CANDIDATES).map(length).sum();
        (self.explain || self.aliases) && self.charge(1 + letters * length(wrong) / 16)
    }

    /// Returns `true` if enough is known to stop.
    pub(crate) fn is_over(&self, verdict: Verdict) -> bool {
        verdict == Verdict::No && (!self.explain || self.findings.len() >= MISMATCHES)
    }

    /// Records a mismatch. The message is only built if the run explains mismatches.
    pub(crate) fn no(&mut self, message: impl FnOnce() -> String) -> Verdict {
        if self.explain {
            self.find(None, message(), None, None);
        }
        Verdict::No
    }

    /// Like [`no`](Self::no), for a member of the value, and with a hint.
    pub(crate) fn no_member(
        &mut self,
        member: &str,
        words: impl FnOnce() -> (String, Option<String>),
    ) -> Verdict {
        if self.explain && self.charge(member.len() as u64 / 16) {
            let (message, hint) = words();
            self.find(Some(member), message, hint, None);
        }
        Verdict::No
    }

    /// Like [`no`](Self::no), for a value of the wrong kind. `words` returns the expected kind, and
    /// a hint.
    pub(crate) fn no_kind(
        &mut self,
        value: &Json<'_>,
        words: impl FnOnce() -> (String, Option<String>),
    ) -> Verdict {
        if self.explain {
            let (expected, hint) = words();
            let shown = text::value(value);
            let kind = Kind { expected, shown };
            self.find(None, kind.to_string(), hint, Some(kind));
        }
        Verdict::No
    }

    /// Returns the number of findings.
    pub(crate) fn findings(&self) -> usize {
        self.findings.len()
    }

    /// Adds a hint to the findings about the value itself, skipping the first `after` ones.
    pub(crate) fn hint(&mut self, after: usize, hint: &str) {
        let depth = self.path.len();
        let own = self.findings.iter_mut().skip(after);
        for finding in own.filter(|finding| finding.depth == depth) {
            finding.mismatch.hint = Some(hint.to_owned());
        }
    }

    fn find(
        &mut self,
        member: Option<&str>,
        message: String,
        hint: Option<String>,
        kind: Option<Kind>,
    ) {
        // Building messages is work too: a schema with many alternatives can cause a great many.
        if self.findings.len() >= MISMATCHES || !self.charge(32) {
            return;
        }
        let segments = self.path.iter().copied();
        let path = path(segments.chain(member.map(Segment::Name)));
        self.findings.push(Finding {
            mismatch: ValidationError {
                path,
                message,
                hint,
            },
            depth: self.path.len() + usize::from(member.is_some()),
            kind,
        });
    }

    fn keywords(&mut self, schema: &'c Object<'c>, value: &'v Json<'v>) -> Verdict {
        // OpenAPI's way to allow `null`, which its users take for JSON Schema.
        if *value == Json::Null && schema.get("nullable") == Some(&Json::Bool(true)) {
            return Verdict::Perhaps;
        }
        if let (Some(reference), true) = (schema.get("$ref"), self.schema.lone_references) {
            return self.reference(reference, value);
        }
        let mut verdict = Verdict::Yes;
        // If the type is wrong, no other keyword matters.
        if let Some(types) = schema.get("type") {
            verdict = self.types(types, value);
            if verdict == Verdict::No {
                return Verdict::No;
            }
        }
        for (name, keyword) in schema.iter() {
            if !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
            verdict = verdict.and(self.keyword(schema, name, keyword, value));
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    fn keyword(
        &mut self,
        schema: &'c Object<'c>,
        name: &str,
        keyword: &'c Json<'c>,
        value: &'v Json<'v>,
    ) -> Verdict {
        match name {
            "$ref" => self.reference(keyword, value),
            "$dynamicRef" | "$recursiveRef" => Verdict::Perhaps,
            "enum" => self.enumeration(keyword, value),
            "const" => self.constant(keyword, value),
            "allOf" => self.all_of(keyword, value),
            "anyOf" | "oneOf" => self.one_of(keyword, value),
            "not" => match self.quietly(keyword, value) {
                Verdict::Yes => self.no(|| "has a form that is not allowed here".to_owned()),
                Verdict::No => Verdict::Yes,
                Verdict::Perhaps => Verdict::Perhaps,
            },
            "if" => self.condition(schema, keyword, value),
            _ => match value {
                Json::Number(number) => self.number(schema, name, keyword, number),
                Json::Text(text) => self.text(name, keyword, text),
                Json::Array(elements) => self.array(schema, name, keyword, elements),
                Json::Object(object) => self.object(schema, name, keyword, (value, object)),
                Json::Null | Json::Bool(_) => Verdict::Yes,
                Json::Unread(_) => Verdict::Perhaps,
            },
        }
    }

    fn reference(&mut self, reference: &Json<'_>, value: &'v Json<'v>) -> Verdict {
        let target = match reference {
            Json::Text(text) if self.schema.references => {
                reference::resolve(&self.schema.root, text)
            }
            _ => None,
        };
        match target {
            Some(target) => self.eval(target, value),
            None => Verdict::Perhaps,
        }
    }

    /// Returns the verdict alone, without explanations.
    pub(crate) fn quietly(&mut self, schema: &'c Json<'c>, value: &'v Json<'v>) -> Verdict {
        let explain = mem::take(&mut self.explain);
        let verdict = self.eval(schema, value);
        self.explain = explain;
        verdict
    }

    /// Returns the verdict on a value that is not part of the one being checked.
    pub(crate) fn aside(&mut self, schema: &'c Json<'c>, value: &Json<'_>) -> Verdict {
        let mut aside = Run::new(self.schema, self.steps);
        aside.frames = self.frames;
        aside.aliases = self.aliases;
        let verdict = aside.eval(schema, value);
        self.steps = aside.steps;
        verdict
    }

    fn all_of(&mut self, keyword: &'c Json<'c>, value: &'v Json<'v>) -> Verdict {
        let Some(branches) = keyword.as_array() else {
            return Verdict::Perhaps;
        };
        let mut verdict = Verdict::Yes;
        for branch in branches {
            verdict = verdict.and(self.eval(branch, value));
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    fn condition(
        &mut self,
        schema: &'c Object<'c>,
        keyword: &'c Json<'c>,
        value: &'v Json<'v>,
    ) -> Verdict {
        let (then, otherwise) = (schema.get("then"), schema.get("else"));
        let branch = |run: &mut Self, branch: Option<&'c Json<'c>>| match branch {
            Some(branch) => run.eval(branch, value),
            None => Verdict::Yes,
        };
        match self.quietly(keyword, value) {
            Verdict::Yes => branch(self, then),
            Verdict::No => branch(self, otherwise),
            Verdict::Perhaps => Verdict::Perhaps,
        }
    }

    /// Checks `anyOf` and `oneOf`. A value that fits several alternatives is usually due to a
    /// mistake in the schema, which the caller cannot fix, so it is left to the server.
    fn one_of(&mut self, keyword: &'c Json<'c>, value: &'v Json<'v>) -> Verdict {
        let branches = match keyword.as_array() {
            Some(branches) if !branches.is_empty() => branches,
            _ => return Verdict::Perhaps,
        };
        let mut verdict = Verdict::No;
        let mut why = Vec::new();
        for branch in branches {
            let before = mem::take(&mut self.findings);
            let found = self.eval(branch, value);
            why.push(mem::replace(&mut self.findings, before));
            match found {
                Verdict::Yes => return Verdict::Yes,
                Verdict::Perhaps => verdict = Verdict::Perhaps,
                Verdict::No => {}
            }
        }
        if verdict == Verdict::No && self.explain {
            let room = MISMATCHES.saturating_sub(self.findings.len());
            let nearest = nearest(why, self.path.len());
            self.findings.extend(nearest.into_iter().take(room));
        }
        verdict
    }
}

/// Returns the explanation of the alternative that a value comes closest to. The value is `depth`
/// steps down.
fn nearest(mut why: Vec<Vec<Finding>>, depth: usize) -> Vec<Finding> {
    fn of_kind(found: &[Finding], depth: usize) -> Option<&Finding> {
        let mut own = found.iter().filter(|finding| finding.depth == depth);
        own.find(|finding| finding.kind.is_some())
    }
    if let Some(finding) = alternatives(why.iter().map(|found| of_kind(found, depth))) {
        return vec![finding];
    }
    why.retain(|found| of_kind(found, depth).is_none());
    // Alternatives are often distinguished by a member with a different constant in each.
    if why.len() > 1
        && let Some(finding) = alternatives(why.iter().map(|found| of_kind(found, depth + 1)))
    {
        return vec![finding];
    }
    let marks = |found: &[Finding]| found.iter().filter(|f| f.kind.is_some()).count();
    why.into_iter()
        .min_by_key(|found| (marks(found), found.len()))
        .unwrap_or_default()
}

/// Merges the kinds expected at one position, if every alternative has a finding there.
fn alternatives<'a>(forms: impl Iterator<Item = Option<&'a Finding>>) -> Option<Finding> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut place: Option<(&Finding, &Kind)> = None;
    for form in forms {
        let form = form?;
        let kind = form.kind.as_ref()?;
        if place.is_some_and(|(first, _)| first.mismatch.path != form.mismatch.path) {
            return None;
        }
        place.get_or_insert((form, kind));
        if !kinds.contains(&&*kind.expected) {
            kinds.push(&kind.expected);
        }
    }
    let (first, kind) = place?;
    let more = kinds.len() > CHOICES;
    kinds.truncate(CHOICES);
    let kind = Kind {
        expected: kinds.join(" or ") + if more { " or …" } else { "" },
        shown: kind.shown.clone(),
    };
    Some(Finding {
        mismatch: ValidationError {
            path: first.mismatch.path.clone(),
            message: kind.to_string(),
            hint: first.mismatch.hint.clone().filter(|_| kinds.len() == 1),
        },
        depth: first.depth,
        kind: Some(kind),
    })
}
