-- The extension's objects are where users look for them.
BEGIN;
SELECT plan(1);
SELECT ok(EXISTS (SELECT FROM pg_extension WHERE extname = 'pipeline'), 'pipeline is installed');
SELECT * FROM finish();
ROLLBACK;
