/*
 * list.c
 *	  Which files a path stands for, and who may read them.
 *
 * A directory is read with everything below it; so is a directory that a pattern matches.
 * Names that start with "." or "_" are skipped below the given path, as in Spark.  A
 * directory is entered once per branch (device and inode), so loops of links end.
 */
#include "postgres.h"

#include <dirent.h>
#include <sys/stat.h>

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "base/guc.h"
#include "files/decode.h"
#include "files/files.h"

typedef struct Ancestor
{
	dev_t		dev;
	ino_t		ino;
	struct Ancestor *up;
} Ancestor;

typedef struct Listing
{
	PlnFileOptions *options;
	List	   *name_globs;		/* expanded; NIL = all names */
	bool		unrestricted;	/* may read every local path */
	bool		single;			/* the path is one file */
	TimestampTz newest;			/* minFileAge */
	int			root_len;		/* of the path that relative parts are relative to */
	List	   *files;
} Listing;

static void list_directory(Listing *ls, const char *path, Ancestor *up);

/* ---- rights ---- */

static bool
reads_everything(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES);
}

/* Resolved form of a path; NULL with errno when there is none. */
static char *
resolve(const char *path)
{
	char		buf[PATH_MAX];

	if (realpath(path, buf) == NULL)
		return NULL;
	return pstrdup(buf);
}

static bool
below(const char *path, const char *prefix)
{
	size_t		len = strlen(prefix);

	while (len > 1 && prefix[len - 1] == '/')
		len--;
	if (strncmp(path, prefix, len) != 0)
		return false;
	return path[len] == '\0' || path[len] == '/' || (len == 1 && prefix[0] == '/');
}

static bool
location_allowed(const char *resolved)
{
	char	   *rest = pstrdup(pln_guc_allowed_locations ? pln_guc_allowed_locations : "");

	while (rest != NULL)
	{
		char	   *item = rest;
		char	   *comma = strchr(rest, ',');
		char	   *prefix;
		size_t		len;

		rest = NULL;
		if (comma != NULL)
		{
			*comma = '\0';
			rest = comma + 1;
		}
		item += strspn(item, " \t");
		len = strlen(item);
		while (len > 0 && (item[len - 1] == ' ' || item[len - 1] == '\t'))
			item[--len] = '\0';
		if (pg_strncasecmp(item, "file://", 7) == 0)
			item += 7;
		if (item[0] != '/')
			continue;			/* a URL, or nothing */
		prefix = resolve(item);
		if (prefix != NULL && below(resolved, prefix))
			return true;
	}
	return false;
}

static void
refuse_access(const char *path)
{
	const char *others = pln_guc_allowed_locations ? pln_guc_allowed_locations : "";
	char	   *locations = psprintf("%s%s%s", others, *others ? ", " : "", path);

	ereport(ERROR,
			(errcode(PLN_ERR_NOT_ALLOWED),
			 errmsg("permission denied to read \"%s\"", path),
			 errdetail("Not below pipeline.allowed_locations, and role \"%s\" is no member of %s.",
					   GetUserNameFromId(GetUserId(), false), "pg_read_server_files"),
			 errhint("ALTER SYSTEM SET pipeline.allowed_locations = %s;",
					 quote_literal_cstr(locations))));
}

/*
 * For roles that may not read everything the answer must not tell whether a path outside
 * the allowed places exists: what cannot be resolved is judged by its deepest existing
 * directory.
 */
void
pln_files_check_access(const char *path)
{
	char	   *part = pstrdup(path);
	char	   *resolved;

	if (reads_everything())
		return;
	while ((resolved = resolve(part)) == NULL)
	{
		char	   *slash = strrchr(part, '/');

		if (slash == NULL || slash == part)
			refuse_access(path);
		*slash = '\0';
	}
	if (!location_allowed(resolved))
		refuse_access(path);
}

/* ---- walking ---- */

static TimestampTz
stat_mtime(const struct stat *st)
{
	return time_t_to_timestamptz(st->st_mtim.tv_sec) + st->st_mtim.tv_nsec / 1000;
}

static void
stat_failed(const char *path)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not stat file \"%s\": %m", path)));
}

static bool
name_wanted(Listing *ls, const char *name)
{
	ListCell   *lc;

	foreach(lc, ls->name_globs)
		if (pln_glob_match(lfirst(lc), name))
			return true;
	return ls->name_globs == NIL;
}

static void
add_file(Listing *ls, const char *path, const struct stat *st)
{
	const char *slash = strrchr(path, '/');
	const char *relative = path + Min((size_t) ls->root_len, strlen(path));
	PlnFileInfo *info;
	TimestampTz mtime = stat_mtime(st);
	PlnFileOptions *opt = ls->options;

	if (!ls->single && !name_wanted(ls, slash + 1))
		return;
	if ((opt->has_modified_after && mtime <= opt->modified_after) ||
		(opt->has_modified_before && mtime >= opt->modified_before) ||
		(opt->min_file_age > 0 && mtime > ls->newest))
		return;
	/* the path becomes a value of rows and of the ledger */
	if (!pg_verifymbstr(path, strlen(path), true))
		ereport(ERROR,
				(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
				 errmsg("name of a file below \"%s\" is not valid in encoding \"%s\"",
						ls->options->path, GetDatabaseEncodingName())));
	info = palloc0(sizeof(PlnFileInfo));
	info->path = pstrdup(path);
	info->name = info->path + (slash + 1 - path);
	while (*relative == '/')
		relative++;
	info->dir = relative < slash ? pnstrdup(relative, slash - relative) : "";
	info->size = st->st_size;
	info->mtime = mtime;
	ls->files = lappend(ls->files, info);
}

/* A path that exists in a listing: a file is added, a directory is read. */
static void
add_entry(Listing *ls, const char *path, Ancestor *up)
{
	struct stat st;
	Ancestor	self;
	Ancestor   *a;

	if (lstat(path, &st) < 0 || (S_ISLNK(st.st_mode) && stat(path, &st) < 0))
	{
		if (errno == ENOENT || errno == ELOOP)
			return;				/* went away, or a link to nowhere */
		stat_failed(path);
	}
	else if (!ls->unrestricted)
		pln_files_check_access(path);	/* links may lead out of the allowed place */

	if (S_ISREG(st.st_mode))
		add_file(ls, path, &st);
	if (!S_ISDIR(st.st_mode))
		return;
	for (a = up; a != NULL; a = a->up)
		if (a->dev == st.st_dev && a->ino == st.st_ino)
			return;
	self.dev = st.st_dev;
	self.ino = st.st_ino;
	self.up = up;
	list_directory(ls, path, &self);
}

static char *
join(const char *dir, const char *name)
{
	size_t		len = strlen(dir);

	return psprintf(len > 0 && dir[len - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

/* Names in a directory, read to the end before any is looked at: few open descriptors. */
static List *
read_names(const char *path)
{
	DIR		   *dir = AllocateDir(path);
	struct dirent *de;
	List	   *names = NIL;

	while ((de = ReadDir(dir, path)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			names = lappend(names, pstrdup(de->d_name));
	}
	FreeDir(dir);
	return names;
}

static bool
is_hidden(const char *name)
{
	/* _a=1 is a partition directory, not a hidden one */
	return name[0] == '.' || (name[0] == '_' && strchr(name, '=') == NULL);
}

static void
list_directory(Listing *ls, const char *path, Ancestor *up)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, read_names(path))
	{
		const char *name = lfirst(lc);

		if (!is_hidden(name))
			add_entry(ls, join(path, name), up);
	}
}

/* Match the components of rest, one directory level each, below dir. */
static void
walk_pattern(Listing *ls, const char *dir, const char *rest)
{
	const char *slash;
	char	   *component;
	ListCell   *lc;

	while (*rest == '/')
		rest++;
	if (*rest == '\0')
	{
		add_entry(ls, dir, NULL);
		return;
	}
	slash = strchr(rest, '/');
	component = slash ? pnstrdup(rest, slash - rest) : pstrdup(rest);
	rest = slash ? slash + 1 : "";
	if (!pln_glob_is_pattern(component))
	{
		struct stat st;
		char	   *path = join(dir, component);

		if (stat(path, &st) == 0)
			walk_pattern(ls, path, rest);
		return;
	}
	if (!ls->unrestricted)
		pln_files_check_access(dir);	/* the pattern may have gone up by .. */
	foreach(lc, read_names(dir))
	{
		const char *name = lfirst(lc);
		char	   *path;
		struct stat st;

		CHECK_FOR_INTERRUPTS();
		if ((is_hidden(name) && component[0] != name[0]) || !pln_glob_match(component, name))
			continue;
		path = join(dir, name);
		if (slash != NULL && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
			continue;
		walk_pattern(ls, path, rest);
	}
}

/* Length of the part of the path before the first component that is a pattern. */
static int
literal_prefix(const char *path)
{
	const char *p = strpbrk(path, "*?[{\\");

	while (p > path && *p != '/')
		p--;
	return p - path;
}

static int
compare_paths(const ListCell *a, const ListCell *b)
{
	return strcmp(((PlnFileInfo *) lfirst(a))->path, ((PlnFileInfo *) lfirst(b))->path);
}

static List *
without_duplicates(List *sorted)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, sorted)
	{
		PlnFileInfo *info = lfirst(lc);

		if (result == NIL || strcmp(((PlnFileInfo *) llast(result))->path, info->path) != 0)
			result = lappend(result, info);
	}
	return result;
}

List *
pln_files_list(PlnFileOptions *options)
{
	Listing		ls = {0};
	char	   *path = pstrdup(options->path);
	struct stat st;
	bool		exists;

	ls.options = options;
	ls.unrestricted = reads_everything();
	ls.newest = GetCurrentTimestamp() - options->min_file_age;
	if (options->name_glob != NULL)
		ls.name_globs = pln_glob_expand_braces(options->name_glob);

	/* a name that exists is taken as it is, whatever characters it has */
	if (!pln_glob_is_pattern(path))
		pln_files_check_access(path);
	exists = ls.unrestricted || !pln_glob_is_pattern(path) ? stat(path, &st) == 0 : false;
	if (!exists && pln_glob_is_pattern(path))
	{
		int			root = literal_prefix(path);
		char	   *dir = root > 0 ? pnstrdup(path, root) : pstrdup("/");
		ListCell   *lc;

		pln_files_check_access(dir);
		if (stat(dir, &st) < 0)
			stat_failed(dir);
		ls.root_len = root;
		foreach(lc, pln_glob_expand_braces(path + root))
			walk_pattern(&ls, dir, lfirst(lc));
	}
	else
	{
		size_t		len = strlen(path);

		if (!exists)
			stat_failed(path);
		while (len > 1 && path[len - 1] == '/')
			path[--len] = '\0';
		ls.single = S_ISREG(st.st_mode);
		if (!ls.single && !S_ISDIR(st.st_mode))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is neither a file nor a directory", path)));
		ls.root_len = ls.single ? strrchr(path, '/') - path : (int) len;
		add_entry(&ls, path, NULL);
	}
	list_sort(ls.files, compare_paths);
	return without_duplicates(ls.files);
}

/* ---- names ---- */

const char *
pln_file_suffix(const char *name)
{
	static const char *const packed[] = {".gz", ".deflate", ".zst", ".lz4", ".bz2", ".snappy"};
	char	   *lower = asc_tolower(name, strlen(name));
	char	   *dot = strrchr(lower, '.');
	size_t		i;

	for (i = 0; dot != NULL && i < lengthof(packed); i++)
		if (strcmp(dot, packed[i]) == 0)
		{
			*dot = '\0';
			dot = strrchr(lower, '.');
			break;
		}
	return dot != NULL && dot != lower ? dot + 1 : "";
}

static PlnFileFormat
format_of_suffix(const char *suffix, const char *path)
{
	static const char *const others[] = {
		"xml", "parquet", "avro", "orc", "xlsx", "xls"
	};
	size_t		i;

	if (strcmp(suffix, "json") == 0 || strcmp(suffix, "jsonl") == 0 ||
		strcmp(suffix, "ndjson") == 0)
		return PLN_FORMAT_JSON;
	if (strcmp(suffix, "csv") == 0 || strcmp(suffix, "tsv") == 0)
		return PLN_FORMAT_CSV;
	if (strcmp(suffix, "txt") == 0 || strcmp(suffix, "text") == 0 || strcmp(suffix, "log") == 0)
		return PLN_FORMAT_TEXT;
	for (i = 0; i < lengthof(others); i++)
		if (strcmp(suffix, others[i]) == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("read_files cannot read format \"%s\" of file \"%s\"", suffix, path),
					 errhint("Restrict the files with pathGlobFilter => '*.json'.")));
	return PLN_FORMAT_DETECT;
}

/* A file without a telling name: JSON starts with a bracket. */
static PlnFileFormat
format_of_content(PlnFileInfo *info, PlnFileOptions *options)
{
	PlnInput   *in = pln_input_open(info, options);
	PlnFileFormat format = PLN_FORMAT_DETECT;

	if (in == NULL)
		return format;
	while (in->end - in->pos < 1024 && pln_input_fill(in))
		;
	while (in->pos < in->end && strchr(" \t\r\n", in->buf[in->pos]) != NULL)
		in->pos++;
	if (in->pos < in->end && (in->buf[in->pos] == '{' || in->buf[in->pos] == '['))
		format = PLN_FORMAT_JSON;
	pln_input_close(in);
	return format;
}

void
pln_files_detect_format(List *files, PlnFileOptions *options)
{
	PlnFileInfo *first = NULL;
	ListCell   *lc;

	if (options->format == PLN_FORMAT_DETECT)
	{
		foreach(lc, files)
		{
			PlnFileInfo *info = lfirst(lc);
			PlnFileFormat format = format_of_suffix(pln_file_suffix(info->name), info->path);

			if (format == PLN_FORMAT_DETECT)
				continue;
			if (first != NULL && format != options->format)
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("files of different formats: \"%s\" and \"%s\"",
								first->path, info->path),
						 errhint("Add format => '%s', or pathGlobFilter => '*.%s'.",
								 pln_file_format_name(options->format),
								 pln_file_suffix(first->name))));
			options->format = format;
			first = info;
		}
	}
	if (options->format == PLN_FORMAT_DETECT && files != NIL)
	{
		options->format = format_of_content(linitial(files), options);
		if (options->format == PLN_FORMAT_DETECT)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("cannot tell the format of file \"%s\"",
							((PlnFileInfo *) linitial(files))->path),
					 errhint("Add format => 'csv', 'json' or 'text'.")));
	}
}

/* k=v directories: the value may be percent-encoded; the default partition is null. */
void
pln_file_partitions(PlnFileInfo *info, List **keys, List **values)
{
	char	   *dir = pstrdup(info->dir);
	char	   *save = NULL;
	char	   *part;

	*keys = *values = NIL;
	for (part = strtok_r(dir, "/", &save); part != NULL; part = strtok_r(NULL, "/", &save))
	{
		char	   *eq = strchr(part, '=');
		StringInfoData value;
		const char *p;

		if (eq == NULL || eq == part)
			continue;
		*eq = '\0';
		initStringInfo(&value);
		for (p = eq + 1; *p; p++)
		{
			unsigned	byte;

			if (*p == '%' && isxdigit((unsigned char) p[1]) && isxdigit((unsigned char) p[2]) &&
				sscanf(p + 1, "%2x", &byte) == 1 && byte != 0)
			{
				appendStringInfoChar(&value, (char) byte);
				p += 2;
			}
			else
				appendStringInfoChar(&value, *p);
		}
		if (!pg_verifymbstr(value.data, value.len, true))
		{
			resetStringInfo(&value);
			appendStringInfoString(&value, eq + 1);
		}
		*keys = lappend(*keys, pstrdup(part));
		*values = lappend(*values, strcmp(value.data, "__HIVE_DEFAULT_PARTITION__") == 0 ?
						  NULL : value.data);
	}
}
