//! How a text or a condition is read where its meaning is not certain.

/// How a condition is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One value is enough.
    Generous,
    /// All have to fit.
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
    /// Anything: it has too many spellings to list.
    All,
}
