/*
 * scan.c
 *	  Source text to tokens, by the server's own lexer.
 *
 * The core lexer runs with an empty keyword list, so that every word arrives as an
 * identifier and no word is reserved.  What it does not know is cut out of its input
 * first, byte for byte, so that locations stay those of the source: back-quoted and
 * double-quoted words (the core lexer clips the latter to 63 bytes with a NOTICE, and
 * here they may be strings) and ${parameters}.  A cut region becomes one control
 * character, which the lexer hands through as a token, and blanks.
 */
#include "postgres.h"

#include "common/keywords.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "parser/parser.h"
#include "parser/scanner.h"

#include "base/errors.h"
#include "dialect/scan.h"

#define REGION_MARK '\001'

/* A part of the source that the core lexer is not shown. */
typedef struct Region
{
	int			from;
	int			to;
	char		quote;			/* " ` or $ for ${name} */
} Region;

typedef struct Masker
{
	PlnScript  *script;
	const char *src;
	char	   *buf;			/* copy of the source with the regions cut out */
	Region	   *regions;
	int			nregions;
	int			maxregions;
} Masker;

static int
no_keyword(const void *key, size_t keylen)
{
	return 0;
}

static const uint16 no_offsets[1] = {0};
static const uint16 no_tokens[1] = {0};
static const ScanKeywordList no_keywords = {"", no_offsets, no_keyword, 0, 0};

static bool
is_word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IS_HIGHBIT_SET(c);
}

static bool
is_word_part(char c)
{
	return is_word_start(c) || (c >= '0' && c <= '9') || c == '$';
}

static void
add_region(Masker *m, int from, int to, char quote)
{
	if (m->nregions >= m->maxregions)
	{
		m->maxregions = Max(16, m->maxregions * 2);
		m->regions = m->regions == NULL
			? palloc_array(Region, m->maxregions)
			: repalloc_array(m->regions, Region, m->maxregions);
	}
	m->regions[m->nregions].from = from;
	m->regions[m->nregions].to = to;
	m->regions[m->nregions].quote = quote;
	m->nregions++;
	memset(m->buf + from, ' ', to - from);
	m->buf[from] = REGION_MARK;
}

/* Behind the closing quote of a string that begins at i, or the end of the text. */
static int
skip_string(Masker *m, int i, bool *closed)
{
	char		quote = m->src[i];
	bool		backslash = false;

	if (quote == '\'')
		backslash = !standard_conforming_strings ||
			(i > 0 && (m->src[i - 1] == 'e' || m->src[i - 1] == 'E') &&
			 (i == 1 || !is_word_part(m->src[i - 2])));
	for (i++; m->src[i] != '\0'; i++)
	{
		if (backslash && m->src[i] == '\\' && m->src[i + 1] != '\0')
			i++;
		else if (m->src[i] == quote)
		{
			if (m->src[i + 1] != quote)
			{
				*closed = true;
				return i + 1;
			}
			i++;
		}
	}
	*closed = false;
	return i;
}

static int
skip_comment(Masker *m, int i)
{
	int			depth = 0;

	if (m->src[i] == '-')
	{
		while (m->src[i] != '\0' && m->src[i] != '\n' && m->src[i] != '\r')
			i++;
		return i;
	}
	while (m->src[i] != '\0')
	{
		if (m->src[i] == '/' && m->src[i + 1] == '*')
		{
			depth++;
			i += 2;
		}
		else if (m->src[i] == '*' && m->src[i + 1] == '/')
		{
			i += 2;
			if (--depth == 0)
				break;
		}
		else
			i++;
	}
	return i;
}

/* $tag$ ... $tag$ from i on; just the $ when it opens no such string. */
static int
skip_dollar(Masker *m, int i)
{
	int			tag = i + 1;
	int			taglen;
	const char *found;

	if (is_word_start(m->src[tag]))
	{
		while (is_word_part(m->src[tag]) && m->src[tag] != '$')
			tag++;
	}
	if (m->src[tag] != '$')
		return i + 1;
	taglen = tag + 1 - i;
	for (found = strchr(m->src + i + taglen, '$'); found != NULL; found = strchr(found + 1, '$'))
	{
		if (strncmp(found, m->src + i, taglen) == 0)
			return (found - m->src) + taglen;
	}
	return strlen(m->src);
}

/* Length of ${name} at i, or 0. */
static int
param_length(const char *s)
{
	int			n = 2;

	if (s[0] != '$' || s[1] != '{' || !is_word_start(s[2]))
		return 0;
	while (is_word_part(s[n]) || s[n] == '.' || s[n] == '-')
		n++;
	return s[n] == '}' ? n + 1 : 0;
}

/* A word or number; it ends before a parameter that is glued to it. */
static int
skip_word(Masker *m, int i)
{
	while (is_word_part(m->src[i]) && param_length(m->src + i) == 0)
		i++;
	return i;
}

static int
mask_quoted_word(Masker *m, int i)
{
	char		quote = m->src[i];
	bool		closed;
	int			to = skip_string(m, i, &closed);

	if (!closed)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("unterminated quoted identifier"),
				 pln_script_errposition(m->script, i)));
	/* U&"..." has escapes of its own: the core lexer and the server's parser know them */
	if (quote == '"' && i >= 2 && m->src[i - 1] == '&' &&
		(m->src[i - 2] == 'U' || m->src[i - 2] == 'u') &&
		(i == 2 || !is_word_part(m->src[i - 3])))
		return to;
	add_region(m, i, to, quote);
	return to;
}

static void
mask_source(Masker *m)
{
	int			i = 0;
	int			n;
	bool		closed;

	while (m->src[i] != '\0')
	{
		char		c = m->src[i];

		if ((n = param_length(m->src + i)) > 0)
		{
			add_region(m, i, i + n, '$');
			i += n;
		}
		else if (c == '\'')
			i = skip_string(m, i, &closed);	/* the core lexer complains */
		else if (c == '"' || c == '`')
			i = mask_quoted_word(m, i);
		else if ((c == '-' && m->src[i + 1] == '-') || (c == '/' && m->src[i + 1] == '*'))
			i = skip_comment(m, i);
		else if (c == '$')
			i = skip_dollar(m, i);
		else if (is_word_part(c))
			i = skip_word(m, i);
		else
			i++;
	}
}

/* The text between the quotes of a region, doubled quotes made single. */
static char *
region_value(Masker *m, const Region *region)
{
	char	   *value = palloc(region->to - region->from);
	int			n = 0;
	int			i;

	if (region->quote == '$')
		return pnstrdup(m->src + region->from + 2, region->to - region->from - 3);
	for (i = region->from + 1; i < region->to - 1; i++)
	{
		value[n++] = m->src[i];
		if (m->src[i] == region->quote)
			i++;
	}
	value[n] = '\0';
	return value;
}

static void
fill_token(Masker *m, PlnToken *token, int type, core_YYSTYPE *value, int location, int end,
		   int *next_region)
{
	token->type = type;
	token->location = location;
	token->end = end;
	token->quote = 0;
	token->identifier_param = false;
	token->text = NULL;
	if (type == REGION_MARK)
	{
		Region	   *region = &m->regions[*next_region];

		if (*next_region >= m->nregions || region->from != location)
			ereport(ERROR,
					(errcode(PLN_ERR_SYNTAX),
					 errmsg("syntax error at a control character"),
					 pln_script_errposition(m->script, location)));
		(*next_region)++;
		token->end = region->to;
		token->quote = region->quote == '$' ? 0 : region->quote;
		token->type = region->quote == '$' ? PLN_T_PARAMREF : PLN_T_IDENT;
		token->str = region_value(m, region);
	}
	else if (type == PLN_T_IDENT)
		token->str = value->str;
	else if (type == PLN_T_SCONST)
	{
		token->str = value->str;
		token->quote = m->src[location] == '$' ? '$' : '\'';
	}
	else
		token->str = pnstrdup(m->src + location, end - location);
}

/*
 * All tokens of the script, in the current context.  Raises the core lexer's errors
 * (unterminated strings and comments, bad escapes) with positions in the script.
 */
PlnTokens *
pln_scan(PlnScript *script)
{
	PlnTokens  *tokens = palloc0_object(PlnTokens);
	Masker		m = {0};
	PlnSql		whole = {0};
	PlnErrorScope scope;
	core_yy_extra_type extra;
	core_yyscan_t scanner;
	int			max = 64;
	int			next_region = 0;

	m.script = script;
	m.src = script->source;
	m.buf = pstrdup(script->source);
	mask_source(&m);

	/* what the lexer says about its buffer holds for the source, byte by byte */
	whole.script = script;
	whole.text = m.buf;
	pln_error_scope_begin(&scope, script, &whole);
	tokens->tok = palloc_array(PlnToken, max);
	scanner = scanner_init(m.buf, &extra, &no_keywords, no_tokens);
	extra.escape_string_warning = false;	/* the server's parser will warn */
	for (;;)
	{
		core_YYSTYPE value;
		YYLTYPE		location;
		int			type = core_yylex(&value, &location, scanner);
		int			end;

		CHECK_FOR_INTERRUPTS();
		if (type == PLN_T_END)
			break;
		/* flex ends the text of the token that it has just returned with a NUL */
		end = location + strlen(extra.scanbuf + location);
		if (tokens->n + 1 >= max)
		{
			max *= 2;
			tokens->tok = repalloc_array(tokens->tok, PlnToken, max);
		}
		fill_token(&m, &tokens->tok[tokens->n], type, &value, location, end, &next_region);
		tokens->n++;
	}
	scanner_finish(scanner);
	pln_error_scope_end(&scope);
	memset(&tokens->tok[tokens->n], 0, sizeof(PlnToken));
	tokens->tok[tokens->n].location = strlen(script->source);
	tokens->tok[tokens->n].end = tokens->tok[tokens->n].location;
	pfree(m.buf);
	return tokens;
}

bool
pln_token_is(const PlnToken *token, const char *word)
{
	return token->type == PLN_T_IDENT && token->quote == 0 && strcmp(token->str, word) == 0;
}

bool
pln_token_names_relation(const PlnToken *token)
{
	int			keyword;

	if (token->type == PLN_T_PARAMREF)
		return true;
	if (token->type != PLN_T_IDENT)
		return false;
	if (token->quote != 0)
		return true;
	keyword = ScanKeywordLookup(token->str, &ScanKeywords);
	return keyword < 0 || ScanKeywordCategories[keyword] == UNRESERVED_KEYWORD ||
		ScanKeywordCategories[keyword] == COL_NAME_KEYWORD;
}
