-- TRY_CAST against CAST: the same value, or NULL where CAST raises a data exception.
CREATE EXTENSION pipeline;
CREATE SCHEMA try_cast;
SET search_path = try_cast, public;
CREATE FUNCTION core_cast(value text, type text, OUT result text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT ($1::%s)::text', type) INTO result USING value;
EXCEPTION WHEN data_exception THEN
	result := NULL;
END $$;
CREATE FUNCTION our_cast(value text, type text, OUT result text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT pipeline.try_cast($1, NULL::%s)::text', type) INTO result USING value;
END $$;
CREATE TABLE texts (value text);
INSERT INTO texts VALUES ('1'), (' 12 '), ('-32768'), ('32767'), ('32768'), ('-2147483648'),
	('2147483648'), ('9223372036854775807'), ('-9223372036854775808'), ('9223372036854775808'),
	('+5'), ('- 5'), ('1.5'), ('.5'), ('5.'), ('.'), (''), (' '), ('abc'), ('1e5'), ('1e-5'),
	('1e'), ('1e+'), ('e5'), ('1e 5'), ('NaN'), ('-NaN'), ('+inf'), ('-Infinity'), ('infinit'),
	('1e131071'), ('1e131072'), ('0.1e131072'), ('1e200000'), ('0e200000'), ('1e-16383'),
	('1e-16384'), ('0.001e131074'), ('0.001e131075'), ('1e400'), ('1e-400'), ('1e38'),
	('3.5e38'), ('1e-46'), ('1e-40'), ('3.4028236e38'), ('1e2147483648'), ('99999999.999'),
	('99999999.994'), ('12345678.9'), ('-99999999.995'), ('999999999'), ('t'), (' tRuE '),
	('of'), ('off'), ('o'), ('yes'), ('1 0'), ('2'), ('2020-01-01'), ('2020-13-01'),
	('2020-02-30'), ('2020-02-29'), ('01/02/2020'), ('infinity'), ('-infinity'), ('epoch'),
	('today x'), ('20200101'), ('J2451545'), ('4714-11-24 BC'), ('4714-11-23 BC'),
	('5874897-12-31'), ('5874898-01-01'), ('294276-12-31'), ('294277-01-01'),
	('2020-01-01 25:00'), ('2020-01-01 23:59:60'), ('2020-01-01T10:00:00Z'),
	('2020-01-01 10:00:00.123456789 +02'), ('2020-01-01 10:00 Europe/Berlin'),
	('2020-01-01 10:00 Mars/Base'), ('Jan 5 2020 10:00 Mars/Base'), ('10:00 jan-05-2020'),
	('Sat 10:00 jan-05-2020'), ('101010 jan-05-2020'), ('10:00'), ('2020-01-01 10:00:00+99'),
	('allballs'), ('2020-01-05 cet'), ('2020-01-05 qqq'),
	('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), ('{a0eebc999c0b4ef8bb6d6bb9bd380a11}'),
	('a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11'), ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1'),
	('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-'), ('{a0eebc999c0b4ef8bb6d6bb9bd380a11'),
	('{"a":1}'), ('{1,2}'), ('{1,x}'), ('1 day'), ('(1,2)'), ('192.168.0.1'), ('\x00ff');
SELECT type, value, core, ours
FROM texts, unnest(ARRAY['smallint', 'integer', 'bigint', 'numeric', 'numeric(10,2)',
		'numeric(3,-2)', 'numeric(2,4)', 'real', 'double precision', 'boolean', 'date', 'timestamp',
		'timestamptz', 'timestamp(0)', 'uuid', 'text', 'varchar(3)', 'char(3)', 'jsonb', 'int[]',
		'interval', 'point', 'inet', 'bytea', 'time']) type,
	core_cast(value, type) core, our_cast(value, type) ours
WHERE core IS DISTINCT FROM ours;
-- some of each, so that the comparison above is not empty for want of values
SELECT type, count(our_cast(value, type)) AS values
FROM texts, unnest(ARRAY['integer', 'numeric', 'boolean', 'date', 'uuid', 'jsonb']) type
GROUP BY type ORDER BY type;
SELECT pg_typeof(pipeline.try_cast('12', NULL::bigint)), pipeline.try_cast(NULL, NULL::date),
	pipeline.try_cast('x', 7);
SELECT pipeline.try_cast('1', NULL);
-- only data exceptions mean NULL
CREATE DOMAIN positive AS int CHECK (value > 0);
SELECT pipeline.try_cast('x', NULL::positive);
SELECT pipeline.try_cast('-1', NULL::positive);
SELECT pipeline.to_timestamp('2020-01-01 10:00+00') = '2020-01-01 10:00+00', pipeline.to_timestamp(0.5) = to_timestamp(0.5);
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA try_cast CASCADE;
DROP EXTENSION pipeline;
