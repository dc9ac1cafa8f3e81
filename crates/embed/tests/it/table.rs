//! Tables of vectors: valid ones are parsed, and invalid ones are refused.

use proptest::prelude::*;
use switchboard_embed::{Embedder, ModelError, Role, StaticTable};

/// A table of three pieces and four dimensions.
fn table(bits: u32, scales: [u16; 3], numbers: &[u8]) -> Vec<u8> {
    let mut bytes = b"SBTABLE1".to_vec();
    let words = "read\nfile\n##s";
    for number in [1, 4, 3, bits, u32::try_from(words.len()).unwrap()] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(words.bytes());
    bytes.extend(scales.into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(numbers);
    bytes
}

const ONE: u16 = 0x3c00;
const HALF: u16 = 0x3800;

fn in_bytes() -> Vec<u8> {
    let numbers = [3, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0xfc];
    table(8, [ONE, HALF, ONE], &numbers)
}

fn assert_close(found: &[f32], expected: [f32; 4]) {
    assert_eq!(found.len(), 4);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}

#[test]
fn vector_of_text_is_sum_of_its_pieces() {
    let table = StaticTable::parse(in_bytes()).unwrap();
    assert_eq!(table.dimensions(), 4);
    assert_close(&table.vector("Read file!").unwrap(), [0.6, 0.8, 0.0, 0.0]);
    assert_close(
        &table.vector("files").unwrap(),
        [0.0, 0.5_f32.sqrt(), 0.0, -0.5_f32.sqrt()],
    );
    assert_eq!(table.vector("nothing of this"), None);
    assert_eq!(table.vector(""), None);
    let all = table.embed_all(Role::Passage, &["", "read"]).unwrap();
    assert_eq!(all, [None, table.embed(Role::Query, "read").unwrap()]);
}

#[test]
fn four_bit_numbers_are_decoded() {
    let numbers = [0x8b, 0x88, 0xc8, 0x88, 0x88, 0x48];
    let table = StaticTable::parse(table(4, [ONE; 3], &numbers)).unwrap();
    assert_close(&table.vector("read").unwrap(), [1.0, 0.0, 0.0, 0.0]);
    assert_close(&table.vector("read file").unwrap(), [0.6, 0.8, 0.0, 0.0]);
    assert_close(
        &table.vector("files").unwrap(),
        [0.0, 0.5_f32.sqrt(), 0.0, -0.5_f32.sqrt()],
    );
}

#[test]
fn vectors_that_cancel_out_have_no_direction() {
    let numbers = [3, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0];
    let table = StaticTable::parse(table(8, [ONE; 3], &numbers)).unwrap();
    assert_eq!(table.vector("read file"), None);
}

#[test]
fn fingerprints_differ_with_the_table() {
    let one = StaticTable::parse(in_bytes()).unwrap();
    let again = StaticTable::parse(in_bytes()).unwrap();
    let other = StaticTable::parse(table(8, [ONE; 3], &[1; 12])).unwrap();
    assert_eq!(one.fingerprint(), again.fingerprint());
    assert_ne!(one.fingerprint(), other.fingerprint());
}

fn refused(bytes: Vec<u8>) -> String {
    match StaticTable::parse(bytes) {
        Err(error @ (ModelError::Table(_) | ModelError::Vocabulary(_))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_table_is_refused() {
    let bytes = in_bytes();
    for length in 0..bytes.len() {
        refused(bytes[..length].to_vec());
    }
    refused([&bytes[..], &[0]].concat());
}

#[test]
fn inconsistent_table_is_refused() {
    let with = |at: usize, number: u32| {
        let mut bytes = in_bytes();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        refused(bytes)
    };
    assert!(with(0, 0).contains("magic bytes"));
    assert!(with(8, 2).contains("version is 2"));
    for dimensions in [0, 1_000_000, u32::MAX] {
        assert!(with(12, dimensions).contains("dimensions"));
    }
    for rows in [0, 2, u32::MAX] {
        assert!(with(16, rows).contains("rows"));
    }
    assert!(with(20, 16).contains("16 bits"));
    assert!(with(24, u32::MAX).contains("truncated"));
    assert!(refused(table(8, [ONE, 0x7c00, ONE], &[1; 12])).contains("not a finite number"));
    let mut bytes = in_bytes();
    bytes[28] = 0xff;
    assert!(refused(bytes).contains("not UTF-8 text"));
}

proptest! {
    #[test]
    fn damaged_table_does_no_harm(changes in prop::collection::vec((0..in_bytes().len(), any::<u8>()), 1..6)) {
        let mut bytes = in_bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if let Ok(table) = StaticTable::parse(bytes)
            && let Some(vector) = table.vector("read files, read file!")
        {
            prop_assert!(vector.iter().all(|number| number.abs() <= 1.001));
        }
    }
}
