/* SPDX-License-Identifier: Apache-2.0 */
/* Books and a scan of what lives, as the lines of the file of lifetimes. */
#include "sampler/snapshot/lifetimes_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "sampler/symbol/symbol.h"
#include "tests/unit/region_fixture.h"

#define CODE UINT64_C(0x7f1000000000) /* made at run time: has no names */
#define MS   UINT64_C(1000000)

enum { TID = 7, OTHER_TID = 8, TIME_NS = 1000, SIZE_BYTES = 64 };

/* One process' books, and the profile that has the names. */
struct scene {
	struct region region;
	struct heap *heap;
	struct modules *store;
	struct maps *maps;
	struct stacks *stacks;
	struct symbols *symbols;
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct live_scan live_scan;
	struct lifetimes_taken taken;
	char *text; /* of the file */
};

static int open_scene(void **state)
{
	const struct map_range code = {.start = CODE, .len = 1 << 20, .prot = PROT_READ | PROT_EXEC};
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	fixture_open(&s->region, 1024);
	s->heap = heap_new(&s->region, &(const struct heap_options){.temporary_ns = MS, .lifetimes = true});
	s->store = modules_new(4);
	s->maps = maps_new(s->store, 0, false);
	s->stacks = stacks_new();
	s->profile = profile_new();
	return maps_add(s->maps, &code);
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	free(s->text);
	lifetimes_file_release(&s->taken);
	live_scan_fini(&s->live_scan);
	symbolizer_free(s->symbolizer);
	symbols_free(s->symbols);
	profile_free(s->profile);
	stacks_unref(s->stacks);
	maps_free(s->maps);
	modules_free(s->store);
	heap_free(s->heap);
	region_close(&s->region);
	free(s);
	return 0;
}

/* Block `seq` was allocated at CODE + at, below `marker`, in the slot of that number. */
static void allocate(struct scene *s, uint64_t seq, uint64_t at, const char *marker, bool mapped)
{
	const struct unwind_frame frame = {.pc = CODE + at, .vaddr = CODE + at, .kind = MAP_KIND_ANON};
	const struct heap_sample sample = {.slot = (uint32_t)seq,
	    .seq = seq,
	    .stack = stacks_intern(s->stacks, &frame, 1, marker, s->maps),
	    .tid = TID,
	    .mapped = mapped,
	    .size_bytes = SIZE_BYTES,
	    .period_bytes = 1};

	assert_int_not_equal(sample.stack, UINT32_MAX);
	assert_int_equal(heap_add(s->heap, &sample), 0);
}

static struct region_sample sample_of(uint64_t seq)
{
	return (struct region_sample){.seq = seq,
	    .slot = (uint32_t)seq,
	    .size_bytes = SIZE_BYTES,
	    .period_bytes = 1,
	    .time_ns = TIME_NS,
	    .tid = TID};
}

static void free_after(struct scene *s, uint64_t seq, uint64_t lived_ns, uint32_t tid)
{
	const struct free_copy gone = {
	    .sample = sample_of(seq), .freed_ns = TIME_NS + lived_ns, .freed_tid = tid};

	assert_true(heap_freed(s->heap, &gone));
}

/* What the scan found; room for a few. */
static struct live_scan_block *find_block(struct scene *s, uint64_t seq)
{
	enum { BLOCKS_MAX = 8 };

	if (!s->live_scan.blocks)
		s->live_scan.blocks = calloc(BLOCKS_MAX, sizeof(*s->live_scan.blocks));
	struct live_scan_block *block = &s->live_scan.blocks[s->live_scan.count++];
	assert_true(s->live_scan.count <= BLOCKS_MAX);
	*block = (struct live_scan_block){
	    .slot = {.seq = seq, .sample = sample_of(seq), .state = SLOT_LIVE},
	    .number = (uint32_t)seq,
	    .live = true,
	};
	return block;
}

static void take(struct scene *s)
{
	assert_int_equal(lifetimes_file_take(&s->taken, s->heap, &s->live_scan), 0);
}

static const char *print(struct scene *s, uint64_t frees_missing)
{
	size_t bytes = 0, count = stacks_node_count(s->stacks);
	const struct symbolizer_source source = {.stacks = s->stacks,
	    .maps = s->maps,
	    .program = "/usr/bin/none",
	    .symbols = s->symbols = symbols_new(&(const struct symbol_options){.detail = SYMBOL_RAW}),
	    .detail = SYMBOL_RAW};
	bool *used = malloc(count);

	memset(used, true, count);
	s->symbolizer = symbolizer_new(s->profile, &source, used);
	free(used);
	assert_non_null(s->symbolizer);
	if (!s->taken.sites)
		take(s);
	s->taken.frees_missing = frees_missing;
	const struct lifetimes_input input = {
	    .taken = &s->taken, .heap = s->heap, .profile = s->profile, .symbolizer = s->symbolizer};
	s->text = lifetimes_file_print(&input, &bytes);
	assert_non_null(s->text);
	assert_int_equal(bytes, strlen(s->text));
	return s->text;
}

static const char first_line[] =
    "{\"classes\":[\"0-1us\",\"1us-10us\",\"10us-100us\",\"100us-1ms\",\"1ms-10ms\",\"10ms-100ms\","
    "\"100ms-1s\",\"1s-10s\",\"10s-1m\",\"1m-1h\",\"1h-\"],\"temporary_ns\":1000000,\"frees_missing\":3}\n";

/* The lines after the first. */
static const char *print_stacks(struct scene *s)
{
	const char *text = print(s, 3);

	assert_memory_equal(text, first_line, sizeof(first_line) - 1);
	return text + sizeof(first_line) - 1;
}

static void an_empty_file_names_the_classes(void **state)
{
	assert_string_equal(print_stacks(*state), "");
}

static void frees_by_age_and_by_thread(void **state)
{
	struct scene *s = *state;

	for (uint64_t seq = 1; seq <= 4; seq++)
		allocate(s, seq, 0x40, NULL, false);
	free_after(s, 1, MS / 2, TID);
	free_after(s, 2, MS, TID); /* not below temporary_ns */
	free_after(s, 3, 0, OTHER_TID);
	free_after(s, 4, 7200000 * MS, OTHER_TID);
	assert_string_equal(print_stacks(s),
	    "{\"stack\":[\"0x7f1000000040\"],\"freed\":[1,0,0,1,1,0,0,0,0,0,1],"
	    "\"live\":[0,0,0,0,0,0,0,0,0,0,0],\"freed_samples\":4,\"freed_bytes\":256,"
	    "\"temporary\":1,\"other_thread\":2}\n");
}

static void what_lives_by_its_age_so_far(void **state)
{
	struct scene *s = *state;

	s->live_scan.now_ns = TIME_NS + 2000 * MS;
	for (uint64_t seq = 1; seq <= 4; seq++)
		allocate(s, seq, 0x40, NULL, seq == 4);
	allocate(s, 5, 0x80, NULL, false); /* neither freed nor live: left out */
	find_block(s, 1);
	find_block(s, 2)->slot.sample.time_ns = UINT64_MAX; /* begun since the scan, or a lie */
	find_block(s, 3)->live = false;                     /* of the peak alone */
	find_block(s, 4);
	find_block(s, 6); /* its stack has not come */
	assert_string_equal(print_stacks(s),
	    "{\"stack\":[\"0x7f1000000040\"],\"freed\":[0,0,0,0,0,0,0,0,0,0,0],"
	    "\"live\":[1,0,0,0,0,0,0,1,0,0,0],\"freed_samples\":0,\"freed_bytes\":0,"
	    "\"temporary\":0,\"other_thread\":0}\n"
	    "{\"stack\":[\"[mmap]\",\"0x7f1000000040\"],"
	    "\"freed\":[0,0,0,0,0,0,0,0,0,0,0],\"live\":[0,0,0,0,0,0,0,1,0,0,0],"
	    "\"freed_samples\":0,\"freed_bytes\":0,\"temporary\":0,\"other_thread\":0}\n");
}

/* The books go on until a writer's child is forked: nothing is both live and freed. */
static void what_is_freed_later_is_still_live(void **state)
{
	struct scene *s = *state;

	s->live_scan.now_ns = TIME_NS + 2000 * MS;
	allocate(s, 1, 0x40, NULL, false);
	find_block(s, 1);
	take(s);
	free_after(s, 1, 3000 * MS, TID);
	allocate(s, 2, 0x80, NULL, false); /* a site more */
	free_after(s, 2, 1, TID);
	assert_string_equal(print_stacks(s),
	    "{\"stack\":[\"0x7f1000000040\"],\"freed\":[0,0,0,0,0,0,0,0,0,0,0],"
	    "\"live\":[0,0,0,0,0,0,0,1,0,0,0],\"freed_samples\":0,\"freed_bytes\":0,"
	    "\"temporary\":0,\"other_thread\":0}\n");
}

/* A line each, whatever is in the names. */
static void names_do_not_break_lines(void **state)
{
	static const char *const names[] = {
	    "a\nb", "a\"},\n{\"stack\":[", "\\\n", "\r\xe2\x80\xa8", "\xff\n"};
	struct scene *s = *state;

	for (uint64_t seq = 0; seq < sizeof(names) / sizeof(names[0]); seq++) {
		allocate(s, seq, 0x40, names[seq], false);
		free_after(s, seq, 1, TID);
	}
	const char *line = print_stacks(s);
	size_t lines = 0;
	for (const char *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
		static const char first[] = "{\"stack\":[\"0x7f1000000040\",\"",
		                  last[] = "\"other_thread\":0}";

		assert_true((size_t)(end - line) > sizeof(first) + sizeof(last));
		assert_memory_equal(line, first, sizeof(first) - 1);
		assert_memory_equal(end - (sizeof(last) - 1), last, sizeof(last) - 1);
	}
	assert_int_equal(*line, '\0'); /* the last one ends too */
	assert_int_equal(lines, sizeof(names) / sizeof(names[0]));
	assert_non_null(strstr(s->text, "\"a\\u000ab\"],\"freed\":"));
	assert_non_null(strstr(s->text, "\"a\\\"},\\u000a{\\\"stack\\\":[\"],\"freed\":"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(an_empty_file_names_the_classes),
	    TEST(frees_by_age_and_by_thread),
	    TEST(what_lives_by_its_age_so_far),
	    TEST(what_is_freed_later_is_still_live),
	    TEST(names_do_not_break_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
