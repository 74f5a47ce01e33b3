-- Days (since 1970-01-01 UTC) of which files were written: all records up to this number are in them.
CREATE TABLE exported (
	day INTEGER PRIMARY KEY,
	through INTEGER NOT NULL
);
