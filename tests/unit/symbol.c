/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of files as real compilers and tools make them: one program in many builds, at places whose inline
 * chain and lines are written in its source. The comparison with other symbolizers is in symbol_reference.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/symbol_scene.h"

static void every_build_gives_the_same_chains(void **state)
{
	static const char *const commands[] = {
	    "g++ -O2 -g -gdwarf-4",
	    "g++ -O2 -g -gdwarf-5",
	    "g++ -O0 -g",
	    "g++ -O2 -g -gz=zlib",
	    "g++ -O2 -g -fdebug-types-section -gdwarf-4",
	    "g++ -O2 -g -fdebug-types-section -gdwarf-5",
	    "g++ -O2 -g -ffunction-sections -Wl,--gc-sections -no-pie -fno-pie",
	    "g++ -O2 -g -flto",
	    "clang++ -O2 -g -gdwarf-4",
	    "clang++ -O2 -g -gdwarf-5",
	    "clang++ -O1 -g -gz=zlib -ffunction-sections",
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		uint64_t vaddrs[MARKS];
		struct answer answer;

		build(*state, "built", commands[i]);
		read_marks(*state, "built", vaddrs);
		ask(&full, workshop_path(*state, "built"), NULL, vaddrs, &answer);
		assert_int_equal(answer.facts.source, SYMBOL_DWARF);
		assert_true(answer.facts.has_lines && answer.facts.has_inlines && !answer.facts.debug_file);
		expect_chains(&answer);
		symbols_free(answer.symbols);
	}
}

static void levels_say_how_much(void **state)
{
	struct symbol_options options = {.detail = SYMBOL_FUNCTIONS};
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	ask(&options, workshop_path(*state, "plain"), NULL, vaddrs, &answer);
	expect_functions(&answer, SYMBOL_SYMTAB);
	symbols_free(answer.symbols);
	options.detail = SYMBOL_RAW;
	ask(&options, workshop_path(*state, "plain"), NULL, vaddrs, &answer);
	assert_int_equal(answer.facts.source, SYMBOL_NONE);
	for (int i = 0; i < MARKS; i++)
		assert_int_equal(answer.results[i].frame_count, 0);
	symbols_free(answer.symbols);
}

static void system_names_are_the_linkers(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	ask(&full, workshop_path(*state, "plain"), NULL, vaddrs, &answer);
	assert_string_equal(answer.results[0].frames[0].system_name, "_ZN3app5CacheIdE4fillEPKdi");
	assert_string_equal(answer.results[0].frames[2].system_name, "_ZN3app5outerEPKdi");
	assert_string_equal(answer.results[3].frames[0].system_name, "c_entry");
	assert_ptr_equal(answer.results[3].frames[0].system_name, answer.results[3].frames[0].name);
	symbols_free(answer.symbols);
}

static void stripped_files_give_what_they_have(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	assert_int_equal(workshop_run(*state, "strip -g -o strip.g plain && strip -o strip.s plain"), 0);
	ask(&full, workshop_path(*state, "strip.g"), NULL, vaddrs, &answer);
	expect_functions(&answer, SYMBOL_SYMTAB);
	symbols_free(answer.symbols);
	ask(&full, workshop_path(*state, "strip.s"), NULL, vaddrs, &answer);
	assert_int_equal(answer.facts.source, SYMBOL_DYNSYM);
	assert_string_equal(answer.results[0].frames[0].name, "app::outer");
	assert_string_equal(answer.results[3].frames[0].name, "c_entry");
	symbols_free(answer.symbols);
}

static void a_miss_names_the_place(void **state)
{
	static const uint64_t vaddrs[MARKS] = {0, 0x1a2b, UINT64_MAX, 0x1a2b};
	struct answer answer;

	assert_int_equal(workshop_run(*state,
	                     "echo 'this is no ELF file' >'libfoo.so.1 (deleted)' && : >empty && "
	                     "printf '\\177ELF\\2\\1\\1' >short"),
	    0);
	ask(&full, workshop_path(*state, "libfoo.so.1 (deleted)"), NULL, vaddrs, &answer);
	assert_string_equal(answer.results[0].frames[0].name, "libfoo.so.1+0x0");
	assert_string_equal(answer.results[1].frames[0].name, "libfoo.so.1+0x1a2b");
	assert_string_equal(answer.results[2].frames[0].name, "libfoo.so.1+0xffffffffffffffff");
	assert_ptr_equal(answer.results[3].frames[0].name, answer.results[1].frames[0].name);
	assert_ptr_equal(answer.results[0].frames[0].system_name, answer.results[0].frames[0].name);
	assert_false(answer.results[0].known);
	assert_int_equal(answer.facts.source, SYMBOL_NONE);
	symbols_free(answer.symbols);
	ask(&full, workshop_path(*state, "empty"), NULL, vaddrs, &answer);
	assert_string_equal(answer.results[1].frames[0].name, "empty+0x1a2b");
	symbols_free(answer.symbols);
	ask(&full, workshop_path(*state, "short"), NULL, vaddrs, &answer);
	assert_string_equal(answer.results[1].frames[0].name, "short+0x1a2b");
	symbols_free(answer.symbols);
}

/* The second time the file could be gone: nothing of it but its head is read. */
static void the_cache_answers_the_second_time(void **state)
{
	static const uint8_t id[20] = {1, 2, 3};
	const struct symbol_file like = {.build_id = id, .build_id_bytes = sizeof(id)};
	struct symbol_options options = full;
	uint64_t vaddrs[MARKS];
	struct answer answer;

	options.cache_folder = workshop_path(*state, "cache");
	build_plain(*state, vaddrs);
	assert_int_equal(workshop_run(*state, "cp plain cached"), 0);
	for (int turn = 0; turn < 2; turn++) {
		uint64_t asked[MARKS] = {vaddrs[0], vaddrs[turn], vaddrs[0], 0};

		ask(&options, workshop_path(*state, "cached"), &like, asked, &answer);
		assert_string_equal(answer.results[1].frames[0].name, mark_chains[turn][0]);
		assert_string_equal(answer.results[3].frames[0].name, "cached+0x0");
		symbols_free(answer.symbols);
	}
	ask(&options, workshop_path(*state, "cached"), &like, vaddrs, &answer);
	expect_chains(&answer);
	symbols_free(answer.symbols);

	/* Same size, same build id, no content: only the cache can know. */
	assert_int_equal(workshop_run(*state,
	                     "size=$(stat -c %%s cached) && head -c 4096 cached >head && "
	                     "truncate -s $size head && cp head cached"),
	    0);
	ask(&options, workshop_path(*state, "cached"), &like, vaddrs, &answer);
	expect_chains(&answer);
	assert_int_equal(answer.facts.source, SYMBOL_DWARF);
	assert_true(answer.facts.has_lines && answer.facts.has_inlines);
	symbols_free(answer.symbols);
	/* Another file with that build id, size and owner has its own names: it gets none, gives none. */
	assert_int_equal(workshop_run(*state, "cp head other"), 0);
	options.cache_folder = workshop_path(*state, "cache");
	ask(&options, workshop_path(*state, "other"), &like, vaddrs, &answer);
	assert_false(answer.results[0].known);
	symbols_free(answer.symbols);
	ask(&options, workshop_path(*state, "cached"), &like, vaddrs, &answer);
	expect_chains(&answer);
	symbols_free(answer.symbols);
	options.detail = SYMBOL_FUNCTIONS;
	ask(&options, workshop_path(*state, "cached"), &like, vaddrs, &answer);
	assert_false(answer.results[0].known);
	symbols_free(answer.symbols);
}

static void a_file_with_a_key_is_read_for_new_addresses_only(void **state)
{
	struct symbol_file file = {.path = workshop_path(*state, "plain"), .key = &file};
	struct symbols *symbols = symbols_new(&full);
	struct answer answer = {.symbols = symbols};
	uint64_t vaddrs[MARKS];
	int fd;

	build_plain(*state, vaddrs);
	fd = open(file.path, O_RDONLY | O_CLOEXEC);
	for (size_t known = 1; known <= MARKS; known++) {
		file.fd = fd;
		assert_int_equal(
		    symbols_resolve(symbols, &file, vaddrs + known - 1, 1, answer.results, &answer.facts), 0);
		file.fd = -1;
		assert_int_equal(
		    symbols_resolve(symbols, &file, vaddrs, known, answer.results, &answer.facts), 0);
		assert_int_equal(answer.facts.source, SYMBOL_DWARF);
	}
	expect_chains(&answer);
	/* Without a key nothing is known of it. */
	file.key = NULL;
	assert_int_equal(symbols_resolve(symbols, &file, vaddrs, MARKS, answer.results, &answer.facts), 0);
	assert_false(answer.results[0].known);
	symbols_free(symbols);
	close(fd);
}

static void no_addresses_are_no_work(void **state)
{
	const struct symbol_file file = {.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), .path = "exe"};
	struct symbols *symbols = symbols_new(&full);
	struct symbol_result none;
	struct symbol_facts facts;

	assert_int_equal(symbols_resolve(symbols, &file, NULL, 0, &none, &facts), 0);
	symbols_free(symbols);
	close(file.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_build_gives_the_same_chains),
	    cmocka_unit_test(levels_say_how_much),
	    cmocka_unit_test(system_names_are_the_linkers),
	    cmocka_unit_test(stripped_files_give_what_they_have),
	    cmocka_unit_test(a_miss_names_the_place),
	    cmocka_unit_test(the_cache_answers_the_second_time),
	    cmocka_unit_test(a_file_with_a_key_is_read_for_new_addresses_only),
	    cmocka_unit_test(no_addresses_are_no_work),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
