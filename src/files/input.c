/*
 * input.c
 *	  One opened file as a window of bytes: rights, decompression, encoding, change check.
 *
 * The window grows only as far as one record needs.  The descriptor and zlib's memory
 * belong to a handle whose context callback was registered before they were acquired:
 * whoever resets the context of the input has closed the file.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

#define CHUNK			(256 * 1024)
#define PACKED_CHUNK	(64 * 1024)

typedef struct PlnInputHandle
{
	int			fd;				/* -1 = closed */
	bool		external;		/* counted by AcquireExternalFD() */
	bool		inflating;
	bool		member_done;	/* one gzip member ended; another may follow */
	z_stream	z;
	struct stat st;				/* when opened */
	unsigned char packed[PACKED_CHUNK];
	MemoryContextCallback callback;
} PlnInputHandle;

static void
release_handle(void *arg)
{
	PlnInputHandle *h = arg;

	if (h->inflating)
		inflateEnd(&h->z);
	if (h->fd >= 0)
		close(h->fd);
	if (h->external)
		ReleaseExternalFD();
	h->inflating = h->external = false;
	h->fd = -1;
}

static void
corrupt_file(PlnInput *in, const char *why)
{
	if (in->options->ignore_corrupt)
	{
		in->info->corrupt = true;
		in->eof = true;
		return;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_FILE_ROW),
			 errmsg("file \"%s\" cannot be decoded: %s", in->info->path, why),
			 errhint("Replace the file, or add ignoreCorruptFiles => true.")));
}

static bool
is_packed(PlnInput *in)
{
	const char *dot = strrchr(in->info->name, '.');

	if (in->options->compression != NULL)
		return strcmp(in->options->compression, "gzip") == 0;
	if (dot == NULL)
		return false;
	if (pg_strcasecmp(dot, ".zst") == 0 || pg_strcasecmp(dot, ".lz4") == 0 ||
		pg_strcasecmp(dot, ".bz2") == 0 || pg_strcasecmp(dot, ".snappy") == 0)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("compression \"%s\" of file \"%s\" is not supported", dot + 1,
						in->info->path)));
	return pg_strcasecmp(dot, ".gz") == 0 || pg_strcasecmp(dot, ".deflate") == 0;
}

/* Opens, or returns false for a missing file that may be missing. */
static bool
open_handle(PlnInput *in, PlnInputHandle *h)
{
	pln_files_check_access(in->info->path);
	if (!AcquireExternalFD())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("too many open files while opening \"%s\"", in->info->path)));
	h->external = true;

	/* O_NONBLOCK: a pipe put in the place of a file must not hang the backend */
	h->fd = BasicOpenFile(in->info->path, O_RDONLY | O_NONBLOCK | PG_BINARY);
	if (h->fd < 0)
	{
		if (errno == ENOENT && in->options->ignore_missing)
		{
			in->info->missing = true;
			release_handle(h);
			return false;
		}
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", in->info->path)));
	}
	if (fstat(h->fd, &h->st) < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not stat file \"%s\": %m", in->info->path)));
	if (!S_ISREG(h->st.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a regular file", in->info->path)));

	/*
	 * The path may have been changed into a link to elsewhere between the check and the
	 * opening.  Check again, and that the descriptor is what the path means now.
	 */
	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
	{
		struct stat now;

		pln_files_check_access(in->info->path);
		if (stat(in->info->path, &now) < 0 || now.st_dev != h->st.st_dev ||
			now.st_ino != h->st.st_ino)
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("file \"%s\" was replaced while it was opened", in->info->path)));
	}
	return true;
}

static void
find_conversion(PlnInput *in)
{
	int			db = GetDatabaseEncoding();
	int			file = in->options->encoding;

	in->validate = true;
	if (db == file || db == PG_SQL_ASCII || file == PG_SQL_ASCII)
		return;
	in->conversion = FindDefaultConversionProc(file, db);
	if (!OidIsValid(in->conversion))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("no conversion from encoding \"%s\" to \"%s\"",
						pg_encoding_to_char(file), pg_encoding_to_char(db))));
	initStringInfo(&in->converted);
}

/* Byte order marks, and which line end the file uses. */
static void
look_at_head(PlnInput *in)
{
	const unsigned char *b;
	int			n;

	while (in->end - in->pos < CHUNK / 2 && pln_input_fill(in))
		;
	b = (const unsigned char *) in->buf + in->pos;
	n = in->end - in->pos;
	if (n >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF)))
		corrupt_file(in, "it is written in UTF-16 or UTF-32");
	else if (n >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF &&
			 in->options->encoding == PG_UTF8)
		in->pos += 3;
	if (in->options->line_sep == PLN_LINES_CR)
		in->cr_lines = true;
	else if (in->options->line_sep == PLN_LINES_AUTO)
		in->cr_lines = memchr(in->buf + in->pos, '\n', in->end - in->pos) == NULL &&
			memchr(in->buf + in->pos, '\r', in->end - in->pos) != NULL;
}

PlnInput *
pln_input_open(PlnFileInfo *info, PlnFileOptions *options)
{
	PlnInput   *in = palloc0(sizeof(PlnInput));
	PlnInputHandle *h = palloc0(sizeof(PlnInputHandle));

	in->info = info;
	in->options = options;
	in->handle = h;
	in->line = 1;
	h->fd = -1;
	h->callback.func = release_handle;
	h->callback.arg = h;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &h->callback);

	info->done = info->changed = info->missing = info->corrupt = false;
	if (!open_handle(in, h))
		return NULL;
	info->size = h->st.st_size;
	info->mtime = time_t_to_timestamptz(h->st.st_mtim.tv_sec) +
		h->st.st_mtim.tv_nsec / 1000;
	if (is_packed(in))
	{
		/* 32: gzip or zlib header, found out by zlib */
		if (inflateInit2(&h->z, 15 + 32) != Z_OK)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		h->inflating = true;
	}
	find_conversion(in);
	in->size = CHUNK;
	in->buf = palloc(in->size);
	look_at_head(in);
	return in;
}

static int
read_bytes(PlnInput *in, void *to, int len)
{
	int			n;

	do
	{
		CHECK_FOR_INTERRUPTS();
		n = read(in->handle->fd, to, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
	{
		if (in->options->ignore_corrupt)
		{
			in->info->corrupt = true;
			return 0;
		}
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", in->info->path)));
	}
	return n;
}

/* Decompressed bytes; 0 at the end. */
static int
inflate_bytes(PlnInput *in, char *to, int len)
{
	PlnInputHandle *h = in->handle;
	int			rc;

	h->z.next_out = (Bytef *) to;
	h->z.avail_out = len;
	while (h->z.avail_out == (uInt) len)
	{
		CHECK_FOR_INTERRUPTS();
		if (h->z.avail_in == 0)
		{
			h->z.next_in = h->packed;
			h->z.avail_in = read_bytes(in, h->packed, PACKED_CHUNK);
			if (h->z.avail_in == 0)
			{
				/* an empty file is an empty file; else a member must have ended */
				if (!h->member_done && h->z.total_in > 0)
					corrupt_file(in, "compressed data end too early");
				return 0;
			}
		}
		if (h->member_done)
		{
			inflateReset(&h->z);
			h->member_done = false;
		}
		rc = inflate(&h->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END)
			h->member_done = true;
		else if (rc != Z_OK && rc != Z_BUF_ERROR)
		{
			corrupt_file(in, h->z.msg ? h->z.msg : "compressed data are damaged");
			break;
		}
	}
	return len - (int) h->z.avail_out;
}

bool
pln_input_fill(PlnInput *in)
{
	int			n;

	if (in->eof)
		return false;
	if (in->pos > 0 && in->end - in->pos <= in->size / 2)
	{
		memmove(in->buf, in->buf + in->pos, in->end - in->pos);
		in->end -= in->pos;
		in->pos = 0;
	}
	if (in->end == in->size)
	{
		if (in->size > (int) (MaxAllocSize / 2))
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("record in file \"%s\", line " INT64_FORMAT " is longer than %d MB",
							in->info->path, in->line, in->size / (1024 * 1024))));
		in->size *= 2;
		in->buf = repalloc(in->buf, in->size);
	}
	if (in->handle->inflating)
		n = inflate_bytes(in, in->buf + in->end, in->size - in->end);
	else
		n = read_bytes(in, in->buf + in->end, in->size - in->end);
	if (n <= 0)
	{
		in->eof = true;
		return false;
	}
	in->end += n;
	in->bytes += n;
	return true;
}

bool
pln_input_line(PlnInput *in, int *len, int *full)
{
	char		stop = in->cr_lines ? '\r' : '\n';
	int			searched = 0;

	for (;;)
	{
		char	   *found = memchr(in->buf + in->pos + searched, stop,
								   in->end - in->pos - searched);

		if (found != NULL)
		{
			*len = found - (in->buf + in->pos);
			*full = *len + 1;
			break;
		}
		searched = in->end - in->pos;
		if (!pln_input_fill(in))
		{
			if (searched == 0)
				return false;
			*len = *full = searched;
			break;
		}
	}
	if (!in->cr_lines && *len > 0 && in->buf[in->pos + *len - 1] == '\r')
		(*len)--;
	return true;
}

void
pln_input_consume(PlnInput *in, int bytes, int64 lines)
{
	in->pos += bytes;
	in->line += lines;
}

bool
pln_input_text(PlnInput *in, const char *bytes, int len, const char **text, int *textlen)
{
	int			room;

	*text = bytes;
	*textlen = len;
	if (!OidIsValid(in->conversion))
	{
		int			db = GetDatabaseEncoding();

		if (db == PG_SQL_ASCII)
			return memchr(bytes, '\0', len) == NULL;
		return pg_verify_mbstr(db, bytes, len, true);
	}
	if ((Size) len > (MaxAllocSize - 1) / MAX_CONVERSION_GROWTH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("record in file \"%s\", line " INT64_FORMAT " is too long to be converted",
						in->info->path, in->line)));
	if (memchr(bytes, '\0', len) != NULL)
		return false;
	room = len * MAX_CONVERSION_GROWTH + 1;
	resetStringInfo(&in->converted);
	enlargeStringInfo(&in->converted, room);
	if (pg_do_encoding_conversion_buf(in->conversion, in->options->encoding,
									  GetDatabaseEncoding(), (unsigned char *) bytes, len,
									  (unsigned char *) in->converted.data, room, true) < len)
		return false;
	*text = in->converted.data;
	*textlen = strlen(in->converted.data);
	return true;
}

char *
pln_input_printable(PlnInput *in, const char *bytes, int len)
{
	StringInfoData out;
	const char *end = bytes + len;

	initStringInfo(&out);
	while (bytes < end)
	{
		int			n = 1;
		bool		good = *bytes != '\0';
		const char *text = bytes;
		int			textlen = 1;

		if (IS_HIGHBIT_SET(*bytes))
		{
			n = Min(pg_encoding_mblen(in->options->encoding, bytes), (int) (end - bytes));
			good = pln_input_text(in, bytes, n, &text, &textlen);
		}
		if (good)
			appendBinaryStringInfo(&out, text, textlen);
		else
		{
			n = 1;
			appendStringInfo(&out, "\\x%02X", (unsigned char) *bytes);
		}
		bytes += n;
	}
	return out.data;
}

void
pln_input_close(PlnInput *in)
{
	PlnInputHandle *h = in->handle;
	struct stat st;

	if (h->fd < 0)
		return;
	if (fstat(h->fd, &st) < 0 || st.st_size != h->st.st_size ||
		st.st_mtim.tv_sec != h->st.st_mtim.tv_sec ||
		st.st_mtim.tv_nsec != h->st.st_mtim.tv_nsec)
		in->info->changed = true;
	release_handle(h);
}
