/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/symbolizer.h"

#include "pprof/model/drop_frames.h"
#include "pprof/text/utf8.h"
#include "sampler/symbol/kernel_symbols.h"
#include "sampler/symbol/symbol.h"
#include "sampler/symbol/symcache.h"
#include "sampler/write/generated_names.h"
#include "sampler/write/profile_addresses.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marker frames need an address that is neither zero nor real, and so does a program that is not mapped. */
enum {
	MARKER_BASE = PROFILE_ADDRESSES_RESERVED_START,
	NOWHERE_BASE = MARKER_BASE + 0x1000,
	NOWHERE_END = NOWHERE_BASE + 0x1000,
	SPLIT_COMMENTS_MAX = 8,
};
_Static_assert(NOWHERE_END <= PROFILE_ADDRESSES_RESERVED_END, "one page each");

static const char no_address[] = "[no address left]"; /* a hostile target has left none for the frame */

struct named_frame {
	uint32_t location; /* 0: not made */
	bool used;
	bool allocator;         /* every function at this address belongs to the allocator */
	bool of_program, known; /* it is in the program's file; it has a name */
};

struct symbolizer {
	struct profile *profile;
	struct symbolizer_source source;
	const struct stacks *stacks; /* source.stacks */
	struct generated_names generated;
	struct kernel_symbols *kernel; /* read when its first frame is found */
	struct named_frame *frames;    /* by frame number */
	struct profile_addresses *layout;
	const struct module *program; /* the file of the program; NULL: no mapping has the program's name */
	uint32_t *mappings;           /* ids in the profile, by range of the layout; 0: not made */
	uint32_t marker_mapping;
	unsigned split_count; /* files whose split debug info was mentioned */
	uint32_t *path;       /* the array that symbolizer_stack returns */
};

/* ---- mappings */

static const char *special_name(uint8_t kind)
{
	static const char *const names[] = {[MAP_KIND_ANON] = "[anon:jit]",
	    [MAP_KIND_VDSO] = "[vdso]",
	    [MAP_KIND_STACK] = "[stack]",
	    [MAP_KIND_HEAP] = "[heap]",
	    [MAP_KIND_UPROBES] = "[uprobes]",
	    [MAP_KIND_KERNEL] = "[kernel.kallsyms]"};

	return kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "[unknown]";
}

static uint32_t add_mapping(struct symbolizer *symbolizer, uint64_t start, uint64_t end, uint64_t offset,
    const struct module *module, const char *name)
{
	char build_id[MODULE_BUILD_ID_BYTES * 2 + 1] = "";

	for (size_t i = 0; module && i < module->file.build_id_len; i++)
		sprintf(build_id + i * 2, "%02x", module->file.build_id[i]);
	const struct profile_mapping mapping = {
	    .start = start,
	    .limit = end,
	    .file_offset = offset,
	    .filename = name,
	    .build_id = build_id,
	};
	return profile_add_mapping(symbolizer->profile, &mapping);
}

/* Is it the path of the program? A program that was executed by a relative path is mapped under its absolute
 * path. */
static bool is_program(const char *path, const char *name)
{
	const char *file = strrchr(path, '/'), *base = strrchr(name, '/');

	if (strcmp(path, name) == 0)
		return true;
	return name[0] && name[0] != '/' && path[0] == '/' && strcmp(file + 1, base ? base + 1 : name) == 0;
}

/* Readers show the first mapping's name as the program's. Debian's redis-server is a link to another name. */
static const char *file_name(
    const struct symbolizer *symbolizer, const struct module *module, const char *path)
{
	const bool program =
	    (module && module == symbolizer->program) || is_program(path, symbolizer->source.program);

	return symbolizer->source.called && program ? symbolizer->source.called : path;
}

static uint32_t mapping_id(struct symbolizer *symbolizer, uint32_t number)
{
	const struct profile_addresses_range *range = profile_addresses_range(symbolizer->layout, number);
	const struct stack_mapping *m = stacks_mapping(symbolizer->stacks, range->mapping);
	const char *path = m->module && !m->module->vdso ? m->module->path : NULL;

	if (!symbolizer->mappings[number])
		symbolizer->mappings[number] =
		    add_mapping(symbolizer, range->start, range->limit, range->file_offset, m->module,
		        path ? file_name(symbolizer, m->module, path) : special_name(m->kind));
	return symbolizer->mappings[number];
}

/* Is it the file of the program? `resolved` is the program's path, where its name is relative and a link. */
static bool is_main(const char *path, const char *name, const char *resolved)
{
	return is_program(path, name) || strcmp(path, resolved) == 0;
}

/* Readers take the program's name and build id from the first mapping. A process that was gone at the first
 * look is known by its name alone; its mapping has passed the comparison of build ids (maps_add). */
static void find_main_mapping(struct symbolizer *symbolizer, const char *name, const char *resolved)
{
	const struct profile_addresses *layout = symbolizer->layout;
	const struct maps *maps = symbolizer->source.maps;

	/* A file keeps the path by which it was first found, which may be a link that another process used.
	 * */
	for (size_t i = 0; i < maps_count(maps) && !symbolizer->program; i++)
		if (is_main(map_path(maps_at(maps, i)), name, resolved))
			symbolizer->program = maps_at(maps, i)->module;
	for (uint32_t i = 0; i < profile_addresses_count(layout); i++) {
		const struct module *module =
		    stacks_mapping(symbolizer->stacks, profile_addresses_range(layout, i)->mapping)->module;

		if (module && (module == symbolizer->program || is_main(module->path, name, resolved))) {
			mapping_id(symbolizer, i);
			return;
		}
	}
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);

		if (is_main(map_path(map), name, resolved) &&
		    !profile_addresses_overlaps(layout, map->start, map->end)) {
			add_mapping(symbolizer, map->start, map->end, map->pgoff, map->module,
			    file_name(symbolizer, map->module, map_path(map)));
			return;
		}
	}
	add_mapping(symbolizer, NOWHERE_BASE, NOWHERE_END, 0, NULL, name[0] ? name : "[unknown]");
}

static void add_main_mapping(struct symbolizer *symbolizer)
{
	const char *name = symbolizer->source.program;
	char *resolved = name[0] && name[0] != '/' ? realpath(name, NULL) : NULL;

	find_main_mapping(symbolizer, name, resolved ? resolved : name);
	free(resolved);
}

/* ---- locations */

/* Is the function the allocator's, or a wrapper of it: malloc, operator new, std::allocator? A heap profile
 * is about their callers, and most viewers ignore drop_frames, so these frames are cut off. POSIX extended
 * syntax agrees with pprof's RE2 on everything that the expression uses. */
static bool is_allocator(const char *function_name)
{
	static enum { UNKNOWN, GOOD, BAD } state;
	static regex_t regex;

	if (state == UNKNOWN)
		state =
		    regcomp(&regex, "^(" DROP_FRAMES_HEAP ")$", REG_EXTENDED | REG_NOSUB) == 0 ? GOOD : BAD;
	return state == GOOD && regexec(&regex, function_name, 0, NULL, 0) == 0;
}

/* Adds lines innermost first. Lines of the allocator at the inner end are left out, unless there are no
 * others. */
static int add_location(
    struct symbolizer *symbolizer, uint32_t number, const struct symbol_frame *names, size_t count)
{
	struct named_frame *named = &symbolizer->frames[number];
	uint32_t range;
	uint64_t address;

	if (symbolizer->source.detail == SYMBOL_RAW)
		count = 0;
	if (!profile_addresses_find(symbolizer->layout, number, &range, &address)) {
		named->location = symbolizer_marker(symbolizer, no_address);
		return named->location ? 0 : -1;
	}
	struct profile_line *lines = count ? calloc(count, sizeof(*lines)) : NULL;
	if (count && !lines)
		return -1;
	size_t cut = 0, kept = 0;
	while (cut < count && !symbolizer->source.allocator_stays && is_allocator(names[cut].name))
		cut++;
	named->allocator = count && cut == count;
	if (named->allocator)
		cut = 0;
	for (size_t i = cut; i < count; i++) {
		const struct profile_function function = {
		    .name = names[i].name,
		    .system_name = names[i].system_name,
		    .filename = names[i].file ? names[i].file : "",
		    .start_line = names[i].start_line,
		};

		lines[kept].function = profile_add_function(symbolizer->profile, &function);
		lines[kept++].line = names[i].line;
	}
	const struct profile_location location = {
	    .mapping = mapping_id(symbolizer, range),
	    .address = address,
	    .lines = lines,
	    .line_count = kept,
	};
	named->location = profile_add_location(symbolizer->profile, &location);
	free(lines);
	return named->location ? 0 : -1;
}

static int name_one(struct symbolizer *symbolizer, uint32_t number, const char *name)
{
	const struct symbol_frame only = {.name = name, .system_name = name};

	return add_location(symbolizer, number, &only, 1);
}

/* "[kernel]" if the kernel hides its symbols' addresses (kernel.kptr_restrict). */
static int name_kernel(struct symbolizer *symbolizer, uint32_t number)
{
	if (!symbolizer->kernel)
		symbolizer->kernel = kernel_symbols_open(KERNEL_SYMBOLS_PATH);
	const char *name = symbolizer->kernel
	    ? kernel_symbols_find(symbolizer->kernel, stacks_frame(symbolizer->stacks, number)->pc)
	    : NULL;
	return name_one(symbolizer, number, name ? name : "[kernel]");
}

/* Code that is in no file: generated at run time, or an address in no mapping. */
static int name_anonymous(struct symbolizer *symbolizer, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(symbolizer->stacks, number);
	uint8_t kind = stacks_mapping(symbolizer->stacks, frame->mapping)->kind;

	if (kind != MAP_KIND_ANON)
		return name_one(symbolizer, number, special_name(kind));
	const struct symbol_frame name =
	    generated_names_find(&symbolizer->generated, frame->pc, symbolizer->source.detail == SYMBOL_FULL);
	return add_location(symbolizer, number, &name, 1);
}

static bool is_anonymous(const struct symbolizer *symbolizer, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(symbolizer->stacks, number);

	return symbolizer->frames[number].used && !frame->marker &&
	    stacks_mapping(symbolizer->stacks, frame->mapping)->kind == MAP_KIND_ANON;
}

/* False if out of memory. A file that cannot be read is no error. */
static bool read_names_of_generated(struct symbolizer *symbolizer)
{
	const struct symbolizer_source *source = &symbolizer->source;
	const struct generated_files files = {
	    source->perf_map, source->jitdump && source->jitdump->fd >= 0 ? source->jitdump : NULL};
	const uint32_t total = stacks_frame_count(symbolizer->stacks);
	size_t count = 0;
	int error = 0;

	if ((!files.perf_map && !files.jitdump) || source->detail == SYMBOL_RAW)
		return true;
	uint64_t *addresses = calloc(total + 1, sizeof(*addresses));
	if (!addresses)
		return false;
	for (uint32_t i = 0; i < total; i++)
		if (is_anonymous(symbolizer, i))
			addresses[count++] = stacks_frame(symbolizer->stacks, i)->pc;
	if (count)
		error = generated_names_read(
		    &symbolizer->generated, &files, addresses, count, symbolizer->profile);
	free(addresses);
	return !error;
}

/* Says which inlined calls are missing. */
static void note_split(struct symbolizer *symbolizer, const struct module *module)
{
	const char *slash = strrchr(module->path, '/');
	char text[256];

	if (symbolizer->split_count++ >= SPLIT_COMMENTS_MAX)
		return;
	snprintf(text, sizeof(text),
	    "inlined calls of %.100s are missing: they are in .dwo files, which were not found, or in a .dwp "
	    "file",
	    slash ? slash + 1 : module->path);
	utf8_disarm(text, strlen(text));
	profile_add_comment(symbolizer->profile, text);
}

/* Names all frames of one file in one batch. */
static int name_module(struct symbolizer *symbolizer, struct module *module)
{
	uint32_t count = 0, total = stacks_frame_count(symbolizer->stacks);
	uint64_t *addresses = malloc(total * sizeof(*addresses));
	uint32_t *numbers = malloc(total * sizeof(*numbers));
	struct symbol_result *results = malloc(total * sizeof(*results));
	int error = addresses && numbers && results ? 0 : -1;

	for (uint32_t i = 0; i < total && !error; i++) {
		const struct stack_frame *frame = stacks_frame(symbolizer->stacks, i);

		if (!symbolizer->frames[i].used || symbolizer->frames[i].location || frame->marker ||
		    stacks_mapping(symbolizer->stacks, frame->mapping)->module != module)
			continue;
		addresses[count] = frame->vaddr;
		numbers[count++] = i;
	}
	struct symbol_facts facts;
	const struct symbol_file file = {
	    .fd = module->vdso ? -1 : module_fd(module),
	    .path = module->vdso ? "[vdso]" : module->path,
	    .build_id = module->file.build_id_len ? module->file.build_id : NULL,
	    .build_id_bytes = module->file.build_id_len,
	    .key = module,
	};
	if (!error)
		error = symbols_resolve(symbolizer->source.symbols, &file, addresses, count, results, &facts);
	if (!error && facts.split)
		note_split(symbolizer, module);
	for (uint32_t i = 0; i < count && !error; i++) {
		symbolizer->frames[numbers[i]].of_program = module == symbolizer->program;
		symbolizer->frames[numbers[i]].known = results[i].known;
		error = add_location(symbolizer, numbers[i], results[i].frames, results[i].frame_count);
	}
	free(addresses);
	free(numbers);
	free(results);
	return error;
}

/* False if out of memory. */
static bool mark_used(struct symbolizer *symbolizer, const bool *used)
{
	/* A node is used if a used stack contains it; outer nodes have smaller numbers. */
	uint32_t count = stacks_node_count(symbolizer->stacks);
	bool *through = calloc(count, sizeof(*through));

	for (uint32_t i = count; through && i-- > 1;) {
		if (!used[i] && !through[i])
			continue;
		const struct stack_node *node = stacks_node(symbolizer->stacks, i);
		through[node->outer] = true;
		symbolizer->frames[node->frame].used = true;
	}
	free(through);
	return through != NULL;
}

/* Makes room for the deepest stack and a marker, so that no stack is cut later. False if out of memory. */
static bool reserve_path(struct symbolizer *symbolizer)
{
	uint32_t count = stacks_node_count(symbolizer->stacks), deepest = 0;
	uint32_t *depths = calloc(count, sizeof(*depths));

	for (uint32_t i = 1; depths && i < count; i++) {
		depths[i] = depths[stacks_node(symbolizer->stacks, i)->outer] + 1;
		deepest = depths[i] > deepest ? depths[i] : deepest;
	}
	symbolizer->path = depths ? calloc((size_t)deepest + 1, sizeof(*symbolizer->path)) : NULL;
	free(depths);
	return symbolizer->path != NULL;
}

static int name_all(struct symbolizer *symbolizer)
{
	int error = 0;

	for (uint32_t i = 0; i < stacks_frame_count(symbolizer->stacks) && !error; i++) {
		const struct stack_frame *frame = stacks_frame(symbolizer->stacks, i);

		if (!symbolizer->frames[i].used || symbolizer->frames[i].location)
			continue;
		struct module *module = stacks_mapping(symbolizer->stacks, frame->mapping)->module;
		if (frame->marker)
			symbolizer->frames[i].location = symbolizer_marker(symbolizer, frame->marker);
		else if (module)
			error = name_module(symbolizer, module);
		else if (stacks_mapping(symbolizer->stacks, frame->mapping)->kind == MAP_KIND_KERNEL)
			error = name_kernel(symbolizer, i);
		else
			error = name_anonymous(symbolizer, i);
	}
	return error;
}

uint32_t symbolizer_marker(struct symbolizer *symbolizer, const char *marker)
{
	/* Each marker has an address of its own: first those of the unwinder, then those of the books. */
	static const char *const of_books[] = {
	    STACK_BEFORE_RESTART, SYMBOLIZER_MMAP, STACK_LOST_SAMPLES, STACK_NONE, no_address};
	uint32_t number = UNWIND_COUNTS;

	for (uint32_t i = 0; i < sizeof(of_books) / sizeof(of_books[0]); i++)
		if (strcmp(of_books[i], marker) == 0)
			number = UNWIND_COUNTS + 1 + i;
	for (uint32_t i = 0; i < UNWIND_COUNTS; i++) {
		const char *name = unwind_marker((enum unwind_outcome)i);

		if (name && strcmp(name, marker) == 0)
			number = i;
	}
	if (!symbolizer->marker_mapping)
		symbolizer->marker_mapping =
		    add_mapping(symbolizer, MARKER_BASE, MARKER_BASE + 0x1000, 0, NULL, "[heaptap]");
	const struct profile_function function = {.name = marker, .system_name = marker};
	const struct profile_line line = {.function = profile_add_function(symbolizer->profile, &function)};
	const struct profile_location location = {
	    .mapping = symbolizer->marker_mapping,
	    .address = MARKER_BASE + number,
	    .lines = &line,
	    .line_count = 1,
	};
	return profile_add_location(symbolizer->profile, &location);
}

struct symbols *symbolizer_symbols(enum symbol_detail detail, bool debuginfod)
{
	char folder[PATH_MAX];
	const struct symbol_options options = {
	    .detail = detail,
	    .cache_folder = symcache_folder(folder, sizeof(folder)) == 0 ? folder : NULL,
	    .debuginfod = debuginfod,
	};

	return symbols_new(&options);
}

struct symbolizer *symbolizer_new(
    struct profile *profile, const struct symbolizer_source *source, const bool *used)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return NULL;
	symbolizer->profile = profile;
	symbolizer->source = *source;
	symbolizer->stacks = source->stacks;
	symbolizer->frames = calloc(stacks_frame_count(symbolizer->stacks) + 1, sizeof(*symbolizer->frames));
	symbolizer->layout = profile_addresses_new(symbolizer->stacks);
	symbolizer->mappings = symbolizer->layout
	    ? calloc(profile_addresses_count(symbolizer->layout) + 1, sizeof(*symbolizer->mappings))
	    : NULL;
	if (symbolizer->frames && symbolizer->mappings) {
		add_main_mapping(symbolizer);
		if (mark_used(symbolizer, used) && reserve_path(symbolizer) &&
		    read_names_of_generated(symbolizer) && name_all(symbolizer) == 0)
			return symbolizer;
	}
	symbolizer_free(symbolizer);
	return NULL;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	generated_names_fini(&symbolizer->generated);
	kernel_symbols_free(symbolizer->kernel);
	profile_addresses_free(symbolizer->layout);
	free(symbolizer->frames);
	free(symbolizer->mappings);
	free(symbolizer->path);
	free(symbolizer);
}

bool symbolizer_is_stripped(const struct symbolizer *symbolizer, uint32_t stack)
{
	bool through = false;

	for (uint32_t at = stack; at != STACK_ROOT && symbolizer->source.detail != SYMBOL_RAW;
	     at = stacks_node(symbolizer->stacks, at)->outer) {
		const struct named_frame *named =
		    &symbolizer->frames[stacks_node(symbolizer->stacks, at)->frame];
		if (named->of_program && named->known)
			return false;
		through = through || named->of_program;
	}
	return through;
}

size_t symbolizer_stack(
    struct symbolizer *symbolizer, uint32_t stack, bool mapped, const uint32_t **locations)
{
	size_t depth = 0;
	bool inner = true;

	if (mapped)
		symbolizer->path[depth++] = symbolizer_marker(symbolizer, SYMBOLIZER_MMAP);
	for (uint32_t at = stack; at != STACK_ROOT; at = stacks_node(symbolizer->stacks, at)->outer) {
		const struct stack_node *node = stacks_node(symbolizer->stacks, at);
		const struct named_frame *named = &symbolizer->frames[node->frame];

		/* Frames are cut off at the inner end only, and never the whole stack. */
		inner = inner && named->allocator && node->outer != STACK_ROOT;
		if (inner)
			continue;
		symbolizer->path[depth++] = named->location;
	}
	*locations = symbolizer->path;
	return depth;
}
