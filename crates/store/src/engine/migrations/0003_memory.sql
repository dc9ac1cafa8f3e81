-- Scopes of memories and entities. Each combination in use has one row here, so that the rows and
-- indexes below contain a number instead of four texts.
CREATE TABLE memory_scopes (
    row       INTEGER PRIMARY KEY,
    namespace TEXT,
    user      TEXT,
    agent     TEXT,
    run       TEXT,
    memories  INTEGER NOT NULL DEFAULT 0 -- current versions, counted by the triggers below
) STRICT;
-- A unique index treats two NULLs as different, hence the number 0, which equals no text.
CREATE UNIQUE INDEX memory_scopes_by_name ON memory_scopes
    (ifnull(namespace, 0), ifnull(user, 0), ifnull(agent, 0), ifnull(run, 0));
-- There may be many users and many runs, each with a few memories.
CREATE INDEX memory_scopes_by_user ON memory_scopes (user) WHERE user IS NOT NULL;
CREATE INDEX memory_scopes_by_run ON memory_scopes (run) WHERE run IS NOT NULL;

-- Every version of every memory. The long columns are last, so that the short ones can be read without
-- them. All times are microseconds since 1970-01-01 UTC.
CREATE TABLE memory_versions (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    scope         INTEGER NOT NULL REFERENCES memory_scopes (row),
    kind          TEXT    NOT NULL,
    importance    REAL    NOT NULL,
    valid_from    INTEGER, -- NULL: no lower bound
    valid_until   INTEGER, -- NULL: no upper bound
    learned_at    INTEGER NOT NULL,
    learned_until INTEGER, -- NULL: the current version
    superseded_by TEXT,
    reason        TEXT,
    metadata      TEXT,    -- JSON
    content       TEXT    NOT NULL,
    UNIQUE (id, version)
) STRICT;
-- Every column that a list can be filtered by, so that only the rows of the result are read.
CREATE INDEX memory_versions_by_scope ON memory_versions
    (scope, learned_at, learned_until, valid_from, valid_until, kind);
-- For the newest memories, and for the number of current ones that expire: a list of all memories uses
-- these indexes and the counters below.
CREATE INDEX memory_versions_by_time ON memory_versions (learned_at);
CREATE INDEX memory_versions_ending ON memory_versions (valid_until, scope)
    WHERE learned_until IS NULL AND valid_until IS NOT NULL;

-- The people and things that memories mention.
CREATE TABLE memory_entities (
    row         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    scope       INTEGER NOT NULL REFERENCES memory_scopes (row),
    key         TEXT    NOT NULL, -- the name, normalised for comparison
    name        TEXT    NOT NULL,
    kind        TEXT,
    learned_at  INTEGER NOT NULL,
    found       INTEGER NOT NULL, -- 1 if it was only extracted from the text of a memory
    description TEXT,
    UNIQUE (key, scope)
) STRICT;
CREATE INDEX memory_entities_by_scope ON memory_entities (scope);

CREATE TABLE memory_relations (
    row        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    source     INTEGER NOT NULL REFERENCES memory_entities (row) ON DELETE CASCADE,
    target     INTEGER NOT NULL REFERENCES memory_entities (row) ON DELETE CASCADE,
    kind       TEXT    NOT NULL,
    weight     REAL    NOT NULL,
    learned_at INTEGER NOT NULL,
    UNIQUE (source, target, kind)
) STRICT;
CREATE INDEX memory_relations_by_target ON memory_relations (target);

-- The entities that each version mentions.
CREATE TABLE memory_mentions (
    version  INTEGER NOT NULL REFERENCES memory_versions (row) ON DELETE CASCADE,
    entity   INTEGER NOT NULL REFERENCES memory_entities (row) ON DELETE CASCADE,
    explicit INTEGER NOT NULL, -- 1 if the caller named it, 0 if it was extracted from the text
    PRIMARY KEY (version, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_mentions_by_entity ON memory_mentions (entity);

-- The models that produced the vectors.
CREATE TABLE memory_models (
    row         INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint TEXT    NOT NULL UNIQUE,
    dimensions  INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 0, -- 1 for the model that searches use
    retired     INTEGER NOT NULL DEFAULT 0, -- 1 if it is being removed with its vectors, in batches
    vectors     INTEGER NOT NULL DEFAULT 0  -- counted by the triggers below
) STRICT;

-- A model's row is removed only when its count shows that no vector is left. A foreign key would need an
-- additional index to check that.
CREATE TABLE memory_vectors (
    version INTEGER NOT NULL REFERENCES memory_versions (row) ON DELETE CASCADE,
    model   INTEGER NOT NULL,
    scale   REAL    NOT NULL,
    numbers BLOB    NOT NULL, -- one byte each, signed
    UNIQUE (version, model)
) STRICT;

-- The names of damaged files that were renamed, next to this one. They may contain memories that this
-- file does not have.
CREATE TABLE memory_damage (name TEXT NOT NULL UNIQUE) STRICT;

-- Totals, so that no query has to count rows.
CREATE TABLE memory_counts (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    memories  INTEGER NOT NULL,
    versions  INTEGER NOT NULL,
    entities  INTEGER NOT NULL,
    relations INTEGER NOT NULL
) STRICT;
INSERT INTO memory_counts (one, memories, versions, entities, relations) VALUES (1, 0, 0, 0, 0);

CREATE TRIGGER memory_version_comes AFTER INSERT ON memory_versions
BEGIN
    UPDATE memory_counts SET versions = versions + 1,
        memories = memories + (NEW.learned_until IS NULL);
    UPDATE memory_scopes SET memories = memories + (NEW.learned_until IS NULL)
        WHERE row = NEW.scope;
END;
CREATE TRIGGER memory_version_changes AFTER UPDATE OF learned_until ON memory_versions
WHEN (OLD.learned_until IS NULL) <> (NEW.learned_until IS NULL)
BEGIN
    UPDATE memory_counts SET
        memories = memories + (NEW.learned_until IS NULL) - (OLD.learned_until IS NULL);
    UPDATE memory_scopes SET
        memories = memories + (NEW.learned_until IS NULL) - (OLD.learned_until IS NULL)
        WHERE row = NEW.scope;
END;
CREATE TRIGGER memory_version_goes AFTER DELETE ON memory_versions
BEGIN
    UPDATE memory_counts SET versions = versions - 1,
        memories = memories - (OLD.learned_until IS NULL);
    UPDATE memory_scopes SET memories = memories - (OLD.learned_until IS NULL)
        WHERE row = OLD.scope;
END;
CREATE TRIGGER memory_entity_comes AFTER INSERT ON memory_entities
BEGIN UPDATE memory_counts SET entities = entities + 1; END;
CREATE TRIGGER memory_entity_goes AFTER DELETE ON memory_entities
BEGIN UPDATE memory_counts SET entities = entities - 1; END;
CREATE TRIGGER memory_relation_comes AFTER INSERT ON memory_relations
BEGIN UPDATE memory_counts SET relations = relations + 1; END;
CREATE TRIGGER memory_relation_goes AFTER DELETE ON memory_relations
BEGIN UPDATE memory_counts SET relations = relations - 1; END;
CREATE TRIGGER memory_vector_comes AFTER INSERT ON memory_vectors
BEGIN UPDATE memory_models SET vectors = vectors + 1 WHERE row = NEW.model; END;
CREATE TRIGGER memory_vector_goes AFTER DELETE ON memory_vectors
BEGIN UPDATE memory_models SET vectors = vectors - 1 WHERE row = OLD.model; END;
