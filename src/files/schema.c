/*
 * schema.c
 *	  Column lists of file sources: from DDL text, to and from JSON, by name.
 *
 * A column has the name that SQL sees and the name that the files use.  The first is folded
 * as PostgreSQL folds unquoted identifiers, so that userId in a file is userId, UserID and
 * userid in a query.  In files names are compared byte for byte (readerCaseSensitive).
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "parser/parse_type.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

#define SCHEMA_VERSION 1

const PlnMetadataColumn pln_metadata_columns[PLN_METADATA_COLUMNS] = {
	{"file_path", TEXTOID},
	{"file_name", TEXTOID},
	{"file_size", INT8OID},
	{"file_modification_time", TIMESTAMPTZOID},
	{"file_block_start", INT8OID},
	{"file_block_length", INT8OID}
};

/* The dialect's type names whose meaning is not PostgreSQL's. */
static const struct
{
	const char *dialect;
	const char *server;
}			type_names[] = {
	{"string", "text"},
	{"long", "bigint"},
	{"short", "smallint"},
	{"byte", "smallint"},
	{"tinyint", "smallint"},
	{"double", "double precision"},
	{"float", "real"},			/* float without digits is double precision in SQL */
	{"timestamp", "timestamp with time zone"},
	{"timestamp_ltz", "timestamp with time zone"},
	{"timestamp_ntz", "timestamp without time zone"},
	{"binary", "bytea"},
	{"variant", "jsonb"},
	{"struct", "jsonb"},
	{"array", "jsonb"},
	{"map", "jsonb"},
	{"dec", "numeric"},
	{"decimal", "numeric"}
};

char *
pln_column_name(const char *source)
{
	return downcase_truncate_identifier(source, strlen(source), false);
}

PlnFileColumn *
pln_schema_make_column(const char *source, Oid type, int32 typmod)
{
	PlnFileColumn *column = palloc0(sizeof(PlnFileColumn));

	column->source = pstrdup(source);
	column->name = pln_column_name(source);
	column->type = type;
	column->typmod = typmod;
	column->collation = get_typcollation(type);
	return column;
}

/* ---- DDL ---- */

static void
ddl_error(const char *option, const char *ddl, const char *what)
{
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("option \"%s\" of read_files: %s in \"%s\"", option, what, ddl)));
}

static const char *
skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* A column name, quoted in `` or "" or bare. */
static char *
parse_name(const char **pp, bool *quoted, const char *option, const char *ddl)
{
	const char *p = *pp;
	StringInfoData name;

	initStringInfo(&name);
	*quoted = (*p == '`' || *p == '"');
	if (*quoted)
	{
		char		quote = *p++;

		while (*p && (*p != quote || p[1] == quote))
		{
			if (*p == quote)
				p++;
			appendStringInfoChar(&name, *p++);
		}
		if (*p++ != quote)
			ddl_error(option, ddl, "a quoted name is not closed");
	}
	else
		while (isalnum((unsigned char) *p) || IS_HIGHBIT_SET(*p) || *p == '_' || *p == '$' ||
			   *p == '.')
			appendStringInfoChar(&name, *p++);
	if (name.len == 0)
		ddl_error(option, ddl, "a column name is missing");
	if (!*quoted && strchr(name.data, '.') != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("nested column \"%s\" in option \"%s\" of read_files is not supported",
						name.data, option),
				 errhint("Give the type of the whole top-level column.")));
	*pp = p;
	return name.data;
}

/* Does the word stand at p, whatever its case, with its end after it? */
static bool
word_at(const char *p, const char *word)
{
	size_t		len = strlen(word);

	return pg_strncasecmp(p, word, len) == 0 && !isalnum((unsigned char) p[len]) &&
		p[len] != '_';
}

/* Behind the string that a COMMENT has. */
static const char *
skip_string(const char *p, const char *option, const char *ddl)
{
	char		quote = *p;

	if (quote != '\'' && quote != '"')
		ddl_error(option, ddl, "COMMENT is not followed by a string");
	p++;
	while (*p && (*p != quote || p[1] == quote))
		p += *p == quote ? 2 : 1;
	if (*p == '\0')
		ddl_error(option, ddl, "a string is not closed");
	return p + 1;
}

/* The type's text: up to a comma outside brackets, NOT NULL, or COMMENT 'text'. */
static char *
parse_type_text(const char **pp, const char *option, const char *ddl)
{
	const char *start = *pp;
	const char *p = start;
	const char *end = NULL;
	int			depth = 0;

	while (*p && !(*p == ',' && depth == 0))
	{
		if (*p == '(' || *p == '<')
			depth++;
		else if (*p == ')' || *p == '>')
			depth--;
		else if (depth == 0 && p > start && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\n'))
		{
			if (word_at(p, "not") && word_at(skip_blanks(p + 3), "null"))
			{
				end = end ? end : p;
				p = skip_blanks(p + 3) + 4;
				continue;
			}
			if (word_at(p, "comment"))
			{
				end = end ? end : p;
				p = skip_blanks(p + 7);
				p = skip_string(p, option, ddl);
				continue;
			}
		}
		p++;
	}
	if (depth != 0)
		ddl_error(option, ddl, "brackets do not match");
	if (end == NULL)
		end = p;
	while (end > start && strchr(" \t\r\n", end[-1]) != NULL)
		end--;
	if (end == start)
		ddl_error(option, ddl, "a type is missing");
	*pp = *p == ',' ? p + 1 : p;
	return pnstrdup(start, end - start);
}

static void
resolve_type(const char *text, const char *option, const char *ddl, Oid *type, int32 *typmod)
{
	int			word = strcspn(text, "(< \t\n");
	char	   *name = pstrdup(text);
	size_t		i;
	char		typtype;

	for (i = 0; i < lengthof(type_names); i++)
		if ((int) strlen(type_names[i].dialect) == word &&
			pg_strncasecmp(text, type_names[i].dialect, word) == 0)
		{
			const char *rest = skip_blanks(text + word);

			/* two-word names of the server: timestamp without time zone, double precision */
			if (isalpha((unsigned char) *rest))
				break;
			if (*rest == '<' || strcmp(type_names[i].server, "text") == 0)
				rest = "";
			if (strcmp(type_names[i].server, "numeric") == 0 && *rest == '\0')
				rest = "(10,0)";	/* as the dialect has it */
			if (strncmp(type_names[i].server, "timestamp", 9) == 0)
				rest = "";
			name = psprintf("%s%s", type_names[i].server, rest);
			break;
		}
	parseTypeString(name, type, typmod, true);
	if (!OidIsValid(*type))
		ddl_error(option, ddl, psprintf("unknown type \"%s\"", text));
	typtype = get_typtype(*type);
	if (typtype == TYPTYPE_PSEUDO || typtype == TYPTYPE_COMPOSITE)
		ddl_error(option, ddl, psprintf("unusable type \"%s\"", text));
}

List *
pln_schema_parse_ddl(const char *option, const char *ddl)
{
	const char *p = skip_blanks(ddl);
	List	   *columns = NIL;

	while (*p)
	{
		PlnFileColumn *column;
		ListCell   *lc;
		Oid			type;
		int32		typmod;
		bool		quoted;
		char	   *name = parse_name(&p, &quoted, option, ddl);

		p = skip_blanks(p);
		if (*p == ':')
			p = skip_blanks(p + 1);
		resolve_type(parse_type_text(&p, option, ddl), option, ddl, &type, &typmod);
		column = pln_schema_make_column(name, type, typmod);
		foreach(lc, columns)
			if (strcmp(((PlnFileColumn *) lfirst(lc))->name, column->name) == 0)
				ddl_error(option, ddl, psprintf("column \"%s\" is named twice", column->name));
		columns = lappend(columns, column);
		p = skip_blanks(p);
	}
	if (columns == NIL)
		ddl_error(option, ddl, "no column is named");
	return columns;
}

/* ---- JSON ---- */

static void
append_text(StringInfo out, const char *key, const char *value)
{
	appendStringInfo(out, "\"%s\": ", key);
	pln_json_append_string(out, value, strlen(value));
}

char *
pln_file_schema_to_json(PlnFileSchema *schema)
{
	static const char *const kinds[] = {"data", "corrupt", "partition"};
	StringInfoData out;
	int			i;

	initStringInfo(&out);
	appendStringInfo(&out, "{\"version\": %d, ", SCHEMA_VERSION);
	append_text(&out, "format", pln_file_format_name(schema->format));
	if (schema->rescued != NULL)
	{
		appendStringInfoString(&out, ", ");
		append_text(&out, "rescued", schema->rescued);
	}
	appendStringInfoString(&out, ", \"columns\": [");
	for (i = 0; i < schema->ncolumns; i++)
	{
		PlnFileColumn *column = &schema->columns[i];

		appendStringInfoString(&out, i > 0 ? ", {" : "{");
		append_text(&out, "name", column->name);
		appendStringInfoString(&out, ", ");
		append_text(&out, "source", column->source);
		appendStringInfoString(&out, ", ");
		append_text(&out, "type",
					format_type_extended(column->type, column->typmod,
										 FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
		appendStringInfoString(&out, ", ");
		append_text(&out, "kind", kinds[column->kind]);
		appendStringInfo(&out, ", \"inferred\": %s}", column->inferred ? "true" : "false");
	}
	appendStringInfoString(&out, "]}");
	return out.data;
}

static void
bad_schema(const char *json)
{
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("stored schema of a file source is not valid"),
			 errdetail("It is: %s", json)));
}

/* A string member, NULL when there is none. */
static char *
member(JsonbContainer *object, const char *key)
{
	JsonbValue	v;

	if (getKeyJsonValueFromContainer(object, key, strlen(key), &v) == NULL ||
		v.type != jbvString)
		return NULL;
	return pnstrdup(v.val.string.val, v.val.string.len);
}

static void
column_from_json(JsonbContainer *object, PlnFileColumn *column, const char *json)
{
	char	   *name = member(object, "name");
	char	   *source = member(object, "source");
	char	   *type = member(object, "type");
	char	   *kind = member(object, "kind");
	JsonbValue	v;

	if (name == NULL || source == NULL || type == NULL || kind == NULL)
		bad_schema(json);
	column->name = name;
	column->source = source;
	parseTypeString(type, &column->type, &column->typmod, false);
	column->collation = get_typcollation(column->type);
	column->kind = strcmp(kind, "partition") == 0 ? PLN_COLUMN_PARTITION :
		strcmp(kind, "corrupt") == 0 ? PLN_COLUMN_CORRUPT : PLN_COLUMN_DATA;
	column->inferred = getKeyJsonValueFromContainer(object, "inferred", 8, &v) != NULL &&
		v.type == jbvBool && v.val.boolean;
}

PlnFileSchema *
pln_file_schema_from_json(const char *json)
{
	Jsonb	   *jb = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	PlnFileSchema *schema = palloc0(sizeof(PlnFileSchema));
	JsonbValue	list;
	char	   *format;
	int			i;

	if (!JB_ROOT_IS_OBJECT(jb) ||
		getKeyJsonValueFromContainer(&jb->root, "columns", 7, &list) == NULL ||
		list.type != jbvBinary || !JsonContainerIsArray(list.val.binary.data) ||
		(format = member(&jb->root, "format")) == NULL)
		bad_schema(json);
	schema->format = strcmp(format, "json") == 0 ? PLN_FORMAT_JSON :
		strcmp(format, "csv") == 0 ? PLN_FORMAT_CSV : PLN_FORMAT_TEXT;
	schema->rescued = member(&jb->root, "rescued");
	schema->ncolumns = JsonContainerSize(list.val.binary.data);
	schema->columns = palloc0(sizeof(PlnFileColumn) * Max(schema->ncolumns, 1));
	for (i = 0; i < schema->ncolumns; i++)
	{
		JsonbValue *element = getIthJsonbValueFromContainer(list.val.binary.data, i);

		if (element->type != jbvBinary)
			bad_schema(json);
		column_from_json(element->val.binary.data, &schema->columns[i], json);
	}
	return schema;
}

int
pln_file_schema_width(PlnFileSchema *schema)
{
	return schema->ncolumns + (schema->rescued != NULL ? 1 : 0) + PLN_METADATA_COLUMNS;
}

void
pln_file_schema_column(PlnFileSchema *schema, int n, const char **name, Oid *type,
					   int32 *typmod, Oid *collation)
{
	if (n < schema->ncolumns)
	{
		*name = schema->columns[n].name;
		*type = schema->columns[n].type;
		*typmod = schema->columns[n].typmod;
		*collation = schema->columns[n].collation;
		return;
	}
	n -= schema->ncolumns;
	*typmod = -1;
	if (schema->rescued != NULL && n-- == 0)
	{
		*name = schema->rescued;
		*type = TEXTOID;
	}
	else
	{
		*name = pln_metadata_columns[n].name;
		*type = pln_metadata_columns[n].type;
	}
	*collation = get_typcollation(*type);
}

/* ---- names to columns ---- */

struct PlnNameMap
{
	bool		case_sensitive;
	uint32		mask;
	int			last;			/* found before: members tend to keep their order */
	int			ncolumns;
	char	  **names;			/* by column; NULL = not filled from data by name */
	int		   *lens;
	int		   *slots;			/* column, -1 = free */
};

static uint32
hash_name(const char *name, int len)
{
	return hash_bytes((const unsigned char *) name, len);
}

PlnNameMap *
pln_name_map_make(PlnFileSchema *schema, bool case_sensitive)
{
	PlnNameMap *map = palloc0(sizeof(PlnNameMap));
	uint32		size = 16;
	int			i;

	while (size < (uint32) schema->ncolumns * 2)
		size *= 2;
	map->mask = size - 1;
	map->case_sensitive = case_sensitive;
	map->last = -1;
	map->ncolumns = schema->ncolumns;
	map->names = palloc0(sizeof(char *) * Max(schema->ncolumns, 1));
	map->lens = palloc0(sizeof(int) * Max(schema->ncolumns, 1));
	map->slots = palloc(sizeof(int) * size);
	memset(map->slots, 0xff, sizeof(int) * size);
	for (i = 0; i < schema->ncolumns; i++)
	{
		const char *source = schema->columns[i].source;
		uint32		slot;

		if (schema->columns[i].kind != PLN_COLUMN_DATA)
			continue;
		map->names[i] = case_sensitive ? pstrdup(source) :
			str_tolower(source, strlen(source), DEFAULT_COLLATION_OID);
		map->lens[i] = strlen(map->names[i]);
		slot = hash_name(map->names[i], map->lens[i]) & map->mask;
		while (map->slots[slot] >= 0)
			slot = (slot + 1) & map->mask;
		map->slots[slot] = i;
	}
	return map;
}

int
pln_name_map_find(PlnNameMap *map, const char *name, int len)
{
	int			next = map->last + 1;
	uint32		slot;
	char	   *lower = NULL;

	if (!map->case_sensitive)
	{
		lower = str_tolower(name, len, DEFAULT_COLLATION_OID);
		name = lower;
		len = strlen(lower);
	}
	if (next >= map->ncolumns)
		next = 0;
	if (next < map->ncolumns && map->names[next] != NULL && map->lens[next] == len &&
		memcmp(map->names[next], name, len) == 0)
	{
		map->last = next;
		return next;
	}
	for (slot = hash_name(name, len) & map->mask; map->slots[slot] >= 0;
		 slot = (slot + 1) & map->mask)
	{
		int			i = map->slots[slot];

		if (map->lens[i] == len && memcmp(map->names[i], name, len) == 0)
		{
			map->last = i;
			return i;
		}
	}
	return -1;
}
