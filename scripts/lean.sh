#!/usr/bin/env bash
# Builds the program without its optional features, the memory and the sentence model, and checks that it contains
# neither of them and that it runs. Also checks that each feature builds alone. ./test calls this script.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

left_out='switchboard-memory|switchboard-recall|matrixmultiply'
crates=$(cargo tree --package switchboard --no-default-features --edges normal --prefix none)
if grep -E "^($left_out) " <<<"$crates"; then
    echo "error: a build without features depends on the crates above; make them optional dependencies" >&2
    exit 1
fi

for features in memory model; do
    cargo clippy --package switchboard --no-default-features --features "$features" -- -D warnings
done
cargo clippy --package switchboard --no-default-features -- -D warnings

# In a separate target directory, so that the full program stays where the tests expect it.
target=${CARGO_TARGET_DIR:-target}/lean
cargo build --package switchboard --no-default-features --target-dir "$target"
program=$target/debug/switchboard

home=$(mktemp -d)
trap '"$program" --home "$home" stop >/dev/null 2>&1 || true; rm -rf "$home"' EXIT

"$program" --home "$home" serve --listen 127.0.0.1:0 >/dev/null 2>&1 &
for _ in $(seq 600); do
    "$program" --home "$home" status --json >/dev/null 2>&1 && break
    sleep 0.1
done
# Fails if no gateway runs: the list below would then come from the file, which never contains the memory.
"$program" --home "$home" status >/dev/null
servers=$("$program" --home "$home" list --json)
if grep --quiet memory <<<"$servers"; then
    echo "error: a gateway built without the memory lists it: $servers" >&2
    exit 1
fi
if "$program" --help | grep --quiet '^ *memory '; then
    echo "error: a program built without the memory has the memory commands" >&2
    exit 1
fi
"$program" --home "$home" stop
echo "without features: $(stat --format %s "$program") bytes (debug), no memory, no sentence model"
