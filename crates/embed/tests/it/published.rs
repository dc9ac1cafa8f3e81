//! The published all-MiniLM-L6-v2, compared with the results of the original libraries.
//!
//! Without the model these tests fail, unless `SWITCHBOARD_TEST_QUICK=1` skips them.

use switchboard_embed::{Embedder, Joined, MiniLm, Quantised, Role, StaticTable, WordPiece};
use switchboard_test_support::tools::model as folder;

fn model() -> Option<MiniLm> {
    folder().map(|folder| MiniLm::open(&folder).unwrap())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn embed(model: &MiniLm, text: &str) -> Vec<f32> {
    model.embed(Role::Passage, text).unwrap().unwrap()
}

/// Texts and their piece IDs from the original tokeniser (Python `tokenizers` 0.23.3, without special
/// pieces).
const PIECES: &[(&str, &[u32])] = &[
    ("Hello, world!", &[7592, 1010, 2088, 999]),
    ("unaffable", &[14477, 20961, 3468]),
    (
        "  Naïve CAFÉ résumé Ångström  ",
        &[15743, 7668, 13746, 17076, 15687],
    ),
    (
        "List the open pull-requests of a repo (incl. drafts)",
        &[
            2862, 1996, 2330, 4139, 1011, 11186, 1997, 1037, 16360, 2080, 1006, 4297, 2140, 1012,
            28967, 1007,
        ],
    ),
    (
        "create_issue get_file_contents searchCode HTTPServer2",
        &[
            3443, 1035, 3277, 2131, 1035, 5371, 1035, 8417, 3945, 16044, 16770, 2121, 6299, 2475,
        ],
    ),
    (
        "don't stop… “quoted” —dash",
        &[2123, 1005, 1056, 2644, 1529, 1523, 9339, 1524, 1517, 11454],
    ),
    (
        "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8} and \u{4e2d}\u{6587}\u{5b57}\u{7b26}",
        &[
            1864, 1876, 1950, 1671, 30239, 30227, 30233, 30240, 1998, 1746, 1861, 100, 100,
        ],
    ),
    (
        "\u{c548}\u{b155}\u{d558}\u{c138}\u{c694} \u{c138}\u{acc4}",
        &[
            1463, 30006, 30021, 29992, 30010, 30025, 30005, 30006, 29997, 30009, 29999, 30013, 100,
        ],
    ),
    (
        "İstanbul ΑΣΑΣ ς straße ŒUVRE",
        &[
            9960, 1155, 29733, 14608, 29733, 1172, 2358, 27807, 1107, 2226, 12229,
        ],
    ),
    (
        "zero\u{200b}width soft\u{ad}hyphen nul\u{0} bell\u{7} bom\u{feff}",
        &[
            5717, 9148, 11927, 2232, 3730, 10536, 8458, 2368, 16371, 2140, 4330, 8945, 2213,
        ],
    ),
    (
        "tab\tnew\nline\r\nnbsp\u{a0}thin\u{2009}vt\u{b}ff\u{c}nel\u{85}",
        &[
            21628, 2047, 2240, 1050, 5910, 2361, 4857, 28879, 4246, 11877,
        ],
    ),
    (
        "emoji \u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f642} ☃",
        &[7861, 29147, 2072, 100, 100, 100],
    ),
    (
        "1234567890 3.14159 $5,000 50% a+b=c x^2 `code` ~tilde",
        &[
            13138, 19961, 2575, 2581, 2620, 21057, 1017, 1012, 15471, 28154, 1002, 1019, 1010,
            2199, 2753, 1003, 1037, 1009, 1038, 1027, 1039, 1060, 1034, 1016, 1036, 3642, 1036,
            1066, 18681, 3207,
        ],
    ),
    (
        "https://example.com/path?q=1&r=a%20b#frag",
        &[
            16770, 1024, 1013, 1013, 2742, 1012, 4012, 1013, 4130, 1029, 1053, 1027, 1015, 1004,
            1054, 1027, 1037, 1003, 2322, 2497, 1001, 25312, 2290,
        ],
    ),
    ("\u{fb01} ½ ² K Å", &[1984, 1092, 1082, 1047, 1037]),
    ("e\u{301} o\u{308}\u{304} \u{301}alone", &[1041, 1051, 2894]),
    (
        "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} \u{e44}\u{e17}\u{e22} \u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629} \u{5e2}\u{5d1}\u{5e8}\u{5d9}\u{5ea}",
        &[
            1339, 29877, 29863, 29861, 29878, 100, 1270, 23673, 29830, 17149, 29816, 14498, 19433,
            1259, 29789, 29811, 29796, 29813,
        ],
    ),
    ("\u{fffd}\u{e000} private", &[2797]),
    (
        "\u{37e} \u{1fef} \u{3000} ideographic",
        &[1025, 1036, 8909, 8780, 14773],
    ),
    ("\u{8c48} \u{66f4} \u{20000}", &[100, 100, 100]),
    (
        "[cls] [ sep ] ##ing #tag",
        &[
            1031, 18856, 2015, 1033, 1031, 19802, 1033, 1001, 1001, 13749, 1001, 6415,
        ],
    ),
    (
        "supercalifragilisticexpialidocious antidisestablishmentarianism",
        &[
            3565, 9289, 10128, 29181, 24411, 4588, 10288, 19312, 21273, 10085, 6313, 3424, 10521,
            4355, 7875, 13602, 3672, 12199, 2964,
        ],
    ),
    ("ǅ ŉ ΐ", &[100, 100, 1163]),
    ("a\u{300}b\u{20dd}c\u{93e}d", &[100]),
];

#[test]
fn pieces_agree_with_the_original_tokeniser() {
    let Some(folder) = folder() else { return };
    let lines = std::fs::read_to_string(folder.join("vocab.txt")).unwrap();
    let vocabulary = WordPiece::new(lines).unwrap();
    for (text, expected) in PIECES {
        assert_eq!(vocabulary.ids(text, 512), *expected, "{text:?}");
    }
    let long = format!("{} {} ok", "x".repeat(100), "x".repeat(101));
    let mut expected = vec![22038];
    expected.extend([20348; 49]);
    expected.extend([100, 7929]);
    assert_eq!(vocabulary.ids(&long, 512), expected);
}

#[test]
fn similarities_agree_with_the_published_ones() {
    let Some(model) = model() else { return };
    let vectors = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ]
    .map(|text| embed(&model, text));
    for (a, b, expected) in [(0, 1, 0.6660), (0, 2, 0.1046), (1, 2, 0.1411)] {
        let found = dot(&vectors[a], &vectors[b]);
        assert!((found - expected).abs() < 5e-5, "{a} and {b}: {found}");
    }
}

/// The first four and the last two numbers of vectors, from an implementation in double precision.
const VECTORS: [(&str, [f32; 6]); 5] = [
    (
        "The weather is lovely today.",
        [
            0.019_196, 0.120_085, 0.159_598, 0.067_066, -0.081_095, 0.050_213,
        ],
    ),
    (
        "It's so sunny outside!",
        [
            -0.018_690, 0.041_519, 0.074_315, 0.078_433, -0.061_904, 0.031_875,
        ],
    ),
    (
        "He drove to the stadium.",
        [
            0.136_502, 0.082_273, -0.025_262, 0.030_451, 0.030_458, -0.010_758,
        ],
    ),
    (
        "Liste les d\u{e9}p\u{f4}ts: \u{65e5}\u{672c}\u{8a9e} na\u{ef}ve",
        [
            -0.047_386, 0.000_413, 0.032_437, -0.064_803, 0.003_139, -0.005_850,
        ],
    ),
    // Repeated 400 times: truncated after 256 pieces.
    (
        "word ",
        [
            -0.008_124, -0.095_586, -0.038_673, 0.049_662, 0.087_092, 0.015_241,
        ],
    ),
];

#[test]
fn vectors_are_accurate_to_the_fifth_digit() {
    let Some(model) = model() else { return };
    for (text, expected) in VECTORS {
        let text = if text == "word " {
            &text.repeat(400)
        } else {
            text
        };
        let vector = embed(&model, text);
        assert_eq!(vector.len(), 384);
        let found = [&vector[..4], &vector[382..]].concat();
        for (found, expected) in found.iter().zip(expected) {
            let off = (found - expected).abs();
            assert!(off < 2e-6, "{:?}: {found} is not {expected}", &text[..5]);
        }
    }
}

#[test]
fn quantised_vectors_keep_the_published_similarities() {
    let Some(model) = model() else { return };
    let texts = [
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
    ];
    let vectors = texts.map(|text| Quantised::from_vector(&embed(&model, text)).to_vector());
    for (a, b, expected) in [(0, 1, 0.6660), (0, 2, 0.1046), (1, 2, 0.1411)] {
        let found = dot(&vectors[a], &vectors[b]);
        assert!((found - expected).abs() < 2e-3, "{a} and {b}: {found}");
    }
}

#[test]
fn published_model_has_no_prompts() {
    let Some(model) = model() else { return };
    let text = "How many people live in London?";
    assert_eq!(
        model.embed(Role::Query, text).unwrap(),
        model.embed(Role::Passage, text).unwrap()
    );
}

#[test]
fn joined_vectors_concatenate_model_and_table() {
    let Some(folder) = folder() else { return };
    let text = "The weather is lovely today.";
    let alone = embed(&MiniLm::open(&folder).unwrap(), text);
    let words = StaticTable::built_in().vector(text).unwrap();
    let joined = Joined::new(MiniLm::open(&folder).unwrap());
    let both = joined.embed_all(Role::Passage, &[text, ""]).unwrap();
    assert!(both[1].is_none());
    let both = both[0].as_ref().unwrap();
    assert_eq!(both.len(), joined.dimensions());
    assert_eq!(both[..384], alone);
    for (found, word) in both[384..].iter().zip(words) {
        assert!((found - 0.4 * word).abs() < 1e-6);
    }
}

#[test]
fn batched_texts_have_the_same_vectors() {
    let Some(model) = model() else { return };
    let long = "a rather long text about nothing at all ".repeat(40);
    let mut texts = vec!["", "short", &long, "  ", "a few words more", &long, "end."];
    texts.extend(["create an issue in a repository"; 90]);
    let together = model.embed_all(Role::Passage, &texts).unwrap();
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together).take(8) {
        let alone = model.embed(Role::Passage, text).unwrap();
        assert_eq!(alone.is_some(), vector.is_some(), "{text:?}");
        if let Some((alone, vector)) = alone.zip(vector.as_ref()) {
            // The sums are computed in a different order, so the last bits differ.
            let off = alone.iter().zip(vector).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f32::max);
            assert!(off < 1e-6, "{text:?} is off by {off:e}");
        }
    }
    assert!(together[0].is_none() && together[3].is_none());
    assert!(together[7..].iter().all(Option::is_some));
}

#[test]
fn fingerprint_of_the_published_model_is_stable() {
    let Some(model) = model() else { return };
    assert_eq!(model.fingerprint(), "minilm-7d4b87b072e7029e");
    assert_eq!(model.dimensions(), 384);
}
