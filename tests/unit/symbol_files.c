/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of files that have only a part of the usual debug information, or another form of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/symbol_scene.h"

/* Reduced debug info has no scopes, for inlined calls sometimes nothing but "fill". */
static void line_tables_alone_are_used(void **state)
{
	static const char *const commands[] = {"clang++ -O2 -gmlt", "g++ -O2 -g1"};

	for (size_t i = 0; i < 2; i++) {
		uint64_t vaddrs[MARKS];
		struct answer answer;

		build(*state, "lines", commands[i]);
		read_marks(*state, "lines", vaddrs);
		ask(&full, workshop_path(*state, "lines"), NULL, vaddrs, &answer);
		assert_int_equal(answer.results[0].frame_count, 3);
		for (int depth = 0; depth < 3; depth++) {
			const struct symbol_frame *frame = &answer.results[0].frames[depth];
			size_t skipped = strlen(mark_chains[0][depth]) - strlen(frame->name);

			assert_string_equal(frame->name, mark_chains[0][depth] + skipped);
			assert_int_equal(frame->line, marked_line("fill", depth));
		}
		assert_string_equal(answer.results[0].frames[2].name, "app::outer");
		symbols_free(answer.symbols);
	}
}

/* libdw before 0.189 cannot decompress zstd. */
static void sections_compressed_by_zstd_are_read(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	if (workshop_run(*state, "objcopy --compress-debug-sections=zstd plain zstd") != 0) {
		print_message("# objcopy knows no zstd\n");
		skip();
	}
	ask(&full, workshop_path(*state, "zstd"), NULL, vaddrs, &answer);
	assert_true(answer.facts.has_lines && answer.facts.has_inlines && !answer.facts.split);
	expect_chains(&answer);
	symbols_free(answer.symbols);
	/* In a separate debug file, and damaged. */
	assert_int_equal(workshop_run(*state,
	                     "objcopy --only-keep-debug zstd zstd.debug && strip -o away zstd && "
	                     "objcopy --add-gnu-debuglink=zstd.debug away"),
	    0);
	ask(&full, workshop_path(*state, "away"), NULL, vaddrs, &answer);
	assert_true(answer.facts.debug_file);
	expect_chains(&answer);
	symbols_free(answer.symbols);
	assert_int_equal(workshop_run(*state,
	                     "at=$(readelf -SW zstd | sed -n 's/.* .debug_info *[A-Z]* *[0-9a-f]* "
	                     "*\\([0-9a-f]*\\) .*/\\1/p') && "
	                     "dd if=/dev/zero of=zstd bs=1 seek=$((0x$at + 40)) count=40 conv=notrunc"),
	    0);
	ask(&full, workshop_path(*state, "zstd"), NULL, vaddrs, &answer);
	expect_functions(&answer, SYMBOL_SYMTAB);
	symbols_free(answer.symbols);
}

/* Where the compiler put the .dwo files, beside the program, and nowhere: then there are lines, and functions
 * from the symbol table. */
static void split_dwarf_is_read_where_its_files_are(void **state)
{
	static const char *const commands[] = {"g++ -O2 -g -gsplit-dwarf -gdwarf-5",
	    "g++ -O2 -g -gsplit-dwarf -gdwarf-4",
	    "clang++ -O2 -g -gsplit-dwarf -gdwarf-5 -fno-split-dwarf-inlining",
	    "clang++ -O2 -g -gsplit-dwarf -gdwarf-4 -fno-split-dwarf-inlining"};
	static const char *const steps[] = {"g++ -o split split.o", "mkdir -p else && mv *.dwo split else/",
	    "rm else/*.dwo && mv else/split split"};

#ifdef __SANITIZE_ADDRESS__
	print_message("# a build with sanitizers filters no calls, so libdw cannot ask for the files\n");
	skip();
#endif
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		uint64_t vaddrs[MARKS];
		struct answer answer;
		char command[256];

		snprintf(command, sizeof(command), "%s -c", commands[i]);
		build(*state, "split.o", command);
		for (int step = 0; step < 3; step++) {
			const char *path = step == 1 ? "else/split" : "split";

			assert_int_equal(workshop_run(*state, "%s", steps[step]), 0);
			read_marks(*state, path, vaddrs);
			ask(&full, workshop_path(*state, path), NULL, vaddrs, &answer);
			assert_int_equal(answer.facts.source, SYMBOL_DWARF);
			assert_int_equal(answer.facts.split, step == 2);
			assert_int_equal(answer.facts.has_inlines, step < 2);
			assert_int_equal(symbols_is_split(workshop_path(*state, path)), step == 2);
			if (step < 2)
				expect_chains(&answer);
			else {
				assert_int_equal(answer.results[0].frame_count, 1);
				assert_string_equal(answer.results[0].frames[0].name, "app::outer");
				assert_int_equal(answer.results[0].frames[0].line, marked_line("fill", 0));
				assert_string_equal(answer.results[3].frames[0].name, "c_entry");
				assert_int_equal(answer.results[3].frames[0].line, marked_line("c", 0));
			}
			symbols_free(answer.symbols);
		}
	}
}

static void shared_dwarf_is_found_or_missed_gently(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	if (!workshop_has("dwz")) {
		print_message("# dwz is not installed\n");
		skip();
	}
	build_plain(*state, vaddrs);
	assert_int_equal(workshop_run(*state, "cp plain one"), 0);
	build(*state, "two", "g++ -O1 -g");
	assert_int_equal(
	    workshop_run(*state, "dwz -m shared.debug one two && readelf -SW one | grep -q debugaltlink"), 0);
	ask(&full, workshop_path(*state, "one"), NULL, vaddrs, &answer);
	expect_chains(&answer);
	symbols_free(answer.symbols);

	/* Not there, not the right one, and not a file at all: the functions' own symbols remain. */
	for (int turn = 0; turn < 3; turn++) {
		static const char *const make[] = {
		    "rm shared.debug", "cp two shared.debug", "rm shared.debug; mkfifo shared.debug"};

		assert_int_equal(workshop_run(*state, "%s", make[turn]), 0);
		ask(&full, workshop_path(*state, "one"), NULL, vaddrs, &answer);
		assert_int_equal(answer.facts.source, SYMBOL_DWARF);
		for (int i = 0; i < MARKS; i++)
			assert_true(answer.results[i].known && answer.results[i].frame_count >= 1);
		assert_string_equal(answer.results[3].frames[0].name, "c_entry");
		symbols_free(answer.symbols);
	}
}

static void compressed_minimal_symbols_are_read(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	if (!workshop_has("xz")) {
		print_message("# xz is not installed\n");
		skip();
	}
	build_plain(*state, vaddrs);
	assert_int_equal(workshop_run(*state,
	                     "nm --defined-only plain | sed -n 's/.* [Tt] //p' >keep && "
	                     "objcopy --only-keep-debug plain mini.debug && "
	                     "objcopy -S -R .comment --keep-symbols=keep mini.debug mini.elf && "
	                     "xz -f mini.elf && strip -o mini plain && "
	                     "objcopy --add-section .gnu_debugdata=mini.elf.xz mini"),
	    0);
	ask(&full, workshop_path(*state, "mini"), NULL, vaddrs, &answer);
	expect_functions(&answer, SYMBOL_MINIDEBUG);
	symbols_free(answer.symbols);
	assert_int_equal(workshop_run(*state,
	                     "head -c 2000 mini.elf.xz >cut.xz && strip -o mini plain && "
	                     "objcopy --add-section .gnu_debugdata=cut.xz mini"),
	    0);
	ask(&full, workshop_path(*state, "mini"), NULL, vaddrs, &answer);
	symbols_free(answer.symbols);
}

/* The program headers lead to the dynamic symbols. */
static void files_without_section_headers_are_read(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	assert_int_equal(workshop_run(*state,
	                     "cp plain bare && head -c 8 /dev/zero | dd of=bare bs=1 seek=40 conv=notrunc && "
	                     "head -c 6 /dev/zero | dd of=bare bs=1 seek=58 conv=notrunc && "
	                     "! readelf -S bare | grep -q text"),
	    0);
	ask(&full, workshop_path(*state, "bare"), NULL, vaddrs, &answer);
	assert_string_equal(answer.results[0].frames[0].name, "app::outer");
	assert_string_equal(answer.results[3].frames[0].name, "c_entry");
	symbols_free(answer.symbols);
}

static void object_files_are_refused(void **state)
{
	static const uint64_t vaddrs[MARKS] = {0, 16, 32, 64};
	struct answer answer;

	build(*state, "object.o", "g++ -O2 -g -c");
	assert_int_equal(
	    workshop_run(*state, "echo x >x && objcopy --add-section .gnu_debugdata=x object.o"), 0);
	ask(&full, workshop_path(*state, "object.o"), NULL, vaddrs, &answer);
	assert_int_equal(answer.facts.source, SYMBOL_NONE);
	assert_string_equal(answer.results[1].frames[0].name, "object.o+0x10");
	symbols_free(answer.symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(line_tables_alone_are_used),
	    cmocka_unit_test(split_dwarf_is_read_where_its_files_are),
	    cmocka_unit_test(shared_dwarf_is_found_or_missed_gently),
	    cmocka_unit_test(compressed_minimal_symbols_are_read),
	    cmocka_unit_test(files_without_section_headers_are_read),
	    cmocka_unit_test(sections_compressed_by_zstd_are_read),
	    cmocka_unit_test(object_files_are_refused),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
