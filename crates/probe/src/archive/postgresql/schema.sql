-- The shared archive of many stations. Made by the first station that may; several at once wait here.
BEGIN;
SELECT pg_advisory_xact_lock(1852401512);
CREATE SCHEMA IF NOT EXISTS nigh;
CREATE TABLE IF NOT EXISTS nigh.record (
	archive bigint NOT NULL,
	id bigint NOT NULL,
	station text NOT NULL,
	target text NOT NULL,
	test text NOT NULL,
	kind text NOT NULL,
	at timestamptz NOT NULL,
	at_ns bigint NOT NULL,
	lasted_ns bigint NOT NULL,
	figures jsonb NOT NULL,
	PRIMARY KEY (archive, id)
);
CREATE INDEX IF NOT EXISTS record_by_series ON nigh.record (station, target, test, kind, at);
CREATE INDEX IF NOT EXISTS record_by_time ON nigh.record (at);
COMMIT;
