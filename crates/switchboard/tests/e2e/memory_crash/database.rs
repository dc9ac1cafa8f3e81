//! Checks of the database file: intact, without leftovers, and with correct counters.

use rusqlite::{Connection, OpenFlags};
use switchboard_test_support::Home;

use super::ledger::Ledger;

/// Queries that return nothing in an intact file.
const NOTHING: [(&str, &str); 12] = [
    (
        "a vector without a version",
        "SELECT version FROM memory_vectors WHERE version NOT IN (SELECT row FROM memory_versions)",
    ),
    (
        "a vector without a model",
        "SELECT version FROM memory_vectors WHERE model NOT IN (SELECT row FROM memory_models)",
    ),
    (
        "a mention without a version",
        "SELECT version FROM memory_mentions WHERE version NOT IN (SELECT row FROM memory_versions)",
    ),
    (
        "a mention without an entity",
        "SELECT entity FROM memory_mentions WHERE entity NOT IN (SELECT row FROM memory_entities)",
    ),
    (
        "a relation without its ends",
        "SELECT row FROM memory_relations WHERE source NOT IN (SELECT row FROM memory_entities) OR target NOT IN (SELECT row FROM memory_entities)",
    ),
    (
        "an entity that was found and that nobody mentions",
        "SELECT row FROM memory_entities WHERE found = 1 AND row NOT IN (SELECT entity FROM memory_mentions)",
    ),
    (
        "a memory without exactly one current version",
        "SELECT id FROM memory_versions GROUP BY id HAVING sum(learned_until IS NULL) <> 1",
    ),
    (
        "a current version that is not the last",
        "SELECT id FROM memory_versions v WHERE learned_until IS NULL AND version <> (SELECT max(version) FROM memory_versions o WHERE o.id = v.id)",
    ),
    (
        "a version that is missing",
        "SELECT id FROM memory_versions GROUP BY id HAVING count(*) <> max(version)",
    ),
    (
        "a version that does not end where the next begins",
        "SELECT v.id FROM memory_versions v JOIN memory_versions n ON n.id = v.id AND n.version = v.version + 1 WHERE v.learned_until IS NOT n.learned_at",
    ),
    (
        "a scope that miscounts its memories",
        "SELECT row FROM memory_scopes s WHERE memories <> (SELECT count(*) FROM memory_versions v WHERE v.scope = s.row AND v.learned_until IS NULL)",
    ),
    (
        "a model that miscounts its vectors",
        "SELECT row FROM memory_models m WHERE vectors <> (SELECT count(*) FROM memory_vectors v WHERE v.model = m.row)",
    ),
];

/// Pairs of queries with equal results.
const SAME: [(&str, &str); 4] = [
    (
        "SELECT memories FROM memory_counts",
        "SELECT count(*) FROM memory_versions WHERE learned_until IS NULL",
    ),
    (
        "SELECT versions FROM memory_counts",
        "SELECT count(*) FROM memory_versions",
    ),
    (
        "SELECT entities FROM memory_counts",
        "SELECT count(*) FROM memory_entities",
    ),
    (
        "SELECT relations FROM memory_counts",
        "SELECT count(*) FROM memory_relations",
    ),
];

/// Checks the file while another process has it open. Meanwhile nothing but vectors may be written.
pub(super) fn check(home: &Home, ledger: &Ledger) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut file = Connection::open_with_flags(home.path("switchboard.db"), flags).unwrap();
    // All of it in one snapshot.
    let file = file.transaction().unwrap();
    let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let sound: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
    let strays = file
        .prepare("PRAGMA foreign_key_check")
        .unwrap()
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .count();
    assert_eq!(strays, 0, "references to what is not there");
    for (what, sql) in NOTHING {
        let found = number(&format!("SELECT count(*) FROM ({sql})"));
        assert_eq!(found, 0, "{what}");
    }
    for (kept, counted) in SAME {
        assert_eq!(number(kept), number(counted), "{kept}");
    }
    let memories = number("SELECT count(DISTINCT id) FROM memory_versions");
    assert_eq!(usize::try_from(memories).unwrap(), ledger.len());
}
