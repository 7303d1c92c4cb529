/* SPDX-License-Identifier: Apache-2.0 */
/* The table of next definitions: read-only in the end, but never with a neighbour of its pages. */
#include "preload/next_symbol.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What next_symbol_operators.c brings. */
#define OPERATOR_STUB(name)                                                            \
	void *operator_first##name(uintptr_t first, uintptr_t second, uintptr_t third) \
	{                                                                              \
		return NULL;                                                           \
	}
OPERATORS_NEW(OPERATOR_STUB)
OPERATORS_DELETE(OPERATOR_STUB)

void next_symbol_resolve_operators(void)
{
}

/* How a child ends that writes to the table after it was protected: 0, or the signal. */
static int write_after_protection(uint64_t page_bytes)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
		next_symbol_protect(page_bytes);
		*(void *volatile *)(void *)&real.malloc = NULL;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void protected_where_its_pages_are_its_own(void **unused)
{
	assert_int_equal(0, (uintptr_t)&real % REAL_ALIGNMENT);
	assert_int_equal(0, sizeof(real) % REAL_ALIGNMENT);
	assert_int_equal(SIGSEGV, write_after_protection(4096));
}

/* aarch64 kernels may have these; the table would share a page with whatever the linker put beside it. */
static void left_alone_where_pages_are_larger(void **unused)
{
	assert_int_equal(0, write_after_protection(16384));
	assert_int_equal(0, write_after_protection(65536));
	assert_int_equal(0, write_after_protection(0));
}

static void resolves_to_the_libc(void **unused)
{
	next_symbol_resolve();
	assert_ptr_equal(real.malloc, malloc);
	assert_ptr_equal(real.free, free);
	assert_ptr_equal(real.pthread_create, pthread_create);
	assert_non_null(real.prctl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(protected_where_its_pages_are_its_own),
	    cmocka_unit_test(left_alone_where_pages_are_larger),
	    cmocka_unit_test(resolves_to_the_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
