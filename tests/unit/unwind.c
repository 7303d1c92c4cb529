/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of this very process, copied in passing, against what glibc's backtrace() says at the same place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/cfi.h"
#include "sampler/unwind/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
/* Keeps a call from becoming a jump. */
#define STAY     __asm__ volatile("" ::: "memory")

enum { STACK_MAX = 1 << 20, FRAMES = 8192 };

static struct modules *store;
static struct maps *maps;

static struct {
	struct regs regs;
	size_t stack_bytes;
	bool cut;
	/* backtrace(): return addresses, the first in the function that captures */
	void *truth[FRAMES];
	int n_truth;
} taken;
static char stack_copy[STACK_MAX] __attribute__((aligned(8)));
static struct unwind_frame frames[FRAMES];
static size_t n_frames;

/* End of the mapping that holds ADDRESS. */
static uint64_t stack_end(uint64_t address)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	uint64_t end = 0;

	while (getline(&line, &room, file) > 0) {
		struct map_range range;

		if (maps_parse_line(line, &range) && address >= range.start &&
		    address < range.start + range.len)
			end = range.start + range.len;
	}
	free(line);
	fclose(file);
	return end;
}

#ifdef __x86_64__
#define REGISTERS_NOW(words, pc)                                                                         \
	__asm__ volatile(                                                                                \
	    "mov %%rbx,24(%1); mov %%rbp,48(%1); mov %%rsp,56(%1); mov %%r12,96(%1); mov %%r13,104(%1);" \
	    "mov %%r14,112(%1); mov %%r15,120(%1); lea 0f(%%rip),%0; 0:"                                 \
	    : "=&r"(pc)                                                                                  \
	    : "r"(words)                                                                                 \
	    : "memory")
static const uint64_t registers_taken = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12;
#else
#define REGISTERS_NOW(words, pc)                                                                          \
	__asm__ volatile(                                                                                 \
	    "stp x19,x20,[%1,#152]; stp x21,x22,[%1,#168]; stp x23,x24,[%1,#184]; stp x25,x26,[%1,#200];" \
	    "stp x27,x28,[%1,#216]; stp x29,x30,[%1,#232]; mov %0,sp; str %0,[%1,#248]; adr %0,0f; 0:"    \
	    : "=&r"(pc)                                                                                   \
	    : "r"(words)                                                                                  \
	    : "memory")
static const uint64_t registers_taken = UINT64_C(0x1fff) << 19;
#endif

/* Not memcpy(): AddressSanitizer would complain of what it put between the variables. */
__attribute__((no_sanitize("address"))) static void copy_stack(const volatile uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n / 8; i++)
		((volatile uint64_t *)stack_copy)[i] = from[i];
}

/* Copies registers and the stack up to its end, at most MAX bytes, and asks backtrace() for the truth. */
static NOINLINE void take_at_most(size_t max)
{
	uint64_t words[REGS_MAX], pc;

	taken.n_truth = backtrace(taken.truth, FRAMES);
	/* AddressSanitizer's backtrace() sees itself. */
	while (taken.n_truth && (uintptr_t)taken.truth[0] - (uintptr_t)take_at_most >= 4096)
		memmove(taken.truth, taken.truth + 1, (size_t)--taken.n_truth * sizeof(taken.truth[0]));
	REGISTERS_NOW(words, pc);
	const struct regs_arch *arch = regs_arch_native();
	uint64_t sp = words[arch->sp];
	uint64_t n = stack_end(sp) - sp;
	taken.cut = n > max;
	taken.stack_bytes = taken.cut ? max : n;
	copy_stack((const volatile uint64_t *)sp, taken.stack_bytes);
	assert_int_equal(regs_from_dwarf(arch, pc, registers_taken, words, arch->count, &taken.regs), 0);
}

static NOINLINE void take(void)
{
	take_at_most(STACK_MAX);
	STAY;
}

static enum unwind_outcome unwind_taken_at_most(size_t max)
{
	struct unwind_input in = {
	    .arch = regs_arch_native(),
	    .regs = &taken.regs,
	    .maps = maps,
	    .stack_address = taken.regs.r[regs_arch_native()->sp],
	    .stack = stack_copy,
	    .stack_bytes = taken.stack_bytes,
	    .stack_want = taken.stack_bytes,
	    .reaches_end = !taken.cut,
	};

	assert_int_equal(maps_read_proc(maps), 0);
	return unwind_stack(&in, frames, max, &n_frames);
}

static enum unwind_outcome unwind_taken(void)
{
	return unwind_taken_at_most(FRAMES);
}

/* Every frame but the innermost, whose address differs by where in the function it was asked for. */
static void check_truth(size_t n_expected)
{
	assert_true(n_frames > 1 && taken.n_truth > 1);
	for (size_t i = 1; i < n_expected; i++) {
		uint64_t pc = (uintptr_t)taken.truth[i];

		if (i >= n_frames ||
		    (frames[i].pc != pc - 1 && !(frames[i].activation && frames[i].pc == pc)))
			fail_msg("frame %zu of %zu: %lx, backtrace() says %lx", i, n_frames,
			    i < n_frames ? frames[i].pc : 0, pc);
	}
}

static void check_complete(void)
{
	assert_string_equal(unwind_outcome_name(unwind_taken()), "complete");
	check_truth((size_t)taken.n_truth);
	assert_int_equal(n_frames, taken.n_truth);
}

static NOINLINE int nested(int n)
{
	int result = n ? nested(n - 1) + 1 : (take(), 0);

	STAY;
	return result;
}

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
 * code to which handlers return, which is known by itself (sampler/unwind/signal_frame.h). */
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

static int open_maps(void **state)
{
	store = modules_new(0);
	maps = maps_new(store, getpid(), true);
	/* backtrace() loads libgcc at its first call. */
	return backtrace(taken.truth, 1) == 1 && maps_read_proc(maps) == 0 ? 0 : -1;
}

static int close_maps(void **state)
{
	maps_free(maps);
	modules_free(store);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nested_calls),
	    cmocka_unit_test(variable_frame),
	    cmocka_unit_test(realigned_frame),
	    cmocka_unit_test(called_back_by_libc),
	    cmocka_unit_test(in_a_thread),
	    cmocka_unit_test(in_a_signal_handler),
	    cmocka_unit_test(on_a_signal_stack),
	    cmocka_unit_test(interrupted_in_the_vdso),
	    cmocka_unit_test(in_a_fiber),
	    cmocka_unit_test(file_mapped_twice),
	    cmocka_unit_test(cut_dumps),
	    cmocka_unit_test(deep_recursion),
	    cmocka_unit_test(library_that_is_gone),
	};

	return cmocka_run_group_tests(tests, open_maps, close_maps);
}
