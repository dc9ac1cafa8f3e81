//! The layers of a BERT network, up to the vectors of pieces.
//!
//! Texts of different lengths are processed side by side: the rows of all their pieces form one tall matrix.
//! Every step treats each row by itself, except attention, which processes the texts one by one. So no
//! padding or masking is needed.

use std::ops::Range;

use super::{
    arithmetic::{count, gelu, normalise_rows, soften_rows},
    product::{View, multiply},
};

/// The layers between the embedding of pieces and the pooling of their vectors.
pub(crate) struct Network {
    pub(crate) embedding_norm: Norm,
    pub(crate) layers: Vec<Layer>,
    /// Number of heads that share the dimensions.
    pub(crate) heads: usize,
    pub(crate) epsilon: f32,
}

pub(crate) struct Layer {
    /// Query, key and value in one product.
    pub(crate) attention: Linear,
    pub(crate) attention_output: Linear,
    pub(crate) attention_norm: Norm,
    pub(crate) widen: Linear,
    pub(crate) narrow: Linear,
    pub(crate) output_norm: Norm,
}

pub(crate) struct Linear {
    /// One row of weights for each input.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

pub(crate) struct Norm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

impl Network {
    /// Turns the embeddings of pieces into their vectors in context. `texts` has the range of rows of each
    /// text.
    pub(crate) fn run(&self, mut rows: Vec<f32>, texts: &[Range<usize>]) -> Vec<f32> {
        let dimensions = self.embedding_norm.scale.len();
        let count = rows.len() / dimensions;
        self.embedding_norm.apply(&mut rows, self.epsilon);
        let mut mixed = Vec::new();
        let mut inner = Vec::new();
        let mut context = vec![0.0; rows.len()];
        let mut scores = Vec::new();
        for layer in &self.layers {
            layer.attention.apply(&rows, count, &mut mixed);
            context.fill(0.0);
            for text in texts {
                self.attend(&mixed, text, &mut context, &mut scores);
            }
            layer.attention_output.add(&context, count, &mut rows);
            layer.attention_norm.apply(&mut rows, self.epsilon);

            layer.widen.apply(&rows, count, &mut inner);
            gelu(&mut inner);
            layer.narrow.add(&inner, count, &mut rows);
            layer.output_norm.apply(&mut rows, self.epsilon);
        }
        rows
    }

    /// Lets each piece of a text attend to all others, once for every head.
    fn attend(
        &self,
        mixed: &[f32],
        text: &Range<usize>,
        context: &mut [f32],
        scores: &mut Vec<f32>,
    ) {
        let dimensions = self.embedding_norm.scale.len();
        let width = dimensions / self.heads;
        let factor = 1.0 / count(width).sqrt();
        let length = text.len();
        let step = 3 * dimensions;
        for head in 0..self.heads {
            // Query, key and value of this head are columns of the same matrix.
            let part = |which: usize| View {
                data: &mixed[text.start * step + which * dimensions + head * width..],
                rows: length,
                columns: width,
                row_step: step,
                column_step: 1,
            };
            scores.clear();
            scores.resize(length * length, 0.0);
            multiply(part(0), part(1).turned(), scores, length);
            soften_rows(scores, length, factor);
            multiply(
                View::rows(scores, length, length),
                part(2),
                &mut context[text.start * dimensions + head * width..],
                dimensions,
            );
        }
    }
}

impl Linear {
    /// Replaces `outputs` with the outputs for every row.
    fn apply(&self, rows: &[f32], count: usize, outputs: &mut Vec<f32>) {
        outputs.clear();
        outputs.resize(count * self.bias.len(), 0.0);
        self.add(rows, count, outputs);
    }

    /// Adds the outputs for every row to `onto`.
    fn add(&self, rows: &[f32], count: usize, onto: &mut [f32]) {
        let outputs = self.bias.len();
        let inputs = self.weights.len() / outputs;
        for row in onto.chunks_exact_mut(outputs) {
            for (number, bias) in row.iter_mut().zip(&self.bias) {
                *number += bias;
            }
        }
        multiply(
            View::rows(rows, count, inputs),
            View::rows(&self.weights, inputs, outputs),
            onto,
            outputs,
        );
    }
}

impl Norm {
    fn apply(&self, rows: &mut [f32], epsilon: f32) {
        normalise_rows(rows, &self.scale, &self.shift, epsilon);
    }
}
