//! [`Checker`]: a compiled schema that checks values.

use switchboard_wire::{Raw, tree::Json};

use crate::coerce::{Coercion, Fit};
use crate::error::{ValidationErrors, mismatches};
use crate::limits::STEPS;
use crate::run::{Run, Verdict};
use crate::schema::{Schema, Unusable, read_value};

/// A compiled schema that checks values. Drafts 4 to 2020-12 are supported as far as the schemas of
/// tools use them.
///
/// A value is rejected only if the schema definitely does not allow it. In doubt, it passes, and
/// the server decides: this applies to unsupported keywords and patterns, references to other
/// documents, values that fit several alternatives of `oneOf`, and work beyond
/// [`STEPS`](crate::limits::STEPS).
///
/// ```
/// use switchboard_schema::Checker;
/// use switchboard_wire::Raw;
///
/// let schema = Raw::parse(r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#)?;
/// let checker = Checker::compile(&schema)?;
/// assert!(checker.check(&Raw::parse(r#"{"limit":10}"#)?).is_ok());
/// let mismatches = checker.check(&Raw::parse(r#"{"limit":"ten"}"#)?).unwrap_err();
/// assert_eq!(
///     mismatches.to_string(),
///     r#"arguments.limit must be an integer, not "ten""#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checker {
    schema: Schema,
}

impl Checker {
    /// Compiles a schema. This costs about as much as a few checks, so the result should be reused.
    pub fn compile(schema: &Raw) -> Result<Self, Unusable> {
        let schema = Schema::compile(schema)?;
        Ok(Self { schema })
    }

    /// Checks arguments, and returns the mismatches if the schema does not allow them. It does not
    /// block and takes microseconds; only schemas and values designed to be slow take some tens of
    /// milliseconds.
    pub fn check(&self, arguments: &Raw) -> Result<(), ValidationErrors> {
        match self.read(arguments) {
            Some(value) if !self.may_allow(&value) => Err(self.explain(&value)),
            _ => Ok(()),
        }
    }

    /// Returns `true` if the schema may allow these arguments.
    pub fn allows(&self, arguments: &Raw) -> bool {
        let value = self.read(arguments);
        value.is_none_or(|value| self.may_allow(&value))
    }

    /// Converts arguments to a form that a server may accept: values of the wrong type with the
    /// same meaning are replaced, and members that the schema does not name are left to the server.
    /// If that does not help, the mismatches are those of the converted arguments. It takes a few
    /// times as long as a check.
    ///
    /// ```
    /// use switchboard_schema::Checker;
    /// use switchboard_wire::Raw;
    ///
    /// let schema = Raw::parse(r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#)?;
    /// let fit = Checker::compile(&schema)?.fit(&Raw::parse(r#"{"limit":"10"}"#)?).unwrap();
    /// assert_eq!(fit.arguments.as_str(), r#"{"limit":10}"#);
    /// assert_eq!(fit.notes, [r#"arguments.limit was converted from "10" to 10"#]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(&self, arguments: &Raw) -> Result<Fit, ValidationErrors> {
        let fit = |arguments: &Raw, notes, doubts| Fit {
            arguments: arguments.clone(),
            notes,
            doubts,
        };
        let Some(value) = self.read(arguments) else {
            return Ok(fit(arguments, Vec::new(), None));
        };
        if self.may_allow(&value) {
            return Ok(fit(arguments, Vec::new(), None));
        }
        let aliases = || Run::new(&self.schema, STEPS).with_aliases();
        if aliases().eval(&self.schema.root, &value) != Verdict::No {
            return Ok(fit(arguments, Vec::new(), Some(self.explain(&value))));
        }
        let mut coercion = Coercion::new(aliases());
        if let Some(replaced) = coercion.replace(&value, arguments)
            && let Some(now) = self.read(&replaced)
        {
            if aliases().eval(&self.schema.root, &now) == Verdict::No {
                // Values that could be converted are not among the mismatches.
                return Err(self.explain(&now));
            }
            let doubts = (!self.may_allow(&now)).then(|| self.explain(&now));
            return Ok(fit(&replaced, coercion.into_notes(), doubts));
        }
        Err(self.explain(&value))
    }

    /// Reads the arguments, if there is anything to check. A value that is nested too deeply to
    /// check is left to the server to refuse.
    fn read<'a>(&self, arguments: &'a Raw) -> Option<Json<'a>> {
        if self.allows_everything() {
            return None;
        }
        read_value(arguments)
    }

    fn may_allow(&self, value: &Json<'_>) -> bool {
        Run::new(&self.schema, STEPS).eval(&self.schema.root, value) != Verdict::No
    }

    /// Explains mismatches in a second run, because most values fit.
    fn explain(&self, value: &Json<'_>) -> ValidationErrors {
        let mut run = Run::new(&self.schema, STEPS).explaining();
        run.eval(&self.schema.root, value);
        mismatches(run.into_findings())
    }

    fn allows_everything(&self) -> bool {
        match &self.schema.root {
            Json::Bool(allowed) => *allowed,
            Json::Object(object) => object.is_empty(),
            _ => false,
        }
    }
}
