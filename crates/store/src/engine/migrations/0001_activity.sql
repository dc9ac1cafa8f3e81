-- Calls through the gateway.
CREATE TABLE activity (
    id             INTEGER PRIMARY KEY, -- assigned from the counter below
    at             INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    server         TEXT    NOT NULL,
    method         TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    client         TEXT    NOT NULL,
    duration       INTEGER NOT NULL, -- microseconds
    outcome        TEXT    NOT NULL,
    code           INTEGER,          -- only for the outcome 'error'
    error          TEXT,
    request_bytes  INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL
) STRICT;

-- The last assigned ID. AUTOINCREMENT would write its counter once for every row.
CREATE TABLE activity_counter (last INTEGER NOT NULL) STRICT;
INSERT INTO activity_counter (last) VALUES (0);
