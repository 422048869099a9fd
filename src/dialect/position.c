/*
 * position.c
 *	  Where in the user's source a piece of rewritten SQL came from, and errors that
 *	  point there.
 *
 * An error raised by the server's parser or by parse analysis counts its position in
 * the text that we handed over.  The callback of an error scope moves it: to the text
 * between the quotes of DO or CREATE PROCEDURE when that is what the client sent, else
 * into the "internal query" fields of the error, with the source as the query.
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "dialect/internal.h"

/* From text_from on, the text came from source_from on (verbatim) or stands for it. */
typedef struct Piece
{
	int			text_from;
	int			source_from;
	bool		verbatim;
} Piece;

struct PlnPosMap
{
	Piece	   *pieces;
	int			n;
	int			max;
};

PlnPosMap *
pln_posmap_create(void)
{
	PlnPosMap  *map = palloc_object(PlnPosMap);

	map->n = 0;
	map->max = 8;
	map->pieces = palloc_array(Piece, map->max);
	return map;
}

/* Pieces are added in the order of the text. */
void
pln_posmap_add(PlnPosMap *map, int text_from, int source_from, bool verbatim)
{
	if (map->n > 0)
	{
		Piece	   *last = &map->pieces[map->n - 1];

		if (last->verbatim && verbatim &&
			source_from - last->source_from == text_from - last->text_from)
			return;
	}
	if (map->n >= map->max)
	{
		map->max *= 2;
		map->pieces = repalloc_array(map->pieces, Piece, map->max);
	}
	map->pieces[map->n].text_from = text_from;
	map->pieces[map->n].source_from = source_from;
	map->pieces[map->n].verbatim = verbatim;
	map->n++;
}

int
pln_sql_source_location(PlnSql *sql, int text_location)
{
	PlnPosMap  *map = sql->posmap;
	int			low = 0;
	int			high;

	if (text_location < 0)
		return -1;
	if (map == NULL || map->n == 0)
		return sql->location + text_location;
	high = map->n - 1;
	while (low < high)
	{
		int			mid = (low + high + 1) / 2;

		if (map->pieces[mid].text_from <= text_location)
			low = mid;
		else
			high = mid - 1;
	}
	if (map->pieces[low].verbatim)
		return map->pieces[low].source_from + text_location - map->pieces[low].text_from;
	return map->pieces[low].source_from;
}

/* Byte offset of the n-th character (from 1) of the text. */
static int
character_offset(const char *text, int n)
{
	const char *p = text;

	while (--n > 0 && *p != '\0')
		p += pg_mblen(p);
	return p - text;
}

static int
character_number(const char *text, int offset)
{
	return pg_mbstrlen_with_len(text, offset) + 1;
}

static void error_scope_callback(void *arg);

/* No scope from here outwards may move the position of the error at hand again. */
static void
mark_moved(ErrorContextCallback *from)
{
	ErrorContextCallback *context;

	for (context = from; context != NULL; context = context->previous)
	{
		if (context->callback == error_scope_callback)
			((PlnErrorScope *) context->arg)->moved = true;
	}
}

static void
set_source_position(PlnScript *script, int location)
{
	errposition(character_number(script->source, location));
	internalerrposition(0);
	internalerrquery(NULL);
	(void) function_parse_error_transpose(script->source);
}

int
pln_script_errposition(PlnScript *script, int location)
{
	if (location >= 0)
	{
		set_source_position(script, location);
		mark_moved(error_context_stack);
	}
	return 0;
}

/* The same for an offset of sql->text. */
int
pln_posmap_errposition(PlnSql *sql, int text_location)
{
	return pln_script_errposition(sql->script, pln_sql_source_location(sql, text_location));
}

/* Is the error's internal query the text that we handed over (somebody ran it by SPI)? */
static bool
internal_query_is(const char *text)
{
	MemoryContext work = AllocSetContextCreate(TopMemoryContext, "pipeline error position",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	ErrorData  *error = CopyErrorData();
	bool		same = error->internalquery != NULL && strcmp(error->internalquery, text) == 0;

	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
	return same;
}

/* "function ... does not exist" points to the function's name in our text. */
static void
add_function_hint(PlnSql *sql, int text_location)
{
	char		name[NAMEDATALEN];
	const char *p = sql->text + text_location;
	const char *hint;
	int			n = 0;

	if (geterrcode() != ERRCODE_UNDEFINED_FUNCTION)
		return;
	while (n < NAMEDATALEN - 1 && (isalnum((unsigned char) *p) || *p == '_'))
		name[n++] = pg_ascii_tolower((unsigned char) *p++);
	name[n] = '\0';
	hint = n > 0 ? pln_function_hint(name) : NULL;
	/* the server's own hint about argument types would mislead */
	if (hint != NULL)
		errhint("%s", hint);
}

static void
error_scope_callback(void *arg)
{
	PlnErrorScope *scope = arg;
	int			position;
	int			location;

	if (scope->moved)
	{
		scope->moved = false;
		return;
	}
	position = geterrposition();
	if (position <= 0 && scope->sql != NULL)
	{
		position = getinternalerrposition();
		if (position > 0 && !internal_query_is(scope->sql->text))
			return;
	}
	if (position <= 0)
		return;
	if (scope->sql == NULL)
		location = character_offset(scope->script->source, position);
	else
	{
		location = character_offset(scope->sql->text, position);
		add_function_hint(scope->sql, location);
		location = pln_sql_source_location(scope->sql, location);
	}
	set_source_position(scope->script, location);
	mark_moved(scope->callback.previous);
}

void
pln_error_scope_begin(PlnErrorScope *scope, PlnScript *script, PlnSql *sql)
{
	scope->script = script;
	scope->sql = sql;
	scope->moved = false;
	scope->callback.callback = error_scope_callback;
	scope->callback.arg = scope;
	scope->callback.previous = error_context_stack;
	error_context_stack = &scope->callback;
}

void
pln_error_scope_end(PlnErrorScope *scope)
{
	error_context_stack = scope->callback.previous;
}
