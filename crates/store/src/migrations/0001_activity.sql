-- The calls that went through the gateway.
CREATE TABLE activity (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    at             INTEGER NOT NULL, -- microseconds since 1970-01-01 UTC
    server         TEXT    NOT NULL,
    method         TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    client         TEXT    NOT NULL,
    duration       INTEGER NOT NULL, -- microseconds
    outcome        TEXT    NOT NULL,
    code           INTEGER,          -- with outcome 'error' only
    error          TEXT,
    request_bytes  INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL
) STRICT;
