//! The tensors of a `model.safetensors`, read in place.
//!
//! The file consists of the length of the header (8 bytes, little-endian), the header (JSON with the
//! type, shape and offsets of each tensor), and the numbers. A requested tensor must have exactly the
//! expected shape, so the memory that a file can make this program use is bounded by the file's own
//! size.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{ModelError, limits};

/// An open file of weights.
#[derive(Debug)]
pub(crate) struct Weights {
    path: PathBuf,
    file: File,
    /// Length of the file in bytes.
    length: u64,
    /// Header, unchanged.
    head: String,
    /// Offset of the numbers.
    start: u64,
}

/// The position of a tensor in the file, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u64,
    length: usize,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The directory of the tensors. It borrows the header, and is needed only while a model is opened.
pub(crate) struct Directory<'a> {
    weights: &'a Weights,
    entries: BTreeMap<String, &'a RawValue>,
}

const NUMBER_BYTES: usize = 4;

impl Weights {
    pub(crate) fn open(path: &Path) -> Result<Self, ModelError> {
        let file = File::open(path).map_err(ModelError::read(path))?;
        let length = file.metadata().map_err(ModelError::read(path))?.len();
        if length > limits::WEIGHTS_BYTES {
            return Err(ModelError::TooLarge {
                path: path.to_owned(),
                bytes: length,
                most: limits::WEIGHTS_BYTES,
            });
        }
        let mut weights = Self {
            path: path.to_owned(),
            file,
            length,
            head: String::new(),
            start: 8,
        };
        let mut size = [0; 8];
        weights.read(0, &mut size)?;
        let size = u64::from_le_bytes(size);
        if size > limits::WEIGHTS_HEAD_BYTES || size > length - weights.start {
            return Err(weights.damaged(format!(
                "it has a header of {size} bytes in a file of {length} bytes"
            )));
        }
        let mut head = vec![0; usize::try_from(size).unwrap_or(0)];
        weights.read(weights.start, &mut head)?;
        weights.head = String::from_utf8(head)
            .map_err(|_| weights.damaged("its header is not UTF-8 text".to_owned()))?;
        weights.start += size;
        Ok(weights)
    }

    pub(crate) fn directory(&self) -> Result<Directory<'_>, ModelError> {
        let entries = serde_json::from_str(&self.head).map_err(ModelError::json(&self.path))?;
        Ok(Directory {
            weights: self,
            entries,
        })
    }

    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends the numbers of a whole tensor.
    pub(crate) fn load(&self, place: Place, numbers: &mut Vec<f32>) -> Result<(), ModelError> {
        let mut buffer = vec![0; place.length.min(256 * 1024)];
        let mut done = 0;
        numbers.reserve_exact(place.length / NUMBER_BYTES);
        while done < place.length {
            let part = buffer.len().min(place.length - done);
            let part = &mut buffer[..part];
            self.read(place.start + done as u64, part)?;
            let (chunks, _) = part.as_chunks::<NUMBER_BYTES>();
            numbers.extend(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            done += part.len();
        }
        Ok(())
    }

    /// Reads one row of a tensor into `numbers`, which has the length of the row.
    pub(crate) fn load_row(
        &self,
        place: Place,
        row: usize,
        bytes: &mut Vec<u8>,
        numbers: &mut [f32],
    ) -> Result<(), ModelError> {
        let length = numbers.len() * NUMBER_BYTES;
        let inside = row * length;
        if inside + length > place.length {
            return Err(self.damaged(format!("it has no row {row}")));
        }
        bytes.resize(length, 0);
        self.read(place.start + inside as u64, bytes)?;
        let (chunks, _) = bytes.as_chunks::<NUMBER_BYTES>();
        for (number, bytes) in numbers.iter_mut().zip(chunks) {
            *number = f32::from_le_bytes(*bytes);
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, what: String) -> ModelError {
        ModelError::Damaged {
            path: self.path.clone(),
            what,
        }
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), ModelError> {
        read_exact_at(&self.file, bytes, at).map_err(ModelError::read(&self.path))
    }
}

impl Directory<'_> {
    /// Returns the position of a tensor with exactly this shape.
    pub(crate) fn place(&self, name: &str, shape: &[usize]) -> Result<Place, ModelError> {
        let weights = self.weights;
        let Some(entry) = self.entries.get(name) else {
            return Err(weights.damaged(format!("it has no tensor `{name}`")));
        };
        let entry: Entry =
            serde_json::from_str(entry.get()).map_err(ModelError::json(&weights.path))?;
        if entry.dtype != "F32" {
            let what = format!(
                "`{name}` has the type {:?}, but only F32 is supported",
                entry.dtype
            );
            return Err(weights.damaged(what));
        }
        if !entry
            .shape
            .iter()
            .copied()
            .eq(shape.iter().map(|n| *n as u64))
        {
            let found = &entry.shape[..entry.shape.len().min(4)];
            let what = format!("`{name}` has the shape {found:?}, not {shape:?}");
            return Err(weights.damaged(what));
        }
        // The shape is bounded by the configuration's limits, so this cannot overflow.
        let length = shape.iter().product::<usize>() * NUMBER_BYTES;
        let (from, to) = entry.data_offsets;
        let inside = to <= weights.length - weights.start;
        if !inside || to.checked_sub(from) != Some(length as u64) {
            let what = format!("`{name}` has the invalid position {from} to {to}");
            return Err(weights.damaged(what));
        }
        Ok(Place {
            start: weights.start + from,
            length,
        })
    }

    /// Returns the numbers of a tensor with exactly this shape.
    pub(crate) fn load(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let mut numbers = Vec::new();
        self.weights.load(self.place(name, shape)?, &mut numbers)?;
        Ok(numbers)
    }

    /// Returns the numbers of several tensors of the same shape, concatenated.
    pub(crate) fn load_joined(
        &self,
        names: &[String],
        shape: &[usize],
    ) -> Result<Vec<f32>, ModelError> {
        let mut numbers = Vec::with_capacity(names.len() * shape.iter().product::<usize>());
        for name in names {
            self.weights.load(self.place(name, shape)?, &mut numbers)?;
        }
        Ok(numbers)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        at += read as u64;
    }
    Ok(())
}
