/*
 * csv.c
 *	  Cuts files into CSV records and records into fields.
 *
 * RFC 4180 with three liberties: line ends are LF or CRLF (or CR throughout), an escape
 * character may stand before a quote, and text behind a closing quote makes the field
 * plain text up to the next separator.  A quoted field may hold line ends with or without
 * multiLine; without it the search for its end stops at QUOTE_REACH, and then, as when the
 * file ends first, only the line with the opening quote is malformed.
 *
 * Spark writes \" inside quotes, the RFC "" and a backslash that means itself.  Without an
 * escape option a record is read the first way, and again the second way when the first
 * does not come out even (a quote that does not end its field, another number of fields).
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

#define QUOTE_REACH (1024 * 1024)

typedef enum CutResult
{
	CUT_DONE,
	CUT_MORE,					/* the bytes at hand end inside the record */
	CUT_BROKEN					/* quotes do not match */
} CutResult;

/* What one attempt to cut works on. */
typedef struct Cut
{
	const char *b;
	int			len;
	bool		eof;			/* nothing comes behind len */
	bool		cr_lines;
	char		escape;
	int			reclen;			/* out: without and with line end */
	int			full;
} Cut;

void
pln_csv_init(PlnCsvReader *state, PlnFileOptions *options, PlnFileInfo *info)
{
	memset(state, 0, sizeof(PlnCsvReader));
	state->options = options;
	state->sep = options->sep;
	if (state->sep == NULL)
		state->sep = strcmp(pln_file_suffix(info->name), "tsv") == 0 ? "\t" : ",";
	state->seplen = strlen(state->sep);
	state->maxfields = 32;
	state->fields = palloc(state->maxfields * sizeof(PlnCsvField));
}

static void
add_field(PlnCsvReader *state, const Cut *cut, int start, int end, bool quoted, bool escaped)
{
	PlnCsvField *field;

	if (!quoted)
	{
		if (state->options->trim_leading)
			while (start < end && (cut->b[start] == ' ' || cut->b[start] == '\t'))
				start++;
		if (state->options->trim_trailing)
			while (start < end && (cut->b[end - 1] == ' ' || cut->b[end - 1] == '\t'))
				end--;
	}
	if (state->nfields == state->maxfields)
	{
		state->maxfields *= 2;
		state->fields = repalloc(state->fields, state->maxfields * sizeof(PlnCsvField));
	}
	field = &state->fields[state->nfields++];
	field->start = start;
	field->len = end - start;
	field->quoted = quoted;
	field->escaped = escaped;
}

/* What stands at i: 1 separator, 2 line end (its length in *eol), 0 neither, -1 unknown yet. */
static int
at_delimiter(PlnCsvReader *state, const Cut *cut, int i, int *eol)
{
	const char *sep = state->sep;
	char		c = cut->b[i];

	if (c == sep[0])
	{
		if (state->seplen == 1)
			return 1;
		if (cut->len - i < state->seplen && !cut->eof &&
			memcmp(cut->b + i, sep, cut->len - i) == 0)
			return -1;
		if (cut->len - i >= state->seplen && memcmp(cut->b + i, sep, state->seplen) == 0)
			return 1;
	}
	*eol = 1;
	if (cut->cr_lines)
		return c == '\r' ? 2 : 0;
	if (c == '\n')
		return 2;
	if (c == '\r')
	{
		if (i + 1 == cut->len)
			return cut->eof ? 2 : -1;
		*eol = 2;
		return cut->b[i + 1] == '\n' ? 2 : 0;
	}
	return 0;
}

/* The closing quote of the field whose opening quote is at open: its place, or -1. */
static int
closing_quote(PlnCsvReader *state, const Cut *cut, int open, bool *escaped)
{
	char		quote = state->options->quote;
	char		escape = cut->escape;
	int			i = open + 1;

	for (;;)
	{
		int			run = i;

		while (i < cut->len && cut->b[i] != quote && (cut->b[i] != escape || escape == '\0'))
			i++;
		run = i;
		if (escape != '\0')
			while (i < cut->len && cut->b[i] == escape)
				i++;
		if (i == cut->len)
			return -1;
		if (cut->b[i] != quote)
			continue;			/* escapes that stand before something else mean themselves */
		if (i > run)
		{
			state->saw_escape = true;
			*escaped = true;
		}
		if ((i - run) % 2 == 1)
		{
			i++;				/* an escaped quote */
			continue;
		}
		if (i + 1 == cut->len && !cut->eof)
			return -1;
		if (i + 1 < cut->len && cut->b[i + 1] == quote)
		{
			*escaped = true;
			i += 2;
			continue;
		}
		return i;
	}
}

static CutResult
cut_record(PlnCsvReader *state, Cut *cut)
{
	const char *b = cut->b;
	char		quote = state->options->quote;
	char		sep0 = state->sep[0];
	int			pos = 0;

	state->nfields = 0;
	state->clean = true;
	state->saw_escape = false;
	state->escape = cut->escape;
	for (;;)
	{
		int			start = pos;
		int			i = pos;
		int			eol = 0;
		int			what;
		bool		quoted = false;

		if (state->options->trim_leading)
			while (i < cut->len && (b[i] == ' ' || b[i] == '\t') && b[i] != sep0)
				i++;
		if (i < cut->len && b[i] == quote && quote != '\0')
		{
			bool		escaped = false;
			int			close = closing_quote(state, cut, i, &escaped);
			int			after = close + 1;

			if (close < 0)
				return cut->eof ? CUT_BROKEN : CUT_MORE;
			if (state->options->trim_trailing)
				while (after < cut->len && (b[after] == ' ' || b[after] == '\t') &&
					   b[after] != sep0)
					after++;
			what = after < cut->len ? at_delimiter(state, cut, after, &eol) : cut->eof ? 2 : -1;
			if (what < 0)
				return CUT_MORE;
			if (what > 0)
			{
				add_field(state, cut, i + 1, close, true, escaped);
				quoted = true;
				i = after;
			}
			else if (memchr(b + i, cut->cr_lines ? '\r' : '\n', close - i) != NULL)
				return CUT_BROKEN;
			else
				state->clean = false;
		}
		if (!quoted)
		{
			what = 0;
			for (i = start; i < cut->len; i++)
			{
				if (b[i] != sep0 && b[i] != '\n' && b[i] != '\r')
					continue;
				what = at_delimiter(state, cut, i, &eol);
				if (what != 0)
					break;
			}
			if (what < 0 || (i == cut->len && !cut->eof))
				return CUT_MORE;
			add_field(state, cut, start, i, false, false);
		}
		if (i < cut->len && what == 1)
		{
			pos = i + state->seplen;
			continue;
		}
		cut->reclen = i;
		cut->full = i < cut->len ? i + eol : i;
		return CUT_DONE;
	}
}

static bool
even(PlnCsvReader *state, CutResult result)
{
	return result == CUT_DONE && state->clean &&
		(state->expected == 0 || state->nfields == state->expected);
}

/* Cut with the escape that fits, see above. */
static CutResult
cut_fitting(PlnCsvReader *state, Cut *cut)
{
	CutResult	result;

	cut->escape = state->options->escape;
	if (cut->escape == state->options->quote)
		cut->escape = '\0';
	result = cut_record(state, cut);
	if (!state->options->escape_given && result != CUT_MORE && state->saw_escape &&
		!even(state, result))
	{
		char		first = cut->escape;

		cut->escape = '\0';
		if (even(state, cut_record(state, cut)))
			return CUT_DONE;
		cut->escape = first;
		result = cut_record(state, cut);
	}
	return result;
}

/* One physical line is malformed. */
static void
malformed_line(PlnInput *in, PlnRecord *record, const char *why)
{
	int			len;
	int			full;

	pln_input_line(in, &len, &full);
	record->raw = in->buf + in->pos;
	record->rawlen = len;
	record->line = in->line;
	record->error = why;
	if (!pln_input_text(in, record->raw, len, &record->text, &record->len))
		record->text = NULL;
	pln_input_consume(in, full, 1);
}

/* Blank lines and comments; false at the end of the file. */
static bool
skip_lines(PlnInput *in, PlnCsvReader *state)
{
	for (;;)
	{
		int			len;
		int			full;
		char		c;

		if (in->pos == in->end && !pln_input_fill(in))
			return false;
		c = in->buf[in->pos];
		if (c != '\n' && c != '\r' && (c != state->options->comment || c == '\0'))
			return true;
		if (!pln_input_line(in, &len, &full))
			return false;
		if (len > 0 && c != state->options->comment)
			return true;
		CHECK_FOR_INTERRUPTS();
		pln_input_consume(in, full, 1);
	}
}

static int64
count_lines(PlnInput *in, const char *p, int len)
{
	const char *end = p + len;
	int64		n = 0;

	while (p < end && (p = memchr(p, in->cr_lines ? '\r' : '\n', end - p)) != NULL)
	{
		n++;
		p++;
	}
	return n;
}

static bool
next_record(PlnInput *in, PlnCsvReader *state, PlnRecord *record)
{
	Cut			cut;
	CutResult	result;

	if (!skip_lines(in, state))
		return false;
	for (;;)
	{
		int			have = in->end - in->pos;

		cut.b = in->buf + in->pos;
		cut.len = have;
		cut.eof = in->eof;
		cut.cr_lines = in->cr_lines;
		result = cut_fitting(state, &cut);
		if (result != CUT_MORE)
			break;
		if (have > QUOTE_REACH && !state->options->multi_line &&
			memchr(cut.b, in->cr_lines ? '\r' : '\n', have) != NULL)
		{
			/* judge by what is here: other escapes may still make sense of it */
			cut.eof = true;
			result = cut_fitting(state, &cut);
			if (result == CUT_DONE && cut.full == have)
				result = CUT_BROKEN;
			break;
		}

		/* twice as much each time: the record is cut from its start again */
		while (in->end - in->pos < 2 * have && pln_input_fill(in))
			CHECK_FOR_INTERRUPTS();
	}
	if (result == CUT_BROKEN)
	{
		malformed_line(in, record, "a quoted field is not closed");
		return true;
	}
	record->raw = in->buf + in->pos;
	record->rawlen = cut.reclen;
	record->line = in->line;
	record->error = NULL;
	if (!pln_input_text(in, record->raw, cut.reclen, &record->text, &record->len))
	{
		record->text = NULL;
		record->error = "bytes are not valid in the encoding of the file";
	}
	else if (record->text != record->raw)
	{
		/* the same record in another encoding: offsets moved */
		Cut			again = cut;

		again.b = record->text;
		again.len = record->len;
		again.eof = true;
		cut_record(state, &again);
	}
	if (state->nfields > state->options->max_columns)
		record->error = "the record has more fields than maxColumns";
	pln_input_consume(in, cut.full, Max(count_lines(in, record->raw, cut.full),
										in->eof && in->pos + cut.full == in->end));
	return true;
}

static bool
in_names(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	return false;
}

/* A name that occurs again gets _2, _3, ...; an empty one its position. */
static void
read_header(PlnInput *in, PlnCsvReader *state)
{
	PlnRecord	record;
	StringInfoData buf;
	int			i;

	if (!next_record(in, state, &record))
		return;
	if (record.error != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_FILE_ROW),
				 errmsg("header of file \"%s\", line " INT64_FORMAT " is malformed",
						in->info->path, record.line),
				 errdetail("Reason: %s.", record.error)));
	initStringInfo(&buf);
	for (i = 0; i < state->nfields; i++)
	{
		const char *text;
		int			len;
		char	   *name;
		char	   *base;
		int			n = 1;

		if (pln_csv_field(state, &record, i, &buf, &text, &len) && len > 0)
			name = pnstrdup(text, len);
		else
			name = psprintf("_c%d", i);
		base = name;
		while (in_names(state->header, name))
			name = psprintf("%s_%d", base, ++n);
		state->header = lappend(state->header, name);
	}
	state->expected = state->nfields;
}

bool
pln_csv_next(PlnInput *in, PlnCsvReader *state, PlnRecord *record)
{
	if (!state->started)
	{
		int64		n;
		int			len;
		int			full;

		state->started = true;
		for (n = 0; n < state->options->skip_rows && pln_input_line(in, &len, &full); n++)
		{
			CHECK_FOR_INTERRUPTS();
			pln_input_consume(in, full, 1);
		}
		if (state->options->header)
			read_header(in, state);
	}
	return next_record(in, state, record);
}

/* Takes doubled quotes and escapes before quotes out of a quoted field. */
static void
unescape_field(PlnCsvReader *state, const char *p, int len, StringInfo buf)
{
	const char *end = p + len;
	char		quote = state->options->quote;

	resetStringInfo(buf);
	while (p < end)
	{
		const char *run = p;

		while (state->escape != '\0' && p < end && *p == state->escape)
			p++;
		if (p > run)
		{
			/* in front of the closing quote, at end, as in front of any other */
			int			n = p - run;

			if (p == end || *p == quote)
				n /= 2;
			appendBinaryStringInfo(buf, run, n);
			if (p < end && *p == quote && (p - run) % 2 == 1)
				appendStringInfoChar(buf, *p++);
			continue;
		}
		if (*p == quote)
			p++;				/* the first of two */
		appendStringInfoChar(buf, *p++);
	}
}

bool
pln_csv_field(PlnCsvReader *state, PlnRecord *record, int n, StringInfo buf,
			  const char **text, int *len)
{
	PlnCsvField *field = &state->fields[n];
	const char *null_value = state->options->null_value;

	*text = record->text + field->start;
	*len = field->len;
	if (!field->quoted)
		return field->len > 0 &&
			!(null_value != NULL && (int) strlen(null_value) == field->len &&
			  memcmp(null_value, *text, field->len) == 0);
	if (field->len == 0)
	{
		*text = state->options->empty_value;
		*len = strlen(*text);
	}
	else if (field->escaped)
	{
		unescape_field(state, *text, *len, buf);
		*text = buf->data;
		*len = buf->len;
	}
	return true;
}
