/*
 * datetime.c
 *	  Dates and times in files: ISO 8601 by default, or the letters of Spark's patterns.
 *
 * Never raises for a value.  A pattern is compiled to a list of steps; an optional section
 * in brackets is tried, and skipped when it does not match.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "base/errors.h"
#include "files/decode.h"

typedef enum StepKind
{
	STEP_LITERAL,				/* n = the byte */
	STEP_NUMBER,				/* of n digits at least, max at most, into field */
	STEP_YEAR2,
	STEP_MONTH_NAME,			/* n = 3 letters, else the full name */
	STEP_WEEKDAY_NAME,			/* read over, not compared with the date */
	STEP_FRACTION,
	STEP_AMPM,
	STEP_ZONE,					/* Z or an offset; n = 1 when Z is allowed */
	STEP_OPEN,					/* n = index of the step behind the section */
	STEP_CLOSE
} StepKind;

typedef struct Step
{
	StepKind	kind;
	int			n;
	int			max;
	int			field;			/* index into values */
} Step;

enum
{
	F_YEAR, F_MONTH, F_DAY, F_HOUR, F_HOUR12, F_MINUTE, F_SECOND, F_USEC, F_PM, F_COUNT
};

struct PlnTimePattern
{
	int			nsteps;
	Step		steps[FLEXIBLE_ARRAY_MEMBER];
};

typedef struct Matching
{
	const char *p;
	const char *end;
	int			v[F_COUNT];		/* -1 = not given */
	bool		has_zone;
	int			zone;
	bool		lossy;
} Matching;

static const char *const month_names[] = {
	"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December"
};
static const char *const day_names[] = {
	"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
};

static void
pattern_error(int code, const char *option, const char *pattern, const char *what)
{
	ereport(ERROR,
			(errcode(code),
			 errmsg("%s in option \"%s\" of read_files: \"%s\"", what, option, pattern)));
}

/* The step for a run of one letter. */
static Step
letter_step(char letter, int run, const char *option, const char *pattern)
{
	Step		s = {STEP_NUMBER, run, run, 0};

	/* a single letter takes as many digits as come, several letters just as many */
	if (run == 1)
		s.max = 9;
	switch (letter)
	{
		case 'y':
		case 'u':
			s.field = F_YEAR;
			if (run == 2)
				s.kind = STEP_YEAR2;
			else if (run == 1)
				s.max = 4;
			else if (run != 4)
				pattern_error(PLN_ERR_NOT_BUILT, option, pattern, "unsupported year");
			return s;
		case 'M':
		case 'L':
			s.field = F_MONTH;
			if (run >= 3)
				s.kind = STEP_MONTH_NAME;
			return s;
		case 'd':
			s.field = F_DAY;
			return s;
		case 'H':
			s.field = F_HOUR;
			return s;
		case 'h':
			s.field = F_HOUR12;
			return s;
		case 'm':
			s.field = F_MINUTE;
			return s;
		case 's':
			s.field = F_SECOND;
			return s;
		case 'S':
			s.kind = STEP_FRACTION;
			return s;
		case 'a':
			s.kind = STEP_AMPM;
			return s;
		case 'E':
			s.kind = STEP_WEEKDAY_NAME;
			return s;
		case 'X':
		case 'x':
		case 'Z':
			s.kind = STEP_ZONE;
			s.n = letter != 'x';
			return s;
	}
	pattern_error(PLN_ERR_NOT_BUILT, option, pattern,
				  psprintf("unsupported letter \"%c\"", letter));
	return s;
}

PlnTimePattern *
pln_time_pattern_compile(const char *option, const char *pattern)
{
	PlnTimePattern *result;
	const char *p = pattern;
	int			open = -1;

	if (strlen(pattern) > 1000 || *pattern == '\0')
		pattern_error(PLN_ERR_BAD_VALUE, option, pattern, "empty or overlong pattern");
	result = palloc0(offsetof(PlnTimePattern, steps) + sizeof(Step) * strlen(pattern));
	while (*p)
	{
		Step		s = {STEP_LITERAL, 0, 0, 0};

		if (isalpha((unsigned char) *p))
		{
			int			run = strspn(p, (char[]) {*p, '\0'});

			s = letter_step(*p, run, option, pattern);
			p += run;
		}
		else if (*p == '\'')
		{
			/* 'text', and '' for a quote */
			p++;
			if (*p == '\'')
				s.n = *p++;
			else
			{
				while (*p && *p != '\'')
				{
					s.n = (unsigned char) *p++;
					result->steps[result->nsteps++] = s;
				}
				if (*p++ != '\'')
					pattern_error(PLN_ERR_BAD_VALUE, option, pattern, "quote is not closed");
				continue;
			}
		}
		else if (*p == '[')
		{
			if (open >= 0)
				pattern_error(PLN_ERR_NOT_BUILT, option, pattern, "nested optional section");
			open = result->nsteps;
			s.kind = STEP_OPEN;
			p++;
		}
		else if (*p == ']')
		{
			if (open < 0)
				pattern_error(PLN_ERR_BAD_VALUE, option, pattern, "unbalanced bracket");
			result->steps[open].n = result->nsteps + 1;
			open = -1;
			s.kind = STEP_CLOSE;
			p++;
		}
		else if (strchr("{}#", *p) != NULL)
			pattern_error(PLN_ERR_BAD_VALUE, option, pattern, "reserved character");
		else
			s.n = (unsigned char) *p++;
		result->steps[result->nsteps++] = s;
	}
	if (open >= 0)
		pattern_error(PLN_ERR_BAD_VALUE, option, pattern, "unbalanced bracket");
	return result;
}

static bool
read_number(Matching *m, int min, int max, int *value)
{
	int			n = 0;
	int			v = 0;

	while (n < max && m->p < m->end && *m->p >= '0' && *m->p <= '9')
	{
		v = v * 10 + (*m->p++ - '0');
		n++;
	}
	*value = v;
	return n >= min;
}

/* Digits of a fraction of a second: as many as there are. */
static bool
read_fraction(Matching *m)
{
	int			usec = 0;
	int			n = 0;

	for (; m->p < m->end && *m->p >= '0' && *m->p <= '9'; m->p++, n++)
	{
		if (n < 6)
			usec = usec * 10 + (*m->p - '0');
		else if (*m->p != '0')
			m->lossy = true;
	}
	if (n == 0)
		return false;
	m->v[F_USEC] = usec;
	for (; n < 6; n++)
		m->v[F_USEC] *= 10;
	return true;
}

/* Z, +HH, +HHMM, +HH:MM and with seconds. */
static bool
read_zone(Matching *m, bool z_allowed)
{
	int			sign;
	int			part;
	int			seconds;

	if (m->p == m->end)
		return false;
	if (*m->p == 'Z' && z_allowed)
	{
		m->p++;
		m->has_zone = true;
		m->zone = 0;
		return true;
	}
	if (*m->p != '+' && *m->p != '-')
		return false;
	sign = *m->p++ == '-' ? -1 : 1;
	if (!read_number(m, 2, 2, &part) || part > 15)
		return false;
	seconds = part * SECS_PER_HOUR;
	if (m->p < m->end && (*m->p == ':' || isdigit((unsigned char) *m->p)))
	{
		if (*m->p == ':')
			m->p++;
		if (!read_number(m, 2, 2, &part) || part > 59)
			return false;
		seconds += part * SECS_PER_MINUTE;
	}
	m->zone = sign * seconds;
	m->has_zone = true;
	return true;
}

static bool
read_name(Matching *m, const char *const *names, int count, int letters, int *index)
{
	int			i;

	for (i = 0; i < count; i++)
	{
		int			len = letters == 3 ? 3 : (int) strlen(names[i]);

		if (m->end - m->p >= len && pg_strncasecmp(m->p, names[i], len) == 0)
		{
			m->p += len;
			*index = i + 1;
			return true;
		}
	}
	return false;
}

static bool
match_step(Matching *m, const Step *s)
{
	int			ignored;

	switch (s->kind)
	{
		case STEP_LITERAL:
			return m->p < m->end && (unsigned char) *m->p == s->n && m->p++;
		case STEP_NUMBER:
			return read_number(m, s->n, s->max, &m->v[s->field]);
		case STEP_YEAR2:
			if (!read_number(m, 2, 2, &m->v[F_YEAR]))
				return false;
			m->v[F_YEAR] += 2000;
			return true;
		case STEP_MONTH_NAME:
			return read_name(m, month_names, 12, s->n, &m->v[F_MONTH]);
		case STEP_WEEKDAY_NAME:
			return read_name(m, day_names, 7, s->n <= 3 ? 3 : 4, &ignored);
		case STEP_FRACTION:
			return read_fraction(m);
		case STEP_AMPM:
			if (m->end - m->p < 2 || pg_tolower((unsigned char) m->p[1]) != 'm' ||
				(pg_tolower((unsigned char) m->p[0]) != 'a' &&
				 pg_tolower((unsigned char) m->p[0]) != 'p'))
				return false;
			m->v[F_PM] = pg_tolower((unsigned char) m->p[0]) == 'p';
			m->p += 2;
			return true;
		case STEP_ZONE:
			return read_zone(m, s->n != 0);
		case STEP_OPEN:
		case STEP_CLOSE:
			return true;
	}
	return false;
}

static void
start_matching(Matching *m, const char *s, int len)
{
	int			i;

	m->p = s;
	m->end = s + len;
	for (i = 0; i < F_COUNT; i++)
		m->v[i] = -1;
	m->has_zone = false;
	m->zone = 0;
	m->lossy = false;
}

/* Is it a day of the calendar and a time of the clock? */
static bool
finish(const Matching *m, PlnTime *t)
{
	const int  *v = m->v;

	t->year = v[F_YEAR] < 0 ? 1970 : v[F_YEAR];
	t->month = v[F_MONTH] < 0 ? 1 : v[F_MONTH];
	t->day = v[F_DAY] < 0 ? 1 : v[F_DAY];
	t->hour = Max(v[F_HOUR], 0);
	t->minute = Max(v[F_MINUTE], 0);
	t->second = Max(v[F_SECOND], 0);
	t->usec = Max(v[F_USEC], 0);
	t->has_time = v[F_HOUR] >= 0 || v[F_HOUR12] >= 0;
	t->has_zone = m->has_zone;
	t->zone = m->zone;
	t->lossy = m->lossy;
	if (v[F_HOUR12] >= 0)
	{
		if (v[F_HOUR12] < 1 || v[F_HOUR12] > 12)
			return false;
		t->hour = v[F_HOUR12] % 12 + (v[F_PM] == 1 ? 12 : 0);
	}
	return t->year >= 1 && t->year <= 9999 && t->month >= 1 && t->month <= 12 && t->day >= 1 &&
		t->day <= day_tab[isleap(t->year)][t->month - 1] &&
		t->hour < 24 && t->minute < 60 && t->second < 60;
}

bool
pln_time_match(const PlnTimePattern *pattern, const char *s, int len, PlnTime *t)
{
	Matching	m;
	Matching	before;
	int			behind = -1;	/* of the optional section that is being tried */
	int			i = 0;

	start_matching(&m, s, len);
	while (i < pattern->nsteps)
	{
		const Step *step = &pattern->steps[i];

		if (step->kind == STEP_OPEN)
		{
			before = m;
			behind = step->n;
		}
		else if (step->kind == STEP_CLOSE)
			behind = -1;
		else if (!match_step(&m, step))
		{
			if (behind < 0)
				return false;
			m = before;
			i = behind;
			behind = -1;
			continue;
		}
		i++;
	}
	return m.p == m.end && finish(&m, t);
}

/* yyyy-MM-dd, then maybe T or a blank, HH:mm[:ss[.fraction]] and a zone. */
bool
pln_time_iso(const char *s, int len, PlnTime *t)
{
	Matching	m;

	if (len < 10 || s[4] != '-' || s[7] != '-')
		return false;
	start_matching(&m, s, len);
	if (!read_number(&m, 4, 4, &m.v[F_YEAR]) || *m.p++ != '-' ||
		!read_number(&m, 2, 2, &m.v[F_MONTH]) || *m.p++ != '-' ||
		!read_number(&m, 2, 2, &m.v[F_DAY]))
		return false;
	if (m.p < m.end)
	{
		if (*m.p != 'T' && *m.p != ' ')
			return false;
		m.p++;
		if (!read_number(&m, 2, 2, &m.v[F_HOUR]) || m.p == m.end || *m.p++ != ':' ||
			!read_number(&m, 2, 2, &m.v[F_MINUTE]))
			return false;
		if (m.p < m.end && *m.p == ':')
		{
			m.p++;
			if (!read_number(&m, 2, 2, &m.v[F_SECOND]))
				return false;
			if (m.p < m.end && *m.p == '.')
			{
				m.p++;
				if (!read_fraction(&m))
					return false;
			}
		}
		if (m.p < m.end && *m.p == ' ' && m.end - m.p > 1)
			m.p++;
		if (m.p < m.end && !read_zone(&m, true))
			return false;
	}
	return m.p == m.end && finish(&m, t);
}

DateADT
pln_time_date(const PlnTime *t)
{
	return date2j(t->year, t->month, t->day) - POSTGRES_EPOCH_JDATE;
}

Timestamp
pln_time_timestamp(const PlnTime *t)
{
	return pln_time_date(t) * USECS_PER_DAY +
		((t->hour * INT64CONST(60) + t->minute) * 60 + t->second) * USECS_PER_SEC + t->usec;
}

TimestampTz
pln_time_timestamptz(const PlnTime *t, pg_tz *zone)
{
	struct pg_tm tm = {0};

	if (t->has_zone)
		return pln_time_timestamp(t) - t->zone * USECS_PER_SEC;
	tm.tm_year = t->year;
	tm.tm_mon = t->month;
	tm.tm_mday = t->day;
	tm.tm_hour = t->hour;
	tm.tm_min = t->minute;
	tm.tm_sec = t->second;
	return pln_time_timestamp(t) +
		DetermineTimeZoneOffset(&tm, zone ? zone : session_timezone) * USECS_PER_SEC;
}
