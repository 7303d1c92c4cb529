/* SPDX-License-Identifier: Apache-2.0 */
/* The table of frames: what a frame is called, what part of a program it is from, and which frames count as
 * one. */
#include "pprof/analysis/frames.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pprof/analysis/filter.h"
#include "pprof/model/anonymous.h"
#include "pprof/table/array.h"
#include "pprof/text/short_name.h"

/* ---- roles */

enum { WORD_MOST_BYTES = 32, IDENTIFIER_MOST_BYTES = 256 };

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool starts_any(const char *text, const char *const *with, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (starts(text, with[i]))
			return true;
	return false;
}

/* ---- files */

static bool is_library_file(const char *module)
{
	static const char *const names[] = {"libc.so", "libc-2.", "libc.musl", "ld-linux", "ld-musl", "ld-2.",
	    "ld64.so", "libm.so", "libpthread", "libdl.so", "librt.so", "libstdc++.so", "libc++.so",
	    "libc++abi.so", "libgcc_s.so", "libjemalloc", "libtcmalloc", "libmimalloc", "libheaptap.so"};
	const char *slash = strrchr(module, '/');

	return starts_any(slash ? slash + 1 : module, names, ARRAY_COUNT(names));
}

static bool is_program_file(const char *module)
{
	const char *slash = strrchr(module, '/');

	return slash && !strstr(slash, ".so");
}

/* ---- namespaces */

/* Rust's crates core and alloc by their modules, since a C++ program may have namespaces of these names. */
static bool is_library_path(const char *name)
{
	static const char *const spaces[] = {
	    "std::", "__gnu_cxx::", "__cxxabiv1::", "__gnu_debug::", "hashbrown::", "__cxa_", "_Unwind_"};
	static const char *const crates[] = {"core::", "alloc::"};
	static const char *const modules[] = {"alloc", "any", "array", "ascii", "borrow", "boxed", "cell",
	    "char", "clone", "cmp", "collections", "convert", "default", "ffi", "fmt", "future", "hash",
	    "intrinsics", "iter", "marker", "mem", "net", "num", "ops", "option", "panic", "panicking", "pin",
	    "ptr", "raw_vec", "rc", "result", "slice", "str", "string", "sync", "task", "time", "unicode",
	    "vec"};

	if (starts_any(name, spaces, ARRAY_COUNT(spaces)))
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(crates); i++) {
		size_t length, at = strlen(crates[i]);

		if (!starts(name, crates[i]))
			continue;
		length = strcspn(name + at, ":<>, ");
		for (size_t j = 0; j < ARRAY_COUNT(modules); j++)
			if (strlen(modules[j]) == length && memcmp(modules[j], name + at, length) == 0)
				return true;
	}
	return false;
}

/* A type in Rust's <T as Trait>: of the library, or of no crate at all ("u8", "[T]", "F"). */
static bool is_library_type(const char *type, size_t length)
{
	while (length && (strchr("&[(*", *type) || starts(type, "mut ") || starts(type, "dyn "))) {
		size_t skipped = strchr("&[(*", *type) ? 1 : 4;

		if (skipped > length)
			return false;
		type += skipped;
		length -= skipped;
	}
	return is_library_path(type) || !memmem(type, length, "::", 2);
}

/* "<alloc::vec::Vec as core::clone::Clone>::clone"; both have to be the library's. */
static bool is_library_method(const char *name)
{
	const char *self = name + 1, *end = strstr(self, ">::"), *as = strstr(self, " as ");

	if (!end)
		return false;
	if (!as || as > end)
		return is_library_type(self, (size_t)(end - self));
	return is_library_type(self, (size_t)(as - self)) && is_library_type(as + 4, (size_t)(end - as - 4));
}

static bool is_library(const char *name)
{
	static const char *const starting[] = {"_start", "__libc_start_main", "__libc_start_call_main",
	    "start_thread", "clone", "clone3", "call_init", "_dl_init"};

	for (size_t i = 0; i < ARRAY_COUNT(starting); i++)
		if (strcmp(name, starting[i]) == 0)
			return true;
	return *name == '<' ? is_library_method(name) : is_library_path(name);
}

/* ---- scripts */

/* "py::f:/usr/lib/python3.12/json/decoder.py". Packages are installed in folders of these names; pip and the
 * like write a script into bin that only calls a package's main(). */
static bool is_python_library(const char *name)
{
	static const char *const folders[] = {
	    ":<frozen ", "/lib/python3", "/lib64/python3", "/site-packages/", "/dist-packages/"};
	const char *slash = strrchr(name, '/');

	for (size_t i = 0; i < ARRAY_COUNT(folders); i++)
		if (strstr(name, folders[i]))
			return true;
	return starts(name, "py::<module>:") && slash && slash - name >= 4 && starts(slash - 4, "/bin/") &&
	    !strchr(slash, '.');
}

/* "JS:*load /srv/load.js:3:1", "JS:~wrapSafe node:internal/modules/cjs/loader:1150:18" */
static bool is_javascript_library(const char *name)
{
	return !strchr(name, '/') || strstr(name, " node:") || strstr(name, "/node_modules/");
}

/* The names that V8, the JVM and Python give to the code that they make. */
static enum frame_role script_role(const char *name, const char *brief, const char *module)
{
	static const char *const functions[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
	static const char *const of_library[] = {"Builtin:", "BytecodeHandler:", "Handler:", "Stub:",
	    "RegExp:", "Interpreter", "StubRoutines", "call_stub", "vtable stub", "itable stub"};
	static const char *const of_java[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

	if (starts(name, "py::"))
		return is_python_library(name) ? FRAME_SCRIPT_LIBRARY : FRAME_SCRIPT;
	if (starts_any(name, functions, ARRAY_COUNT(functions)))
		return is_javascript_library(name) ? FRAME_SCRIPT_LIBRARY : FRAME_SCRIPT;
	if (strcmp(module, "[anon:jit]") != 0 || !*name)
		return FRAME_OWN;
	if (starts_any(name, of_library, ARRAY_COUNT(of_library)))
		return FRAME_LIBRARY;
	return starts_any(brief, of_java, ARRAY_COUNT(of_java)) ? FRAME_SCRIPT_LIBRARY : FRAME_SCRIPT;
}

/* ---- allocators */

static bool is_allocator_word(const char *word)
{
	static const char *const ends[] = {"malloc", "calloc", "realloc", "reallocarray", "memalign",
	    "valloc", "strdup", "strndup", "memdup"};
	size_t length = strlen(word);

	for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
		size_t bytes = strlen(ends[i]);

		if (length >= bytes && strcmp(word + length - bytes, ends[i]) == 0)
			return true;
	}
	return false;
}

/* What may stand after the word: "zmalloc_usable", "sqlite3DbMallocRawNN". */
static bool is_allocator_suffix(const char *word)
{
	static const char *const words[] = {"", "usable", "internal", "raw", "zero", "zeroed", "array",
	    "aligned", "n", "nn", "size", "ex", "impl"};

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/* Takes the last word off identifier[0 .. length): "sqlite3DbMallocRaw" ends with "raw". In small letters and
 * without digits. Returns what is left of the length. */
static size_t word_take(const char *identifier, size_t length, char word[WORD_MOST_BYTES])
{
	size_t start, bytes = 0;

	while (length && (identifier[length - 1] == '_' || isdigit((unsigned char)identifier[length - 1])))
		length--;
	start = length;
	while (start && identifier[start - 1] != '_' &&
	    (start == length ||
	        !(islower((unsigned char)identifier[start - 1]) &&
	            isupper((unsigned char)identifier[start]))) &&
	    !isdigit((unsigned char)identifier[start - 1]))
		start--;
	for (size_t i = start; i < length && bytes + 1 < WORD_MOST_BYTES; i++)
		word[bytes++] = (char)tolower((unsigned char)identifier[i]);
	word[bytes] = '\0';
	return start;
}

/* The name's last component: "Pool::allocate" has "allocate". */
static size_t identifier_of(const char *name, const char **identifier)
{
	const char *end = name + strcspn(name, "(<{[@+ "), *at = end;

	while (at > name && at[-1] != ':' && at[-1] != '.')
		at--;
	*identifier = at;
	return (size_t)(end - at);
}

static enum frame_role allocator_role(const char *name)
{
	static const char *const exact[] = {"operator new", "operator delete", "__rust_alloc",
	    "__rust_realloc", "__rdl_", "__rg_", "posix_memalign", "aligned_alloc", "[mmap]"};
	const char *identifier;
	size_t length = identifier_of(name, &identifier), left = length;
	char word[WORD_MOST_BYTES];

	if (starts_any(name, exact, ARRAY_COUNT(exact)))
		return FRAME_ALLOCATOR;
	if (!length || length > IDENTIFIER_MOST_BYTES)
		return FRAME_OWN;
	do {
		left = word_take(identifier, left, word);
		if (is_allocator_word(word))
			return FRAME_ALLOCATOR;
	} while (left && is_allocator_suffix(word));
	for (size_t i = 0; i + 5 <= length; i++)
		if (strncasecmp(identifier + i, "alloc", 5) == 0)
			return FRAME_ALLOCATES;
	return FRAME_OWN;
}

enum frame_role frames_role(const char *name, const char *brief, const char *module)
{
	enum frame_role role = script_role(name, brief, module);

	if (*name != '[' && role != FRAME_OWN)
		return role;
	role = allocator_role(brief);
	if (role == FRAME_ALLOCATOR)
		return role;
	if (*name == '[' || !*name)
		return FRAME_UNNAMED;
	if (strstr(name, "+0x"))
		return is_program_file(module) ? FRAME_UNNAMED_OWN : FRAME_UNNAMED;
	return is_library_file(module) || is_library(brief) ? FRAME_LIBRARY : role;
}

/* ---- the table */

/* The table of frames: what a frame is called, and which frames count as one. */

void frames_fini(struct frames *f)
{
	intern_fini(&f->strings);
	index_fini(&f->index);
	free(f->rows);
}

static const char *intern(struct frames *f, const char *text)
{
	uint32_t number;

	return intern_add(&f->strings, text, strlen(text), &number) ? NULL : intern_at(&f->strings, number);
}

/* The file's name without its folders. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Interned strings are equal if their pointers are. */
static int find_or_append(struct frames *f, const struct frames_row *frame, uint32_t *number)
{
	uint64_t hash = index_seed();
	size_t cursor;
	uint32_t id, fold;

	hash = index_mix(hash, (uintptr_t)frame->name);
	hash = index_mix(hash, f->lines ? (uintptr_t)frame->file : 0);
	hash = index_mix(hash, f->lines ? (uint64_t)frame->line : 0);
	fold = index_fold(hash);
	cursor = index_start(fold);
	while ((id = index_next(&f->index, fold, &cursor))) {
		struct frames_row *old = &f->rows[id - 1];

		if (old->name == frame->name &&
		    (!f->lines || (old->file == frame->file && old->line == frame->line))) {
			/* A function that is in several files matches a filter if one of the files does. */
			old->marks |= frame->marks;
			*number = id - 1;
			return 0;
		}
	}
	if (f->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&f->rows, &f->capacity, (size_t)f->count + 1, sizeof(*f->rows)) ||
	    index_add(&f->index, fold, f->count + 1))
		return -ENOMEM;
	f->rows[f->count] = *frame;
	*number = f->count++;
	return 0;
}

/* The short form of a name, in memory of its own. NULL if there is no memory. */
static char *shorten(const char *name)
{
	size_t length = strlen(name);
	char *text = malloc(length + 1);

	if (text)
		short_name(name, length, text);
	return text;
}

static int name_set(struct frames *f, struct frames_row *frame, const char *name, const char *brief)
{
	frame->name = intern(f, f->names == FRAMES_SHORT ? brief : name);
	frame->label = f->names == FRAMES_LABELS ? intern(f, brief) : frame->name;
	return frame->name && frame->label ? 0 : -ENOMEM;
}

/* Filters match what the profile says and its short form, as it is shown; not hashes. */
int frames_add(
    struct frames *f, const char *name, const char *file, const char *module, int64_t line, uint32_t *number)
{
	struct frames_row frame = {.line = f->lines ? line : 0};
	char bare[256], hashed[3][ANONYMOUS_BYTES], *brief = shorten(name);
	int err;

	if (!brief)
		return -ENOMEM;
	frame.role = (uint8_t)frames_role(name, brief, module);
	if (f->filter)
		frame.marks = filter_frame(f->filter, name, file, module) |
		    (strcmp(name, brief) ? filter_frame(f->filter, brief, file, module) : 0);
	if (f->anonymize) {
		name = anonymous_name('f', name, hashed[0]);
		file = anonymous_name('s', file, hashed[1]);
		module = anonymous_name('m', module, hashed[2]);
	}
	if (!*name && *module)
		snprintf(bare, sizeof(bare), *module == '[' ? "%s" : "[%s]", base_name(module));
	if (!*name)
		name = *module ? bare : "<unknown>";
	frame.file = intern(f, file);
	frame.module = intern(f, module);
	err = name_set(f, &frame, name, *brief && !f->anonymize ? brief : name);
	free(brief);
	return err || !frame.file || !frame.module ? -ENOMEM : find_or_append(f, &frame, number);
}
