/*
 * decode.h
 *	  Inner interfaces of files/: bytes, records, scalars.  For this folder only.
 */
#ifndef PIPELINE_FILES_DECODE_H
#define PIPELINE_FILES_DECODE_H

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "files/files.h"

/* ---- input.c: one opened file as a window of bytes ---- */

typedef struct PlnInput PlnInput;

struct PlnInput
{
	PlnFileInfo *info;
	PlnFileOptions *options;
	char	   *buf;			/* buf[pos..end) is unread */
	int			size;
	int			pos;
	int			end;
	bool		eof;			/* nothing comes after end */
	bool		cr_lines;		/* this file ends its lines with CR alone */
	bool		validate;		/* false only where every byte string is text */
	int64		line;			/* number of the line at pos, from 1 */
	int64		bytes;			/* decompressed so far */
	Oid			conversion;		/* InvalidOid = same encoding */
	StringInfoData converted;	/* last converted record */
	struct PlnInputHandle *handle;
};

/* NULL: missing and ignored.  Raises 58P01, 42501, 22P04.  Lives in the current context. */
extern PlnInput *pln_input_open(PlnFileInfo *info, PlnFileOptions *options);
/* More bytes behind end; false at the end of the file.  Moves buf and pos. */
extern bool pln_input_fill(PlnInput *in);
/* The next line without its end, not consumed: length of line and of line with end. */
extern bool pln_input_line(PlnInput *in, int *len, int *full);
extern void pln_input_consume(PlnInput *in, int bytes, int64 lines);
/* Bytes as text of the database; false when they are none.  Valid until the next call. */
extern bool pln_input_text(PlnInput *in, const char *bytes, int len,
						   const char **text, int *textlen);
/* Anything as text: bytes that are no text become \xHH. */
extern char *pln_input_printable(PlnInput *in, const char *bytes, int len);
/* Compares size and mtime with those at opening, fills info, closes. */
extern void pln_input_close(PlnInput *in);

/* ---- one record ---- */

typedef struct PlnRecord
{
	const char *raw;			/* bytes of the file */
	int			rawlen;
	const char *text;			/* the same in the database encoding; NULL when error is set */
	int			len;
	int64		line;			/* where it starts */
	const char *error;			/* why it is malformed, NULL = it may be well-formed */
} PlnRecord;

/* ---- json_scan.c ---- */

typedef enum PlnJsonKind
{
	PLN_JSON_NULL,
	PLN_JSON_BOOL,
	PLN_JSON_NUMBER,
	PLN_JSON_SPECIAL,			/* NaN, Infinity, -Infinity: no JSON, but written by many */
	PLN_JSON_STRING,
	PLN_JSON_OBJECT,
	PLN_JSON_ARRAY
} PlnJsonKind;

typedef struct PlnJsonValue
{
	PlnJsonKind kind;
	const char *start;			/* verbatim */
	int			len;
	bool		escaped;		/* string with a backslash */
	bool		risky;			/* the server's json input might refuse it */
	bool		special;		/* is or holds NaN or an infinity: no JSON for others */
} PlnJsonValue;

typedef struct PlnJsonScan
{
	const char *p;
	const char *end;
	int			max_depth;
	const char *error;			/* set when a function returned false */
} PlnJsonScan;

extern void pln_json_scan_init(PlnJsonScan *scan, const char *text, int len, int max_depth);
extern bool pln_json_scan_value(PlnJsonScan *scan, PlnJsonValue *value);
extern void pln_json_scan_space(PlnJsonScan *scan);
extern bool pln_json_scan_end(PlnJsonScan *scan);	/* only white space is left */
/* Members of an object or elements of an array: open once, then next until *done. */
extern bool pln_json_scan_open(PlnJsonScan *scan, char bracket);
extern bool pln_json_scan_next(PlnJsonScan *scan, char bracket, bool first,
							   PlnJsonValue *key, PlnJsonValue *value, bool *done);
/* Text of a string value; false: it cannot be text here (\u0000, half a surrogate pair). */
extern bool pln_json_unescape(const PlnJsonValue *string, StringInfo out);
extern void pln_json_append_string(StringInfo out, const char *text, int len);

/* ---- json.c ---- */

typedef struct PlnJsonReader
{
	bool		in_array;		/* multiLine: inside the top-level array */
	bool		first;			/* ... nothing of it was read */
	bool		after_value;	/* ... a comma or the bracket must come */
	bool		in_line_array;	/* a line that is an array of objects */
	bool		line_first;
	PlnJsonScan line_array;		/* its rest */
	int64		line;
} PlnJsonReader;

extern bool pln_json_next(PlnInput *in, PlnJsonReader *state, PlnRecord *record);

/* ---- csv.c ---- */

typedef struct PlnCsvField
{
	int			start;			/* of the content, relative to the record */
	int			len;
	bool		quoted;
	bool		escaped;		/* content has escapes to take out */
} PlnCsvField;

typedef struct PlnCsvReader
{
	PlnFileOptions *options;
	const char *sep;
	int			seplen;
	bool		started;		/* skipped rows and header are behind us */
	int			expected;		/* fields per record when known, else 0 */
	PlnCsvField *fields;
	int			nfields;
	int			maxfields;
	char		escape;			/* that this record was read with; 0 = doubled quotes only */
	bool		clean;			/* ... and every closing quote ended its field */
	bool		saw_escape;		/* ... and an escape stood before a quote */
	List	   *header;			/* names, unique; NIL without header */
} PlnCsvReader;

extern void pln_csv_init(PlnCsvReader *state, PlnFileOptions *options, PlnFileInfo *info);
/* Reads the header first when there is one. */
extern bool pln_csv_next(PlnInput *in, PlnCsvReader *state, PlnRecord *record);
/* Content of a field: false = SQL null.  *text may point into the record or buf. */
extern bool pln_csv_field(PlnCsvReader *state, PlnRecord *record, int n, StringInfo buf,
						  const char **text, int *len);

/* ---- text lines ---- */

extern bool pln_text_next(PlnInput *in, PlnRecord *record);

/* ---- datetime.c ---- */

typedef struct PlnTimePattern PlnTimePattern;

typedef struct PlnTime
{
	int			year;
	int			month;
	int			day;
	int			hour;
	int			minute;
	int			second;
	int			usec;
	bool		has_time;
	bool		has_zone;
	int			zone;			/* seconds east of Greenwich */
	bool		lossy;			/* finer than a microsecond */
} PlnTime;

/* Spark's pattern letters; 0A000 for letters that are not built, 22023 for bad patterns. */
extern PlnTimePattern *pln_time_pattern_compile(const char *option, const char *pattern);
extern bool pln_time_match(const PlnTimePattern *pattern, const char *s, int len, PlnTime *t);
extern bool pln_time_iso(const char *s, int len, PlnTime *t);
extern DateADT pln_time_date(const PlnTime *t);
extern Timestamp pln_time_timestamp(const PlnTime *t);
extern TimestampTz pln_time_timestamptz(const PlnTime *t, pg_tz *zone);

/* ---- scalar.c ---- */

typedef enum PlnFit
{
	PLN_FIT_OK,
	PLN_FIT_LOSSY,				/* stored, but the text says more: keep it too */
	PLN_FIT_NOT
} PlnFit;

typedef struct PlnConverter PlnConverter;

extern PlnConverter *pln_converter_make(PlnFileColumn *column, PlnFileOptions *options);
/* Text of a field, a path component, or of an unescaped JSON string. */
extern PlnFit pln_convert_text(PlnConverter *conv, const char *s, int len, Datum *value);
/* A JSON value that is not null. */
extern PlnFit pln_convert_json(PlnConverter *conv, const PlnJsonValue *json, StringInfo buf,
							   Datum *value);

/* What inference asks about a text. */
typedef enum PlnNumberClass
{
	PLN_NUMBER_NONE,
	PLN_NUMBER_INT4,
	PLN_NUMBER_INT8,
	PLN_NUMBER_BIG,				/* integer beyond 64 bits */
	PLN_NUMBER_DOUBLE,			/* survives double precision */
	PLN_NUMBER_DECIMAL			/* has more digits than double precision keeps */
} PlnNumberClass;

extern PlnNumberClass pln_classify_number(const char *s, int len, bool *beyond_double);
extern bool pln_text_equals_nocase(const char *s, int len, const char *word);

/* ---- schema.c ---- */

extern char *pln_column_name(const char *source);	/* folded and clipped */
extern List *pln_schema_parse_ddl(const char *option, const char *ddl);
extern PlnFileColumn *pln_schema_make_column(const char *source, Oid type, int32 typmod);

/* Names of data columns to their numbers. */
typedef struct PlnNameMap PlnNameMap;
extern PlnNameMap *pln_name_map_make(PlnFileSchema *schema, bool case_sensitive);
extern int	pln_name_map_find(PlnNameMap *map, const char *name, int len);	/* -1 = none */

/* ---- sample.c ---- */

#define PLN_SEEN_INT4		0x0001
#define PLN_SEEN_INT8		0x0002
#define PLN_SEEN_BIG		0x0004
#define PLN_SEEN_DOUBLE		0x0008
#define PLN_SEEN_DECIMAL	0x0010
#define PLN_SEEN_SPECIAL	0x0020
#define PLN_SEEN_NUMBER		0x003f
#define PLN_SEEN_BOOL		0x0040
#define PLN_SEEN_STRING		0x0080
#define PLN_SEEN_NESTED		0x0100
#define PLN_SEEN_DATE		0x0200
#define PLN_SEEN_TIME		0x0400	/* without zone */
#define PLN_SEEN_ZONED		0x0800
/* some number beyond what double precision keeps */
#define PLN_SEEN_BEYOND		0x1000

typedef struct PlnSampleColumn
{
	char	   *source;
	int			len;
	int			flags;
	int			alias;			/* the column this is another spelling of, or -1 */
} PlnSampleColumn;

typedef struct PlnSample
{
	PlnFileOptions *options;
	MemoryContext cxt;			/* of names */
	PlnTimePattern *date_pattern;
	PlnTimePattern *timestamp_pattern;
	PlnSampleColumn *columns;
	int			ncolumns;
	int			maxcolumns;
	int		   *slots;
	uint32		mask;
	int			last;
	int			ndata;			/* columns that are no alias */
	int64		records;
	StringInfoData buf;
} PlnSample;

/* Samples the files; NIL gives an empty sample that can be noted in. */
extern void pln_sample_files(PlnSample *sample, List *files, PlnFileOptions *options);
extern void pln_sample_note(PlnSample *sample, const char *name, int len, int flags);
/* What the text of a CSV field or of a directory name could be. */
extern int	pln_sample_text_flags(PlnSample *sample, const char *s, int len);

/* ---- list.c, glob.c ---- */

extern bool pln_glob_is_pattern(const char *s);
extern List *pln_glob_expand_braces(const char *pattern);	/* of char * */
extern bool pln_glob_match(const char *pattern, const char *name);
/* k=v components of a relative directory: parallel lists. */
extern void pln_file_partitions(PlnFileInfo *info, List **keys, List **values);
extern const char *pln_file_suffix(const char *name);	/* lower case, without .gz; "" = none */

#endif							/* PIPELINE_FILES_DECODE_H */
