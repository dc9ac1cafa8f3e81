#!/usr/bin/env bash
# Checks Cargo.lock against the RustSec advisories. Prints the reason if the check is skipped.
#
# SWITCHBOARD_ADVISORY_DB is the path of a git clone of the database. If it is set, nothing is fetched.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=120 # seconds
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
config=$folder/deny.toml
database=https://github.com/RustSec/advisory-db

if [[ -n ${SWITCHBOARD_ADVISORY_DB:-} ]]; then
    if [[ ! -d $SWITCHBOARD_ADVISORY_DB/crates ]]; then
        echo "error: no advisory database in SWITCHBOARD_ADVISORY_DB=$SWITCHBOARD_ADVISORY_DB; set it to a clone of $database" >&2
        exit 1
    fi
    # cargo-deny does not accept file URLs, so the clone goes where cargo-deny keeps its own clone of $database.
    git clone --quiet "$SWITCHBOARD_ADVISORY_DB" "$folder/db/advisory-db-3157b0e258782691"
fi
{
    cat deny.toml
    printf '\n[advisories]\ndb-path = "%s"\ndb-urls = ["%s"]\n' "$folder/db" "$database"
} >"$config"

if [[ -z ${SWITCHBOARD_ADVISORY_DB:-} ]] &&
    ! timeout "$limit" cargo deny --all-features --config "$config" fetch db >"$folder/log" 2>&1; then
    echo "advisories SKIPPED: cannot fetch the database from $database: $(grep -m 1 . "$folder/log" || echo "no response within $limit s")"
    exit
fi
cargo deny --all-features --config "$config" --offline check advisories
