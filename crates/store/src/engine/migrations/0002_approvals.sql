-- What people are asked about, and what became of it. The body is JSON that nobody reads here; it
-- stands last, so that the short columns are found without it.
CREATE TABLE approvals (
    id      TEXT    NOT NULL UNIQUE,
    kind    TEXT    NOT NULL,
    status  TEXT    NOT NULL,
    open    INTEGER NOT NULL, -- 1 as long as it waits for something
    server  TEXT    NOT NULL,
    created INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    changed INTEGER NOT NULL, -- likewise
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;

-- Lists are newest first: all of them, by what is open, by status. Everything that a list can be
-- narrowed by is in each, so that no row is read that is not shown.
CREATE INDEX approvals_by_time ON approvals (created, id, status, open, kind, server);
CREATE INDEX approvals_by_open ON approvals (open, created, id, status, kind, server);
CREATE INDEX approvals_by_status ON approvals (status, created, id, open, kind, server);
-- For removing what was closed longest ago.
CREATE INDEX approvals_closed ON approvals (changed) WHERE open = 0;

-- What people asked to be remembered.
CREATE TABLE rules (
    id      TEXT    NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    expires INTEGER, -- never, if not set
    body    TEXT    NOT NULL
) STRICT;

-- What was done and by whom. Each entry's hash covers the entry and the hash before it.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY, -- 1, 2, 3 and so on
    at      INTEGER NOT NULL,
    what    TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    hash    BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- The end of the log: without it, entries missing at the end would not be missed.
CREATE TABLE audit_head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO audit_head (one, seq, hash) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
-- REPLACE would delete without telling the trigger above.
CREATE TRIGGER audit_no_insert_before_the_end BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq >= NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_head_no_delete BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit log has one end'); END;
CREATE TRIGGER audit_head_no_return BEFORE UPDATE ON audit_head
WHEN NEW.seq <= OLD.seq
BEGIN SELECT RAISE(ABORT, 'the end of the audit log only moves on'); END;
