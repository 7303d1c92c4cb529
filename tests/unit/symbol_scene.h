/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of symbols, after cmocka's headers: a program with marked addresses, built in many ways. */
#ifndef TESTS_UNIT_SYMBOL_SCENE_H
#define TESTS_UNIT_SYMBOL_SCENE_H

#include "sampler/symbol/symbol.h"
#include "tests/unit/workshop.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static inline uint32_t marked_line(const char *name, int depth)
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
static inline void read_marks(const struct workshop *shop, const char *binary, uint64_t vaddrs[MARKS])
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

static inline void ask(const struct symbol_options *options, const char *path, const struct symbol_file *like,
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

static inline void expect_chains(const struct answer *answer)
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
static inline void expect_functions(const struct answer *answer, enum symbol_source source)
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
static inline void build(const struct workshop *shop, const char *name, const char *command)
{
	char top[PATH_MAX];

	assert_non_null(getcwd(top, sizeof(top)));
	if (workshop_run(shop, "cd %s && %s -o %s/%s " SOURCE, top, command, shop->folder, name) != 0) {
		workshop_run(shop, "cat log >&2");
		fail_msg("cannot build with %s", command);
	}
}

/* ./plain, made once for the tests that need no special build. */
static inline void build_plain(const struct workshop *shop, uint64_t vaddrs[MARKS])
{
	if (access(workshop_path(shop, "plain"), F_OK) != 0)
		build(shop, "plain", "g++ -O2 -g -Wl,--export-dynamic");
	read_marks(shop, "plain", vaddrs);
}

#endif
