-- Approval requests and their outcomes. The body is JSON that the store does not parse. It is the last
-- column, so that the short columns can be read without it.
CREATE TABLE approvals (
    id      TEXT    NOT NULL UNIQUE,
    kind    TEXT    NOT NULL,
    status  TEXT    NOT NULL,
    open    INTEGER NOT NULL, -- 1 until the request is closed
    server  TEXT    NOT NULL,
    created INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    changed INTEGER NOT NULL, -- the same unit
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;

-- For lists, newest first: of all requests, by openness, and by status. Each index contains every column
-- that a list can be filtered by, so that only the rows of the result are read.
CREATE INDEX approvals_by_time ON approvals (created, id, status, open, kind, server);
CREATE INDEX approvals_by_open ON approvals (open, created, id, status, kind, server);
CREATE INDEX approvals_by_status ON approvals (status, created, id, open, kind, server);
-- For removing the requests that were closed first.
CREATE INDEX approvals_closed ON approvals (changed) WHERE open = 0;

-- Remembered decisions.
CREATE TABLE rules (
    id      TEXT    NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    expires INTEGER, -- NULL: never
    body    TEXT    NOT NULL
) STRICT;

-- The audit log: actions and their actors. The hash of an entry covers the entry and the hash before it.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY, -- consecutive, from 1
    at      INTEGER NOT NULL,
    what    TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    hash    BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- The end of the log. It reveals the removal of the last entries.
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
-- REPLACE deletes rows without firing the trigger above.
CREATE TRIGGER audit_no_insert_before_the_end BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq >= NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_head_no_delete BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit log has one end'); END;
CREATE TRIGGER audit_head_no_return BEFORE UPDATE ON audit_head
WHEN NEW.seq <= OLD.seq
BEGIN SELECT RAISE(ABORT, 'the end of the audit log only moves on'); END;
