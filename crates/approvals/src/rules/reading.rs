//! The ways in which a text or a condition is read if its meaning is uncertain.

/// The way in which a condition is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One matching value is enough.
    Generous,
    /// All values have to match.
    Strict,
}

/// The degree to which the meaning of a text is uncertain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    #[default]
    None,
    /// The place that it leads to if it is a path, although it looks like prose.
    IfPath,
    /// The place that it leads to.
    Place,
    /// Everything: it has too many spellings to list.
    All,
}
