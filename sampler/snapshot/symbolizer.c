/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/symbolizer.h"

#include "sampler/snapshot/allocator_frames.h"
#include "sampler/snapshot/profile_addresses.h"
#include "sampler/symbol/jitdump.h"
#include "sampler/symbol/kernel_symbols.h"
#include "sampler/symbol/perfmap.h"
#include "sampler/symbol/symbol.h"
#include "sampler/symbol/symcache.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marker frames need an address that is neither zero nor real, and so does a program that is not mapped. */
enum {
	MARKER_BASE = PROFILE_ADDRESSES_RESERVED_START,
	NOWHERE_BASE = MARKER_BASE + 0x1000,
	NOWHERE_END = NOWHERE_BASE + 0x1000
};
_Static_assert(NOWHERE_END <= PROFILE_ADDRESSES_RESERVED_END, "one page each");

/* A hostile target has claimed so many addresses that there is none left for a frame. */
static const char no_address[] = "[no address left]";

struct named_frame {
	uint32_t location; /* 0: not made */
	bool used;
	bool allocator;         /* every function at this address belongs to the allocator */
	bool of_program, known; /* in the program's file; with a name */
};

struct symbolizer {
	struct profile *profile;
	struct symbolizer_source source;
	const struct stacks *stacks; /* source.stacks */
	struct perfmap *perfmap;
	struct jitdump *jitdump;
	struct kernel_symbols *kernel; /* read when its first frame is found */
	struct named_frame *frames;    /* by frame number */
	struct profile_addresses *layout;
	const struct module *program; /* its file; NULL: none of the mappings has the program's name */
	uint32_t *mappings;           /* profile ids, by range of the layout; 0: not made */
	uint32_t marker_mapping;
	uint32_t *path; /* symbolizer_stack's array */
};

/* ---- mappings */

static const char *special_name(uint8_t kind)
{
	switch ((enum map_kind)kind) {
	case MAP_KIND_ANON:
		return "[anon:jit]";
	case MAP_KIND_VDSO:
		return "[vdso]";
	case MAP_KIND_STACK:
		return "[stack]";
	case MAP_KIND_HEAP:
		return "[heap]";
	case MAP_KIND_UPROBES:
		return "[uprobes]";
	case MAP_KIND_KERNEL:
		return "[kernel.kallsyms]";
	default:
		return "[unknown]";
	}
}

static uint32_t add_mapping(struct symbolizer *n, uint64_t start, uint64_t end, uint64_t offset,
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
	return profile_add_mapping(n->profile, &mapping);
}

/* A program that was executed by a relative path is mapped under its absolute one. */
static bool is_program(const char *path, const char *name)
{
	const char *file = strrchr(path, '/'), *base = strrchr(name, '/');

	if (strcmp(path, name) == 0)
		return true;
	return name[0] && name[0] != '/' && path[0] == '/' && strcmp(file + 1, base ? base + 1 : name) == 0;
}

/* Readers show the first mapping's name as the program's. Debian's redis-server is a link to another name. */
static const char *file_name(const struct symbolizer *n, const struct module *module, const char *path)
{
	const bool program = (module && module == n->program) || is_program(path, n->source.program);

	return n->source.called && program ? n->source.called : path;
}

static uint32_t mapping_id(struct symbolizer *n, uint32_t number)
{
	if (!n->mappings[number]) {
		const struct profile_addresses_range *range = profile_addresses_range(n->layout, number);
		const struct stack_mapping *m = stacks_mapping(n->stacks, range->mapping);
		const char *name = m->module && !m->module->vdso ? file_name(n, m->module, m->module->path)
		                                                 : special_name(m->kind);

		n->mappings[number] =
		    add_mapping(n, range->start, range->limit, range->file_offset, m->module, name);
	}
	return n->mappings[number];
}

/* Readers take the program's name and build id from the first mapping. `resolved`: the program's path, where
 * its name is relative and a link. A process that was gone at the first look is known by such a name alone;
 * its mapping has passed the comparison of build ids (maps_add). */
static void find_main_mapping(struct symbolizer *n, const char *name, const char *resolved)
{
	/* A file has the path by which it was first met, which may be a link of another process'. */
	for (size_t i = 0; i < maps_count(n->source.maps) && !n->program; i++) {
		const struct map *map = maps_at(n->source.maps, i);

		if (is_program(map_path(map), name) || strcmp(map_path(map), resolved) == 0)
			n->program = map->module;
	}
	for (uint32_t i = 0; i < profile_addresses_count(n->layout); i++) {
		const struct stack_mapping *m =
		    stacks_mapping(n->stacks, profile_addresses_range(n->layout, i)->mapping);

		if (m->module &&
		    (m->module == n->program || is_program(m->module->path, name) ||
		        strcmp(m->module->path, resolved) == 0)) {
			mapping_id(n, i);
			return;
		}
	}
	for (size_t i = 0; i < maps_count(n->source.maps); i++) {
		const struct map *map = maps_at(n->source.maps, i);

		if ((is_program(map_path(map), name) || strcmp(map_path(map), resolved) == 0) &&
		    !profile_addresses_overlaps(n->layout, map->start, map->end)) {
			add_mapping(n, map->start, map->end, map->pgoff, map->module,
			    file_name(n, map->module, map_path(map)));
			return;
		}
	}
	add_mapping(n, NOWHERE_BASE, NOWHERE_END, 0, NULL, name[0] ? name : "[unknown]");
}

static void add_main_mapping(struct symbolizer *n)
{
	const char *name = n->source.program;
	char *resolved = name[0] && name[0] != '/' ? realpath(name, NULL) : NULL;

	find_main_mapping(n, name, resolved ? resolved : name);
	free(resolved);
}

/* ---- locations */

/* Lines innermost first. The allocator's own at the inner end are left out unless there are no others. */
static int add_location(struct symbolizer *n, uint32_t number, const struct symbol_frame *names, size_t count)
{
	struct named_frame *named = &n->frames[number];
	uint32_t range;
	uint64_t address;

	if (!profile_addresses_find(n->layout, number, &range, &address)) {
		named->location = symbolizer_marker(n, no_address);
		return named->location ? 0 : -1;
	}
	struct profile_line *lines = count ? calloc(count, sizeof(*lines)) : NULL;
	if (count && !lines)
		return -1;
	size_t cut = 0, kept = 0;
	while (cut < count && !n->source.allocator_stays && allocator_frames_has(names[cut].name))
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

		lines[kept].function = profile_add_function(n->profile, &function);
		lines[kept++].line = names[i].line;
	}
	const struct profile_location location = {
	    .mapping = mapping_id(n, range),
	    .address = address,
	    .lines = lines,
	    .line_count = kept,
	};
	named->location = profile_add_location(n->profile, &location);
	free(lines);
	return named->location ? 0 : -1;
}

static int name_one(struct symbolizer *n, uint32_t number, const char *name)
{
	const struct symbol_frame only = {.name = name, .system_name = name};

	return add_location(n, number, &only, n->source.detail == SYMBOL_RAW ? 0 : 1);
}

/* "[kernel]" if the kernel hides its symbols' addresses (kernel.kptr_restrict). */
static int name_kernel(struct symbolizer *n, uint32_t number)
{
	if (!n->kernel)
		n->kernel = kernel_symbols_open(KERNEL_SYMBOLS_PATH);
	const char *name =
	    n->kernel ? kernel_symbols_find(n->kernel, stacks_frame(n->stacks, number)->pc) : NULL;
	return name_one(n, number, name ? name : "[kernel]");
}

/* Code that is in no file: generated at run time, or an address in no mapping. */
static int name_anonymous(struct symbolizer *n, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(n->stacks, number);
	uint8_t kind = stacks_mapping(n->stacks, frame->mapping)->kind;

	if (kind != MAP_KIND_ANON)
		return name_one(n, number, special_name(kind));
	const struct jitdump_name *made = n->jitdump ? jitdump_find(n->jitdump, frame->pc) : NULL;
	const char *name = n->perfmap ? perfmap_find(n->perfmap, frame->pc) : NULL;
	if (!made)
		return name_one(n, number, name ? name : "[jit]");
	const struct symbol_frame only = {
	    .name = made->function,
	    .system_name = made->function,
	    .file = n->source.detail == SYMBOL_FULL ? made->file : NULL,
	    .line = n->source.detail == SYMBOL_FULL ? made->line : 0,
	};
	return add_location(n, number, &only, 1);
}

static bool is_anonymous(const struct symbolizer *n, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(n->stacks, number);

	return n->frames[number].used && !frame->marker &&
	    stacks_mapping(n->stacks, frame->mapping)->kind == MAP_KIND_ANON;
}

static void read_perfmap(struct symbolizer *n)
{
	char comment[160];
	int error = perfmap_read(n->perfmap, n->source.perf_map);

	if (error == -ESTALE)
		profile_add_comment(
		    n->profile, "perf map: not read, it was written before the process started");
	if (perfmap_cut(n->perfmap)) {
		snprintf(comment, sizeof(comment),
		    "perf map: only its last %d MiB were read; older code in it is [jit] here",
		    PERFMAP_BYTES_MAX >> 20);
		profile_add_comment(n->profile, comment);
	}
}

static void read_jitdump(struct symbolizer *n)
{
	char comment[160];

	(void)jitdump_read(n->jitdump, n->source.jitdump->fd);
	if (jitdump_cut(n->jitdump)) {
		snprintf(comment, sizeof(comment),
		    "jitdump: only its first %d MiB were read; other code in it is [jit] here",
		    JITDUMP_BYTES_MAX >> 20);
		profile_add_comment(n->profile, comment);
	}
}

/* Without these files there are no names, but a profile. False: out of memory. */
static bool read_names_of_generated(struct symbolizer *n)
{
	uint32_t total = stacks_frame_count(n->stacks);
	const bool maps = n->source.perf_map != NULL;
	const bool dumps = n->source.jitdump && n->source.jitdump->fd >= 0;
	size_t count = 0;

	if ((!maps && !dumps) || n->source.detail == SYMBOL_RAW)
		return true;
	uint64_t *addrs = calloc(total + 1, sizeof(*addrs));
	for (uint32_t i = 0; addrs && i < total; i++)
		if (is_anonymous(n, i))
			addrs[count++] = stacks_frame(n->stacks, i)->pc;
	n->perfmap = count && maps ? perfmap_new(addrs, count) : NULL;
	n->jitdump = count && dumps ? jitdump_new(addrs, count) : NULL;
	bool ok = addrs && (!count || ((n->perfmap || !maps) && (n->jitdump || !dumps)));
	free(addrs);
	if (n->perfmap)
		read_perfmap(n);
	if (n->jitdump)
		read_jitdump(n);
	return ok;
}

/* All frames of one file in one batch. */
static int name_module(struct symbolizer *n, struct module *module)
{
	uint32_t count = 0, total = stacks_frame_count(n->stacks);
	uint64_t *addresses = malloc(total * sizeof(*addresses));
	uint32_t *numbers = malloc(total * sizeof(*numbers));
	struct symbol_result *results = malloc(total * sizeof(*results));
	int error = addresses && numbers && results ? 0 : -1;

	for (uint32_t i = 0; i < total && !error; i++) {
		const struct stack_frame *frame = stacks_frame(n->stacks, i);

		if (!n->frames[i].used || n->frames[i].location || frame->marker ||
		    stacks_mapping(n->stacks, frame->mapping)->module != module)
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
		error = symbols_resolve(n->source.symbols, &file, addresses, count, results, &facts);
	for (uint32_t i = 0; i < count && !error; i++) {
		n->frames[numbers[i]].of_program = module == n->program;
		n->frames[numbers[i]].known = results[i].known;
		error = add_location(n, numbers[i], results[i].frames, results[i].frame_count);
	}
	free(addresses);
	free(numbers);
	free(results);
	return error;
}

/* False: out of memory. */
static bool mark_used(struct symbolizer *n, const bool *used)
{
	/* A node is used if a used stack contains it; outer nodes have smaller numbers. */
	uint32_t count = stacks_node_count(n->stacks);
	bool *through = calloc(count, sizeof(*through));

	for (uint32_t i = count; through && i-- > 1;) {
		if (!used[i] && !through[i])
			continue;
		const struct stack_node *node = stacks_node(n->stacks, i);
		through[node->outer] = true;
		n->frames[node->frame].used = true;
	}
	free(through);
	return through != NULL;
}

/* Room for the deepest stack and a marker, so that no stack is cut for want of memory. False: out of it. */
static bool reserve_path(struct symbolizer *n)
{
	uint32_t count = stacks_node_count(n->stacks), deepest = 0;
	uint32_t *depths = calloc(count, sizeof(*depths));

	for (uint32_t i = 1; depths && i < count; i++) {
		depths[i] = depths[stacks_node(n->stacks, i)->outer] + 1;
		deepest = depths[i] > deepest ? depths[i] : deepest;
	}
	n->path = depths ? calloc((size_t)deepest + 1, sizeof(*n->path)) : NULL;
	free(depths);
	return n->path != NULL;
}

static int name_all(struct symbolizer *n)
{
	int error = 0;

	for (uint32_t i = 0; i < stacks_frame_count(n->stacks) && !error; i++) {
		const struct stack_frame *frame = stacks_frame(n->stacks, i);

		if (!n->frames[i].used || n->frames[i].location)
			continue;
		struct module *module = stacks_mapping(n->stacks, frame->mapping)->module;
		if (frame->marker)
			n->frames[i].location = symbolizer_marker(n, frame->marker);
		else if (module)
			error = name_module(n, module);
		else if (stacks_mapping(n->stacks, frame->mapping)->kind == MAP_KIND_KERNEL)
			error = name_kernel(n, i);
		else
			error = name_anonymous(n, i);
	}
	return error;
}

uint32_t symbolizer_marker(struct symbolizer *n, const char *marker)
{
	/* One address each: the unwinder's, then the books'. */
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
	if (!n->marker_mapping)
		n->marker_mapping = add_mapping(n, MARKER_BASE, MARKER_BASE + 0x1000, 0, NULL, "[heaptap]");
	const struct profile_function function = {.name = marker, .system_name = marker};
	const struct profile_line line = {.function = profile_add_function(n->profile, &function)};
	const struct profile_location location = {
	    .mapping = n->marker_mapping,
	    .address = MARKER_BASE + number,
	    .lines = &line,
	    .line_count = 1,
	};
	return profile_add_location(n->profile, &location);
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
	struct symbolizer *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->profile = profile;
	n->source = *source;
	n->stacks = source->stacks;
	n->frames = calloc(stacks_frame_count(n->stacks) + 1, sizeof(*n->frames));
	n->layout = profile_addresses_new(n->stacks);
	n->mappings = n->layout ? calloc(profile_addresses_count(n->layout) + 1, sizeof(*n->mappings)) : NULL;
	if (!n->frames || !n->mappings)
		goto fail;
	add_main_mapping(n);
	if (mark_used(n, used) && reserve_path(n) && read_names_of_generated(n) && name_all(n) == 0)
		return n;
fail:
	symbolizer_free(n);
	return NULL;
}

void symbolizer_free(struct symbolizer *n)
{
	if (!n)
		return;
	perfmap_free(n->perfmap);
	jitdump_free(n->jitdump);
	kernel_symbols_free(n->kernel);
	profile_addresses_free(n->layout);
	free(n->frames);
	free(n->mappings);
	free(n->path);
	free(n);
}

bool symbolizer_is_stripped(const struct symbolizer *n, uint32_t stack)
{
	bool through = false;

	for (uint32_t at = stack; at != STACK_ROOT && n->source.detail != SYMBOL_RAW;
	     at = stacks_node(n->stacks, at)->outer) {
		const struct named_frame *named = &n->frames[stacks_node(n->stacks, at)->frame];
		if (named->of_program && named->known)
			return false;
		through = through || named->of_program;
	}
	return through;
}

size_t symbolizer_stack(struct symbolizer *n, uint32_t stack, bool mapped, const uint32_t **locations)
{
	size_t depth = 0;
	bool inner = true;

	if (mapped)
		n->path[depth++] = symbolizer_marker(n, SYMBOLIZER_MMAP);
	for (uint32_t at = stack; at != STACK_ROOT; at = stacks_node(n->stacks, at)->outer) {
		const struct stack_node *node = stacks_node(n->stacks, at);
		const struct named_frame *named = &n->frames[node->frame];

		/* Cut at the inner end only, and never the whole stack. */
		inner = inner && named->allocator && node->outer != STACK_ROOT;
		if (inner)
			continue;
		n->path[depth++] = named->location;
	}
	*locations = n->path;
	return depth;
}
