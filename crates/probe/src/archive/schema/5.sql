-- Names in figures, as records have them from here on. A key with its quotes and colon is found nowhere else
-- in the text: quotes within a value are escaped.
UPDATE record SET figures = replace(replace(figures, '"forth":', '"forward":'), '"back":', '"reverse":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'delay');
UPDATE span SET figures = replace(replace(figures, '"forth":', '"forward":'), '"back":', '"reverse":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'delay');
UPDATE record SET figures = replace(replace(figures, '"means":', '"transport":'), '"course":', '"samples":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'throughput');
UPDATE span SET figures = replace(figures, '"means":', '"transport":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'throughput');
UPDATE record SET figures = replace(figures, '"said":', '"answer":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'trace');
UPDATE span SET figures = replace(replace(figures, '"other_ways":', '"other_paths":'), '"ways":', '"paths":')
	WHERE series IN (SELECT id FROM series WHERE kind = 'trace');
