//! The vectors of the texts, and the results of an exact search among them.

use std::path::Path;

use switchboard_embed::{Embedder, MiniLm, Role, StaticTable};

use super::texts::{Dice, NAMESPACES, Texts};
use crate::Result;

/// The number of texts that a sentence model embeds. Hundreds of thousands would take it most of an hour.
/// Vectors of further texts are mixed from these, and are distributed as real ones are.
const READ: usize = 1_000;
/// The share of a mixed vector that is its own.
const OWN: f32 = 0.35;

/// Computes vectors of texts.
pub(super) struct Meanings<'a> {
    texts: &'a Texts,
    model: Box<dyn Embedder>,
    /// Vectors that others are mixed from; empty for a model that is fast enough to embed all texts.
    read: Vec<Vec<f32>>,
}

/// A query, optionally restricted to one namespace.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) namespace: Option<u64>,
}

/// The best answers to a question with their scores, best first.
pub(super) struct Best {
    limit: usize,
    pub(super) answers: Vec<(f32, u64)>,
}

impl<'a> Meanings<'a> {
    /// Uses the model in this directory, or the built-in one.
    pub(super) fn new(texts: &'a Texts, folder: Option<&Path>) -> Result<Self> {
        let Some(folder) = folder else {
            return Ok(Self {
                texts,
                model: Box::new(StaticTable::built_in()),
                read: Vec::new(),
            });
        };
        let model = MiniLm::open(folder)?;
        let mut read = Vec::with_capacity(READ);
        for number in 0..READ as u64 {
            let vector = model.embed(Role::Passage, &texts.text(number))?;
            read.push(vector.ok_or("the model does not know a word of a text")?);
        }
        Ok(Self {
            texts,
            model: Box::new(model),
            read,
        })
    }

    pub(super) fn model(&self) -> &dyn Embedder {
        &*self.model
    }

    /// The vector of the memory with this number.
    pub(super) fn vector(&self, number: u64) -> Result<Vec<f32>> {
        if self.read.is_empty() {
            let vector = self.model.embed(Role::Passage, &self.texts.text(number))?;
            return Ok(vector.unwrap_or_else(|| vec![0.0; self.model.dimensions()]));
        }
        if let Some(vector) = usize::try_from(number)
            .ok()
            .and_then(|number| self.read.get(number))
        {
            return Ok(vector.clone());
        }
        let mut dice = Dice::new(number ^ 0x007e_c70e);
        let (one, other) = (dice.below(READ), dice.below(READ));
        let own = own(&mut dice, self.model.dimensions());
        let mixed = self.read[one].iter().zip(&self.read[other]).zip(own);
        let mixed = mixed.map(|((one, other), own)| 0.7 * one + 0.3 * other + OWN * own);
        Ok(of_length_1(mixed.collect()))
    }

    /// The best of `memories` memories for each question, by the vectors as the model computes them.
    pub(super) fn exact(
        &self,
        memories: u64,
        questions: &[Question],
        limit: usize,
    ) -> Result<Vec<Best>> {
        let asked: Vec<Vec<f32>> = questions
            .iter()
            .map(|question| {
                let vector = self.model.embed(Role::Query, &question.text)?;
                Ok(vector.ok_or("the model does not know a word of a question")?)
            })
            .collect::<Result<_>>()?;
        let mut best: Vec<Best> = questions
            .iter()
            .map(|_| Best {
                limit,
                answers: Vec::new(),
            })
            .collect();
        for number in 0..memories {
            let of_it = |question: &Question| {
                question
                    .namespace
                    .is_none_or(|namespace| namespace == number % NAMESPACES)
            };
            if !questions.iter().any(of_it) {
                continue;
            }
            let vector = self.vector(number)?;
            for ((question, asked), best) in questions.iter().zip(&asked).zip(&mut best) {
                if of_it(question) {
                    let product = asked.iter().zip(&vector).map(|(a, b)| a * b).sum();
                    best.offer(product, number);
                }
            }
        }
        Ok(best)
    }
}

impl Best {
    fn offer(&mut self, product: f32, number: u64) {
        if self.answers.len() == self.limit
            && self.answers.last().is_some_and(|last| last.0 >= product)
        {
            return;
        }
        let place = self
            .answers
            .partition_point(|(better, _)| *better >= product);
        self.answers.insert(place, (product, number));
        self.answers.truncate(self.limit);
    }

    /// The number of these that are among the best.
    pub(super) fn hits(&self, found: &[u64]) -> usize {
        let is_one = |number: &&u64| self.answers.iter().any(|(_, best)| best == *number);
        found.iter().filter(is_one).count()
    }
}

/// A random direction.
fn own(dice: &mut Dice, dimensions: usize) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation)]
    let numbers = (0..dimensions).map(|_| (dice.part() - 0.5) as f32);
    of_length_1(numbers.collect())
}

fn of_length_1(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>();
    let length = length.sqrt().max(f32::MIN_POSITIVE);
    for number in &mut vector {
        *number /= length;
    }
    vector
}
