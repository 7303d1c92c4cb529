/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pprof/table/array.h"
#include "sampler/linux/regular_file.h"
#include "sampler/symbol/string_pool.h"

enum {
	MAGIC = 0x4a695444, /* "JiTD", as a machine of our byte order writes it */
	VERSION = 1,
	HEADER_BYTES_MAX = 4096,
	WINDOW_BYTES = 16 << 10,
};

/* V8 writes this number in a field that must be 0. V8's lines are not believed: node 20 gives lines of
 * inlined functions to the file of the outer function, and garbage for code of its baseline compiler. */
#define V8_PADDING UINT32_C(0xdeadbeef)

enum record_id { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO };

/* Integers have the file's byte order, which is ours. */
struct file_header {
	uint32_t magic, version, header_bytes, machine, padding, pid;
	uint64_t timestamp, flags;
};

struct record_header {
	uint32_t id, bytes;
	uint64_t timestamp;
};

struct code_load { /* name and code follow */
	uint32_t pid, tid;
	uint64_t vma, start, bytes, index;
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old_start, start, bytes, index;
};

struct debug_info { /* lines follow */
	uint64_t start, count;
};

struct debug_line { /* the file's name follows */
	uint64_t start;
	uint32_t line, column;
};

/* A part of the file; bytes 0: none. */
struct part {
	uint64_t at, bytes;
};

/* Code was made in a range, or moved to it, that has an address which is asked for. */
struct match {
	uint64_t start, bytes;
	uint64_t made_at;        /* where it was made */
	uint64_t index, offset;  /* of the code; of the record */
	struct part name, lines; /* name: none if the code was moved and never made */
	bool moved;
};

struct place {
	uint64_t addr;
	struct jitdump_name name; /* function NULL: none yet */
	uint64_t line_start;      /* of the line that is known so far */
	size_t next;              /* for a place with a name: where to look for one without */
};

struct jitdump {
	struct string_pool *strings;
	struct place *places; /* by address */
	size_t count, unnamed;
	struct match *matches; /* match n is at n % JITDUMP_MATCHES_MAX */
	size_t match_count, match_capacity;
	struct match **moves; /* those that were moved, by index */
	size_t move_count;
	size_t steps_left;
	bool cut;
};

static int by_addr(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

struct jitdump *jitdump_new(const uint64_t *addrs, size_t count)
{
	struct jitdump *jd = calloc(1, sizeof(*jd));

	if (!jd)
		return NULL;
	jd->strings = string_pool_new();
	jd->places = calloc(count + 1, sizeof(*jd->places));
	if (!jd->strings || !jd->places) {
		jitdump_free(jd);
		return NULL;
	}
	jd->count = jd->unnamed = count;
	jd->steps_left = JITDUMP_LINES_MAX;
	for (size_t i = 0; i < count; i++)
		jd->places[i].addr = addrs[i];
	qsort(jd->places, count, sizeof(*jd->places), by_addr);
	return jd;
}

void jitdump_free(struct jitdump *jd)
{
	if (!jd)
		return;
	string_pool_free(jd->strings);
	free(jd->places);
	free(jd->matches);
	free(jd->moves);
	free(jd);
}

bool jitdump_cut(const struct jitdump *jd)
{
	return jd->cut && jd->unnamed;
}

const struct jitdump_name *jitdump_find(const struct jitdump *jd, uint64_t addr)
{
	const size_t at = ARRAY_LOWER_BOUND(jd->places, jd->count, addr, addr);

	return at < jd->count && jd->places[at].addr == addr && jd->places[at].name.function
	    ? &jd->places[at].name
	    : NULL;
}

/* ---- reading */

struct reader {
	const struct jitdump_source *source;
	int error;
	uint64_t left;       /* bytes that may still be read */
	uint64_t start, end; /* what is in the window */
	unsigned char window[WINDOW_BYTES];
};

/* False if the part is beyond the end, cannot be read (error), or the limit for reading is used up. */
static bool read_at(struct reader *r, void *to, size_t bytes, uint64_t offset)
{
	if (r->error || offset > r->source->bytes || bytes > r->source->bytes - offset)
		return false;
	if (offset < r->start || offset + bytes > r->end) {
		const uint64_t left = r->source->bytes - offset;
		const size_t want = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;

		if (r->left < want)
			return false;
		r->left -= want;
		r->error = r->source->read(r->source->context, r->window, want, offset);
		r->start = offset;
		r->end = r->error ? offset : offset + want;
		if (r->error)
			return false;
	}
	memcpy(to, r->window + (offset - r->start), bytes);
	return true;
}

/* Takes a text off the front of PART, up to its NUL. Cuts it to JITDUMP_NAME_MAX bytes. False if there is no
 * NUL. */
static bool take_text(struct reader *r, struct part *part, char text[JITDUMP_NAME_MAX], size_t *length)
{
	char c = 1;

	for (*length = 0; c && part->bytes && read_at(r, &c, 1, part->at); part->at++, part->bytes--)
		if (c && *length < JITDUMP_NAME_MAX)
			text[(*length)++] = c;
	return !c;
}

/* ---- records */

struct record {
	uint32_t id;
	struct part payload;
	struct debug_info lines; /* the record before, if it has lines; and where they are */
	struct part lines_at;
};

/* Calls TAKE for each record. 0 or -errno. */
static int scan(struct jitdump *jd, struct reader *r,
    int (*take)(struct jitdump *, struct reader *, const struct record *))
{
	struct file_header file;
	struct record_header header;
	struct record record = {0};
	int error = 0;

	r->left = JITDUMP_BYTES_MAX;
	if (!read_at(r, &file, sizeof(file), 0) || file.magic != MAGIC || file.version != VERSION ||
	    file.header_bytes < sizeof(file) || file.header_bytes > HEADER_BYTES_MAX)
		return r->error ? r->error : -ENOEXEC;
	uint64_t at = file.header_bytes;
	for (; !error && read_at(r, &header, sizeof(header), at); at += header.bytes) {
		if (header.bytes < sizeof(header) || header.bytes > r->source->bytes - at)
			break;
		record.id = header.id;
		record.payload = (struct part){at + sizeof(header), header.bytes - sizeof(header)};
		if (header.id != CODE_DEBUG_INFO) {
			error = take(jd, r, &record);
		} else if (file.padding != V8_PADDING && record.payload.bytes >= sizeof(record.lines) &&
		    read_at(r, &record.lines, sizeof(record.lines), record.payload.at)) {
			record.lines_at = record.payload;
			record.lines_at.at += sizeof(record.lines);
			record.lines_at.bytes -= sizeof(record.lines);
		}
		if (header.id == CODE_LOAD)
			record.lines_at.bytes = 0;
	}
	jd->cut |= r->left < WINDOW_BYTES;
	return error ? error : r->error;
}

static bool is_asked_for(const struct jitdump *jd, uint64_t start, uint64_t bytes)
{
	const size_t at = ARRAY_LOWER_BOUND(jd->places, jd->count, addr, start);

	return bytes && start + bytes > start && at < jd->count && jd->places[at].addr < start + bytes;
}

/* If there are too many, the later matches are kept: later records are valid. */
static int add_match(struct jitdump *jd, const struct match *match)
{
	if (jd->match_count < JITDUMP_MATCHES_MAX &&
	    array_reserve(&jd->matches, &jd->match_capacity, jd->match_count + 1, sizeof(*match)) != 0)
		return -ENOMEM;
	jd->matches[jd->match_count++ % JITDUMP_MATCHES_MAX] = *match;
	return 0;
}

static void set_name(struct match *match, const struct record *record, uint64_t made_at)
{
	match->made_at = made_at;
	match->name = record->payload;
	match->name.at += sizeof(struct code_load);
	match->name.bytes -= sizeof(struct code_load);
	match->lines = record->lines.start == made_at ? record->lines_at : (struct part){0};
}

static bool read_load(struct reader *r, const struct record *record, struct code_load *load)
{
	return record->id == CODE_LOAD && record->payload.bytes > sizeof(*load) &&
	    read_at(r, load, sizeof(*load), record->payload.at);
}

static int find_match(struct jitdump *jd, struct reader *r, const struct record *record)
{
	struct code_load load;
	struct code_move move;
	struct match match = {.offset = record->payload.at};

	if (read_load(r, record, &load) && is_asked_for(jd, load.start, load.bytes)) {
		match.start = load.start;
		match.bytes = load.bytes;
		set_name(&match, record, load.start);
		return add_match(jd, &match);
	}
	if (record->id == CODE_MOVE && record->payload.bytes >= sizeof(move) &&
	    read_at(r, &move, sizeof(move), record->payload.at) && is_asked_for(jd, move.start, move.bytes)) {
		match.start = move.start;
		match.bytes = move.bytes;
		match.index = move.index;
		match.moved = true;
		return add_match(jd, &match);
	}
	return 0;
}

/* ---- code that was moved: its name is in the record that made it */

static int by_index(const void *left, const void *right)
{
	const struct match *a = *(struct match *const *)left, *b = *(struct match *const *)right;

	return a->index < b->index ? -1 : a->index > b->index;
}

static int find_made(struct jitdump *jd, struct reader *r, const struct record *record)
{
	struct code_load load;
	size_t low = 0, high = jd->move_count;

	if (!read_load(r, record, &load))
		return 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (jd->moves[middle]->index < load.index)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < jd->move_count && jd->moves[low]->index == load.index; low++) {
		if (!jd->steps_left)
			return 0;
		jd->steps_left--;
		if (jd->moves[low]->offset > record->payload.at)
			set_name(jd->moves[low], record, load.start);
	}
	return 0;
}

static int name_moved(struct jitdump *jd, struct reader *r)
{
	const size_t total = jd->match_count < JITDUMP_MATCHES_MAX ? jd->match_count : JITDUMP_MATCHES_MAX;

	jd->moves = calloc(total + 1, sizeof(*jd->moves));
	if (!jd->moves)
		return -ENOMEM;
	for (size_t i = 0; i < total; i++)
		if (jd->matches[i].moved)
			jd->moves[jd->move_count++] = &jd->matches[i];
	if (!jd->move_count)
		return 0;
	qsort(jd->moves, jd->move_count, sizeof(*jd->moves), by_index);
	return scan(jd, r, find_made);
}

/* ---- names and lines */

/* As in perfmap.c: many records may cover all places. */
static size_t next_unnamed(struct jitdump *jd, size_t at)
{
	struct place *places = jd->places;

	while (at < jd->count && places[at].name.function) {
		const size_t next = places[at].next;

		if (next < jd->count && places[next].name.function)
			places[at].next = places[next].next;
		at = next;
	}
	return at;
}

/* The line of a place is the last line that begins at the place or before it. Lines come in any order, all of
 * them in FROM. Returns 0 or -ENOMEM. */
static int take_lines(
    struct jitdump *jd, struct reader *r, const struct match *match, const size_t *named, size_t count)
{
	struct part rest = match->lines;
	char file[JITDUMP_NAME_MAX];
	size_t length = 0;
	struct debug_line line;
	const char *interned = NULL;

	while (rest.bytes > sizeof(line) && count && read_at(r, &line, sizeof(line), rest.at)) {
		char text[JITDUMP_NAME_MAX];
		size_t text_bytes;

		rest.at += sizeof(line);
		rest.bytes -= sizeof(line);
		if (!take_text(r, &rest, text, &text_bytes) || jd->steps_left < count + text_bytes)
			break;
		jd->steps_left -= count + text_bytes;
		/* "\xff": the file of the line before. */
		if (text_bytes != 1 || text[0] != '\xff') {
			length = text_bytes;
			memcpy(file, text, length);
			interned = NULL;
		}
		for (size_t i = 0; i < count && length; i++) {
			struct place *place = &jd->places[named[i]];
			const uint64_t at = place->addr - match->start, begins = line.start - match->made_at;

			if (begins > at || begins >= match->bytes ||
			    (place->name.file && begins < place->line_start))
				continue;
			if (!interned && !(interned = string_pool_add(jd->strings, file, length)))
				return -ENOMEM;
			place->name.file = interned;
			place->name.line = line.line;
			place->line_start = begins;
		}
	}
	return 0;
}

/* `named` has room for all places. Returns 0 or -ENOMEM. */
static int name_match(struct jitdump *jd, struct reader *r, const struct match *match, size_t *named)
{
	char text[JITDUMP_NAME_MAX];
	struct part name = match->name;
	size_t length, count = 0;
	const char *function = NULL;

	for (size_t i = next_unnamed(jd, ARRAY_LOWER_BOUND(jd->places, jd->count, addr, match->start));
	     i < jd->count && jd->places[i].addr < match->start + match->bytes; i = next_unnamed(jd, i)) {
		if (!function) {
			/* Earlier code at the place is gone. */
			const bool known = take_text(r, &name, text, &length) && length;

			function = string_pool_add(jd->strings, known ? text : "[jit]", known ? length : 5);
		}
		if (!function)
			return -ENOMEM;
		jd->places[i].name.function = function;
		jd->places[i].next = i + 1;
		jd->unnamed--;
		named[count++] = i;
	}
	return take_lines(jd, r, match, named, count);
}

static int name_all(struct jitdump *jd, struct reader *r)
{
	const size_t oldest =
	    jd->match_count > JITDUMP_MATCHES_MAX ? jd->match_count - JITDUMP_MATCHES_MAX : 0;
	size_t *named = calloc(jd->count + 1, sizeof(*named));
	int error = named ? 0 : -ENOMEM;

	r->left = JITDUMP_BYTES_MAX;
	for (size_t n = jd->match_count; n-- > oldest && jd->unnamed && !error;)
		error = name_match(jd, r, &jd->matches[n % JITDUMP_MATCHES_MAX], named);
	jd->cut |= oldest > 0;
	free(named);
	return error ? error : r->error;
}

int jitdump_take(struct jitdump *jd, const struct jitdump_source *source)
{
	struct reader *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	r->source = source;
	error = scan(jd, r, find_match);
	if (error != -ENOMEM && error != -ENOEXEC && name_moved(jd, r) == -ENOMEM)
		error = -ENOMEM;
	if (error != -ENOMEM && error != -ENOEXEC) {
		const int naming = name_all(jd, r);

		error = error ? error : naming;
	}
	free(r);
	return error;
}

/* ---- the file */

static int read_file(void *context, void *to, size_t bytes, uint64_t offset)
{
	return regular_file_read(*(const int *)context, to, bytes, offset);
}

int jitdump_read(struct jitdump *jd, int fd)
{
	struct stat status;
	struct jitdump_source source = {.read = read_file, .context = &fd};

	if (fstat(fd, &status) != 0)
		return -errno;
	source.bytes = (uint64_t)status.st_size;
	return jitdump_take(jd, &source);
}
