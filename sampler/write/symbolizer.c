/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/symbolizer.h"

#include "pprof/model/drop_frames.h"
#include "pprof/text/utf8.h"
#include "sampler/symbol/jitdump.h"
#include "sampler/symbol/kernel_symbols.h"
#include "sampler/symbol/perfmap.h"
#include "sampler/symbol/symbol.h"
#include "sampler/symbol/symcache.h"
#include "sampler/write/profile_mappings.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_COMMENTS_MAX = 8 };

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
	/* The names of code that the process generated at run time: its JIT compiler writes them into a
	 * jitdump or a perf map. */
	struct perfmap *perfmap;
	struct jitdump *jitdump;
	struct kernel_symbols *kernel; /* read when its first frame is found */
	struct named_frame *frames;    /* by frame number */
	struct profile_mappings *mappings;
	unsigned file_comments; /* files of which was said what is missing */
	uint32_t *path;         /* the array that symbolizer_stack returns */
};

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
	uint32_t mapping;
	uint64_t address;

	if (symbolizer->source.detail == SYMBOL_RAW)
		count = 0;
	if (!profile_mappings_find(symbolizer->mappings, number, &mapping, &address)) {
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
	    .mapping = mapping,
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

/* The jitdump counts where both have a name, because it says also when the code was there. */
static struct symbol_frame generated_name(const struct symbolizer *symbolizer, uint64_t address)
{
	const bool lines = symbolizer->source.detail == SYMBOL_FULL;
	const struct jitdump_name *made =
	    symbolizer->jitdump ? jitdump_find(symbolizer->jitdump, address) : NULL;
	const char *name = NULL;

	if (made)
		return (struct symbol_frame){.name = made->function,
		    .system_name = made->function,
		    .file = lines ? made->file : NULL,
		    .line = lines ? made->line : 0};
	if (symbolizer->perfmap)
		name = perfmap_find(symbolizer->perfmap, address);
	name = name ? name : "[jit]";
	return (struct symbol_frame){.name = name, .system_name = name};
}

/* Code that is in no file: generated at run time, or an address in no mapping. */
static int name_anonymous(struct symbolizer *symbolizer, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(symbolizer->stacks, number);
	uint8_t kind = stacks_mapping(symbolizer->stacks, frame->mapping)->kind;

	if (kind != MAP_KIND_ANON)
		return name_one(symbolizer, number, profile_mappings_kind_name(kind));
	const struct symbol_frame name = generated_name(symbolizer, frame->pc);
	return add_location(symbolizer, number, &name, 1);
}

static bool is_anonymous(const struct symbolizer *symbolizer, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(symbolizer->stacks, number);

	return symbolizer->frames[number].used && !frame->marker &&
	    stacks_mapping(symbolizer->stacks, frame->mapping)->kind == MAP_KIND_ANON;
}

/* A file that cannot be read as a whole gives a comment in the profile. */
static void read_perfmap(struct symbolizer *symbolizer)
{
	char comment[160];

	if (perfmap_read(symbolizer->perfmap, symbolizer->source.perf_map) == -ESTALE)
		profile_add_comment(
		    symbolizer->profile, "perf map: not read, it was written before the process started");
	if (perfmap_cut(symbolizer->perfmap)) {
		snprintf(comment, sizeof(comment),
		    "perf map: only its last %d MiB were read; older code in it is [jit] here",
		    PERFMAP_BYTES_MAX >> 20);
		profile_add_comment(symbolizer->profile, comment);
	}
}

static void read_jitdump(struct symbolizer *symbolizer)
{
	char comment[160];

	(void)jitdump_read(symbolizer->jitdump, symbolizer->source.jitdump->fd);
	if (jitdump_cut(symbolizer->jitdump)) {
		snprintf(comment, sizeof(comment),
		    "jitdump: only its first %d MiB were read; other code in it is [jit] here",
		    JITDUMP_BYTES_MAX >> 20);
		profile_add_comment(symbolizer->profile, comment);
	}
}

/* False if out of memory. A file that cannot be read is no error. */
static bool read_names_of_generated(struct symbolizer *symbolizer)
{
	const struct symbolizer_source *source = &symbolizer->source;
	const bool dumps = source->jitdump && source->jitdump->fd >= 0;
	const uint32_t total = stacks_frame_count(symbolizer->stacks);
	size_t count = 0;

	if ((!source->perf_map && !dumps) || source->detail == SYMBOL_RAW)
		return true;
	uint64_t *addresses = calloc(total + 1, sizeof(*addresses));
	if (!addresses)
		return false;
	for (uint32_t i = 0; i < total; i++)
		if (is_anonymous(symbolizer, i))
			addresses[count++] = stacks_frame(symbolizer->stacks, i)->pc;
	if (count && source->perf_map && (symbolizer->perfmap = perfmap_new(addresses, count)))
		read_perfmap(symbolizer);
	if (count && dumps && (symbolizer->jitdump = jitdump_new(addresses, count)))
		read_jitdump(symbolizer);
	free(addresses);
	return !count || (!source->perf_map == !symbolizer->perfmap && !dumps == !symbolizer->jitdump);
}

/* Says what is missing of one file: "WHAT of FILE WHY". */
static void note_missing(
    struct symbolizer *symbolizer, const struct module *module, const char *what, const char *why)
{
	const char *slash = strrchr(module->path, '/');
	char text[256];

	if (symbolizer->file_comments++ >= FILE_COMMENTS_MAX)
		return;
	snprintf(text, sizeof(text), "%s of %.100s %s", what, slash ? slash + 1 : module->path, why);
	utf8_disarm(text, strlen(text));
	profile_add_comment(symbolizer->profile, text);
}

static void note_unread(struct symbolizer *symbolizer, const struct module *module, int error)
{
	const char *why = "have no names: heaptap could not read its file";

	if (error == -ENOENT)
		why = "have no names: its file was removed before heaptap could open it";
	else if (error == -ESTALE)
		why = "have no names: its file was replaced before heaptap could open it";
	else if (error == -EACCES || error == -EPERM)
		why = "have no names: heaptap may not read its file";
	note_missing(symbolizer, module, "functions", why);
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
	const int fd = module->vdso ? -1 : module_fd(module);
	struct symbol_facts facts;
	const struct symbol_file file = {
	    .fd = fd,
	    .path = module->vdso ? "[vdso]" : module->path,
	    .build_id = module->file.build_id_len ? module->file.build_id : NULL,
	    .build_id_bytes = module->file.build_id_len,
	    .key = module,
	};
	if (!error)
		error = symbols_resolve(symbolizer->source.symbols, &file, addresses, count, results, &facts);
	if (!error && fd < 0 && !module->vdso && count && symbolizer->source.detail != SYMBOL_RAW)
		note_unread(symbolizer, module, fd);
	if (!error && facts.split)
		note_missing(symbolizer, module, "inlined calls",
		    "are missing: they are in .dwo files, which were not found, or in a .dwp file");
	for (uint32_t i = 0; i < count && !error; i++) {
		symbolizer->frames[numbers[i]].of_program =
		    profile_mappings_is_program(symbolizer->mappings, module);
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
	const struct profile_function function = {.name = marker, .system_name = marker};
	const struct profile_line line = {.function = profile_add_function(symbolizer->profile, &function)};
	const struct profile_location location = {
	    .mapping = profile_mappings_markers(symbolizer->mappings),
	    .address = PROFILE_MAPPINGS_MARKER_BASE + number,
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
	symbolizer->mappings = profile_mappings_new(profile,
	    &(struct profile_mappings_source){source->stacks, source->maps, source->program, source->called});
	if (symbolizer->frames && symbolizer->mappings && mark_used(symbolizer, used) &&
	    reserve_path(symbolizer) && read_names_of_generated(symbolizer) && name_all(symbolizer) == 0)
		return symbolizer;
	symbolizer_free(symbolizer);
	return NULL;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	perfmap_free(symbolizer->perfmap);
	jitdump_free(symbolizer->jitdump);
	kernel_symbols_free(symbolizer->kernel);
	profile_mappings_free(symbolizer->mappings);
	free(symbolizer->frames);
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
