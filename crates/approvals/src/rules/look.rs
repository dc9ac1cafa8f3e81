//! A case under judgement, with its derived facts: each is computed once, and only if a rule needs it.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use switchboard_wire::{
    Raw,
    tree::{Json, Object, Tree},
};

use super::decode::folded;
use super::error::ArgumentsError;
use super::hints::Believed;
use super::limits::{ARGUMENT_NODES, JUDGED_BYTES, MATCHED_BYTES, SPELLED_TEXTS};
use super::reading::Reading;
use super::spelling::Spellings;
use super::{Case, Kind};
use crate::json::digest;

pub(crate) struct Look<'c, 'a> {
    pub(crate) case: &'c Case<'a>,
    believed: OnceCell<Believed>,
    arguments: OnceCell<Result<Json<'a>, ArgumentsError>>,
    digest: OnceCell<[u8; 32]>,
    pub(crate) texts: Texts,
}

impl<'c, 'a> Look<'c, 'a> {
    pub(crate) fn new(case: &'c Case<'a>) -> Self {
        Self {
            case,
            believed: OnceCell::new(),
            arguments: OnceCell::new(),
            digest: OnceCell::new(),
            texts: Texts::default(),
        }
    }

    pub(crate) fn believed(&self) -> Believed {
        let case = self.case;
        *self.believed.get_or_init(|| match case.kind {
            // In the protocol, no resource or prompt changes anything.
            Kind::Resource | Kind::Prompt => Believed {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: true,
            },
            Kind::ToolCall | Kind::Sampling | Kind::Elicitation => {
                case.annotations.believed(case.tool, case.overridden)
            }
        })
    }

    /// The arguments of the case; an empty object if there are none.
    pub(crate) fn arguments(&self) -> Result<&Json<'a>, ArgumentsError> {
        let read = || {
            let Some(raw) = self.case.arguments else {
                return Ok(Json::Object(Object::default()));
            };
            let tree = Tree::read(raw, ARGUMENT_NODES);
            match tree.value {
                Json::Object(_) if !tree.whole => Err(ArgumentsError::TooLarge),
                Json::Object(_) if !tree.exact => Err(ArgumentsError::Half),
                value @ Json::Object(_) => Ok(value),
                _ => Err(ArgumentsError::NotAnObject),
            }
        };
        let arguments = self.arguments.get_or_init(read);
        arguments.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| match self.case.arguments {
            Some(arguments) => digest(arguments),
            None => digest(&Raw::empty_object()),
        })
    }
}

/// The texts of a case that patterns are compared with: a cache of their spellings, and a counter of the
/// work.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: Cell<usize>,
    known: RefCell<Vec<Known>>,
}

/// The cached spellings of a text.
struct Known {
    text: Box<str>,
    reading: Reading,
    spellings: Rc<Spellings>,
}

impl Texts {
    /// Counts a text that is about to be compared with a pattern.
    pub(crate) fn count(&self, text: &str) -> Result<(), ArgumentsError> {
        self.count_bytes(text.len())
    }

    fn count_bytes(&self, bytes: usize) -> Result<(), ArgumentsError> {
        let bytes = self.bytes.get().saturating_add(bytes);
        self.bytes.set(bytes);
        if bytes > JUDGED_BYTES {
            return Err(ArgumentsError::TooMuch);
        }
        Ok(())
    }

    pub(crate) fn spellings(
        &self,
        text: &str,
        reading: Reading,
    ) -> Result<Rc<Spellings>, ArgumentsError> {
        let mut known = self.known.borrow_mut();
        let found = known
            .iter()
            .find(|known| known.reading == reading && *known.text == *text);
        if let Some(found) = found {
            self.count_bytes(found.spellings.bytes())?;
            return Ok(Rc::clone(&found.spellings));
        }
        // One character may expand to many.
        if !text.is_ascii() && folded(text).len() > MATCHED_BYTES {
            return Err(ArgumentsError::TooMuch);
        }
        let spellings = Rc::new(Spellings::of(text, reading));
        self.count_bytes(spellings.bytes())?;
        if known.len() < SPELLED_TEXTS {
            known.push(Known {
                text: text.into(),
                reading,
                spellings: Rc::clone(&spellings),
            });
        }
        Ok(spellings)
    }
}
