-- What was measured within an hour or a day, together: what becomes of records that are not kept longer.
CREATE TABLE span (
	series INTEGER NOT NULL REFERENCES series (id),
	width_s INTEGER NOT NULL,
	at_ns INTEGER NOT NULL,
	records INTEGER NOT NULL,
	figures TEXT NOT NULL,
	PRIMARY KEY (series, width_s, at_ns)
) WITHOUT ROWID;
CREATE INDEX span_by_time ON span (at_ns);
