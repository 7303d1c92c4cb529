/* SPDX-License-Identifier: Apache-2.0 */
/* The names of code that is in no file: made at run time, special mappings, the kernel. */
#include "tests/unit/symbolizer_scene.h"

#include "sampler/symbol/perfmap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The names are the target's, by its number and through its root: so it takes one that lives. */
static void code_made_at_run_time_has_the_names_it_was_given(void **state)
{
	struct desk *d = *state;
	const struct unwind_frame frames[] = {
	    outside(JIT + 0x10, MAP_KIND_ANON), outside(JIT + 0x200, MAP_KIND_ANON)};
	uint32_t stack = intern(d, frames, 2, NULL);
	int gate[2];
	char path[64];

	assert_int_equal(pipe(gate), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;

		close(gate[1]);
		(void)!read(gate[0], &byte, 1); /* until we are done, or gone */
		_exit(0);
	}
	close(gate[0]);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	unlink(path); /* of an earlier process */
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%" PRIx64 " 20 JS:*render /srv/app.js:12\n", JIT);
	fclose(file);
	struct perf_map_file perf_map;
	assert_int_equal(perf_map_file_note(&perf_map, pid), 0);
	/* The process is gone when its last profile is written. */
	close(gate[1]);
	waitpid(pid, NULL, 0);
	d->source.perf_map = &perf_map;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	assert_string_equal(spelled(d, stack, false), "JS:*render /srv/app.js:12 [jit]");
	assert_string_equal(mapping_of(d, stack), "[anon:jit]");
}

/* Of a map that is too large only the end is read, and the profile says so; not one that needs no names of
 * it. */
static void part_of_a_large_map(struct desk *d, enum symbol_detail detail, uint64_t second, bool cut)
{
	const struct unwind_frame frames[] = {
	    outside(JIT + 0x10, MAP_KIND_ANON), outside(JIT + second, MAP_KIND_ANON)};
	struct perf_map_file perf_map;
	char path[64], line[64];
	bool said = false;

	intern(d, frames, 2, NULL);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int length = snprintf(line, sizeof(line), "\n%" PRIx64 " 20 newest\n", JIT);
	assert_int_equal(pwrite(fd, line, (size_t)length, PERFMAP_BYTES_MAX), length);
	close(fd);
	assert_int_equal(perf_map_file_note(&perf_map, getpid()), 0);
	d->source.perf_map = &perf_map;
	d->source.detail = detail;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	for (size_t i = 0; i < profile_comment_count(d->profile); i++)
		said |= strcmp(profile_comment(d->profile, i),
		            "perf map: only its last 256 MiB were read; older code in it is [jit] here") == 0;
	assert_int_equal(said, cut);
}

/* It has the number of one that named its code: that file says nothing of ours. */
static void a_map_that_an_earlier_process_left(void **state)
{
	struct desk *d = *state;
	const struct unwind_frame frame = outside(JIT + 0x10, MAP_KIND_ANON);
	const uint32_t stack = intern(d, &frame, 1, NULL);
	const struct timespec before[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
	struct perf_map_file perf_map;
	char path[64];
	bool said = false;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(dprintf(fd, "%" PRIx64 " 20 not_ours\n", JIT) > 0);
	assert_int_equal(futimens(fd, before), 0);
	close(fd);
	assert_int_equal(perf_map_file_note(&perf_map, getpid()), 0);
	assert_true(perf_map.fd < 0);
	d->source.perf_map = &perf_map;
	symbolize(d, STACK_ROOT);
	perf_map_file_forget(&perf_map);
	d->source.perf_map = NULL;
	unlink(path);
	assert_string_equal(spelled(d, stack, false), "[jit]");
	for (size_t i = 0; i < profile_comment_count(d->profile); i++)
		said |= strcmp(profile_comment(d->profile, i),
		            "perf map: not read, it was written before the process started") == 0;
	assert_true(said);
}

static void old_code_of_a_large_map(void **state)
{
	part_of_a_large_map(*state, SYMBOL_FULL, 0x200, true);
}

static void new_code_of_a_large_map(void **state)
{
	part_of_a_large_map(*state, SYMBOL_FULL, 0x18, false);
}

static void a_large_map_without_names(void **state)
{
	part_of_a_large_map(*state, SYMBOL_RAW, 0x200, false);
}

static void what_nothing_explains(void **state)
{
	static const struct {
		enum map_kind kind;
		const char *name, *mapping;
	} kinds[] = {{MAP_KIND_ANON, "[jit]", "[anon:jit]"}, {MAP_KIND_VDSO, "[vdso]", "[vdso]"},
	    {MAP_KIND_STACK, "[stack]", "[stack]"}, {MAP_KIND_HEAP, "[heap]", "[heap]"},
	    {MAP_KIND_UPROBES, "[uprobes]", "[uprobes]"}, {MAP_KIND_SPECIAL, "[unknown]", "[unknown]"}};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct desk *d = *state;
	uint32_t stacks[KINDS];
	for (size_t i = 0; i < KINDS; i++) {
		const struct unwind_frame frame = outside(WILD + 0x10000 * i, kinds[i].kind);

		stacks[i] = intern(d, &frame, 1, NULL);
	}
	symbolize(d, STACK_ROOT);
	for (size_t i = 0; i < KINDS; i++) {
		assert_string_equal(spelled(d, stacks[i], false), kinds[i].name);
		assert_string_equal(mapping_of(d, stacks[i]), kinds[i].mapping);
		assert_int_equal(innermost(d, stacks[i]).address, WILD + 0x10000 * i);
	}
}

/* A function that /proc/kallsyms lists here; 0: it lists nothing. */
static uint64_t kernel_function(char name[128])
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[256];
	uint64_t address = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " T %127s", &address, name) == 2 && strcmp(name, "vfs_read") == 0)
			break;
	if (file)
		fclose(file);
	return strcmp(name, "vfs_read") == 0 ? address : 0;
}

static void the_kernels_side(void **state)
{
	struct desk *d = *state;
	char name[128] = "", wanted[256];
	uint64_t address = kernel_function(name);
	const struct unwind_frame frames[] = {
	    outside(address ? address + 4 : UINT64_C(0xffffffff81000004), MAP_KIND_KERNEL),
	    outside(WILD, MAP_KIND_SPECIAL)};
	uint32_t stack = intern(d, frames, 2, NULL);

	if (!address)
		print_message("this kernel tells no addresses: only its fallback is tested\n");
	symbolize(d, STACK_ROOT);
	snprintf(wanted, sizeof(wanted), "%s [unknown]", address ? name : "[kernel]");
	assert_string_equal(spelled(d, stack, false), wanted);
	assert_string_equal(mapping_of(d, stack), "[kernel.kallsyms]");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_desk, close_desk)
	const struct CMUnitTest tests[] = {
	    TEST(code_made_at_run_time_has_the_names_it_was_given),
	    TEST(a_map_that_an_earlier_process_left),
	    TEST(old_code_of_a_large_map),
	    TEST(new_code_of_a_large_map),
	    TEST(a_large_map_without_names),
	    TEST(what_nothing_explains),
	    TEST(the_kernels_side),
	};

	return cmocka_run_group_tests(tests, build, workshop_close);
}
