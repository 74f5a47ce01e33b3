-- How far records were handed on: all up to this number are there.
CREATE TABLE mark (
	name TEXT PRIMARY KEY,
	through INTEGER NOT NULL
);
INSERT INTO mark VALUES ('postgresql', 0);
