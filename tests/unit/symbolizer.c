/* SPDX-License-Identifier: Apache-2.0 */
/* From stacks to a profile: a real library, there and gone; markers; what is cut. */
#include "tests/unit/symbolizer_scene.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_OF_GROW = 5 };

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
	    TEST(every_marker_has_an_address_of_its_own),
	    cmocka_unit_test(the_first_mapping_is_the_program),
	    cmocka_unit_test(the_program_has_the_name_it_was_called_by),
	};

	return cmocka_run_group_tests(tests, build, workshop_close);
}
