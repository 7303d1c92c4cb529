/* SPDX-License-Identifier: Apache-2.0 */
/* One process' stacks, and the profile that they become. */
#ifndef TESTS_UNIT_SYMBOLIZER_SCENE_H
#define TESTS_UNIT_SYMBOLIZER_SCENE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "sampler/symbol/symbol.h"
#include "sampler/write/symbolizer.h"
#include "tests/unit/workshop.h"

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

static inline int build(void **state)
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

static inline void open_library(struct desk *d, const char *name)
{
	snprintf(d->path, sizeof(d->path), "%s/%s", shop->folder, name);
	const struct map_range range = {
	    .start = BASE, .len = 1 << 20, .prot = PROT_READ | PROT_EXEC, .path = d->path};
	assert_int_equal(maps_add(d->maps, &range), 0);
	d->library = module_get(d->store, &(struct module_request){.path = d->path});
	assert_non_null(d->library);
}

static inline int open_desk(void **state)
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

static inline int close_desk(void **state)
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

static inline struct unwind_frame in_library(const struct desk *d, enum function function)
{
	return (struct unwind_frame){.pc = BASE + vaddrs[function] + 1,
	    .vaddr = vaddrs[function] + 1,
	    .module = d->library,
	    .kind = MAP_KIND_FILE};
}

static inline struct unwind_frame outside(uint64_t pc, enum map_kind kind)
{
	return (struct unwind_frame){.pc = pc, .vaddr = pc, .kind = (uint8_t)kind};
}

/* grow's call of calloc is past its prologue, if it has one: any address whose line is calloc's will do. */
static inline struct unwind_frame in_grow(const struct desk *d)
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

static inline uint32_t intern(
    struct desk *d, const struct unwind_frame *frames, size_t count, const char *marker)
{
	uint32_t stack = stacks_intern(d->stacks, frames, count, marker, d->maps);

	assert_int_not_equal(stack, UINT32_MAX);
	return stack;
}

/* All but those that are to be left out: `unused`, or STACK_ROOT. */
static inline void symbolize(struct desk *d, uint32_t unused)
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
static inline const char *spelled(struct desk *d, uint32_t stack, bool mapped)
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

static inline struct profile_location innermost(struct desk *d, uint32_t stack)
{
	const uint32_t *locations;

	assert_true(symbolizer_stack(d->symbolizer, stack, false, &locations) > 0);
	return profile_location(d->profile, locations[0]);
}

static inline const char *mapping_of(struct desk *d, uint32_t stack)
{
	return profile_mapping(d->profile, innermost(d, stack).mapping).filename;
}

#endif
