//! [`Presented`]: the way in which an item is shown.

use switchboard_wire::Raw;

use crate::Kind;

/// Decides how an item is shown, by its kind, its name or URI at the server, and its definition.
pub type Present<'a> = dyn Fn(Kind, &str, &Raw) -> Presented + Sync + 'a;

/// The same for one kind.
pub(crate) type PresentItem<'a> = dyn Fn(&str, &Raw) -> Presented + 'a;

/// The way in which an item is shown.
#[derive(Clone, Debug)]
pub enum Presented {
    /// As it is.
    Unchanged,
    /// Not at all.
    Hidden,
    /// With this definition, which may have another name.
    Changed(Raw),
}

impl Presented {
    /// As it is, or not at all.
    pub fn unchanged_if(is_shown: bool) -> Self {
        if is_shown {
            Self::Unchanged
        } else {
            Self::Hidden
        }
    }
}
