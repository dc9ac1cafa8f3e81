//! JSON as a lossless tree: numbers keep their spelling, and duplicate members are kept.
//!
//! The tree is used to decide if a call is allowed, a definition is approved and arguments are valid, so it
//! must not read anything differently than a server does. Parsers disagree on duplicate members, so each
//! accessor documents which one it returns: [`Object::get`] the last, [`Object::unique`] the only one,
//! [`Object::all`] every one. A value that is nested too deeply, or exceeds the number of values, is not
//! read, and the tree reports that.

use std::{borrow::Cow, ops::Deref};

mod number;
mod read;
mod text;

pub use number::{Decimal, canonical_number};
pub use text::Text;
pub(crate) use text::escape;

use crate::{Raw, is_alike};

/// Objects with more members than this have an index. Smaller ones are searched linearly.
const INDEXED: usize = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is spelled.
    Number(Cow<'a, str>),
    /// A string, unescaped.
    Text(Text<'a>),
    /// The elements of an array.
    Array(Vec<Self>),
    /// The members of an object.
    Object(Object<'a>),
    /// An array or object deeper than [`TREE_DEPTH`](crate::limits::TREE_DEPTH), as it is spelled; empty for
    /// the rest of a text that has too many values.
    Unread(Cow<'a, str>),
}

/// The members of an object in order, including duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a> {
    members: Vec<(Text<'a>, Json<'a>)>,
    /// The indices of the members, sorted by name and then by position. Empty for small objects.
    by_name: Box<[u32]>,
}

/// A tree, and the extent to which it represents the text.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The tree.
    pub value: Json<'a>,
    /// `true` if nothing was left out.
    pub whole: bool,
    /// `true` if every string is exactly as sent. An unpaired surrogate is read as U+FFFD.
    pub exact: bool,
}

/// A name that occurs twice in one object. Parsers disagree on which member counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice(pub String);

impl<'a> Tree<'a> {
    /// Reads a value. At most `nodes` values are read.
    pub fn read(raw: &'a Raw, nodes: usize) -> Self {
        Self::read_text(raw.as_str(), nodes)
    }

    /// Reads a text that is known to be JSON. At most `nodes` values are read.
    pub fn read_text(text: &'a str, nodes: usize) -> Self {
        let mut reader = read::Reader {
            text,
            at: 0,
            nodes,
            whole: true,
            exact: true,
        };
        let value = reader.value(0);
        Self {
            value,
            whole: reader.whole,
            exact: reader.exact,
        }
    }
}

impl<'a> Json<'a> {
    /// Reads a value with any number of values in it.
    pub fn read(raw: &'a Raw) -> Self {
        Tree::read(raw, usize::MAX).value
    }

    /// Returns the last member with this name, if the value is an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    /// Returns the members, if the value is an object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the elements, if the value is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the text, if the value is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Removes all but the last of the members with the same name in each object. Most parsers use the last
    /// one.
    pub fn keep_last(&mut self) {
        match self {
            Self::Array(elements) => elements.iter_mut().for_each(Self::keep_last),
            Self::Object(object) => object.keep_last(),
            _ => {}
        }
    }

    /// Converts the tree into one that borrows nothing.
    pub fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(spelled) => Json::Number(owned(spelled)),
            Self::Text(text) => Json::Text(text.into_owned()),
            Self::Array(elements) => {
                Json::Array(elements.into_iter().map(Self::into_owned).collect())
            }
            Self::Object(object) => {
                let members = object.members.into_iter();
                let members = members.map(|(name, value)| (name.into_owned(), value.into_owned()));
                Json::Object(members.collect())
            }
            Self::Unread(spelled) => Json::Unread(owned(spelled)),
        }
    }

    /// Returns a canonical text, which is the same for all values with the same meaning: members are sorted,
    /// and `1` and `1.0` are spelled alike. It is meant for comparison and is not valid JSON.
    pub fn canonical(&self) -> Result<String, Twice> {
        let mut out = String::new();
        self.write_canonical(&mut out)?;
        Ok(out)
    }

    fn write_canonical(&self, out: &mut String) -> Result<(), Twice> {
        match self {
            Self::Null | Self::Unread(_) => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(spelled) => out.push_str(&canonical_number(spelled)),
            Self::Text(text) => out.push_str(Raw::string(text).as_str()),
            Self::Array(elements) => {
                out.push('[');
                for element in elements {
                    element.write_canonical(out)?;
                    out.push(',');
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|one, other| one.0.text.cmp(&other.0.text));
                if let Some(pair) = sorted.windows(2).find(|pair| *pair[0].0 == *pair[1].0) {
                    return Err(Twice(pair[0].0.to_string()));
                }
                out.push('{');
                for (name, value) in sorted {
                    out.push_str(Raw::string(name).as_str());
                    out.push(':');
                    value.write_canonical(out)?;
                    out.push(',');
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

impl<'a> Object<'a> {
    /// Returns the last member with this name.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        Some(&self.members[self.place(name)?].1)
    }

    /// Returns the only member with this name. A member whose name differs only in letter case counts as a
    /// duplicate, because some parsers ignore the case.
    pub fn unique(&self, name: &str) -> Result<Option<&Json<'a>>, Twice> {
        let mut found = self.iter().filter(|(key, _)| is_alike(key, name));
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some((key, value)), None) if **key == *name => Ok(Some(value)),
            (Some(_), _) => Err(Twice(name.to_owned())),
        }
    }

    /// Returns every member with this name, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &Json<'a>> {
        let found = self.iter().filter(move |(key, _)| **key == *name);
        found.map(|(_, value)| value)
    }

    /// Returns the index of the last member with this name.
    fn place(&self, name: &str) -> Option<usize> {
        if self.by_name.is_empty() {
            return self.iter().rposition(|(key, _)| **key == *name);
        }
        let key = |place: &u32| &*self.members[*place as usize].0;
        let after = self.by_name.partition_point(|place| key(place) <= name);
        let last = self.by_name[..after].last();
        last.filter(|place| key(place) == name)
            .map(|place| *place as usize)
    }

    fn keep_last(&mut self) {
        let is_last = |at: usize| self.place(&self.members[at].0) == Some(at);
        if !(0..self.len()).all(is_last) {
            let last: Vec<bool> = (0..self.len()).map(is_last).collect();
            let mut last = last.into_iter();
            self.members.retain(|_| last.next().unwrap_or(true));
            *self = std::mem::take(&mut self.members).into();
        }
        self.members
            .iter_mut()
            .for_each(|(_, value)| value.keep_last());
    }
}

impl<'a> From<Vec<(Text<'a>, Json<'a>)>> for Object<'a> {
    fn from(members: Vec<(Text<'a>, Json<'a>)>) -> Self {
        let mut by_name = Box::default();
        // No frame is that large; such an object would be searched linearly.
        if let Ok(count) = u32::try_from(members.len())
            && members.len() > INDEXED
        {
            by_name = (0..count).collect::<Box<[u32]>>();
            by_name.sort_by_key(|place| &members[*place as usize].0.text);
        }
        Self { members, by_name }
    }
}

impl<'a> FromIterator<(Text<'a>, Json<'a>)> for Object<'a> {
    fn from_iter<T: IntoIterator<Item = (Text<'a>, Json<'a>)>>(members: T) -> Self {
        Vec::from_iter(members).into()
    }
}

impl<'a> Deref for Object<'a> {
    type Target = [(Text<'a>, Json<'a>)];

    fn deref(&self) -> &Self::Target {
        &self.members
    }
}

#[cfg(test)]
mod tests;
