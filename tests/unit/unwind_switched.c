/* SPDX-License-Identifier: Apache-2.0 */
/* The same as in unwind.c where a stack ends on another: signal handlers, the vdso, fibers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/unwind_scene.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static void on_signal(int signal)
{
	nested(2);
	STAY;
}

static size_t activations(void)
{
	size_t n = 0;

	for (size_t i = 1; i < n_frames; i++)
		n += frames[i].activation;
	return n;
}

/* Exact pcs in a stack that one signal has interrupted: the interrupted one's, and on aarch64 that of the
 * code to which handlers return, which is known by itself (sampler/unwind/instructions.h). */
#ifdef __aarch64__
enum { ACTIVATIONS = 2 };
#else
enum { ACTIVATIONS = 1 };
#endif

static NOINLINE void interrupted(int signal, int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(signal, &action, NULL);
	raise(signal);
	STAY;
}

static void in_a_signal_handler(void **state)
{
	interrupted(SIGUSR1, 0);
	check_complete();
	assert_int_equal(activations(), ACTIVATIONS);
}

static void on_a_signal_stack(void **state)
{
	stack_t stack = {.ss_size = 256 * 1024}, off = {.ss_flags = SS_DISABLE};
	size_t guard = 16 * 4096;

	/* Pages of no access above it, so that the dump cannot run into the next mapping. */
	char *memory = mmap(NULL, stack.ss_size + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack.ss_sp = memory;
	mprotect(memory, stack.ss_size, PROT_READ | PROT_WRITE);
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	interrupted(SIGUSR2, SA_ONSTACK);
	sigaltstack(&off, NULL);
	assert_string_equal(unwind_outcome_name(unwind_taken()), "stack switched");
	/* Up to the trampoline that returns from the handler. */
	check_truth(n_frames);
	assert_true(n_frames >= 6 && (int)n_frames < taken.n_truth);
	munmap(memory, stack.ss_size + guard);
}

/* ---- interrupted in the vdso */

static volatile sig_atomic_t in_vdso;
static uint64_t vdso_start, vdso_end;

static void on_timer(int signal, siginfo_t *info, void *context)
{
#ifdef __x86_64__
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	uint64_t pc = ((ucontext_t *)context)->uc_mcontext.pc;
#endif

	if (in_vdso || pc < vdso_start || pc >= vdso_end)
		return;
	take();
	in_vdso = 1;
}

/* The loop below holds no lock that the handler could want, so that it may do what a handler may not. */
static void interrupted_in_the_vdso(void **state)
{
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval timer = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
	struct timespec begin, now;

	assert_int_equal(maps_read_proc(maps), 0);
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);

		if (map->kind == MAP_KIND_VDSO) {
			vdso_start = map->start;
			vdso_end = map->end;
		}
	}
	if (!vdso_start)
		skip();
	in_vdso = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!in_vdso && now.tv_sec - begin.tv_sec < 20);
	setitimer(ITIMER_REAL, &none, NULL);
	if (!in_vdso) {
		print_message("SKIPPED: never interrupted in the vdso\n");
		skip();
	}
	check_complete();
	size_t n_vdso = 0;
	for (size_t i = 0; i < n_frames; i++)
		n_vdso += frames[i].kind == MAP_KIND_VDSO && frames[i].module->vdso;
	assert_true(n_vdso >= 1);
	assert_int_equal(activations(), ACTIVATIONS);
}

static ucontext_t main_context, fiber_context;

static void fiber_main(void)
{
	nested(5);
	swapcontext(&fiber_context, &main_context);
}

static void in_a_fiber(void **state)
{
	size_t bytes = 128 * 1024;
	char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&fiber_context);
	fiber_context.uc_stack.ss_sp = stack;
	fiber_context.uc_stack.ss_size = bytes;
	fiber_context.uc_link = &main_context;
	makecontext(&fiber_context, fiber_main, 0);
	swapcontext(&main_context, &fiber_context);
	/* fiber_main() "returns" to the first instruction of __start_context, and that to uc_link, which is
	 * no code. */
	assert_int_equal(unwind_taken(), UNWIND_COMPLETE);
	assert_true(n_frames >= 8 && frames[n_frames - 1].activation);
	frames[n_frames - 1].pc--;
	check_truth(n_frames);
	assert_int_equal(n_frames, taken.n_truth);
	munmap(stack, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(in_a_signal_handler),
	    cmocka_unit_test(on_a_signal_stack),
	    cmocka_unit_test(interrupted_in_the_vdso),
	    cmocka_unit_test(in_a_fiber),
	};

	return cmocka_run_group_tests(tests, open_maps, close_maps);
}
