-- The party that made a call and the door that it came in by; empty for calls before this version.
ALTER TABLE activity ADD COLUMN principal TEXT NOT NULL DEFAULT '';
ALTER TABLE activity ADD COLUMN door TEXT NOT NULL DEFAULT '';
