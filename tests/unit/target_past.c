/* SPDX-License-Identifier: Apache-2.0 */
/* What a process had mapped at an earlier count of its calls of dlclose: what it has noted, or nothing; and
 * whatever its notes are, no more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/intake/loader_log.h"
#include "sampler/intake/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Counts with no call of dlclose under way, and with one. */
#define AT(count)     ((uint64_t)(count) << LOADER_LOG_CALLS_BITS)
#define WITHIN(count) (AT(count) | 1)
#define START         UINT64_C(0x400000)
#define PLACE         UINT64_C(0x7f0000000000)
#define LIBRARY_BYTES UINT64_C(0x2000)

static struct region_place place;
static struct region_header header;
static struct loader_log noted;
static struct modules *store;
static struct target target;

static void add(struct maps *maps, uint64_t start, const char *path, uint8_t id)
{
	uint8_t build_id[LOADER_LOG_BUILD_ID_BYTES];

	memset(build_id, id, sizeof(build_id));
	const struct map_range range = {.start = start,
	    .len = LIBRARY_BYTES,
	    .pgoff = 0x1000,
	    .prot = PROT_READ | PROT_EXEC,
	    .path = path,
	    .build_id = build_id,
	    .build_id_len = sizeof(build_id)};
	assert_int_equal(maps_add(maps, &range), 0);
}

static struct loader_log_file *note(
    uint64_t since, uint64_t until, uint64_t start, const char *path, uint8_t id)
{
	struct loader_log_file *file = &noted.file[noted.files++];

	*file = (struct loader_log_file){.since = since,
	    .until = until,
	    .start = start,
	    .end = start + LIBRARY_BYTES,
	    .file_offset = 0x1000,
	    .build_id_bytes = sizeof(file->build_id)};
	memset(file->build_id, id, sizeof(file->build_id));
	strcpy(file->path, path);
	return file;
}

/* The process is at count NOW; its maps, with the program and a library, were read at READ_AT. */
static int begin(uint64_t now, uint64_t read_at, const char *library, uint8_t id)
{
	memset(&place, 0, sizeof(place));
	memset(&header, 0, sizeof(header));
	memset(&noted, 0, sizeof(noted));
	store = modules_new(0);
	assert_true(target_init(&target, 0, 0));
	target.maps = maps_new(store, 0, true);
	add(target.maps, START, "/program", 9);
	if (library)
		add(target.maps, PLACE, library, id);
	header.start_files = 1;
	header.start_file[0] = (struct region_range){START, START + LIBRARY_BYTES};
	atomic_store(&place.unmaps, now);
	noted.count = loader_log_count(now);
	target.past.source = (struct target_past_source){
	    .place = &place, .header = &header, .log = &noted, .log_until = UINT64_MAX};
	target.past.read_at = read_at;
	return 0;
}

static void end(void)
{
	target_fini(&target);
	modules_free(store);
}

/* What was at PLACE then; "": nothing that is known. The program is always known. */
static const char *there(uint64_t at)
{
	struct maps *maps = target_maps_at(&target, at);
	const struct map *map = maps_find(maps, PLACE);

	assert_string_equal(map_path(maps_find(maps, START)), "/program");
	return map ? map_path(map) : "";
}

static void of_its_own_count_the_maps_are_what_was_read(void **state)
{
	(void)state;
	begin(AT(4), AT(4), "/one.so", 1);
	assert_ptr_equal(target_maps_at(&target, AT(4)), target.maps);
	/* Of a process that does not count too. */
	target.past.source.place = NULL;
	assert_ptr_equal(target_maps_at(&target, AT(2)), target.maps);
	end();
}

static void of_another_count_only_what_was_noted_is_known(void **state)
{
	(void)state;
	begin(AT(6), AT(6), "/one.so", 1);
	assert_string_equal(there(AT(4)), "");
	note(3, 4, PLACE, "/two.so", 2);
	note(5, LOADER_LOG_STAYS, PLACE, "/one.so", 1);
	noted.changes += 2;
	atomic_store(&place.unmaps, AT(7)); /* else what was chosen once stays */
	noted.count = 7;
	assert_string_equal(there(AT(2)), "");
	assert_string_equal(there(AT(3)), "/two.so");
	assert_string_equal(there(AT(4)), "/two.so");
	assert_string_equal(there(AT(5)), "/one.so");
	/* What has not ended: what was there when it began. */
	assert_string_equal(there(AT(7)), "/one.so");
	/* What is not noted yet at all, and what has made room. */
	assert_string_equal(there(AT(8)), "");
	noted.whole_since = 5;
	assert_string_equal(there(AT(4)), "");
	assert_string_equal(there(AT(5)), "/one.so");
	end();
}

static void while_dlclose_runs_of_two_in_one_place_neither_is_believed(void **state)
{
	(void)state;
	begin(AT(8), AT(8), "/one.so", 1);
	note(2, 5, PLACE, "/two.so", 2);
	note(5, LOADER_LOG_STAYS, PLACE + 0x1000, "/one.so", 1);
	assert_string_equal(there(WITHIN(4)), "/two.so");
	assert_string_equal(there(WITHIN(5)), "");
	assert_string_equal(there(AT(6)), "");
	end();
	/* One that runs still: what was read now, and what it began with. */
	begin(WITHIN(5), WITHIN(5), "/one.so", 1);
	note(2, LOADER_LOG_STAYS, PLACE, "/two.so", 2);
	assert_string_equal(there(WITHIN(5)), "");
	noted.files = 0;
	note(2, LOADER_LOG_STAYS, PLACE, "/another/name/of/one.so", 1);
	target.past.readings++;
	assert_string_equal(there(WITHIN(5)), "/one.so");
	/* Where there was no room to note what was there, nobody knows. */
	noted.full = 1;
	noted.count = 6;
	target.past.read_at = TARGET_PAST_UNKNOWN;
	atomic_store(&place.unmaps, AT(6));
	assert_string_equal(there(WITHIN(5)), "");
	assert_string_equal(there(AT(5)), "/another/name/of/one.so");
	end();
}

static void a_childs_notes_are_its_parents_up_to_the_fork(void **state)
{
	(void)state;
	begin(AT(8), TARGET_PAST_UNKNOWN, "/one.so", 1);
	note(2, 5, PLACE, "/two.so", 2);
	note(6, LOADER_LOG_STAYS, PLACE, "/one.so", 1);
	target.past.source.log_until = 5;
	assert_string_equal(there(AT(5)), "/two.so");
	assert_string_equal(there(AT(6)), "");
	target.past.source.log = NULL;
	assert_string_equal(there(AT(4)), "");
	end();
}

static void notes_that_are_being_written_are_none(void **state)
{
	static struct loader_log_copy copy;

	(void)state;
	begin(AT(8), TARGET_PAST_UNKNOWN, NULL, 0);
	note(2, 5, PLACE, "/two.so", 2);
	noted.changes = 1;
	assert_false(loader_log_read(&noted, &copy));
	assert_string_equal(there(AT(4)), "");
	end();
}

static void what_makes_no_sense_there_is_left_out(void **state)
{
	static struct loader_log_copy copy;
	uint64_t random = 88172645463325252u;

	(void)state;
	begin(AT(8), TARGET_PAST_UNKNOWN, NULL, 0);
	note(6, 5, PLACE, "/a", 2);
	note(2, 5, PLACE, "/b", 2)->end = PLACE;
	note(2, 5, PLACE, "/c", 2)->build_id_bytes = LOADER_LOG_BUILD_ID_BYTES + 1;
	memset(note(2, 5, PLACE, "/d", 2)->path, 'd', LOADER_LOG_PATH_BYTES);
	note(2, 5, PLACE, "/e", 2);
	assert_true(loader_log_read(&noted, &copy));
	assert_int_equal(copy.files, 1);
	assert_string_equal(copy.file[0].path, "/e");
	/* All of it at random. */
	for (unsigned round = 0; round < 300; round++) {
		for (size_t i = offsetof(struct loader_log, count); i + 8 <= sizeof(noted); i += 8) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			const uint64_t word = round % 3 ? random & 0xff : random;
			memcpy((char *)&noted + i, &word, 8);
		}
		atomic_store(&place.unmaps, random);
		for (unsigned calls = 0; calls < 2; calls++)
			assert_true(maps_count(target_maps_at(
			                &target, (random & 0xff) << LOADER_LOG_CALLS_BITS | calls)) <=
			    1 + 2 * LOADER_LOG_FILES);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(of_its_own_count_the_maps_are_what_was_read),
	    cmocka_unit_test(of_another_count_only_what_was_noted_is_known),
	    cmocka_unit_test(while_dlclose_runs_of_two_in_one_place_neither_is_believed),
	    cmocka_unit_test(a_childs_notes_are_its_parents_up_to_the_fork),
	    cmocka_unit_test(notes_that_are_being_written_are_none),
	    cmocka_unit_test(what_makes_no_sense_there_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
