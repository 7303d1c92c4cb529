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

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/symbol/symbol.h"
#include "tests/unit/workshop.h"

#define SOURCE "tests/unit/symbol_program.cc"

enum { MARKS = 4 };
static const char *const mark_names[MARKS] = {"fill", "hidden", "local", "c"};
static const char *const mark_chains[MARKS][4] = {
    {"app::Cache<double>::fill", "app::(anonymous namespace)::middle", "app::outer"},
    {"app::(anonymous namespace)::Hidden::Hidden", "app::run"},
    {"app::run(int)::Local::grow"},
    {"c_entry"},
};

/* The line of the comment @NAME.DEPTH in the source; 0: there is none. */
static uint32_t marked_line(const char *name, int depth)
{
	FILE *file = fopen(SOURCE, "r");
	char line[512], wanted[64];
	uint32_t number = 0, found = 0;

	assert_non_null(file);
	snprintf(wanted, sizeof(wanted), "// @%s.%d\n", name, depth);
	while (fgets(line, sizeof(line), file)) {
		number++;
		if (strstr(line, wanted))
			found = number;
	}
	fclose(file);
	return found;
}

/* Reads the marks' addresses from the table of symbols of an unstripped file. */
static void read_marks(const struct workshop *shop, const char *binary, uint64_t vaddrs[MARKS])
{
	int error = workshop_run(shop, "nm %s >marks", binary);
	FILE *file = error ? NULL : fopen(workshop_path(shop, "marks"), "r");
	char line[512];

	assert_non_null(file);
	memset(vaddrs, 0, MARKS * sizeof(*vaddrs));
	while (fgets(line, sizeof(line), file)) {
		for (int i = 0; i < MARKS; i++) {
			char name[64], symbol[256];

			unsigned long long vaddr;
			char type;

			snprintf(name, sizeof(name), "mark_%s_", mark_names[i]);
			if (sscanf(line, "%llx %c %255s", &vaddr, &type, symbol) == 3 &&
			    strncmp(symbol, name, strlen(name)) == 0)
				vaddrs[i] = vaddr;
		}
	}
	fclose(file);
	for (int i = 0; i < MARKS; i++)
		assert_true(vaddrs[i] != 0);
}

struct answer {
	struct symbols *symbols;
	struct symbol_result results[MARKS];
	struct symbol_facts facts;
};

static void ask(const struct symbol_options *options, const char *path, const struct symbol_file *like,
    const uint64_t *vaddrs, struct answer *answer)
{
	struct symbol_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC), .path = path};

	if (like) {
		file.build_id = like->build_id;
		file.build_id_bytes = like->build_id_bytes;
	}
	assert_true(file.fd >= 0);
	answer->symbols = symbols_new(options);
	assert_non_null(answer->symbols);
	assert_int_equal(
	    symbols_resolve(answer->symbols, &file, vaddrs, MARKS, answer->results, &answer->facts), 0);
	close(file.fd);
}

static void expect_chains(const struct answer *answer)
{
	for (int i = 0; i < MARKS; i++) {
		const struct symbol_result *result = &answer->results[i];
		uint32_t depth = 0;

		assert_true(result->known);
		for (; mark_chains[i][depth]; depth++) {
			assert_in_range(depth, 0, result->frame_count - 1);
			assert_string_equal(result->frames[depth].name, mark_chains[i][depth]);
			assert_int_equal(result->frames[depth].line, marked_line(mark_names[i], (int)depth));
			assert_int_equal(result->frames[depth].inlined, depth + 1 < result->frame_count);
			assert_non_null(strstr(result->frames[depth].file, SOURCE));
			assert_int_equal(result->frames[depth].file[0], '/');
			assert_in_range(result->frames[depth].start_line, 1, result->frames[depth].line);
		}
		assert_int_equal(result->frame_count, depth);
	}
}

/* Only functions that stand on their own, without places. */
static void expect_functions(const struct answer *answer, enum symbol_source source)
{
	assert_int_equal(answer->facts.source, source);
	assert_false(answer->facts.has_lines || answer->facts.has_inlines);
	for (int i = 0; i < MARKS; i++) {
		uint32_t last = 0;

		while (mark_chains[i][last + 1])
			last++;
		assert_true(answer->results[i].known);
		assert_int_equal(answer->results[i].frame_count, 1);
		assert_string_equal(answer->results[i].frames[0].name, mark_chains[i][last]);
		assert_null(answer->results[i].frames[0].file);
		assert_int_equal(answer->results[i].frames[0].line, 0);
	}
}

static const struct symbol_options full = {.detail = SYMBOL_FULL, .debug_root = "/nonexistent"};

/* Builds ./NAME from the source, in the folder that file names are relative to. */
static void build(const struct workshop *shop, const char *name, const char *command)
{
	char top[PATH_MAX];

	assert_non_null(getcwd(top, sizeof(top)));
	if (workshop_run(shop, "cd %s && %s -o %s/%s " SOURCE, top, command, shop->folder, name) != 0) {
		workshop_run(shop, "cat log >&2");
		fail_msg("cannot build with %s", command);
	}
}

/* ./plain, made once for the tests that need no special build. */
static void build_plain(const struct workshop *shop, uint64_t vaddrs[MARKS])
{
	if (access(workshop_path(shop, "plain"), F_OK) != 0)
		build(shop, "plain", "g++ -O2 -g -Wl,--export-dynamic");
	read_marks(shop, "plain", vaddrs);
}

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

/* The .dwo files are not there: what is left are lines, and functions from the symbol table. */
static void split_dwarf_without_its_files_gives_lines(void **state)
{
	static const char *const commands[] = {"g++ -O2 -g -gsplit-dwarf -gdwarf-5",
	    "g++ -O2 -g -gsplit-dwarf -gdwarf-4",
	    "clang++ -O2 -g -gsplit-dwarf -gdwarf-5 -fno-split-dwarf-inlining"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		uint64_t vaddrs[MARKS];
		struct answer answer;
		char command[256];

		snprintf(command, sizeof(command), "%s -c", commands[i]);
		build(*state, "split.o", command);
		assert_int_equal(workshop_run(*state, "g++ -o split split.o && rm -f *.dwo"), 0);
		read_marks(*state, "split", vaddrs);
		ask(&full, workshop_path(*state, "split"), NULL, vaddrs, &answer);
		assert_int_equal(answer.facts.source, SYMBOL_DWARF);
		assert_int_equal(answer.results[0].frame_count, 1);
		assert_string_equal(answer.results[0].frames[0].name, "app::outer");
		assert_int_equal(answer.results[0].frames[0].line, marked_line("fill", 0));
		assert_string_equal(answer.results[3].frames[0].name, "c_entry");
		assert_int_equal(answer.results[3].frames[0].line, marked_line("c", 0));
		symbols_free(answer.symbols);
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

/* libdw before 0.189 cannot decompress zstd: then it is functions only. */
static void unsupported_compression_leaves_functions(void **state)
{
	uint64_t vaddrs[MARKS];
	struct answer answer;

	build_plain(*state, vaddrs);
	if (workshop_run(*state, "objcopy --compress-debug-sections=zstd plain zstd") != 0) {
		print_message("# objcopy knows no zstd\n");
		skip();
	}
	ask(&full, workshop_path(*state, "zstd"), NULL, vaddrs, &answer);
	if (answer.facts.source == SYMBOL_DWARF)
		expect_chains(&answer);
	else
		expect_functions(&answer, SYMBOL_SYMTAB);
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
	    cmocka_unit_test(line_tables_alone_are_used),
	    cmocka_unit_test(split_dwarf_without_its_files_gives_lines),
	    cmocka_unit_test(shared_dwarf_is_found_or_missed_gently),
	    cmocka_unit_test(compressed_minimal_symbols_are_read),
	    cmocka_unit_test(the_cache_answers_the_second_time),
	    cmocka_unit_test(files_without_section_headers_are_read),
	    cmocka_unit_test(unsupported_compression_leaves_functions),
	    cmocka_unit_test(object_files_are_refused),
	    cmocka_unit_test(a_file_with_a_key_is_read_for_new_addresses_only),
	    cmocka_unit_test(no_addresses_are_no_work),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
