/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we write, read by others: google/pprof's library (tests/readers/oracle), go tool pprof, protoc. A
 * reader that is not there is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pprof/codec/encode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/drop_frames.h"
#include "tests/unit/pprof_bytes.h"

static char path[] = "/tmp/heaptap-readers.XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 || close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

static void write_profile(const struct profile *p)
{
	uint8_t *data, *zipped;
	size_t len, zipped_len;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	assert_int_equal(gzip_encode(data, len, GZIP_LEVEL_SMALL, &zipped, &zipped_len), 0);
	assert_int_equal(file_publish(path, zipped, zipped_len, 0600, 0), 0);
	free(data);
	free(zipped);
}

/* Skips the test if the shell does not know the program. */
static void need(const char *program)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	if (!system(command))
		return;
	print_message("%s is not there\n", program);
	skip();
}

static const char *oracle(void)
{
	static char program[128];
	const char *build = getenv("HEAPTAP_BUILD");

	snprintf(program, sizeof(program), "%s/tests/readers/oracle", build ? build : "build");
	need(program);
	return program;
}

/* What the command (with the profile's path appended) prints; it has to succeed. */
static char *output_of(const char *command, const char *arguments)
{
	static char output[1 << 16];
	char line[512];
	size_t len;
	FILE *pipe;

	snprintf(line, sizeof(line), "%s %s %s", command, arguments, path);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	len = fread(output, 1, sizeof(output) - 1, pipe);
	output[len] = '\0';
	assert_int_equal(pclose(pipe), 0);
	return output;
}

static void google_pprof_counts_what_we_wrote(void **state)
{
	struct profile *p = heap_profile();
	const char *program = oracle(), *output;

	write_profile(p);
	profile_free(p);
	output = output_of(program, "-func -reach '^outer$'");
	assert_non_null(strstr(output, "samples\t2\n"));
	assert_non_null(strstr(output, "total\talloc_objects/count\t7\n"));
	assert_non_null(strstr(output, "total\talloc_space/bytes\t900\n"));
	assert_non_null(strstr(output, "total\tinuse_objects/count\t3\n"));
	assert_non_null(strstr(output, "total\tinuse_space/bytes\t300\n"));
	assert_non_null(strstr(output, "func\talloc_space\t0\t900\tmain\n"));
	assert_non_null(strstr(output, "func\talloc_space\t400\t400\tinner\n"));
	assert_non_null(strstr(output, "func\talloc_space\t0\t400\touter\n"));
	assert_non_null(strstr(output, "func\tinuse_space\t200\t200\tlib_call\n"));
	assert_non_null(strstr(output, "reach\tinuse_space\t100\t300\t33.333\n"));
}

static void google_pprof_refuses_what_is_no_profile(void **state)
{
	const char *program = oracle();
	char command[256];

	assert_int_equal(file_publish(path, "no profile", 10, 0600, 0), 0);
	snprintf(command, sizeof(command), "%s %s 2>/dev/null", program, path);
	assert_int_not_equal(system(command), 0);
}

static void go_tool_pprof_shows_it(void **state)
{
	struct profile *p = heap_profile();
	const char *output;

	need("go");
	write_profile(p);
	profile_free(p);
	output = output_of(
	    "GOFLAGS= PPROF_TMPDIR=/tmp go tool pprof", "-top -sample_index=inuse_space 2>/dev/null");
	assert_non_null(strstr(output, "File: app\n"));
	assert_non_null(strstr(output, "Build ID: 00ff\n"));
	assert_non_null(strstr(output, "heaptap test\n"));
	assert_non_null(strstr(output, "Type: inuse_space\n"));
	assert_non_null(strstr(output, "100% of 300B total"));
	assert_non_null(strstr(output, " inner (inline)\n"));
	assert_non_null(strstr(output, " lib_call\n"));
	output = output_of("GOFLAGS= PPROF_TMPDIR=/tmp go tool pprof", "-tags 2>/dev/null");
	assert_non_null(strstr(output, "bytes:"));
	assert_non_null(strstr(output, ": worker"));
}

static void protoc_decodes_it(void **state)
{
	struct profile *p = heap_profile();
	char command[256];
	FILE *pipe;
	char output[32768];
	size_t len;

	need("protoc");
	write_profile(p);
	profile_free(p);
	snprintf(command, sizeof(command),
	    "zcat < %s | protoc --decode perftools.profiles.Profile -I proto proto/profile.proto 2>&1", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	len = fread(output, 1, sizeof(output) - 1, pipe);
	output[len] = '\0';
	assert_int_equal(pclose(pipe), 0);
	assert_non_null(strstr(output, "string_table: \"lib_call\"\n"));
	assert_non_null(strstr(output, "column: 7\n"));
	assert_non_null(strstr(output, "\nperiod: 524288\n"));
}

/* tcmalloc's way: other types, no period, labels without units. */
static void a_foreign_kind_of_profile_keeps_its_numbers(void **state)
{
	struct profile *p = profile_new();
	const char *program = oracle(), *output;
	uint32_t location;

	profile_add_sample_type(p, "objects", "count");
	profile_add_sample_type(p, "space", "bytes");
	profile_set_default_sample_type(p, "objects");
	profile_set_period(p, "space", "bytes", 0);
	location = profile_add_location(p, &(struct profile_location){.address = 0x1234});
	profile_add_sample(p, &location, 1, (int64_t[]){3, 1LL << 40},
	    (struct profile_label[]){{.key = "request", .num = 16}, {.key = "allocation type", .str = "new"}},
	    2);
	write_profile(p);
	profile_free(p);
	output = output_of(program, "-func");
	assert_non_null(strstr(output, "total\tspace/bytes\t1099511627776\n"));
	assert_non_null(strstr(output, "func\tobjects\t3\t3\t0x1234\n"));
}

static const char *const allocators[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "__libc_malloc",
    "__interceptor_calloc",
    "tc_malloc",
    "je_mallocx",
    "mi_malloc_aligned",
    "_rjem_malloc",
    "operator new",
    "operator new[]",
    "std::__new_allocator<int>::allocate",
    "__gnu_cxx::new_allocator<std::pair<int, char> >::allocate",
    "std::allocator_traits<std::allocator<int> >::allocate",
    "std::_Vector_base<int, std::allocator<int> >::_M_allocate",
    "std::__1::allocator<char>::allocate",
    "__rust_alloc",
    "__rdl_alloc",
    "alloc::raw_vec::finish_grow",
};

static const char *const users[] = {
    "my_malloc",
    "malloc_init",
    "xcalloc",
    "app::malloc_pool",
    "operator newton",
    "allocate",
    "std::vector<int>::resize",
    "mi_parse",
    "free_list_push",
    "app::operator new_thing",
};

/* main -> maker_N -> name -> below, for each name; drop_frames shall cut name and below, or keep both. */
static void write_stacks(const char *const *names, size_t count)
{
	struct profile *p = profile_new();
	uint32_t main_location, below;
	size_t i;

	add_go_types(p);
	profile_set_drop_frames(p, DROP_FRAMES_HEAP);
	main_location = add_location(p, 0, 1, add_function(p, "main", ""), 0);
	below = add_location(p, 0, 2, add_function(p, "below", ""), 0);
	for (i = 0; i < count; i++) {
		char maker[32];
		uint32_t stack[4] = {below, 0, 0, main_location};

		snprintf(maker, sizeof(maker), "maker_%zu", i);
		stack[1] = add_location(p, 0, 1000 + i, add_function(p, names[i], ""), 0);
		stack[2] = add_location(p, 0, 2000 + i, add_function(p, maker, ""), 0);
		profile_add_sample(p, stack, 4, (int64_t[]){1, 10, 1, 10}, NULL, 0);
	}
	write_profile(p);
	profile_free(p);
}

static void drop_frames_cuts_allocators(void **state)
{
	const char *program = oracle(), *output;
	char line[160];
	size_t i;

	write_stacks(allocators, sizeof(allocators) / sizeof(*allocators));
	output = output_of(program, "-drop -func");
	assert_null(strstr(output, "\tbelow\n"));
	for (i = 0; i < sizeof(allocators) / sizeof(*allocators); i++) {
		snprintf(line, sizeof(line), "\t%s\n", allocators[i]);
		assert_null(strstr(output, line));
		snprintf(line, sizeof(line), "func\tinuse_space\t10\t10\tmaker_%zu\n", i);
		assert_non_null(strstr(output, line));
	}
}

static void drop_frames_keeps_users_functions(void **state)
{
	const char *program = oracle(), *output;
	char line[160];
	size_t i;

	write_stacks(users, sizeof(users) / sizeof(*users));
	output = output_of(program, "-drop -func");
	for (i = 0; i < sizeof(users) / sizeof(*users); i++) {
		snprintf(line, sizeof(line), "func\tinuse_space\t0\t10\t%s\n", users[i]);
		if (!strstr(output, line))
			print_message("%s was cut\n", users[i]);
		assert_non_null(strstr(output, line));
	}
	snprintf(line, sizeof(line), "func\tinuse_space\t%zu\t%zu\tbelow\n", 10 * i, 10 * i);
	assert_non_null(strstr(output, line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(google_pprof_counts_what_we_wrote),
	    cmocka_unit_test(google_pprof_refuses_what_is_no_profile),
	    cmocka_unit_test(go_tool_pprof_shows_it),
	    cmocka_unit_test(protoc_decodes_it),
	    cmocka_unit_test(a_foreign_kind_of_profile_keeps_its_numbers),
	    cmocka_unit_test(drop_frames_cuts_allocators),
	    cmocka_unit_test(drop_frames_keeps_users_functions),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
