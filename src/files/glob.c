/*
 * glob.c
 *	  Patterns of file names: ? * [a-z] [^a] {a,b} and a backslash before any of them.
 *
 * Matching is bytewise for * and sets, and by whole characters for ?.  Nothing here
 * matches a slash: list.c matches one path component at a time.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "base/errors.h"
#include "files/decode.h"

/* Braces can multiply; this is far beyond what somebody types. */
#define MAX_EXPANSIONS 1000

bool
pln_glob_is_pattern(const char *s)
{
	return strpbrk(s, "*?[{\\") != NULL;
}

/* End of the {...} group that starts at s, and its top-level commas. NULL: not closed. */
static const char *
group_end(const char *s, List **commas)
{
	int			depth = 0;

	for (; *s; s++)
	{
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '{')
			depth++;
		else if (*s == '}' && --depth == 0)
			return s;
		else if (*s == ',' && depth == 1)
			*commas = lappend(*commas, (void *) s);
	}
	return NULL;
}

static List *
expand(const char *pattern, List *result)
{
	const char *open = pattern;
	const char *close;
	const char *from;
	List	   *commas = NIL;
	ListCell   *lc;

	while (*open && *open != '{')
		open += (*open == '\\' && open[1]) ? 2 : 1;
	close = *open ? group_end(open, &commas) : NULL;
	if (close == NULL)
	{
		if (*open)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("brace in file pattern \"%s\" is not closed", pattern)));
		if (list_length(result) >= MAX_EXPANSIONS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("braces in a file pattern stand for more than %d patterns",
							MAX_EXPANSIONS)));
		return lappend(result, pstrdup(pattern));
	}

	commas = lappend(commas, (void *) close);
	from = open + 1;
	foreach(lc, commas)
	{
		const char *to = lfirst(lc);

		result = expand(psprintf("%.*s%.*s%s", (int) (open - pattern), pattern,
								 (int) (to - from), from, close + 1), result);
		from = to + 1;
	}
	return result;
}

List *
pln_glob_expand_braces(const char *pattern)
{
	return expand(pattern, NIL);
}

/* One [set]; *p stands after the bracket and is moved behind the closing one. */
static bool
match_set(const char **p, unsigned char c, const char *pattern)
{
	const char *s = *p;
	bool		negate = (*s == '^' || *s == '!');
	bool		found = false;
	bool		first = true;

	if (negate)
		s++;
	for (; *s != ']' || first; first = false)
	{
		unsigned char low;
		unsigned char high;

		if (*s == '\\' && s[1])
			s++;
		if (*s == '\0')
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("bracket in file pattern \"%s\" is not closed", pattern)));
		low = high = (unsigned char) *s++;
		if (s[0] == '-' && s[1] != ']' && s[1] != '\0')
		{
			s++;
			if (*s == '\\' && s[1])
				s++;
			high = (unsigned char) *s++;
		}
		if (c >= low && c <= high)
			found = true;
	}
	*p = s + 1;
	return found != negate;
}

bool
pln_glob_match(const char *pattern, const char *name)
{
	const char *p = pattern;
	const char *n = name;
	const char *star_p = NULL;
	const char *star_n = NULL;

	while (*n)
	{
		bool		ok = false;
		int			step = 1;

		if (*p == '*')
		{
			star_p = ++p;
			star_n = n;
			continue;
		}
		if (*p == '?')
		{
			int			charlen = pg_mblen(n);

			step = Min(charlen, (int) strlen(n));
			p++;
			ok = true;
		}
		else if (*p == '[')
		{
			p++;
			ok = match_set(&p, (unsigned char) *n, pattern);
		}
		else if (*p != '\0')
		{
			if (*p == '\\' && p[1])
				p++;
			ok = (*p++ == *n);
		}
		if (ok)
			n += step;
		else if (star_p != NULL)
		{
			/* let the last star take one byte more */
			p = star_p;
			n = ++star_n;
		}
		else
			return false;
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}
