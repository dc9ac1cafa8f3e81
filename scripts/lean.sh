#!/usr/bin/env bash
# Builds the program without its optional features, the memory and the sentence model, and checks that nothing of
# them is in it and that it runs. ./test calls this.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

left_out='switchboard-memory|switchboard-recall|matrixmultiply'
if cargo tree --package switchboard --no-default-features --edges normal --prefix none | grep -E "^($left_out) "; then
    echo "error: a build without features depends on these crates" >&2
    exit 1
fi

cargo clippy --package switchboard --no-default-features -- -D warnings
cargo build --package switchboard --no-default-features

program=${CARGO_TARGET_DIR:-target}/debug/switchboard
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export SWITCHBOARD_HOME=$home

"$program" --version
servers=$("$program" list)
if grep -q memory <<<"$servers"; then
    echo "error: a build without the memory lists it:" >&2
    echo "$servers" >&2
    exit 1
fi
if "$program" memory list 2>/dev/null; then
    echo "error: a build without the memory has its commands" >&2
    exit 1
fi
echo "without features: $(stat --format %s "$program") bytes (debug), no memory, no sentence model"
