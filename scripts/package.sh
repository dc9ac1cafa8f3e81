#!/usr/bin/env bash
# Packages the published crates, and builds them from the packages alone.
#
# cargo package can build them itself, but caches unpacked and compiled crates by version number: it would build a
# changed machine with the wire of an earlier run.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

crates=(switchboard-wire switchboard-machine switchboard-auth switchboard-client)
packages=${CARGO_TARGET_DIR:-$PWD/target}/package
unpacked=$packages/unpacked

rm -rf "$unpacked" "$packages"/*.crate
cargo package --offline --allow-dirty --no-verify "${crates[@]/#/--package=}"

mkdir "$unpacked"
cp Cargo.lock "$unpacked"
printf '[workspace]\nresolver = "3"\nmembers = ["switchboard-*"]\n[patch.crates-io]\n' >"$unpacked/Cargo.toml"
for crate in "${crates[@]}"; do
    mkdir "$unpacked/$crate"
    # Timestamps in a package never change, so cargo would not notice changed files. -m sets the current time.
    tar -xzmf "$packages/$crate"-*.crate -C "$unpacked/$crate" --strip-components=1
    echo "$crate = { path = \"$crate\" }" >>"$unpacked/Cargo.toml"
done
cargo check --offline --manifest-path "$unpacked/Cargo.toml" --target-dir "$packages/target" --all-targets --all-features
