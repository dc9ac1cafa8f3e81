-- How long a call waited for people, or for its client to answer, in microseconds.
ALTER TABLE activity ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;
