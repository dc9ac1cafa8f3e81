-- The beginning of the audit log in this file: the last entry that was moved to an archive.
CREATE TABLE audit_anchor (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO audit_anchor (one, seq, hash) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER audit_anchor_no_delete BEFORE DELETE ON audit_anchor
BEGIN SELECT RAISE(ABORT, 'the audit log has one beginning'); END;
CREATE TRIGGER audit_anchor_only_moves_on BEFORE UPDATE ON audit_anchor
WHEN NEW.seq <= OLD.seq
    OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq AND hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'the audit log begins after an entry of it'); END;

-- An entry can be deleted only after the anchor has moved to it or past it.
DROP TRIGGER audit_no_delete;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN OLD.seq > (SELECT seq FROM audit_anchor)
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
