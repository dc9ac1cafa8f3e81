#!/usr/bin/env bash
# Checks Cargo.lock against the RustSec advisories, or says why it does not.
#
# SWITCHBOARD_ADVISORY_DB names a git clone of the database to use in place of fetching it.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=120 # seconds
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
config=$folder/deny.toml
database=https://github.com/RustSec/advisory-db

if [[ -n ${SWITCHBOARD_ADVISORY_DB:-} ]]; then
    if [[ ! -d $SWITCHBOARD_ADVISORY_DB/crates ]]; then
        echo "SWITCHBOARD_ADVISORY_DB=$SWITCHBOARD_ADVISORY_DB holds no advisory database" >&2
        exit 1
    fi
    # cargo-deny takes no address of a file, so the clone is put where it keeps that of the address above.
    git clone --quiet "$SWITCHBOARD_ADVISORY_DB" "$folder/db/advisory-db-3157b0e258782691"
fi
{
    cat deny.toml
    printf '\n[advisories]\ndb-path = "%s"\ndb-urls = ["%s"]\n' "$folder/db" "$database"
} >"$config"

if [[ -z ${SWITCHBOARD_ADVISORY_DB:-} ]] &&
    ! timeout "$limit" cargo deny --all-features --config "$config" fetch db >"$folder/log" 2>&1; then
    echo "advisories SKIPPED: the database cannot be fetched from $database: $(grep -m 1 . "$folder/log" || echo "no answer within $limit s")"
    exit
fi
cargo deny --all-features --config "$config" --offline check advisories
