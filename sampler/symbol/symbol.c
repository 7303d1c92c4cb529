/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pprof/table/array.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/symbol/debuginfo.h"
#include "sampler/symbol/reader.h"
#include "sampler/symbol/string_pool.h"
#include "sampler/symbol/symcache.h"
#include "sampler/symbol/symcodec.h"

/* Limits for the memory of one file: a hostile one can give each address hundreds of long names. */
enum { ANSWER_BYTES_MAX = 64 << 20, ADDRESS_BYTES_MAX = 2048 };

/* Results by address, ascending, no duplicates. */
struct table {
	uint64_t *vaddrs;
	struct symbol_result *results;
	size_t count, capacity;
};

/* The answers so far for a file with a key. */
struct memo {
	struct memo *next;
	const void *key;
	struct table known;
	struct symbol_facts facts;
};

struct symbols {
	struct symbol_options options; /* strings owned by names */
	struct string_pool *names;
	struct memo *memos;
};

static int table_reserve(struct table *table, size_t capacity)
{
	uint64_t *vaddrs = reallocarray(table->vaddrs, capacity + 1, sizeof(*vaddrs));
	struct symbol_result *results;

	if (!vaddrs)
		return -ENOMEM;
	table->vaddrs = vaddrs;
	results = reallocarray(table->results, capacity + 1, sizeof(*results));
	if (!results)
		return -ENOMEM;
	table->results = results;
	table->capacity = capacity;
	return 0;
}

static void table_fini(struct table *table)
{
	free(table->vaddrs);
	free(table->results);
}

static const struct symbol_result *table_find(const struct table *table, uint64_t vaddr)
{
	size_t at = array_lower_bound(table->vaddrs, table->count, sizeof(vaddr), 0, vaddr);

	return at < table->count && table->vaddrs[at] == vaddr ? &table->results[at] : NULL;
}

static int compare_vaddrs(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The addresses that `known` lacks: sorted, without duplicates, without results. */
static int table_init_missing(
    struct table *table, const struct table *known, const uint64_t *vaddrs, size_t n)
{
	uint64_t *sorted;
	int error;

	*table = (struct table){0};
	error = table_reserve(table, n);
	if (error)
		return error;
	sorted = table->vaddrs;
	if (n > 0)
		memcpy(sorted, vaddrs, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_vaddrs);
	for (size_t i = 0; i < n; i++)
		if ((table->count == 0 || sorted[i] != sorted[table->count - 1]) &&
		    !table_find(known, sorted[i]))
			sorted[table->count++] = sorted[i];
	return 0;
}

static int table_init_merged(struct table *table, const struct table *a, const struct table *b)
{
	size_t i = 0, j = 0;
	int error;

	*table = (struct table){0};
	error = table_reserve(table, a->count + b->count);
	while (!error && (i < a->count || j < b->count)) {
		bool first = j == b->count || (i < a->count && a->vaddrs[i] < b->vaddrs[j]);

		table->vaddrs[table->count] = first ? a->vaddrs[i] : b->vaddrs[j];
		table->results[table->count++] = first ? a->results[i++] : b->results[j++];
	}
	return error;
}

struct symbols *symbols_new(const struct symbol_options *options)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	const char *root = options->debug_root ? options->debug_root : DEBUGINFO_ROOT;

	if (!symbols || elf_version(EV_CURRENT) == EV_NONE) {
		free(symbols);
		return NULL;
	}
	symbols->options = *options;
	symbols->names = string_pool_new();
	if (symbols->names) {
		symbols->options.debug_root = string_pool_add(symbols->names, root, strlen(root));
		if (options->cache_folder)
			symbols->options.cache_folder = string_pool_add(
			    symbols->names, options->cache_folder, strlen(options->cache_folder));
	}
	if (!symbols->names || !symbols->options.debug_root ||
	    (options->cache_folder && !symbols->options.cache_folder)) {
		symbols_free(symbols);
		return NULL;
	}
	if (symbols->options.cache_limit_bytes == 0)
		symbols->options.cache_limit_bytes = SYMCACHE_LIMIT_BYTES;
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	struct memo *next;

	if (!symbols)
		return;
	for (struct memo *memo = symbols->memos; memo; memo = next) {
		next = memo->next;
		table_fini(&memo->known);
		free(memo);
	}
	string_pool_free(symbols->names);
	free(symbols);
}

struct load {
	struct symbols *symbols;
	struct table *table;
};

/* One address from the disk cache, copied out of the buffer. */
static int load_one(void *arg, uint64_t vaddr, const struct symbol_result *result)
{
	struct load *load = arg;
	struct string_pool *names = load->symbols->names;
	struct table *table = load->table;
	struct symbol_frame *frames = string_pool_alloc(names, (result->frame_count + 1) * sizeof(*frames));

	if (!frames ||
	    (table->count == table->capacity && table_reserve(table, table->capacity * 2 + 64) != 0))
		return -ENOMEM;
	for (uint32_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *from = &result->frames[i];

		frames[i] = *from;
		frames[i].name = string_pool_add(names, from->name, strlen(from->name));
		frames[i].system_name = string_pool_add(names, from->system_name, strlen(from->system_name));
		frames[i].file = from->file ? string_pool_add(names, from->file, strlen(from->file)) : NULL;
		if (!frames[i].name || !frames[i].system_name || (from->file && !frames[i].file))
			return -ENOMEM;
	}
	table->vaddrs[table->count] = vaddr;
	table->results[table->count++] = (struct symbol_result){frames, result->frame_count, result->known};
	return 0;
}

/* The key of a cache entry: the build id, and the identity of the file that has it. The author of a file can
 * choose its build id, and even the source_id if the file takes over its reader. But the author cannot choose
 * the file's identity, so the file's names never replace those of another file. */
struct cache_key {
	uint8_t bytes[64];
	size_t count; /* 0: the file is not cached */
};

static struct cache_key cache_key_of(const struct symbols *symbols, const struct symbol_file *file)
{
	struct cache_key key = {.count = 0};
	struct stat status;

	if (!symbols->options.cache_folder || !file->build_id || file->build_id_bytes == 0 ||
	    fstat(file->fd, &status) != 0)
		return key;
	const uint64_t identity[] = {
	    status.st_dev, status.st_ino, (uint64_t)status.st_size, (uint64_t)status.st_uid};
	if (file->build_id_bytes > sizeof(key.bytes) - sizeof(identity))
		return key;
	memcpy(key.bytes, file->build_id, file->build_id_bytes);
	memcpy(key.bytes + file->build_id_bytes, identity, sizeof(identity));
	key.count = file->build_id_bytes + sizeof(identity);
	return key;
}

static void cache_load(struct symbols *symbols, const struct symbol_file *file, uint64_t source_id,
    struct table *table, struct symbol_facts *facts)
{
	const struct cache_key key = cache_key_of(symbols, file);
	struct load load = {symbols, table};
	struct symbol_facts cached;
	uint8_t *bytes;
	size_t byte_count;

	if (key.count == 0 ||
	    symcache_read(
	        symbols->options.cache_folder, key.bytes, key.count, source_id, &bytes, &byte_count) != 0)
		return;
	if (symcodec_decode(bytes, byte_count, &cached, load_one, &load) == 0)
		*facts = cached;
	else
		table->count = 0;
	free(bytes);
}

/* A cache that cannot be written is no error: the next run searches again. */
static void cache_store(struct symbols *symbols, const struct symbol_file *file, uint64_t source_id,
    const struct table *table, const struct symbol_facts *facts)
{
	const struct cache_key key = cache_key_of(symbols, file);
	uint8_t *bytes;
	size_t byte_count;

	/* A .dwo file that is missing now may be there the next time. */
	if (key.count == 0 || facts->split ||
	    symcodec_encode(facts, table->vaddrs, table->results, table->count, &bytes, &byte_count) != 0)
		return;
	symcache_write(symbols->options.cache_folder, symbols->options.cache_limit_bytes, key.bytes,
	    key.count, source_id, bytes, byte_count);
	free(bytes);
}

/* Asks the file's reader for what the cache lacks. `known` then has the answers of both. */
static int resolve_missing(struct symbols *symbols, struct reader *reader, uint64_t source_id,
    struct table *known, struct symbol_facts *facts, const uint64_t *vaddrs, size_t n)
{
	struct table missing, answered = {0}, merged = {0};
	struct load load = {symbols, &answered};
	uint8_t *bytes = NULL;
	size_t byte_count;
	int error = table_init_missing(&missing, known, vaddrs, n);

	if (!error && missing.count > 0) {
		error = reader_answer(reader, missing.vaddrs, missing.count, &bytes, &byte_count);
		if (!error)
			error = symcodec_decode(bytes, byte_count, facts, load_one, &load);
		if (!error &&
		    (answered.count != missing.count ||
		        memcmp(answered.vaddrs, missing.vaddrs, missing.count * sizeof(*missing.vaddrs)) !=
		            0))
			error = -EPROTO;
		if (!error)
			error = table_init_merged(&merged, known, &answered);
		if (!error) {
			cache_store(symbols, reader->file, source_id, &merged, facts);
			table_fini(known);
			*known = merged;
		} else {
			table_fini(&merged);
		}
		free(bytes);
	}
	table_fini(&answered);
	table_fini(&missing);
	return error;
}

/* libfoo.so.1+0x1a2b: an address gets the same name in every run. */
static int result_fallback(
    struct symbols *symbols, const char *path, uint64_t vaddr, struct symbol_result *result)
{
	const char *slash = strrchr(path, '/'), *base = slash && slash[1] ? slash + 1 : path;
	struct symbol_frame *frame = string_pool_alloc(symbols->names, sizeof(*frame));
	size_t length = proc_undeleted_length(base);
	char name[300];

	if (!frame)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.*s+0x%" PRIx64, length < 256 ? (int)length : 255, base, vaddr);
	*frame = (struct symbol_frame){.name = string_pool_add(symbols->names, name, strlen(name))};
	frame->system_name = frame->name;
	*result = (struct symbol_result){frame, 1, false};
	return frame->name ? 0 : -ENOMEM;
}

/* The file's memo, created if necessary. NULL if the file has no key or memory is short. */
static struct memo *memo_of(struct symbols *symbols, const struct symbol_file *file)
{
	struct memo *memo = symbols->memos;

	if (!file->key)
		return NULL;
	while (memo && memo->key != file->key)
		memo = memo->next;
	if (memo)
		return memo;
	memo = calloc(1, sizeof(*memo));
	if (memo) {
		memo->key = file->key;
		memo->next = symbols->memos;
		symbols->memos = memo;
	}
	return memo;
}

static bool table_has_all(const struct table *table, const uint64_t *vaddrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!table_find(table, vaddrs[i]))
			return false;
	return true;
}

/* Adds what `known` lacks; empties `known` on failure. */
static int read_file(struct symbols *symbols, const struct symbol_file *file,
    const struct symbol_options *options, const uint64_t *vaddrs, size_t n, struct table *known,
    struct symbol_facts *facts)
{
	struct reader reader;
	struct symbol_facts found;
	uint64_t source_id;
	int error = reader_start(&reader, file, options);

	string_pool_limit(symbols->names, ANSWER_BYTES_MAX + n * ADDRESS_BYTES_MAX);
	if (!error)
		error = reader_source(&reader, &source_id, &found);
	if (!error && known->count == 0)
		cache_load(symbols, file, source_id, known, &found);
	if (!error)
		error = resolve_missing(symbols, &reader, source_id, known, &found, vaddrs, n);
	string_pool_limit(symbols->names, SIZE_MAX);
	reader_end(&reader);
	if (error)
		known->count = 0;
	else
		*facts = found;
	return error;
}

/* If the reader dies of a file, or runs out of memory, the file is read once more without its DWARF, the
 * largest and most intricate part. */
static void read_patiently(struct symbols *symbols, const struct symbol_file *file, const uint64_t *vaddrs,
    size_t n, struct table *known, struct symbol_facts *facts)
{
	struct symbol_options options = symbols->options;
	int error = read_file(symbols, file, &options, vaddrs, n, known, facts);

	if ((error != -EPIPE && error != -EPROTO && error != -EBADMSG && error != -ENOMEM) ||
	    options.detail != SYMBOL_FULL)
		return;
	options.detail = SYMBOL_FUNCTIONS;
	read_file(symbols, file, &options, vaddrs, n, known, facts);
}

int symbols_resolve(struct symbols *symbols, const struct symbol_file *file, const uint64_t *vaddrs, size_t n,
    struct symbol_result *out, struct symbol_facts *facts)
{
	struct memo *memo, once = {0};
	int error = 0;

	*facts = (struct symbol_facts){0};
	memset(out, 0, n * sizeof(*out));
	if (symbols->options.detail == SYMBOL_RAW)
		return 0;
	memo = memo_of(symbols, file);
	memo = memo ? memo : &once;
	if (n == 0 || !table_has_all(&memo->known, vaddrs, n))
		read_patiently(symbols, file, vaddrs, n, &memo->known, &memo->facts);
	*facts = memo->facts;
	for (size_t i = 0; i < n && !error; i++) {
		const struct symbol_result *found = table_find(&memo->known, vaddrs[i]);

		if (found && found->frame_count > 0)
			out[i] = *found;
		else
			error = result_fallback(symbols, file->path, vaddrs[i], &out[i]);
	}
	table_fini(&once.known);
	return error;
}

#define SPLIT_MEMORY_BYTES ((rlim_t)1 << 30)

bool symbols_is_split(const char *path)
{
	const struct symbol_options options = {.detail = SYMBOL_FULL};
	struct symbol_facts facts = {0};
	struct symbol_result result;
	struct rlimit before, limit;
	struct stat status;
	const uint64_t anywhere = 0;
	struct symbols *symbols = symbols_new(&options);
	const struct symbol_file file = {
	    .fd = symbols ? regular_file_open(AT_FDCWD, path, 0, &status) : -1, .path = path};

	if (file.fd >= 0 && getrlimit(RLIMIT_DATA, &before) == 0) {
		limit = before;
		limit.rlim_cur = before.rlim_cur < SPLIT_MEMORY_BYTES ? before.rlim_cur : SPLIT_MEMORY_BYTES;
		if (setrlimit(RLIMIT_DATA, &limit) == 0) /* the process that reads the file inherits it */
			(void)symbols_resolve(symbols, &file, &anywhere, 1, &result, &facts);
		setrlimit(RLIMIT_DATA, &before);
	}
	if (file.fd >= 0)
		close(file.fd);
	symbols_free(symbols);
	return facts.split;
}
