/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of this very process, copied in passing, against what glibc's backtrace() says at the same place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/unwind_scene.h"

#include <dlfcn.h>
#include <pthread.h>

static void nested_calls(void **state)
{
	nested(30);
	check_complete();
	assert_true(n_frames > 35);
	for (size_t i = 0; i < n_frames; i++)
		assert_true(frames[i].module && frames[i].kind == MAP_KIND_FILE);
}

static NOINLINE void with_alloca(size_t n)
{
	volatile char *bytes = __builtin_alloca(n);

	bytes[0] = 1;
	take();
	bytes[n - 1] = 2;
}

static void variable_frame(void **state)
{
	for (size_t n = 1; n < 5000; n = n * 3 + 1) {
		with_alloca(n);
		check_complete();
	}
}

/* The stack is realigned: the CFA is found through a saved r10 (DRAP) by a DWARF expression. */
static NOINLINE void with_alignment(size_t n, int a, int b, int c, int d, int e, int f, int g)
{
	volatile char aligned[256] __attribute__((aligned(128)));
	volatile char *bytes = __builtin_alloca(n);

	aligned[0] = (char)g;
	bytes[0] = aligned[0];
	take();
	aligned[255] = bytes[n - 1];
}

static void realigned_frame(void **state)
{
	for (size_t n = 1; n < 100; n += 13) {
		with_alignment(n, 1, 2, 3, 4, 5, 6, 7);
		check_complete();
	}
}

static int compare_and_take(const void *a, const void *b)
{
	take();
	STAY;
	return 0;
}

static void called_back_by_libc(void **state)
{
	char two[2] = {2, 1};

	qsort(two, 2, 1, compare_and_take);
	check_complete();
}

static void *thread_main(void *arg)
{
	nested(3);
	STAY;
	return NULL;
}

static void in_a_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
	check_complete();
}

/* The second copy of a library's code, as V8 has of its own: the same file at another address. */
static void file_mapped_twice(void **state)
{
	struct map_range range;

	nested(1);
	assert_int_equal(maps_read_proc(maps), 0);
	const struct map *map = maps_module(maps, (uintptr_t)nested);
	struct module *module = map->module;
	uint64_t bias = map->bias;
	uint64_t start = map->start, moved = UINT64_C(0x100000000);
	range = (struct map_range){.start = moved,
	    .len = map->end - start,
	    .pgoff = map->pgoff,
	    .prot = PROT_READ | PROT_EXEC,
	    .path = map_path(map),
	    .build_id = module->file.build_id,
	    .build_id_len = module->file.build_id_len};
	assert_int_equal(maps_add(maps, &range), 0);
	map = maps_module(maps, moved);
	assert_ptr_equal(map->module, module);
	assert_true(map->bias == bias + moved - start);
	/* Half of the return addresses moved there: the same frames. */
	for (size_t i = 0; i + 8 <= taken.stack_bytes; i += 8) {
		uint64_t word;

		memcpy(&word, stack_copy + i, 8);
		if (word >= start && word < start + range.len && i % 16) {
			word += moved - start;
			memcpy(stack_copy + i, &word, 8);
		}
	}
	struct unwind_input in = {.arch = regs_arch_native(),
	    .regs = &taken.regs,
	    .maps = maps,
	    .stack_address = taken.regs.r[regs_arch_native()->sp],
	    .stack = stack_copy,
	    .stack_bytes = taken.stack_bytes};
	assert_int_equal(unwind_stack(&in, frames, FRAMES, &n_frames), UNWIND_COMPLETE);
	assert_int_equal(n_frames, taken.n_truth);
	size_t n_moved = 0;
	for (size_t i = 1; i < n_frames; i++) {
		if (frames[i].pc - moved >= range.len)
			continue;
		n_moved++;
		assert_ptr_equal(frames[i].module, module);
		assert_true(frames[i].vaddr == (uintptr_t)taken.truth[i] - 1 - bias);
	}
	assert_true(n_moved > 0);
}

static void cut_dumps(void **state)
{
	size_t whole;

	nested(50);
	assert_int_equal(unwind_taken(), UNWIND_COMPLETE);
	whole = n_frames;
	taken.cut = true;
	size_t bytes = taken.stack_bytes, last = 0;
	for (size_t n = 0; n < 1500; n += 8) {
		taken.stack_bytes = n;
		assert_string_equal(unwind_outcome_name(unwind_taken()), "truncated");
		if (n_frames > 1)
			check_truth(n_frames);
		assert_true(n_frames >= last && n_frames <= whole);
		last = n_frames;
	}
	assert_true(last > 20);
	/* The same bytes, but known to be all there are: no cut, and so a lie. */
	taken.cut = false;
	assert_string_equal(unwind_outcome_name(unwind_taken()), "bad read");
	taken.stack_bytes = bytes;
}

static void deep_recursion(void **state)
{
	nested(6000);
	check_complete();
	assert_true(n_frames > 6000);
	assert_int_equal(unwind_taken_at_most(100), UNWIND_TOO_DEEP);
	assert_int_equal(n_frames, 100);
}

static void library_that_is_gone(void **state)
{
	/* Unwinding goes on in the file that was mapped, though another is there now. */
	char path[] = "/tmp/heaptap-unwind.XXXXXX", command[512];
	int (*call)(int (*)(int), int);

	assert_true(mkdtemp(path) != NULL);
	snprintf(command, sizeof(command),
	    "cd %s && echo 'int call(int (*f)(int), int n) { volatile int r = f(n); return r; }' >gone.c && "
	    "cc -O2 -shared -fPIC -o gone.so gone.c",
	    path);
	if (system(command) != 0)
		skip();
	snprintf(command, sizeof(command), "%s/gone.so", path);
	void *library = dlopen(command, RTLD_NOW);
	assert_non_null(library);
	*(void **)&call = dlsym(library, "call");
	assert_int_equal(maps_read_proc(maps), 0);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
	call(nested, 3);
	check_complete();
	dlclose(library);
	struct unwind_input in = {.arch = regs_arch_native(),
	    .regs = &taken.regs,
	    .maps = maps,
	    .stack_address = taken.regs.r[regs_arch_native()->sp],
	    .stack = stack_copy,
	    .stack_bytes = taken.stack_bytes};
	assert_int_equal(unwind_stack(&in, frames, FRAMES, &n_frames), UNWIND_COMPLETE);
	check_truth((size_t)taken.n_truth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nested_calls),
	    cmocka_unit_test(variable_frame),
	    cmocka_unit_test(realigned_frame),
	    cmocka_unit_test(called_back_by_libc),
	    cmocka_unit_test(in_a_thread),
	    cmocka_unit_test(file_mapped_twice),
	    cmocka_unit_test(cut_dumps),
	    cmocka_unit_test(deep_recursion),
	    cmocka_unit_test(library_that_is_gone),
	};

	return cmocka_run_group_tests(tests, open_maps, close_maps);
}
