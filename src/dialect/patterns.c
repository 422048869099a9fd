/*
 * patterns.c
 *	  Date and time patterns of Spark to templates of to_timestamp() and to_char().
 *
 * Only literal patterns are looked at.  The two notations share letters, and PostgreSQL
 * reads any text as some template (its MM is the month in either case), so a pattern
 * that cannot be told apart or translated exactly is refused: it would give wrong
 * values without an error.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"

#include "base/errors.h"
#include "dialect/internal.h"

/* Letters that a pattern of Spark may hold outside of quotes. */
#define SPARK_LETTERS "GyMLdDEFQqahHkKmsSVzOXxZ"

typedef enum PatternUse
{
	PATTERN_PARSE,				/* text to timestamp */
	PATTERN_FORMAT				/* timestamp to text */
} PatternUse;

/* Fields of both notations, for the rules between them. */
#define FIELD_YEAR		0x01
#define FIELD_MONTH		0x02
#define FIELD_DAY		0x04
#define FIELD_HOUR		0x08
#define FIELD_MINUTE	0x10
#define FIELD_SECOND	0x20
#define FIELD_FRACTION	0x40
#define FIELD_OTHER		0x80

/* Longer ones first where one begins like another. */
static const struct
{
	const char *word;
	int			field;
}			server_words[] =
{
	{"A.D.", FIELD_OTHER}, {"A.M.", FIELD_OTHER}, {"AD", FIELD_OTHER}, {"AM", FIELD_OTHER},
	{"B.C.", FIELD_OTHER}, {"BC", FIELD_OTHER}, {"CC", FIELD_OTHER}, {"DAY", FIELD_OTHER},
	{"DDD", FIELD_DAY}, {"DD", FIELD_DAY}, {"DY", FIELD_OTHER}, {"D", FIELD_OTHER},
	{"FF1", FIELD_FRACTION}, {"FF2", FIELD_FRACTION}, {"FF3", FIELD_FRACTION},
	{"FF4", FIELD_FRACTION}, {"FF5", FIELD_FRACTION}, {"FF6", FIELD_FRACTION},
	{"FM", 0}, {"FX", 0}, {"HH24", FIELD_HOUR}, {"HH12", FIELD_HOUR}, {"HH", FIELD_HOUR},
	{"IDDD", FIELD_OTHER}, {"ID", FIELD_OTHER}, {"IW", FIELD_OTHER}, {"IYYY", FIELD_OTHER},
	{"IYY", FIELD_OTHER}, {"IY", FIELD_OTHER}, {"I", FIELD_OTHER}, {"J", FIELD_OTHER},
	{"MI", FIELD_MINUTE}, {"MM", FIELD_MONTH}, {"MONTH", FIELD_MONTH}, {"MON", FIELD_MONTH},
	{"MS", FIELD_FRACTION}, {"OF", FIELD_OTHER}, {"P.M.", FIELD_OTHER}, {"PM", FIELD_OTHER},
	{"Q", FIELD_OTHER}, {"RM", FIELD_MONTH}, {"SSSSS", FIELD_OTHER}, {"SSSS", FIELD_OTHER},
	{"SS", FIELD_SECOND}, {"SP", 0}, {"TH", 0}, {"TM", 0}, {"TZH", FIELD_OTHER},
	{"TZM", FIELD_OTHER}, {"TZ", FIELD_OTHER}, {"US", FIELD_FRACTION}, {"WW", FIELD_OTHER},
	{"W", FIELD_OTHER}, {"Y,YYY", FIELD_YEAR}, {"YYYY", FIELD_YEAR}, {"YYY", FIELD_YEAR},
	{"YY", FIELD_YEAR}, {"Y", FIELD_YEAR},
};

/* How often a letter of Spark stands at p in a row. */
static int
run_length(const char *p)
{
	int			n = 1;

	while (p[n] == *p)
		n++;
	return n;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Behind text in quotes that begins at p. */
static const char *
behind_quotes(const char *p)
{
	char		quote = *p++;

	while (*p != '\0' && *p != quote)
		p += (*p == '\\' && quote == '"' && p[1] != '\0') ? 2 : 1;
	return *p == '\0' ? p : p + 1;
}

static bool
is_digit_in(char c, char from, char to)
{
	return c >= from && c <= to;
}

/* Does the run of n letters at p only make sense to PostgreSQL? */
static bool
server_mark(const char *p, int n, bool has_second)
{
	switch (*p)
	{
		case 'H':
		case 'h':
			return n == 2 && (strncmp(p + 2, "24", 2) == 0 || strncmp(p + 2, "12", 2) == 0);
		case 'F':
			return (n == 2 && is_digit_in(p[2], '1', '6')) ||
				(n == 1 && p[1] != '\0' && strchr("MDHSX", p[1]) != NULL);
		case 'D':
			return n == 2;
		case 'S':
			return !has_second && (n == 2 || n == 4 || n == 5);
		case 'O':
			return p[n] == 'F';
		default:
			return strchr(SPARK_LETTERS, *p) == NULL;
	}
}

/* What the letters of a pattern say about its notation. */
typedef struct PatternMarks
{
	bool		server;			/* something that only PostgreSQL has */
	bool		hour;
	bool		minute;			/* the letter m */
	bool		second;
	bool		month;
} PatternMarks;

static void
read_marks(const char *pattern, PatternMarks *marks)
{
	const char *p = pattern;

	memset(marks, 0, sizeof(PatternMarks));
	for (; *p != '\0'; p++)
	{
		if (*p == '\'' || *p == '"')
			p = behind_quotes(p) - 1;
		else if (*p == 's')
			marks->second = true;
	}
	for (p = pattern; *p != '\0';)
	{
		int			n = 1;

		if (*p == '\'' || *p == '"')
		{
			marks->server |= *p == '"';
			p = behind_quotes(p);
			continue;
		}
		if (is_letter(*p))
		{
			n = run_length(p);
			marks->server |= server_mark(p, n, marks->second);
			marks->hour |= strchr("HhkK", *p) != NULL;
			marks->minute |= *p == 'm';
			marks->month |= *p == 'M' || *p == 'L';
		}
		p += n;
	}
}

/*
 * A template of PostgreSQL's notation: NULL when it is one that can be meant, else what
 * is wrong with it.  Letters of Spark between its words, as in YYYY-MM-dd HH:mm:ss,
 * would be read as something else.
 */
static const char *
server_template_fault(const char *pattern, PatternUse use)
{
	const char *p = pattern;
	int			months = 0;
	bool		after_hour = false;

	while (*p != '\0')
	{
		int			i;

		if (*p == '"')
		{
			p = behind_quotes(p);
			continue;
		}
		for (i = 0; i < (int) lengthof(server_words); i++)
		{
			if (pg_strncasecmp(p, server_words[i].word, strlen(server_words[i].word)) == 0)
				break;
		}
		if (i == (int) lengthof(server_words))
		{
			if (strchr("aEXxkK", *p) != NULL || (use == PATTERN_FORMAT && is_letter(*p)))
				return "It mixes letters of Spark with words of PostgreSQL.";
			if (*p == '\'')
				return "Text stands in double quotes in a template of PostgreSQL.";
			p++;
			continue;
		}
		if (pg_strncasecmp(p, "THH", 3) == 0)
			return "DDTH is a day with th in PostgreSQL: write DD\"T\"HH24.";
		if (server_words[i].field == FIELD_MONTH)
		{
			if (after_hour && pg_strncasecmp(p, "MM", 2) == 0)
				return "MM is the month in PostgreSQL, and the minute is MI.";
			if (++months > 1)
				return "It holds the month twice: MM is the month in either case, "
					"and the minute is MI.";
		}
		if (server_words[i].field != 0)
			after_hour = server_words[i].field == FIELD_HOUR;
		p += strlen(server_words[i].word);
		if (server_words[i].field == FIELD_MONTH && (*p == 'M' || *p == 'm') &&
			(p[-1] == 'M' || p[-1] == 'm'))
			return "A month's name is Mon or Month in PostgreSQL.";
	}
	return NULL;
}

/* ---- translation ---- */

typedef struct Translation
{
	PatternUse	use;
	StringInfoData out;
	StringInfoData literal;		/* text that is not written yet */
	bool		quote;			/* some of it needs quotes */
	int			seen;			/* bits of FIELD_* */
	int			last;			/* the field just written, 0 behind a literal */
	bool		last_open;		/* it has any number of digits */
	bool		last_number;
	const char *why;
} Translation;

static void
flush_literal(Translation *tr)
{
	const char *p;

	if (tr->literal.len == 0)
		return;
	if (tr->quote)
	{
		appendStringInfoChar(&tr->out, '"');
		for (p = tr->literal.data; *p != '\0'; p++)
		{
			if (*p == '"' || *p == '\\')
				appendStringInfoChar(&tr->out, '\\');
			appendStringInfoChar(&tr->out, *p);
		}
		appendStringInfoChar(&tr->out, '"');
	}
	else
		appendStringInfoString(&tr->out, tr->literal.data);
	resetStringInfo(&tr->literal);
	tr->quote = false;
	tr->last = 0;
	tr->last_open = false;
	tr->last_number = false;
}

/* One word of the template; open = a number without leading zeros. */
static bool
add_word(Translation *tr, int field, const char *word, bool open, bool number)
{
	flush_literal(tr);
	if (tr->use == PATTERN_PARSE)
	{
		if (field != FIELD_OTHER && (tr->seen & field))
		{
			tr->why = "It holds a field twice.";
			return false;
		}
		if (number && tr->last_number && (open || tr->last_open))
		{
			tr->why = "Numbers without leading zeros need something between them.";
			return false;
		}
	}
	/* the lexer of templates takes the longest word */
	if (tr->last != 0 && tr->out.len > 0 && tr->out.data[tr->out.len - 1] == 'D' && *word == 'D')
		appendStringInfoString(&tr->out, "\"\"");
	if (open && tr->use == PATTERN_FORMAT)
		appendStringInfoString(&tr->out, "FM");
	appendStringInfoString(&tr->out, word);
	tr->seen |= field;
	tr->last = field;
	tr->last_open = open;
	tr->last_number = number;
	return true;
}

static bool
add_number(Translation *tr, int field, const char *word, int n)
{
	return n <= 2 && add_word(tr, field, word, n == 1, true);
}

static bool
add_year(Translation *tr, int n)
{
	if (n == 4 || n == 1)
		return add_word(tr, FIELD_YEAR, "YYYY", n == 1, true);
	if (n != 2)
		return false;
	if (tr->use == PATTERN_PARSE)
	{
		tr->why = "Two digits of a year are 2000 to 2099 in Spark, and 1970 to 2069 in PostgreSQL.";
		return false;
	}
	return add_word(tr, FIELD_YEAR, "YY", false, true);
}

static bool
add_month(Translation *tr, const char *p, const char *from, int n)
{
	if (n <= 2 && p - from >= 2 && p[-1] == ':' && strchr("Hhm", p[-2]) != NULL)
	{
		tr->why = "MM is the month, and the minute is mm.";
		return false;
	}
	if (n == 3)
		return add_word(tr, FIELD_MONTH, "Mon", false, false);
	if (n == 4)
		return add_word(tr, FIELD_MONTH, "Month", tr->use == PATTERN_FORMAT, false);
	return add_number(tr, FIELD_MONTH, "MM", n);
}

static bool
add_fraction(Translation *tr, int n)
{
	static const char *const words[] = {"FF1", "FF2", "MS", "FF4", "FF5", "US"};

	if (n > 6)
	{
		tr->why = "A timestamp has six digits behind the second.";
		return false;
	}
	if (!(tr->seen & FIELD_SECOND))
	{
		tr->why = "S is a fraction of a second, and the second is ss.";
		return false;
	}
	return add_word(tr, FIELD_FRACTION, words[n - 1], false, true);
}

/* Offsets from UTC.  Spark writes UTC as Z for X, which to_char() cannot. */
static bool
add_offset(Translation *tr, char letter, int n)
{
	if (letter == 'X' && tr->use == PATTERN_FORMAT)
	{
		tr->why = "X shows UTC as Z; xxx shows it as +00:00.";
		return false;
	}
	if (n == 3 && letter != 'Z')
		return add_word(tr, FIELD_OTHER, "TZH:TZM", false, false);
	if ((n == 2 && letter != 'Z') || (n <= 3 && letter == 'Z'))
		return add_word(tr, FIELD_OTHER, "TZHTZM", false, false);
	return false;
}

/* A run of n letters of Spark at p. */
static bool
translate_run(Translation *tr, const char *pattern, const char *p, int n)
{
	bool		format = tr->use == PATTERN_FORMAT;

	switch (*p)
	{
		case 'y':
			return add_year(tr, n);
		case 'M':
		case 'L':
			return add_month(tr, p, pattern, n);
		case 'd':
			return add_number(tr, FIELD_DAY, "DD", n);
		case 'D':
			return (n == 1 || n == 3) && add_word(tr, FIELD_DAY, "DDD", n == 1, true);
		case 'E':
			if (n <= 3)
				return add_word(tr, FIELD_OTHER, "Dy", false, false);
			return n == 4 && add_word(tr, FIELD_OTHER, "Day", format, false);
		case 'H':
			return add_number(tr, FIELD_HOUR, "HH24", n);
		case 'h':
			return add_number(tr, FIELD_HOUR, "HH12", n);
		case 'm':
			return add_number(tr, FIELD_MINUTE, "MI", n);
		case 's':
			return add_number(tr, FIELD_SECOND, "SS", n);
		case 'S':
			return add_fraction(tr, n);
		case 'a':
			return n == 1 && add_word(tr, FIELD_OTHER, "AM", false, false);
		case 'G':
			return n <= 3 && add_word(tr, FIELD_OTHER, "AD", false, false);
		case 'Q':
		case 'q':
			return format && n == 1 && add_word(tr, FIELD_OTHER, "Q", false, true);
		case 'X':
		case 'x':
		case 'Z':
			return add_offset(tr, *p, n);
		default:
			return false;
	}
}

/* Text between quotes of Spark, '' is a quote; returns what is behind it, NULL when open. */
static const char *
translate_quoted(Translation *tr, const char *p)
{
	if (p[1] == '\'')
	{
		appendStringInfoChar(&tr->literal, '\'');
		tr->quote = true;
		return p + 2;
	}
	for (p++; *p != '\0'; p++)
	{
		if (*p == '\'' && p[1] != '\'')
			return p + 1;
		if (*p == '\'')
			p++;
		appendStringInfoChar(&tr->literal, *p);
		tr->quote = true;
	}
	return NULL;
}

/* A pattern of Spark as a template, NULL with *why when there is none that means the same. */
static char *
translate(const char *pattern, PatternUse use, const char **why)
{
	Translation tr = {0};
	const char *p = pattern;

	tr.use = use;
	tr.why = *why;
	initStringInfo(&tr.out);
	initStringInfo(&tr.literal);
	while (p != NULL && *p != '\0')
	{
		int			n = is_letter(*p) ? run_length(p) : pg_mblen(p);

		if (*p == '\'')
		{
			p = translate_quoted(&tr, p);
			continue;
		}
		if (is_letter(*p))
		{
			if (!translate_run(&tr, pattern, p, n))
			{
				*why = tr.why;
				return NULL;
			}
		}
		else if (strchr("[]{}#", *p) != NULL)
		{
			*why = "Templates have no optional parts.";
			return NULL;
		}
		else
		{
			tr.quote |= n > 1 || is_digit_in(*p, '0', '9') || *p == '"' || *p == '\\';
			appendBinaryStringInfo(&tr.literal, p, n);
		}
		p += n;
	}
	if (p == NULL)
	{
		*why = "A quote is not closed.";
		return NULL;
	}
	flush_literal(&tr);
	if (use == PATTERN_PARSE && !(tr.seen & FIELD_YEAR))
	{
		*why = "Without a year it is 1970 in Spark, and 1 BC in PostgreSQL.";
		return NULL;
	}
	return tr.out.data;
}

/* Minutes given twice and no month: yyyy-mm-dd hh:mm:ss. */
static bool
minute_for_month(const char *pattern)
{
	const char *first = strchr(pattern, 'm');

	return first != NULL && strchr(first + run_length(first), 'm') != NULL;
}

/*
 * The template for a literal pattern; one of PostgreSQL's notation is its own.  NULL with
 * *why when there is none.
 */
static char *
find_template(const char *pattern, PatternUse use, const char **why)
{
	PatternMarks marks;

	read_marks(pattern, &marks);
	*why = NULL;
	if (marks.server)
	{
		*why = server_template_fault(pattern, use);
		return *why == NULL ? pstrdup(pattern) : NULL;
	}
	if (marks.minute && !marks.month && !marks.hour && !marks.second)
		return pstrdup(pattern);	/* yyyy-mm-dd: nobody means minutes */
	if (marks.minute && !marks.month && minute_for_month(pattern))
	{
		*why = "mm is the minute, and the month is MM.";
		return NULL;
	}
	*why = "PostgreSQL has no equal for a letter of it.";
	return translate(pattern, use, why);
}

/* ---- calls ---- */

/* The literal that is given as a pattern, also as 'x'::text. */
static A_Const *
literal_pattern(Node *arg)
{
	A_Const    *constant;

	if (IsA(arg, TypeCast))
		arg = ((TypeCast *) arg)->arg;
	if (!IsA(arg, A_Const))
		return NULL;
	constant = (A_Const *) arg;
	return !constant->isnull && nodeTag(&constant->val) == T_String ? constant : NULL;
}

static Node *
make_string(const char *text, int location)
{
	A_Const    *constant = makeNode(A_Const);

	constant->val.sval.type = T_String;
	constant->val.sval.sval = pstrdup(text);
	constant->location = location;
	return (Node *) constant;
}

static void
refuse_pattern(PlnSql *sql, A_Const *constant, PatternUse use, const char *why)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("date/time pattern \"%s\" cannot be translated", constant->val.sval.sval),
			 why != NULL ? errdetail("%s", why) : 0,
			 use == PATTERN_PARSE ?
			 errhint("Write PostgreSQL's: to_timestamp(text, 'YYYY-MM-DD HH24:MI:SS').") :
			 errhint("Write PostgreSQL's: to_char(timestamp, 'YYYY-MM-DD HH24:MI:SS')."),
			 pln_posmap_errposition(sql, constant->location)));
}

/* The second argument as a template, NULL when it is no literal. */
static Node *
template_argument(PlnSql *sql, FuncCall *call, PatternUse use)
{
	A_Const    *constant = literal_pattern(lsecond(call->args));
	const char *why;
	char	   *template;

	if (constant == NULL)
		return NULL;
	template = find_template(constant->val.sval.sval, use, &why);
	if (template == NULL)
		refuse_pattern(sql, constant, use, why);
	return make_string(template, constant->location);
}

/* to_char() is PostgreSQL's own, for numbers too: only hours with minutes in Spark's letters. */
static bool
is_spark_to_char(FuncCall *call)
{
	A_Const    *constant = literal_pattern(lsecond(call->args));
	PatternMarks marks;

	if (constant == NULL)
		return false;
	read_marks(constant->val.sval.sval, &marks);
	return !marks.server && marks.hour && marks.minute;
}

static Node *
make_to_char(Node *value, Node *template, int location)
{
	/* a string is a timestamp here; to_char() could not choose */
	if (IsA(value, A_Const) && nodeTag(&((A_Const *) value)->val) == T_String)
		value = pln_make_cast(value, "timestamptz", location);
	return (Node *) pln_make_system_call("to_char", list_make2(value, template), location);
}

/* Whole seconds since 1970 */
static Node *
make_epoch(Node *timestamp, int location)
{
	FuncCall   *part = pln_make_system_call("date_part",
											list_make2(make_string("epoch", -1), timestamp),
											location);

	return pln_make_cast((Node *) pln_make_system_call("floor", list_make1(part), location),
						 "int8", location);
}

static Node *
make_from_unixtime(FuncCall *call, Node *template)
{
	Node	   *timestamp = (Node *) pln_make_system_call("to_timestamp",
														  list_make1(linitial(call->args)),
														  call->location);

	return make_to_char(timestamp, template, call->location);
}

/*
 * The replacement of a call of a date/time function of Spark, NULL when there is none
 * (another function; the pattern is no literal).  The node is not larger than a FuncCall.
 */
Node *
pln_build_datetime(PlnSql *sql, FuncCall *call)
{
	const char *name = strVal(linitial(call->funcname));
	int			nargs = list_length(call->args);
	int			location = call->location;
	bool		epoch = strcmp(name, "unix_timestamp") == 0 ||
		strcmp(name, "to_unix_timestamp") == 0;
	Node	   *template;

	if (nargs == 0 && strcmp(name, "unix_timestamp") == 0)
		return make_epoch((Node *) pln_make_system_call("now", NIL, location), location);
	if (nargs == 1 && epoch)
		return make_epoch(pln_make_cast(linitial(call->args), "timestamptz", location), location);
	if (nargs == 1 && strcmp(name, "from_unixtime") == 0)
		return make_from_unixtime(call, make_string("YYYY-MM-DD HH24:MI:SS", -1));
	if (nargs != 2)
		return NULL;
	if (epoch || strcmp(name, "to_timestamp") == 0 || strcmp(name, "to_date") == 0)
	{
		template = template_argument(sql, call, PATTERN_PARSE);
		if (template == NULL)
			return NULL;
		call = pln_make_system_call(epoch ? "to_timestamp" : name,
									list_make2(linitial(call->args), template), location);
		return epoch ? make_epoch((Node *) call, location) : (Node *) call;
	}
	if (strcmp(name, "date_format") == 0 || strcmp(name, "from_unixtime") == 0 ||
		(strcmp(name, "to_char") == 0 && is_spark_to_char(call)))
	{
		template = template_argument(sql, call, PATTERN_FORMAT);
		if (template == NULL)
			return NULL;
		if (strcmp(name, "from_unixtime") == 0)
			return make_from_unixtime(call, template);
		return make_to_char(linitial(call->args), template, location);
	}
	return NULL;
}
