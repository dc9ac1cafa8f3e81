//! Scopes as numbers, so that a filter compares them once and not for each memory.

use std::collections::HashMap;

use crate::query::Filter;

/// Whose a memory is: namespace, user, agent, run.
pub type Scope<'a> = [Option<&'a str>; 4];

/// Texts as numbers. What is not named is 0.
#[derive(Debug, Default)]
struct Names(HashMap<Box<str>, u32>);

/// Every scope that there is.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    names: Names,
    numbers: HashMap<[u32; 4], u32>,
    all: Vec<[u32; 4]>,
}

/// A kind or a scope that no memory can have.
pub(crate) const NONE: u32 = u32::MAX;

impl Scopes {
    /// The number of a scope, a new one if need be.
    pub(crate) fn enter(&mut self, scope: Scope<'_>) -> u32 {
        let scope = scope.map(|name| name.map_or(0, |name| self.names.enter(name)));
        let next = u32::try_from(self.all.len()).unwrap_or(NONE);
        *self.numbers.entry(scope).or_insert_with(|| {
            self.all.push(scope);
            next
        })
    }

    /// The number of a kind of memory, a new one if need be.
    pub(crate) fn enter_name(&mut self, name: &str) -> u32 {
        self.names.enter(name)
    }

    /// The number of a name; that of no memory if it is not known.
    pub(crate) fn name(&self, name: &str) -> u32 {
        self.names.0.get(name).copied().unwrap_or(NONE)
    }

    /// For each scope whether it passes.
    pub(crate) fn admitted(&self, filter: &Filter<'_>) -> Vec<bool> {
        let wanted = filter.scope.map(|name| name.map(|name| self.name(name)));
        let passes = |scope: &[u32; 4]| {
            let mut pairs = scope.iter().zip(wanted);
            pairs.all(|(has, wanted)| wanted.is_none_or(|wanted| wanted == *has))
        };
        self.all.iter().map(passes).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        let names: usize = self.names.0.keys().map(|name| name.len() + 32).sum();
        names + self.all.len() * 56
    }
}

impl Names {
    fn enter(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = u32::try_from(self.0.len() + 1).unwrap_or(NONE);
        self.0.insert(name.into(), number);
        number
    }
}
