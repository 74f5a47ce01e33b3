-- The archive itself: one row. The number tells this database from every other one, also from one that
-- stood at the same place before.
CREATE TABLE archive (
	id INTEGER NOT NULL,
	since_ns INTEGER NOT NULL
);
INSERT INTO archive VALUES (random() & 0x7fffffffffffffff, unixepoch() * 1000000000);

-- Who measures what with which test.
CREATE TABLE series (
	id INTEGER PRIMARY KEY,
	station TEXT NOT NULL,
	target TEXT NOT NULL,
	test TEXT NOT NULL,
	kind TEXT NOT NULL,
	UNIQUE (station, target, test, kind)
);

-- What was measured, each by itself. An id is never used again (AUTOINCREMENT).
CREATE TABLE record (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	series INTEGER NOT NULL REFERENCES series (id),
	at_ns INTEGER NOT NULL,
	lasted_ns INTEGER NOT NULL,
	figures TEXT NOT NULL
);
CREATE INDEX record_by_series ON record (series, at_ns);
CREATE INDEX record_by_time ON record (at_ns);
