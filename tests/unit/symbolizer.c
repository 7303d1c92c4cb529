/* SPDX-License-Identifier: Apache-2.0 */
/* From stacks to a profile: a real library, there and gone; JIT code; the kernel; markers; what is cut. */
#include "sampler/write/symbolizer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/symbol/perfmap.h"
#include "sampler/symbol/symbol.h"
#include "tests/unit/workshop.h"

enum { LINE_OF_GROW = 5 };

#define BASE UINT64_C(0x7f0000000000) /* of the library */
#define JIT  UINT64_C(0x7f1000000000) /* of code in no file */
#define WILD UINT64_C(0x123456789000) /* of nothing at all */

/* calloc is at the inner end of grow: inlined there, and by its own in the middle of strange. */
static const char source[] = "#include <stddef.h>\n"
                             "char *volatile p;\n"
                             "static inline __attribute__((always_inline)) void *calloc(size_t n, size_t m)\n"
                             "{ p[n * m] = 1; return p; }\n"
                             "__attribute__((noinline)) void *grow(size_t n) { return calloc(n, 2); }\n"
                             "__attribute__((noinline)) void *work(size_t n) { return grow(n + 1) + 1; }\n"
                             "__attribute__((noinline)) void *malloc(size_t n) { return work(n + 3) + 1; }\n"
                             "__attribute__((noinline)) void *realloc(void *x, size_t n)\n"
                             "{ return malloc(n + 5) + 1; }\n";

enum function { GROW, WORK, MALLOC, REALLOC, FUNCTIONS };
static const char *const function_names[FUNCTIONS] = {"grow", "work", "malloc", "realloc"};

static struct workshop *shop;
static uint64_t vaddrs[FUNCTIONS]; /* in the library; of grow, inside of what was inlined */

static int build(void **state)
{
	if (workshop_open(state) != 0)
		return -1;
	shop = *state;
	if (!workshop_write(shop, "app.c", source) ||
	    workshop_run(shop,
	        "cc -g -O1 -fno-builtin -fno-optimize-sibling-calls -shared -fPIC -Wl,--build-id "
	        "-o app.so %s/app.c && nm app.so >symbols",
	        shop->folder) != 0)
		return -1;
	FILE *file = fopen(workshop_path(shop, "symbols"), "r");
	char line[256], name[64];
	uint64_t vaddr;
	while (file && fgets(line, sizeof(line), file))
		for (int i = 0; i < FUNCTIONS; i++)
			if (sscanf(line, "%" SCNx64 " T %63s", &vaddr, name) == 2 &&
			    strcmp(name, function_names[i]) == 0)
				vaddrs[i] = vaddr;
	return !file || fclose(file) || !vaddrs[GROW] || !vaddrs[WORK] || !vaddrs[MALLOC] || !vaddrs[REALLOC];
}

/* One process' stacks, and the profile that they become. */
struct desk {
	struct modules *store;
	struct maps *maps;
	struct stacks *stacks;
	struct module *library;
	struct symbols *symbols;
	struct profile *profile;
	struct symbolizer_source source;
	struct symbolizer *symbolizer;
	char path[128];
};

static void open_library(struct desk *d, const char *name)
{
	snprintf(d->path, sizeof(d->path), "%s/%s", shop->folder, name);
	const struct map_range range = {
	    .start = BASE, .len = 1 << 20, .prot = PROT_READ | PROT_EXEC, .path = d->path};
	assert_int_equal(maps_add(d->maps, &range), 0);
	d->library = module_get(d->store, &(struct module_request){.path = d->path});
	assert_non_null(d->library);
}

static int open_desk(void **state)
{
	struct desk *d = calloc(1, sizeof(*d));

	*state = d;
	d->store = modules_new(16);
	d->maps = maps_new(d->store, 0, false);
	d->stacks = stacks_new();
	d->profile = profile_new();
	const struct map_range jit = {.start = JIT, .len = 1 << 20, .prot = PROT_READ | PROT_EXEC};
	d->source = (struct symbolizer_source){
	    .stacks = d->stacks, .maps = d->maps, .program = "/usr/bin/none", .detail = SYMBOL_FULL};
	return maps_add(d->maps, &jit);
}

static int close_desk(void **state)
{
	struct desk *d = *state;

	symbolizer_free(d->symbolizer);
	symbols_free(d->symbols);
	profile_free(d->profile);
	stacks_unref(d->stacks);
	maps_free(d->maps);
	module_unref(d->library);
	modules_free(d->store);
	free(d);
	return 0;
}

static struct unwind_frame in_library(const struct desk *d, enum function function)
{
	return (struct unwind_frame){.pc = BASE + vaddrs[function] + 1,
	    .vaddr = vaddrs[function] + 1,
	    .module = d->library,
	    .kind = MAP_KIND_FILE};
}

static struct unwind_frame outside(uint64_t pc, enum map_kind kind)
{
	return (struct unwind_frame){.pc = pc, .vaddr = pc, .kind = (uint8_t)kind};
}

/* grow's call of calloc is past its prologue, if it has one: any address whose line is calloc's will do. */
static struct unwind_frame in_grow(const struct desk *d)
{
	struct unwind_frame frame = in_library(d, GROW);

	for (uint64_t at = vaddrs[GROW]; at < vaddrs[GROW] + 64; at++) {
		struct symbols *symbols = symbols_new(&(const struct symbol_options){.detail = SYMBOL_FULL});
		const struct symbol_file file = {.fd = module_fd(d->library), .path = d->path};
		struct symbol_result result;
		struct symbol_facts facts;

		assert_int_equal(symbols_resolve(symbols, &file, &at, 1, &result, &facts), 0);
		bool found = result.frame_count == 2;
		symbols_free(symbols);
		if (found) {
			frame.vaddr = at;
			frame.pc = BASE + at;
			return frame;
		}
	}
	fail_msg("the compiler has not inlined");
	return frame;
}

static uint32_t intern(struct desk *d, const struct unwind_frame *frames, size_t count, const char *marker)
{
	uint32_t stack = stacks_intern(d->stacks, frames, count, marker, d->maps);

	assert_int_not_equal(stack, UINT32_MAX);
	return stack;
}

/* All but those that are to be left out: `unused`, or STACK_ROOT. */
static void symbolize(struct desk *d, uint32_t unused)
{
	bool *used = calloc(stacks_node_count(d->stacks), sizeof(*used));

	for (uint32_t i = 1; i < stacks_node_count(d->stacks); i++)
		used[i] = i != unused;
	d->symbols = symbols_new(&(const struct symbol_options){.detail = d->source.detail});
	d->source.symbols = d->symbols;
	d->symbolizer = symbolizer_new(d->profile, &d->source, used);
	free(used);
	assert_non_null(d->symbolizer);
	assert_int_equal(profile_error(d->profile), 0);
}

/* Every function of the stack, innermost first, inlined ones joined by "<": "calloc<grow work". */
static const char *spelled(struct desk *d, uint32_t stack, bool mapped)
{
	static char text[1024];

	text[0] = '\0';
	const uint32_t *locations;
	size_t depth = symbolizer_stack(d->symbolizer, stack, mapped, &locations), length = 0;
	for (size_t i = 0; i < depth; i++) {
		struct profile_location location = profile_location(d->profile, locations[i]);

		assert_int_not_equal(location.mapping, 0);
		if (!location.line_count)
			length += (size_t)sprintf(text + length, "%s?", i ? " " : "");
		for (size_t n = 0; n < location.line_count; n++)
			length += (size_t)snprintf(text + length, 100, "%s%s", n ? "<" : &" "[!i],
			    profile_function(d->profile, location.lines[n].function).name);
	}
	return text;
}

static struct profile_location innermost(struct desk *d, uint32_t stack)
{
	const uint32_t *locations;

	assert_true(symbolizer_stack(d->symbolizer, stack, false, &locations) > 0);
	return profile_location(d->profile, locations[0]);
}

static const char *mapping_of(struct desk *d, uint32_t stack)
{
	return profile_mapping(d->profile, innermost(d, stack).mapping).filename;
}

/* ---- files */

static void functions_files_and_lines(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame frames[] = {in_grow(d), in_library(d, WORK)};
	uint32_t stack = intern(d, frames, 2, NULL);
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, stack, false), "grow work"); /* without calloc */
	struct profile_location location = innermost(d, stack);
	struct profile_function function = profile_function(d->profile, location.lines[0].function);
	assert_string_equal(function.filename, workshop_path(shop, "app.c"));
	assert_int_equal(location.lines[0].line, LINE_OF_GROW);
	assert_int_equal(function.start_line, LINE_OF_GROW);
	assert_int_equal(location.address, frames[0].pc);
	struct profile_mapping mapping = profile_mapping(d->profile, location.mapping);
	assert_string_equal(mapping.filename, d->path);
	assert_int_equal(mapping.start, BASE);
	assert_int_equal(mapping.limit, BASE + (1 << 20));
	char build_id[2 * MODULE_BUILD_ID_BYTES + 1] = "";
	for (int i = 0; i < d->library->file.build_id_len; i++)
		sprintf(build_id + 2 * i, "%02x", d->library->file.build_id[i]);
	assert_int_not_equal(d->library->file.build_id_len, 0);
	assert_string_equal(mapping.build_id, build_id);
}

static void less_detail_means_fewer_words(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame frames[] = {in_grow(d), outside(JIT + 64, MAP_KIND_ANON)};
	uint32_t stack = intern(d, frames, 2, "[truncated]");
	d->source.detail = SYMBOL_FUNCTIONS;
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, stack, false), "grow [jit] [truncated]");
	assert_int_equal(innermost(d, stack).lines[0].line, 0);
	symbolizer_free(d->symbolizer);
	symbols_free(d->symbols);
	profile_free(d->profile);
	d->profile = profile_new();
	d->source.detail = SYMBOL_RAW;
	symbolize(d, STACK_ROOT);
	/* A marker is no address that a reader could look up, so it is named even then. */
	assert_string_equal(spelled(d, stack, false), "? ? [truncated]");
	assert_int_equal(innermost(d, stack).address, frames[0].pc);
}

static void a_file_deleted_since_still_has_names(void **state)
{
	struct desk *d = *state;

	assert_int_equal(workshop_run(shop, "cp app.so deleted.so"), 0);
	open_library(d, "deleted.so");
	const struct unwind_frame frame = in_library(d, WORK);
	uint32_t stack = intern(d, &frame, 1, NULL);
	assert_int_equal(workshop_run(shop, "rm deleted.so"), 0);
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, stack, false), "work");
	assert_string_equal(mapping_of(d, stack), d->path);
}

static void a_file_that_was_never_seen_has_addresses(void **state)
{
	struct desk *d = *state;
	char name[64];

	open_library(d, "gone.so");
	assert_false(d->library->readable);
	const struct unwind_frame frame = in_library(d, WORK);
	uint32_t stack = intern(d, &frame, 1, NULL);
	symbolize(d, STACK_ROOT);
	snprintf(name, sizeof(name), "gone.so+0x%" PRIx64, frame.vaddr);
	assert_string_equal(spelled(d, stack, false), name);
	assert_string_equal(mapping_of(d, stack), d->path);
}

static void what_no_used_stack_needs_is_not_named(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame used[] = {in_library(d, MALLOC), in_library(d, WORK)};
	const struct unwind_frame unused[] = {in_library(d, REALLOC), in_library(d, WORK)};
	uint32_t stack = intern(d, used, 2, NULL), other = intern(d, unused, 2, NULL);
	d->source.allocator_stays = true;
	symbolize(d, other);
	assert_string_equal(spelled(d, stack, false), "malloc work");
	for (uint32_t i = 1; i <= profile_function_count(d->profile); i++)
		assert_string_not_equal(profile_function(d->profile, i).name, "realloc");
}

/* ---- what is cut off */

static void the_allocator_goes_from_the_inner_end_only(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame within[] = {in_library(d, MALLOC), in_library(d, REALLOC),
	    in_library(d, WORK), in_library(d, MALLOC), in_library(d, WORK)};
	const struct unwind_frame with_inlined = in_grow(d);
	uint32_t inner = intern(d, within, 5, NULL), alone = intern(d, within, 2, NULL);
	uint32_t inlined_alone = intern(d, &with_inlined, 1, NULL);
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, inner, false), "work malloc work");
	assert_string_equal(spelled(d, alone, false), "realloc"); /* never a stack without a frame */
	assert_string_equal(spelled(d, inlined_alone, false), "grow");
}

static void events_keep_the_allocator(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame within[] = {in_library(d, MALLOC), in_grow(d), in_library(d, WORK)};
	uint32_t stack = intern(d, within, 3, NULL);
	d->source.allocator_stays = true;
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, stack, false), "malloc calloc<grow work");
}

static void mappings_begin_with_mmap(void **state)
{
	struct desk *d = *state;

	open_library(d, "app.so");
	const struct unwind_frame frames[] = {in_library(d, MALLOC), in_library(d, WORK)};
	uint32_t stack = intern(d, frames, 2, NULL);
	symbolize(d, STACK_ROOT);
	assert_string_equal(spelled(d, stack, true), "[mmap] work");
	assert_string_equal(spelled(d, stack, false), "work");
}

/* ---- what is in no file */

/* The names are the target's, by its number and through its root: so it takes one that lives. */
static void code_made_at_run_time_has_the_names_it_was_given(void **state)
{
	struct desk *d = *state;
	const struct unwind_frame frames[] = {
	    outside(JIT + 0x10, MAP_KIND_ANON), outside(JIT + 0x200, MAP_KIND_ANON)};
	uint32_t stack = intern(d, frames, 2, NULL);
	int gate[2];
	char path[64];

	assert_int_equal(pipe(gate), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;

		close(gate[1]);
		(void)!read(gate[0], &byte, 1); /* until we are done, or gone */
		_exit(0);
	}
	close(gate[0]);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	unlink(path); /* of an earlier process */
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%" PRIx64 " 20 JS:*render /srv/app.js:12\n", JIT);
	fclose(file);
	struct perf_map_file perf_map;
	assert_int_equal(perf_map_file_note(&perf_map, pid), 0);
	/* The process is gone when its last profile is written. */
	close(gate[1]);
	waitpid(pid, NULL, 0);
	d->source.perf_map = &perf_map;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	assert_string_equal(spelled(d, stack, false), "JS:*render /srv/app.js:12 [jit]");
	assert_string_equal(mapping_of(d, stack), "[anon:jit]");
}

/* Of a map that is too large only the end is read, and the profile says so; not one that needs no names of
 * it. */
static void part_of_a_large_map(struct desk *d, enum symbol_detail detail, uint64_t second, bool cut)
{
	const struct unwind_frame frames[] = {
	    outside(JIT + 0x10, MAP_KIND_ANON), outside(JIT + second, MAP_KIND_ANON)};
	struct perf_map_file perf_map;
	char path[64], line[64];
	bool said = false;

	intern(d, frames, 2, NULL);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int length = snprintf(line, sizeof(line), "\n%" PRIx64 " 20 newest\n", JIT);
	assert_int_equal(pwrite(fd, line, (size_t)length, PERFMAP_BYTES_MAX), length);
	close(fd);
	assert_int_equal(perf_map_file_note(&perf_map, getpid()), 0);
	d->source.perf_map = &perf_map;
	d->source.detail = detail;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	for (size_t i = 0; i < profile_comment_count(d->profile); i++)
		said |= strcmp(profile_comment(d->profile, i),
		            "perf map: only its last 256 MiB were read; older code in it is [jit] here") == 0;
	assert_int_equal(said, cut);
}

/* It has the number of one that named its code: that file says nothing of ours. */
static void a_map_that_an_earlier_process_left(void **state)
{
	struct desk *d = *state;
	const struct unwind_frame frame = outside(JIT + 0x10, MAP_KIND_ANON);
	const uint32_t stack = intern(d, &frame, 1, NULL);
	const struct timespec before[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
	struct perf_map_file perf_map;
	char path[64];
	bool said = false;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(dprintf(fd, "%" PRIx64 " 20 not_ours\n", JIT) > 0);
	assert_int_equal(futimens(fd, before), 0);
	close(fd);
	assert_int_equal(perf_map_file_note(&perf_map, getpid()), 0);
	assert_true(perf_map.fd < 0);
	d->source.perf_map = &perf_map;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	assert_string_equal(spelled(d, stack, false), "[jit]");
	for (size_t i = 0; i < profile_comment_count(d->profile); i++)
		said |= strcmp(profile_comment(d->profile, i),
		            "perf map: not read, it was written before the process started") == 0;
	assert_true(said);
}

static void old_code_of_a_large_map(void **state)
{
	part_of_a_large_map(*state, SYMBOL_FULL, 0x200, true);
}

static void new_code_of_a_large_map(void **state)
{
	part_of_a_large_map(*state, SYMBOL_FULL, 0x18, false);
}

static void a_large_map_without_names(void **state)
{
	part_of_a_large_map(*state, SYMBOL_RAW, 0x200, false);
}

static void what_nothing_explains(void **state)
{
	static const struct {
		enum map_kind kind;
		const char *name, *mapping;
	} kinds[] = {{MAP_KIND_ANON, "[jit]", "[anon:jit]"}, {MAP_KIND_VDSO, "[vdso]", "[vdso]"},
	    {MAP_KIND_STACK, "[stack]", "[stack]"}, {MAP_KIND_HEAP, "[heap]", "[heap]"},
	    {MAP_KIND_UPROBES, "[uprobes]", "[uprobes]"}, {MAP_KIND_SPECIAL, "[unknown]", "[unknown]"}};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct desk *d = *state;
	uint32_t stacks[KINDS];
	for (size_t i = 0; i < KINDS; i++) {
		const struct unwind_frame frame = outside(WILD + 0x10000 * i, kinds[i].kind);

		stacks[i] = intern(d, &frame, 1, NULL);
	}
	symbolize(d, STACK_ROOT);
	for (size_t i = 0; i < KINDS; i++) {
		assert_string_equal(spelled(d, stacks[i], false), kinds[i].name);
		assert_string_equal(mapping_of(d, stacks[i]), kinds[i].mapping);
		assert_int_equal(innermost(d, stacks[i]).address, WILD + 0x10000 * i);
	}
}

/* A function that /proc/kallsyms lists here; 0: it lists nothing. */
static uint64_t kernel_function(char name[128])
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[256];
	uint64_t address = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " T %127s", &address, name) == 2 && strcmp(name, "vfs_read") == 0)
			break;
	if (file)
		fclose(file);
	return strcmp(name, "vfs_read") == 0 ? address : 0;
}

static void the_kernels_side(void **state)
{
	struct desk *d = *state;
	char name[128] = "", wanted[256];
	uint64_t address = kernel_function(name);
	const struct unwind_frame frames[] = {
	    outside(address ? address + 4 : UINT64_C(0xffffffff81000004), MAP_KIND_KERNEL),
	    outside(WILD, MAP_KIND_SPECIAL)};
	uint32_t stack = intern(d, frames, 2, NULL);

	if (!address)
		print_message("this kernel tells no addresses: only its fallback is tested\n");
	symbolize(d, STACK_ROOT);
	snprintf(wanted, sizeof(wanted), "%s [unknown]", address ? name : "[kernel]");
	assert_string_equal(spelled(d, stack, false), wanted);
	assert_string_equal(mapping_of(d, stack), "[kernel.kallsyms]");
}

/* ---- markers */

static void every_marker_has_an_address_of_its_own(void **state)
{
	static const char *const of_books[] = {
	    STACK_BEFORE_RESTART, SYMBOLIZER_MMAP, STACK_LOST_SAMPLES, STACK_NONE, "[lost stack]"};
	enum { BOOKS = sizeof(of_books) / sizeof(of_books[0]) };
	struct desk *d = *state;
	uint64_t addresses[UNWIND_OUTCOMES + BOOKS];
	size_t count = 0;

	symbolize(d, STACK_ROOT);
	for (size_t i = 0; i < UNWIND_OUTCOMES + BOOKS; i++) {
		const char *marker = i < UNWIND_OUTCOMES ? unwind_marker((enum unwind_outcome)i)
		                                         : of_books[i - UNWIND_OUTCOMES];

		if (!marker)
			continue;
		uint32_t id = symbolizer_marker(d->symbolizer, marker);
		assert_int_equal(symbolizer_marker(d->symbolizer, marker), id);
		struct profile_location location = profile_location(d->profile, id);
		assert_string_equal(profile_function(d->profile, location.lines[0].function).name, marker);
		struct profile_mapping mapping = profile_mapping(d->profile, location.mapping);
		assert_string_equal(mapping.filename, "[heaptap]");
		assert_in_range(location.address, mapping.start, mapping.limit - 1);
		assert_int_not_equal(location.address, 0);
		for (size_t n = 0; n < count; n++)
			assert_int_not_equal(addresses[n], location.address);
		addresses[count++] = location.address;
	}
	assert_true(count > BOOKS);
}

/* ---- the first mapping */

static void the_first_mapping_is_the_program(void **state)
{
	static const char *const relative[] = {"app.so", "./app.so", "elsewhere/app.so"};

	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(open_desk(state), 0);
		struct desk *d = *state;
		if (i < 5)
			open_library(d, "app.so");
		const struct unwind_frame library = d->library ? in_library(d, WORK) : outside(WILD, 0),
		                          jit = outside(JIT, MAP_KIND_ANON);
		intern(d, &jit, 1, NULL);
		if (i != 4) /* then it has no frame, but is mapped */
			intern(d, &library, 1, NULL);
		d->source.program = i < 3 ? relative[i] : d->path[0] ? d->path : "/usr/bin/none";
		symbolize(d, STACK_ROOT);
		struct profile_mapping first = profile_mapping(d->profile, 1);
		assert_string_equal(first.filename, d->path[0] ? d->path : "/usr/bin/none");
		assert_true(first.start < first.limit);
		assert_int_equal(first.start == BASE, i < 5);
		close_desk(state);
	}
	*state = NULL;
}

/* A link's name, for each mapping of the program and for no other file. */
static void the_program_has_the_name_it_was_called_by(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(open_desk(state), 0);
		struct desk *d = *state;
		open_library(d, "app.so");
		const struct unwind_frame library = in_library(d, WORK);
		intern(d, &library, 1, NULL);
		d->source.program = i ? "/usr/bin/none" : d->path;
		d->source.called = "/usr/bin/link";
		symbolize(d, STACK_ROOT);
		for (uint32_t at = 1; at <= profile_mapping_count(d->profile); at++) {
			const char *name = profile_mapping(d->profile, at).filename;

			assert_true(i || strcmp(name, d->path) != 0);
			assert_true(!i || strcmp(name, "/usr/bin/link") != 0);
		}
		if (!i)
			assert_string_equal(profile_mapping(d->profile, 1).filename, "/usr/bin/link");
		close_desk(state);
	}
	*state = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_desk, close_desk)
	const struct CMUnitTest tests[] = {
	    TEST(functions_files_and_lines),
	    TEST(less_detail_means_fewer_words),
	    TEST(a_file_deleted_since_still_has_names),
	    TEST(a_file_that_was_never_seen_has_addresses),
	    TEST(what_no_used_stack_needs_is_not_named),
	    TEST(the_allocator_goes_from_the_inner_end_only),
	    TEST(events_keep_the_allocator),
	    TEST(mappings_begin_with_mmap),
	    TEST(code_made_at_run_time_has_the_names_it_was_given),
	    TEST(a_map_that_an_earlier_process_left),
	    TEST(old_code_of_a_large_map),
	    TEST(new_code_of_a_large_map),
	    TEST(a_large_map_without_names),
	    TEST(what_nothing_explains),
	    TEST(the_kernels_side),
	    TEST(every_marker_has_an_address_of_its_own),
	    cmocka_unit_test(the_first_mapping_is_the_program),
	    cmocka_unit_test(the_program_has_the_name_it_was_called_by),
	};
	return cmocka_run_group_tests(tests, build, workshop_close);
}
