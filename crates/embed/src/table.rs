//! A table with one vector for each word piece: the vector of a text is the sum over its pieces.
//!
//! A table is computed from a sentence model in advance; the weight of a piece is part of the length of
//! its vector. The file has this layout, with all numbers little-endian:
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | `SBTABLE1` |
//! | 4 | version, 1 |
//! | 4 | dimensions |
//! | 4 | rows |
//! | 4 | bits per number, 8 or 4 |
//! | 4 | length of the vocabulary in bytes |
//! | … | the vocabulary: one piece per line, as many lines as rows, separated by `\n` |
//! | 2 × rows | the scale of each row, a 16-bit float |
//! | … | the numbers, row by row: signed bytes, or 8 + number in 4 bits, the first in the low half of a byte |
//!
//! The vector of a row is its scale times its numbers.

use std::{borrow::Cow, fmt, ops::ControlFlow, ops::Range, sync::LazyLock};

use sha2::{Digest, Sha256};

use crate::{Embedder, ModelError, Role, WordPiece, arithmetic::to_unit, digest_text, limits};

const MAGIC: &[u8; 8] = b"SBTABLE1";
const VERSION: u32 = 1;

/// A table with one vector for each piece of a vocabulary.
pub struct StaticTable {
    bytes: Cow<'static, [u8]>,
    vocabulary: WordPiece,
    scales: Vec<f32>,
    /// Range of the bytes that holds the numbers of the rows.
    numbers: Range<usize>,
    dimensions: usize,
    bits: Bits,
    fingerprint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bits {
    Eight,
    Four,
}

impl StaticTable {
    /// Parses a table. The numbers are not copied.
    pub fn parse(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, ModelError> {
        let bytes = bytes.into();
        let mut rest = Cursor {
            bytes: &bytes,
            at: 0,
        };
        if rest.take(MAGIC.len())? != MAGIC {
            return Err(bad("it does not start with its magic bytes"));
        }
        let version = rest.number()?;
        if version != VERSION {
            return Err(bad(format!("its version is {version}, not {VERSION}")));
        }
        let dimensions = rest.number()? as usize;
        if dimensions == 0 || dimensions > limits::DIMENSIONS {
            let most = limits::DIMENSIONS;
            return Err(bad(format!(
                "it has {dimensions} dimensions, not 1 to {most}"
            )));
        }
        let rows = rest.number()? as usize;
        let bits = match rest.number()? {
            8 => Bits::Eight,
            4 if dimensions.is_multiple_of(2) => Bits::Four,
            bits => {
                let what = format!("{dimensions} numbers of {bits} bits are not supported");
                return Err(bad(what));
            }
        };

        let length = rest.number()? as usize;
        let lines = rest.at..rest.at + rest.take(length)?.len();
        let lines = match &bytes {
            // Bytes that are part of the program are not copied.
            Cow::Borrowed(bytes) => str::from_utf8(&bytes[lines]).map(Cow::Borrowed),
            Cow::Owned(bytes) => {
                str::from_utf8(&bytes[lines]).map(|lines| Cow::Owned(lines.to_owned()))
            }
        };
        let vocabulary =
            WordPiece::new(lines.map_err(|_| bad("the vocabulary is not UTF-8 text"))?)?;
        if vocabulary.len() != rows {
            let lines = vocabulary.len();
            return Err(bad(format!("it has {rows} rows for {lines} pieces")));
        }
        // The vocabulary limits the number of rows, so no product below overflows.
        let scales: Vec<f32> = rest
            .take(2 * rows)?
            .as_chunks::<2>()
            .0
            .iter()
            .map(|bytes| half(u16::from_le_bytes(*bytes)))
            .collect();
        if scales.iter().any(|scale| !scale.is_finite()) {
            return Err(bad("the scale of a row is not a finite number"));
        }
        let numbers = rest.at..rest.at + rows * bits.bytes(dimensions);
        if numbers.end != bytes.len() {
            let (expected, found) = (numbers.end, bytes.len());
            return Err(bad(format!("it has {found} bytes, not {expected}")));
        }

        // A table that is computed again gets different scales, so the numbers need not be hashed.
        let digest = Sha256::digest(&bytes[..numbers.start]);
        let fingerprint = format!("table-{}", digest_text(&digest));
        Ok(Self {
            bytes,
            vocabulary,
            scales,
            numbers,
            dimensions,
            bits,
            fingerprint,
        })
    }

    /// Returns the table that is built into the program. It is parsed on first use.
    pub fn built_in() -> &'static Self {
        static TABLE: LazyLock<StaticTable> = LazyLock::new(|| {
            let bytes: &[u8] = include_bytes!("../assets/tools.table");
            #[expect(clippy::expect_used, reason = "a test reads the same bytes")]
            StaticTable::parse(bytes).expect("the table in the program is sound")
        });
        &TABLE
    }

    /// Returns the pieces that have vectors, the most common words first.
    pub fn vocabulary(&self) -> &WordPiece {
        &self.vocabulary
    }

    /// Returns the vector of a text, or `None` if no piece of it is known.
    pub fn vector(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0; self.dimensions];
        let mut pieces = 0;
        self.vocabulary.each(text, |id| {
            if let Some(id) = id {
                self.add_row(id as usize, &mut sum);
            }
            pieces += 1;
            if pieces < limits::TABLE_PIECES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        to_unit(&mut sum).then_some(sum)
    }

    fn add_row(&self, row: usize, sum: &mut [f32]) {
        let scale = self.scales[row];
        let length = self.bits.bytes(self.dimensions);
        let start = self.numbers.start + row * length;
        let bytes = &self.bytes[start..start + length];
        match self.bits {
            Bits::Eight => {
                for (sum, byte) in sum.iter_mut().zip(bytes) {
                    *sum += scale * f32::from(byte.cast_signed());
                }
            }
            Bits::Four => {
                for (sums, byte) in sum.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
                    sums[0] += scale * (f32::from(byte & 15) - 8.0);
                    sums[1] += scale * (f32::from(byte >> 4) - 8.0);
                }
            }
        }
    }
}

impl Embedder for StaticTable {
    fn name(&self) -> &'static str {
        "static table"
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, _: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        Ok(self.vector(text))
    }

    fn embed_all(&self, _: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

impl fmt::Debug for StaticTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTable")
            .field("rows", &self.scales.len())
            .field("dimensions", &self.dimensions)
            .field("bits", &self.bits)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

impl Bits {
    /// Length of a row in bytes.
    fn bytes(self, dimensions: usize) -> usize {
        match self {
            Self::Eight => dimensions,
            Self::Four => dimensions / 2,
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ModelError> {
        let taken = self.bytes[self.at..]
            .get(..length)
            .ok_or_else(|| bad("it is truncated"))?;
        self.at += length;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, ModelError> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes))
    }
}

fn bad(what: impl Into<String>) -> ModelError {
    ModelError::Table(what.into())
}

/// Decodes a 16-bit float: a sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    let size = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * 2_f32.powi(-14),
        31 if fraction > 0.0 => f32::NAN,
        31 => f32::INFINITY,
        exponent => (1.0 + fraction) * 2_f32.powi(exponent - 15),
    };
    sign * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_decoded() {
        for (bits, expected) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
        ] {
            assert!(
                (half(bits) - expected).abs() <= expected.abs() * 1e-7,
                "{bits:04x}"
            );
        }
        assert!(half(0x7c00).is_infinite() && half(0x7c01).is_nan());
    }

    #[test]
    fn built_in_table_is_valid() {
        let table = StaticTable::built_in();
        assert!(table.vector("read a file").is_some());
    }
}
