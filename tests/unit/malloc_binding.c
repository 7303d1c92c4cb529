/* SPDX-License-Identifier: Apache-2.0 */
/* Whose malloc this program and libc call, read from this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/inject/malloc_binding.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int memory;

static void *base_of(const void *address)
{
	Dl_info info;

	assert_true(dladdr(address, &info));
	return info.dli_fbase;
}

/* What the program's own jump goes to is what dlsym() finds, once it has been used. */
static void this_programs_malloc(void **state)
{
	uint64_t target = 0;

	void *volatile block = malloc(100);

	if (base_of((const void *)(uintptr_t)malloc) == base_of(base_of)) {
		free(block);
		print_message("SKIPPED: malloc is this program's own, as with a sanitizer\n");
		skip();
	}

	free(block);
	assert_int_equal(
	    malloc_binding_read("/proc/self/exe", (uintptr_t)base_of(base_of), memory, "malloc", &target), 0);
	assert_true(target == (uintptr_t)dlsym(RTLD_DEFAULT, "malloc"));
	assert_int_equal(
	    malloc_binding_read("/proc/self/exe", (uintptr_t)base_of(base_of), memory, "free", &target), 0);
	assert_true(target == (uintptr_t)dlsym(RTLD_DEFAULT, "free"));
}

static void a_library_in_the_same_process(void **state)
{
	void *cmocka = base_of((const void *)(uintptr_t)_cmocka_run_group_tests);
	uint64_t target = 0;
	Dl_info info;

	assert_true(dladdr((const void *)(uintptr_t)_cmocka_run_group_tests, &info));
	if (malloc_binding_read(info.dli_fname, (uintptr_t)cmocka, memory, "malloc", &target) == -ENOENT) {
		print_message("SKIPPED: cmocka does not import malloc here\n");
		skip();
	}
	assert_true(target != 0);
}

static void what_is_not_imported(void **state)
{
	uint64_t target, base = (uintptr_t)base_of(base_of);

	assert_int_equal(
	    malloc_binding_read("/proc/self/exe", base, memory, "no_such_function", &target), -ENOENT);
	assert_int_equal(malloc_binding_read("/nonexistent", base, memory, "malloc", &target), -ENOENT);
	assert_int_equal(malloc_binding_read("/etc/passwd", base, memory, "malloc", &target), -EINVAL);
	assert_int_equal(malloc_binding_read("/dev/zero", base, memory, "malloc", &target), -EINVAL);
	/* Where nothing is mapped. */
	assert_int_equal(malloc_binding_read("/proc/self/exe", 0x1000, memory, "malloc", &target), -EIO);
}

/* Bytes changed at random: an answer or an error, and nothing outside of the file is read. */
static void damaged_files(void **state)
{
	char path[] = "/tmp/heaptap-binding.XXXXXX";
	int out = mkstemp(path), in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;

	assert_true(out >= 0 && fstat(in, &status) == 0);
	size_t bytes = (size_t)status.st_size;
	char *whole = malloc(bytes), *damaged = malloc(bytes);
	assert_int_equal(read(in, whole, bytes), bytes);
	srand(5);
	for (int round = 0; round < 100; round++) {
		uint64_t target;

		memcpy(damaged, whole, bytes);
		for (int times = rand() % 200; times > 0; times--)
			damaged[(size_t)rand() % (rand() % 2 ? bytes : 0x2000)] = (char)rand();
		assert_int_equal(pwrite(out, damaged, bytes, 0), bytes);
		assert_true(
		    malloc_binding_read(path, (uintptr_t)base_of(base_of), memory, "malloc", &target) <= 0);
	}
	for (size_t cut = 0; cut < 4096; cut += 64) {
		uint64_t target;

		assert_int_equal(ftruncate(out, (off_t)cut), 0);
		assert_true(malloc_binding_read(path, 0, memory, "malloc", &target) < 0);
	}
	free(whole);
	free(damaged);
	close(in);
	close(out);
	unlink(path);
}

static int open_memory(void **state)
{
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	return memory >= 0 ? 0 : -1;
}

static int close_memory(void **state)
{
	return close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(this_programs_malloc),
	    cmocka_unit_test(a_library_in_the_same_process),
	    cmocka_unit_test(what_is_not_imported),
	    cmocka_unit_test(damaged_files),
	};

	return cmocka_run_group_tests(tests, open_memory, close_memory);
}
