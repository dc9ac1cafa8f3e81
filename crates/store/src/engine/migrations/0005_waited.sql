-- The time that a call waited for an approver, or for its client to answer, in microseconds.
ALTER TABLE activity ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;
