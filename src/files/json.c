/*
 * json.c
 *	  Cuts files into JSON records, and text files into lines.
 *
 * Without multiLine a record is a line; a line that is an array of objects gives one
 * record per element.  With multiLine a file is a sequence of objects and of arrays of
 * objects in any layout, and each object is cut out by counting brackets, so that a file
 * larger than memory streams.  Whether a record is well-formed is decided by its reader;
 * only what cannot be cut is malformed here: the rest of the file is then one record.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "files/decode.h"
#include "files/files.h"

#define BAD_BYTES "bytes are not valid in the encoding of the file"

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

/* The record is bytes at pos; consumes full bytes. */
static void
take(PlnInput *in, PlnRecord *record, int len, int full)
{
	record->raw = in->buf + in->pos;
	record->rawlen = len;
	record->line = in->line;
	record->error = NULL;
	if (!pln_input_text(in, record->raw, len, &record->text, &record->len))
	{
		record->text = NULL;
		record->error = BAD_BYTES;
	}
	pln_input_consume(in, full, count_lines(in, record->raw, full));
}

static bool
is_blank(const char *p, int len)
{
	while (len > 0 && (*p == ' ' || *p == '\t' || *p == '\r'))
	{
		p++;
		len--;
	}
	return len == 0;
}

/* Does the line hold an array of objects only?  Sets record->error when not. */
static bool
open_line_array(PlnInput *in, PlnJsonReader *state, PlnRecord *record)
{
	PlnJsonScan scan;
	PlnJsonValue value;
	bool		done;
	bool		first = true;

	pln_json_scan_init(&scan, record->text, record->len, in->options->max_depth);
	pln_json_scan_open(&scan, '[');
	state->line_array = scan;
	for (;; first = false)
	{
		if (!pln_json_scan_next(&scan, '[', first, NULL, &value, &done) ||
			(done && !pln_json_scan_end(&scan)))
			break;
		if (done)
		{
			if (first)
				break;			/* []: nothing to deliver is malformed, not silence */
			state->in_line_array = true;
			state->line_first = true;
			state->line = record->line;
			return true;
		}
		if (value.kind != PLN_JSON_OBJECT)
		{
			scan.error = "an element of the array is not an object";
			break;
		}
	}
	record->error = scan.error ? scan.error : "the array is empty";
	return false;
}

static bool
next_of_line_array(PlnJsonReader *state, PlnRecord *record)
{
	PlnJsonValue value;
	bool		done;

	/* cannot fail: the whole line was looked at before */
	if (!pln_json_scan_next(&state->line_array, '[', state->line_first, NULL, &value, &done) ||
		done)
	{
		state->in_line_array = false;
		return false;
	}
	state->line_first = false;
	record->raw = record->text = value.start;
	record->rawlen = record->len = value.len;
	record->line = state->line;
	record->error = NULL;
	return true;
}

static bool
next_line(PlnInput *in, PlnJsonReader *state, PlnRecord *record)
{
	int			len;
	int			full;

	if (state->in_line_array && next_of_line_array(state, record))
		return true;
	while (pln_input_line(in, &len, &full))
	{
		const char *p;

		if (is_blank(in->buf + in->pos, len))
		{
			CHECK_FOR_INTERRUPTS();
			pln_input_consume(in, full, 1);
			continue;
		}
		take(in, record, len, full);
		if (record->error != NULL)
			return true;
		p = record->text;
		while (*p == ' ' || *p == '\t')
			p++;
		if (*p == '[' && open_line_array(in, state, record))
			return next_of_line_array(state, record);
		return true;
	}
	return false;
}

/* Offset behind the value at pos, or -1 when the file ends before. */
static int
value_extent(PlnInput *in)
{
	int			i = 0;
	int			depth = 0;
	bool		in_string = false;
	bool		nested;
	char		c = in->buf[in->pos];

	nested = (c == '{' || c == '[');
	for (;;)
	{
		for (; i < in->end - in->pos; i++)
		{
			c = in->buf[in->pos + i];
			if (in_string)
			{
				if (c == '\\')
					i++;
				else if (c == '"')
					in_string = false;
			}
			else if (c == '"')
				in_string = true;
			else if (c == '{' || c == '[')
				depth++;
			else if (depth > 0 && (c == '}' || c == ']'))
			{
				if (--depth == 0 && nested)
					return i + 1;
			}
			else if (!nested && depth == 0 &&
					 (c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\r' ||
					  c == '\t'))
				return Max(i, 1);
		}
		CHECK_FOR_INTERRUPTS();
		if (!pln_input_fill(in))
			return -1;
	}
}

static bool
skip_space(PlnInput *in)
{
	for (;;)
	{
		while (in->pos < in->end)
		{
			char		c = in->buf[in->pos];

			if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
				return true;
			if (c == (in->cr_lines ? '\r' : '\n'))
				in->line++;
			in->pos++;
		}
		CHECK_FOR_INTERRUPTS();
		if (!pln_input_fill(in))
			return false;
	}
}

static bool
rest_is_malformed(PlnInput *in, PlnJsonReader *state, PlnRecord *record, const char *why)
{
	int			len;

	while (pln_input_fill(in))
		CHECK_FOR_INTERRUPTS();
	state->in_array = false;
	len = in->end - in->pos;
	take(in, record, len, len);
	record->error = why;
	return true;
}

static bool
next_document(PlnInput *in, PlnJsonReader *state, PlnRecord *record)
{
	for (;;)
	{
		char		c;
		int			len;

		if (!skip_space(in))
		{
			if (state->in_array)
				return rest_is_malformed(in, state, record, "the array is not closed");
			return false;
		}
		c = in->buf[in->pos];
		if (!state->in_array)
		{
			if (c == '[')
			{
				state->in_array = state->first = true;
				state->after_value = false;
				in->pos++;
				continue;
			}
			if (c != '{')
				return rest_is_malformed(in, state, record, "the record is not a JSON object");
		}
		else if (c == ']' && (state->first || state->after_value))
		{
			state->in_array = false;
			in->pos++;
			continue;
		}
		else if (state->after_value)
		{
			if (c != ',')
				return rest_is_malformed(in, state, record,
										 "a comma or a closing bracket is missing");
			state->after_value = false;
			in->pos++;
			continue;
		}
		else if (c == ']')
			return rest_is_malformed(in, state, record, "a value is missing after a comma");
		len = value_extent(in);
		if (len < 0)
			return rest_is_malformed(in, state, record, "the record ends too early");
		take(in, record, len, len);
		state->first = false;
		state->after_value = state->in_array;
		return true;
	}
}

bool
pln_json_next(PlnInput *in, PlnJsonReader *state, PlnRecord *record)
{
	return in->options->multi_line ? next_document(in, state, record) :
		next_line(in, state, record);
}

bool
pln_text_next(PlnInput *in, PlnRecord *record)
{
	int			len;
	int			full;

	if (!pln_input_line(in, &len, &full))
		return false;
	take(in, record, len, full);
	return true;
}
