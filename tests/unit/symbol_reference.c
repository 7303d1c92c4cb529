/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our symbols against two other symbolizers, at every instruction of real programs: all frames, names, files,
 * lines.
 *
 * addr2line (binutils) and llvm-symbolizer disagree with each other; where they do, it is known who is wrong:
 *   - binutils 2.40 takes the wrong file for the first line of some DWARF 5 sequences, and loses inlined
 * calls of clang: it is asked about gcc's DWARF 4 and about Rust only;
 *   - binutils gives an inlined function without linkage name the name of its caller;
 *   - llvm has only `Hidden` where we say app::(anonymous namespace)::Hidden::Hidden.
 * These, and places that the reference knows nothing about, are counted apart; anything else is a failure.
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

#include "sampler/symbol/demangle.h"
#include "sampler/symbol/symbol.h"
#include "tests/unit/workshop.h"

enum { ADDRESSES_MAX = 20000, FRAMES_MAX = 64, TEXT_MAX = 4096 };

enum reference { ADDR2LINE, LLVM };

struct frame {
	char name[TEXT_MAX];
	char file[PATH_MAX];
	unsigned line;
};

struct tally {
	size_t same, unknown_there, no_debug_info, nameless, different;
	size_t deepest;
};

/* The addresses of all instructions in .text but padding, at most `limit` of them, evenly. */
static size_t read_addresses(const struct workshop *shop, uint64_t *vaddrs, size_t limit)
{
	FILE *file = fopen(workshop_path(shop, "text"), "r");
	size_t count = 0, every;
	char line[TEXT_MAX];

	assert_non_null(file);
	while (count < ADDRESSES_MAX && fgets(line, sizeof(line), file)) {
		unsigned long long vaddr;
		char colon;

		if (line[0] == ' ' && sscanf(line, "%llx%c", &vaddr, &colon) == 2 && colon == ':' &&
		    !strstr(line, "nop") && !strstr(line, "xchg   %ax,%ax") && !strstr(line, "data16"))
			vaddrs[count++] = vaddr;
	}
	fclose(file);
	every = (count + limit - 1) / limit;
	for (size_t i = 0; i * every < count; i++)
		vaddrs[i] = vaddrs[i * every];
	return count / every;
}

/* Takes "x/../" out, for the comparison: /a/b/../c is /a/c. */
static void normalize(char *path)
{
	char *up;

	for (char *dot; (dot = strstr(path, "/./"));)
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
	while ((up = strstr(path, "/../")) && up != path) {
		char *from = up;

		while (from > path && from[-1] != '/')
			from--;
		memmove(from, up + 4, strlen(up + 4) + 1);
	}
}

static void parse_place(char *text, struct frame *frame)
{
	char *colon, *extra = strstr(text, " (discriminator");

	if (extra)
		*extra = '\0';
	colon = strrchr(text, ':');
	frame->line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	if (colon)
		*colon = '\0';
	snprintf(frame->file, sizeof(frame->file), "%s", strcmp(text, "??") == 0 ? "" : text);
	normalize(frame->file);
	if (!frame->file[0])
		frame->line = 0;
}

/* The next address's frames from the reference's output: "0xADDR", then name and place of each frame. */
static size_t next_frames(FILE *output, char *ahead, struct frame *frames)
{
	size_t count = 0;
	char line[TEXT_MAX];

	while (count < FRAMES_MAX && fgets(ahead, TEXT_MAX, output) && strncmp(ahead, "0x", 2) != 0) {
		ahead[strcspn(ahead, "\n")] = '\0';
		if (!ahead[0])
			continue;
		snprintf(frames[count].name, TEXT_MAX, "%s", ahead);
		assert_non_null(fgets(line, sizeof(line), output));
		line[strcspn(line, "\n")] = '\0';
		parse_place(line, &frames[count++]);
	}
	return count;
}

/* Without linkage name, theirs has no scopes: ours must end with it. */
static bool same_name(const char *ours, const char *theirs)
{
	char a[DEMANGLE_NAME_MAX], b[DEMANGLE_NAME_MAX];
	size_t a_length, b_length;

	demangle_name(ours, a);
	demangle_name(theirs, b);
	if (strcmp(a, b) == 0)
		return true;
	a_length = strlen(a);
	b_length = strlen(b);
	return !demangle_is_mangled(ours) && a_length > b_length + 2 &&
	    strcmp(a + a_length - b_length, b) == 0 && memcmp(a + a_length - b_length - 2, "::", 2) == 0;
}

static bool same_place(const struct symbol_frame *ours, const struct frame *theirs)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s", ours->file ? ours->file : "");
	normalize(file);
	return strcmp(file, theirs->file) == 0 && ours->line == theirs->line;
}

static bool has_unknown(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(frames[i].name, "??") == 0)
			return true;
	return count == 0;
}

static void compare(enum reference reference, const struct symbol_result *ours, const struct frame *theirs,
    size_t count, struct tally *tally)
{
	bool nameless = false, same = ours->frame_count == count;

	for (size_t i = 0; i < count && same; i++) {
		const struct symbol_frame *frame = &ours->frames[i];

		if (same_name(frame->system_name, theirs[i].name))
			;
		else if (reference == ADDR2LINE && frame->inlined && !demangle_is_mangled(frame->system_name))
			nameless = true;
		else
			same = false;
		same = same && same_place(frame, &theirs[i]);
	}
	if (same) {
		tally->same += !nameless;
		tally->nameless += nameless;
		tally->deepest = count > tally->deepest ? count : tally->deepest;
	} else if (has_unknown(theirs, count) || (!ours->known && theirs[0].line == 0)) {
		tally->unknown_there++;
	} else if (ours->frame_count == 1 && count == 1 && !ours->frames[0].file &&
	    same_name(ours->frames[0].system_name, theirs[0].name) && theirs[0].line == 0) {
		tally->no_debug_info++; /* start-up code */
	} else {
		if (tally->different++ < 3)
			print_message("# ours: %s %s:%u (%u frames), reference: %s %s:%u (%zu)\n",
			    ours->frames[0].system_name, ours->frames[0].file ? ours->frames[0].file : "",
			    ours->frames[0].line, ours->frame_count, theirs[0].name, theirs[0].file,
			    theirs[0].line, count);
	}
}

static void run_reference(
    const struct workshop *shop, enum reference reference, const uint64_t *vaddrs, size_t n)
{
	FILE *input = fopen(workshop_path(shop, "addresses"), "w");

	assert_non_null(input);
	for (size_t i = 0; i < n; i++)
		fprintf(input, "0x%llx\n", (unsigned long long)vaddrs[i]);
	fclose(input);
	if (reference == ADDR2LINE)
		assert_int_equal(
		    workshop_run(shop, "addr2line -a -i -f -e program <addresses >reference"), 0);
	else
		assert_int_equal(
		    workshop_run(shop,
		        "llvm-symbolizer --no-demangle --addresses --inlines --functions=linkage "
		        "--output-style=GNU --obj=program <addresses >reference"),
		    0);
}

/* Compares ./program at up to `limit` places. */
static struct tally compare_program(const struct workshop *shop, enum reference reference, size_t limit)
{
	static const struct symbol_options options = {.detail = SYMBOL_FULL, .debug_root = "/nonexistent"};
	static struct symbol_result results[ADDRESSES_MAX];
	static struct frame frames[FRAMES_MAX];
	static uint64_t vaddrs[ADDRESSES_MAX];
	const char *path = workshop_path(shop, "program");
	struct symbol_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC), .path = path};
	struct symbols *symbols = symbols_new(&options);
	struct tally tally = {0};
	struct symbol_facts facts;
	char ahead[TEXT_MAX];
	FILE *output;
	size_t n;

	assert_int_equal(workshop_run(shop, "objdump -d --no-show-raw-insn -j .text program >text"), 0);
	n = read_addresses(shop, vaddrs, limit);
	run_reference(shop, reference, vaddrs, n);
	assert_int_equal(symbols_resolve(symbols, &file, vaddrs, n, results, &facts), 0);
	output = fopen(workshop_path(shop, "reference"), "r");
	assert_non_null(output);
	assert_non_null(fgets(ahead, sizeof(ahead), output));
	for (size_t i = 0; i < n; i++) {
		assert_true(strtoull(ahead, NULL, 16) == vaddrs[i]);
		compare(reference, &results[i], frames, next_frames(output, ahead, frames), &tally);
	}
	fclose(output);
	close(file.fd);
	symbols_free(symbols);
	print_message(
	    "# %s: %zu places: %zu same (deepest %zu), %zu without linkage name, %zu without debug info, "
	    "%zu unknown to it, %zu different\n",
	    reference == LLVM ? "llvm-symbolizer" : "addr2line", n, tally.same, tally.deepest, tally.nameless,
	    tally.no_debug_info, tally.unknown_there, tally.different);
	return tally;
}

static void build(const struct workshop *shop, const char *command)
{
	char top[PATH_MAX];

	assert_non_null(getcwd(top, sizeof(top)));
	print_message("# %s\n", command);
	if (workshop_run(shop, "cd %s && %s -o %s/program", top, command, shop->folder) != 0) {
		workshop_run(shop, "cat log >&2");
		fail_msg("cannot build");
	}
}

static void need(const char *tool)
{
	if (!workshop_has(tool)) {
		print_message("# %s is not installed\n", tool);
		skip();
	}
}

static void expect_agreement(const struct tally *tally, size_t least, size_t depth)
{
	assert_int_equal(tally->different, 0);
	assert_true(tally->same >= least);
	assert_true(tally->deepest >= depth);
	assert_true(tally->unknown_there + tally->nameless <= tally->same / 5);
}

/* A label would be a name to llvm-symbolizer. */
#define PROGRAM " -DNO_MARKS tests/unit/symbol_program.cc"

static void gcc_agrees_with_addr2line(void **state)
{
	struct tally tally;

	build(*state, "g++ -O2 -g -gdwarf-4" PROGRAM);
	tally = compare_program(*state, ADDR2LINE, ADDRESSES_MAX);
	expect_agreement(&tally, 2000, 8);
}

static void gcc_agrees_with_llvm(void **state)
{
	static const char *const commands[] = {"g++ -O2 -g -gdwarf-4" PROGRAM, "g++ -O2 -g -gdwarf-5" PROGRAM,
	    "g++ -O0 -g" PROGRAM, "g++ -O3 -g -flto" PROGRAM};

	need("llvm-symbolizer");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct tally tally;

		build(*state, commands[i]);
		tally = compare_program(*state, LLVM, ADDRESSES_MAX);
		expect_agreement(&tally, 1500, i == 2 ? 1 : 8);
	}
}

static void clang_agrees_with_llvm(void **state)
{
	static const char *const commands[] = {
	    "clang++ -O2 -g -gdwarf-4" PROGRAM, "clang++ -O2 -g -gdwarf-5" PROGRAM, "clang++ -O0 -g" PROGRAM};

	need("llvm-symbolizer");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct tally tally;

		build(*state, commands[i]);
		tally = compare_program(*state, LLVM, ADDRESSES_MAX);
		expect_agreement(&tally, 1500, i == 2 ? 1 : 8);
	}
}

static void rust_agrees_with_addr2line(void **state)
{
	struct tally tally;

	need("rustc");
	build(*state, "rustc -O -g tests/unit/symbol_program.rs");
	tally = compare_program(*state, ADDR2LINE, 5000);
	expect_agreement(&tally, 1000, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gcc_agrees_with_addr2line),
	    cmocka_unit_test(gcc_agrees_with_llvm),
	    cmocka_unit_test(clang_agrees_with_llvm),
	    cmocka_unit_test(rust_agrees_with_addr2line),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
