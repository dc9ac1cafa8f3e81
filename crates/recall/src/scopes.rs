//! Interns scopes and kinds as numbers, so that a filter compares them once instead of for each memory.

use std::collections::HashMap;

use crate::query::Filter;

/// The owner of a memory: namespace, user, agent, run.
pub type Scope<'a> = [Option<&'a str>; 4];

/// All scopes and kinds.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    /// Names and their numbers, from 1; 0 stands for a missing name.
    names: HashMap<Box<str>, u32>,
    numbers: HashMap<[u32; 4], u32>,
    all: Vec<[u32; 4]>,
}

/// The number that stands for no scope, no name, or no place.
pub(crate) const NONE: u32 = u32::MAX;

impl Scopes {
    /// Returns the number of a scope, adding it if it is new.
    pub(crate) fn enter(&mut self, scope: Scope<'_>) -> u32 {
        let scope = scope.map(|name| name.map_or(0, |name| self.enter_name(name)));
        let next = u32::try_from(self.all.len()).unwrap_or(NONE);
        *self.numbers.entry(scope).or_insert_with(|| {
            self.all.push(scope);
            next
        })
    }

    /// Returns the number of a name, adding it if it is new.
    pub(crate) fn enter_name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len() + 1).unwrap_or(NONE);
        self.names.insert(name.into(), number);
        number
    }

    /// Returns the number of a name, or [`NONE`] if no memory has it.
    pub(crate) fn name(&self, name: &str) -> u32 {
        self.names.get(name).copied().unwrap_or(NONE)
    }

    /// Returns, for each scope, `true` if it passes the filter.
    pub(crate) fn admitted(&self, filter: &Filter<'_>) -> Vec<bool> {
        let wanted = filter.scope.map(|name| name.map(|name| self.name(name)));
        let passes = |scope: &[u32; 4]| {
            let mut pairs = scope.iter().zip(wanted);
            pairs.all(|(has, wanted)| wanted.is_none_or(|wanted| wanted == *has))
        };
        self.all.iter().map(passes).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Drops all scopes and names that are not in use, and returns the new numbers of the others. The names
    /// of scopes in use are also in use.
    pub(crate) fn keep(&mut self, scopes: &[bool], mut names: Vec<bool>) -> Renumbered {
        names.resize(self.names.len() + 1, false);
        let kept = self.all.iter().zip(scopes).filter(|(_, used)| **used);
        for name in kept.flat_map(|(scope, _)| scope) {
            names[*name as usize] = true;
        }
        let mut renumbered = Renumbered {
            scopes: vec![NONE; self.all.len()],
            names: vec![0; names.len()],
        };
        let mut next = 0;
        for (number, used) in names.iter().enumerate().skip(1) {
            if *used {
                next += 1;
                renumbered.names[number] = next;
            }
        }
        self.names.retain(|_, number| {
            *number = renumbered.names[*number as usize];
            *number != 0
        });
        let mut all = Vec::new();
        for (number, scope) in self.all.iter().enumerate() {
            if scopes.get(number).copied().unwrap_or(false) {
                renumbered.scopes[number] = u32::try_from(all.len()).unwrap_or(NONE);
                all.push(scope.map(|name| renumbered.names[name as usize]));
            }
        }
        self.numbers = all.iter().copied().zip(0..).collect();
        self.all = all;
        renumbered
    }

    pub(crate) fn bytes(&self) -> usize {
        let names: usize = self.names.keys().map(|name| name.len() + 32).sum();
        names + self.all.len() * 56
    }
}

/// Maps old numbers to new ones.
pub(crate) struct Renumbered {
    pub(crate) scopes: Vec<u32>,
    pub(crate) names: Vec<u32>,
}
