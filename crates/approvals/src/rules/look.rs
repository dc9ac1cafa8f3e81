//! A case as it is looked at: what takes work to find out is found out once, and only if a rule asks.

use std::cell::OnceCell;

use switchboard_wire::Raw;

use super::condition::Fault;
use super::hints::Believed;
use super::limits::ARGUMENT_NODES;
use super::{Case, Kind};
use crate::json::{Json, Tree, digest};

pub(crate) struct Look<'c, 'a> {
    pub(crate) case: &'c Case<'a>,
    believed: OnceCell<Believed>,
    arguments: OnceCell<Result<Json<'a>, Fault>>,
    digest: OnceCell<[u8; 32]>,
}

impl<'c, 'a> Look<'c, 'a> {
    pub(crate) fn new(case: &'c Case<'a>) -> Self {
        Self {
            case,
            believed: OnceCell::new(),
            arguments: OnceCell::new(),
            digest: OnceCell::new(),
        }
    }

    pub(crate) fn believed(&self) -> Believed {
        let case = self.case;
        *self.believed.get_or_init(|| match case.kind {
            // The protocol knows of no resource or prompt that changes anything.
            Kind::Resource | Kind::Prompt => Believed {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: true,
            },
            Kind::ToolCall | Kind::Sampling | Kind::Elicitation => {
                case.annotations.believed(case.tool)
            }
        })
    }

    /// Arguments that were left out are empty ones.
    pub(crate) fn arguments(&self) -> Result<&Json<'a>, Fault> {
        let read = || {
            let Some(raw) = self.case.arguments else {
                return Ok(Json::Object(Vec::new()));
            };
            let tree = Tree::read(raw, ARGUMENT_NODES);
            match tree.value {
                Json::Object(_) if !tree.whole => Err(Fault::TooLarge),
                value @ Json::Object(_) => Ok(value),
                _ => Err(Fault::NotAnObject),
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
