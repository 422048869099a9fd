/*
 * files.h
 *	  Listing, schema inference and reading of landing files: json, csv, text on local paths.
 *
 * Knows no catalog table: who calls keeps the frozen schema (pln_file_schema_to_json) and
 * the ledger of consumed files.  Everything is palloc'd in the current context unless said
 * otherwise.  Every file is opened through one function that resolves symbolic links and
 * checks rights of GetUserId() again.
 */
#ifndef PIPELINE_FILES_FILES_H
#define PIPELINE_FILES_FILES_H

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "pgtime.h"
#include "utils/jsonb.h"

typedef enum PlnFileFormat
{
	PLN_FORMAT_DETECT,
	PLN_FORMAT_JSON,
	PLN_FORMAT_CSV,
	PLN_FORMAT_TEXT
} PlnFileFormat;

typedef enum PlnFileMode
{
	PLN_MODE_PERMISSIVE,
	PLN_MODE_DROPMALFORMED,
	PLN_MODE_FAILFAST
} PlnFileMode;

typedef enum PlnFileEvolution
{
	PLN_EVOLVE_ADD,				/* addNewColumns */
	PLN_EVOLVE_RESCUE,
	PLN_EVOLVE_FAIL,			/* failOnNewColumns */
	PLN_EVOLVE_NONE
} PlnFileEvolution;

typedef enum PlnLineSep
{
	PLN_LINES_AUTO,				/* LF or CRLF; CR when the head of a file has CR and no LF */
	PLN_LINES_LF,
	PLN_LINES_CR
} PlnLineSep;

/* Checked options.  Members are those of dialect-reference §6.2, in our words. */
typedef struct PlnFileOptions
{
	char	   *path;			/* absolute, without a file: scheme */
	PlnFileFormat format;		/* DETECT until pln_files_detect_format() */
	char	   *schema;			/* NULL = infer */
	char	   *schema_hints;
	bool		infer_types;
	PlnFileEvolution evolution;
	char	   *rescued_column; /* name, "" or NULL = none; see rescued_given */
	bool		rescued_given;	/* the user named it */
	char	   *corrupt_column; /* never NULL */
	bool		corrupt_given;
	char	   *partition_columns;	/* NULL = automatic, "" = none */
	PlnFileMode mode;

	/* which files */
	char	   *name_glob;
	bool		recursive_lookup;
	bool		has_modified_after;
	bool		has_modified_before;
	TimestampTz modified_after;
	TimestampTz modified_before;
	int64		min_file_age;	/* microseconds */

	/* for the caller, not used here */
	bool		include_existing;
	bool		allow_overwrites;
	int64		max_files;		/* per update */
	int64		max_bytes;		/* 0 = no limit */

	/* reading */
	bool		ignore_corrupt;
	bool		ignore_missing;
	int			encoding;		/* pg_enc of the files */
	char	   *compression;	/* NULL = by suffix */
	PlnLineSep	line_sep;
	bool		multi_line;
	bool		case_sensitive;
	pg_tz	   *zone;			/* of times without a zone; NULL = session */
	char	   *date_format;	/* NULL = ISO */
	char	   *timestamp_format;

	/* json */
	bool		primitives_as_string;
	bool		prefers_decimal;
	bool		infer_timestamp;
	bool		drop_if_all_null;
	int			max_depth;

	/* csv */
	bool		header;
	char	   *sep;			/* NULL = by suffix: tab for .tsv, else comma */
	char		quote;			/* 0 = none */
	char		escape;
	bool		escape_given;	/* else a backslash or a doubled quote, whichever fits */
	char		comment;		/* 0 = none */
	char	   *null_value;		/* NULL = only the unquoted empty field */
	char	   *empty_value;
	char	   *nan_value;
	char	   *positive_inf;
	char	   *negative_inf;
	int64		skip_rows;
	int64		max_columns;
	bool		trim_leading;
	bool		trim_trailing;
} PlnFileOptions;

/* One file.  The second half is written by the reader. */
typedef struct PlnFileInfo
{
	char	   *path;			/* as given + relative part */
	char	   *name;			/* last component */
	char	   *dir;			/* relative directory, "" at the top */
	int64		size;			/* of the listing; of the opened file once it is read */
	TimestampTz mtime;

	bool		done;			/* read to its end */
	bool		changed;		/* size or mtime moved while it was read: see reader */
	bool		missing;		/* gone, and ignoreMissingFiles */
	bool		corrupt;		/* undecodable, and ignoreCorruptFiles */
	int64		rows;			/* delivered, malformed ones included */
	int64		malformed;		/* of them, records that could not be parsed */
	int64		rescued;		/* delivered rows with a rescued value */
	int64		dropped;		/* records left out by DROPMALFORMED */
	int64		lost;			/* values that fit nowhere: no rescued and no corrupt column */
} PlnFileInfo;

typedef enum PlnColumnKind
{
	PLN_COLUMN_DATA,
	PLN_COLUMN_CORRUPT,			/* verbatim text of malformed records */
	PLN_COLUMN_PARTITION		/* from a k=v directory */
} PlnColumnKind;

typedef struct PlnFileColumn
{
	char	   *name;			/* as SQL sees it: folded like an unquoted identifier */
	char	   *source;			/* key or header in the files, exact */
	Oid			type;
	int32		typmod;
	Oid			collation;
	PlnColumnKind kind;
	bool		inferred;		/* text that would lose something in this type does not fit */
} PlnFileColumn;

typedef struct PlnFileSchema
{
	PlnFileFormat format;
	int			ncolumns;
	PlnFileColumn *columns;
	char	   *rescued;		/* column name, NULL = none; it follows the columns */
} PlnFileSchema;

/* Columns that the reader appends after the schema's and the rescued one. */
#define PLN_METADATA_COLUMNS 6
typedef struct PlnMetadataColumn
{
	const char *name;
	Oid			type;
} PlnMetadataColumn;
extern const PlnMetadataColumn pln_metadata_columns[PLN_METADATA_COLUMNS];

/*
 * Sample of inference: at most so many files, records of one file, and bytes (after
 * decompression) of all together; whichever comes first.
 */
#define PLN_SAMPLE_FILES	1000
#define PLN_SAMPLE_RECORDS	20000
#define PLN_SAMPLE_BYTES	(INT64CONST(256) * 1024 * 1024)

/* ---- options.c ---- */

/*
 * Names (any case, a prefix cloudFiles. is dropped) and values as text.  22023 for unknown
 * names and bad values, 0A000 for what is not built.
 */
extern PlnFileOptions *pln_file_options_parse(const char *path, List *names, List *values);

/* The same from a JSON object of scalars; members "stream" and null ones are passed over. */
extern PlnFileOptions *pln_file_options_from_jsonb(const char *path, Jsonb *options);

extern const char *pln_file_format_name(PlnFileFormat format);

/* ---- list.c ---- */

/*
 * The files of the path, sorted bytewise by path: List of PlnFileInfo.  58P01 when the path
 * does not exist; a glob that matches nothing is an empty list.  42501 without rights.
 */
extern List *pln_files_list(PlnFileOptions *options);

/* GetUserId() may read it: pg_read_server_files, or below pipeline.allowed_locations. */
extern void pln_files_check_access(const char *path);

/* Sets options->format when it was not given. */
extern void pln_files_detect_format(List *files, PlnFileOptions *options);

/* ---- infer.c ---- */

/* Also detects the format.  55000 when there is nothing to infer from. */
extern PlnFileSchema *pln_files_infer(List *files, PlnFileOptions *options);

/*
 * What schemaEvolutionMode makes of new files: with addNewColumns a new schema whose added
 * columns follow the old ones, and *added lists them (PlnFileColumn); failOnNewColumns
 * raises 22P04; else the old schema and NIL.  Types of known columns never change.
 */
extern PlnFileSchema *pln_file_schema_evolve(PlnFileSchema *old, List *files,
											 PlnFileOptions *options, List **added);

/* ---- schema.c ---- */

extern char *pln_file_schema_to_json(PlnFileSchema *schema);
extern PlnFileSchema *pln_file_schema_from_json(const char *json);

/* All columns that the reader fills: schema, rescued, metadata. */
extern int	pln_file_schema_width(PlnFileSchema *schema);
extern void pln_file_schema_column(PlnFileSchema *schema, int n, const char **name,
								   Oid *type, int32 *typmod, Oid *collation);

/* ---- reader.c ---- */

typedef struct PlnFileReader PlnFileReader;

/*
 * Reader over the files, in list order.  Its memory is a child of cxt; it closes its file
 * when that context is reset, so an error or an early end needs no pln_file_reader_close().
 */
extern PlnFileReader *pln_file_reader_open(PlnFileOptions *options, PlnFileSchema *schema,
										   List *files, MemoryContext cxt);

/*
 * Next row into arrays of pln_file_schema_width() entries; false at the end.  Datums live
 * until the next call.  A file whose size or mtime differ before and after it was read gets
 * PlnFileInfo.changed: its rows are already delivered, so the caller rolls back to before
 * that file and leaves it for the next run (interface §3.22).
 */
extern bool pln_file_reader_next(PlnFileReader *reader, Datum *values, bool *isnull);
extern PlnFileInfo *pln_file_reader_file(PlnFileReader *reader);	/* of the last row */
extern void pln_file_reader_close(PlnFileReader *reader);

#endif							/* PIPELINE_FILES_FILES_H */
