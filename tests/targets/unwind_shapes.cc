/* SPDX-License-Identifier: Apache-2.0 */
/* build: -ldl */
/*
 * Allocates at the end of every kind of call that an unwinder has to cross.
 *
 *   unwind_shapes MODE [ARGUMENT]
 *
 * Every allocation that counts is made by leaf(); which functions have called it is written in the test.
 */
#include <alloca.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define NAMED extern "C" __attribute__((noinline, noclone))

enum { TIMES = 50 };

static void *volatile kept;
static volatile int zero;

NAMED void leaf(void)
{
	kept = malloc(1000);
	if (!kept)
		abort();
}

/* Until the standard input ends: what no record told the sampler, it can still read from /proc. */
static void hold(void)
{
	char byte;
	while (read(0, &byte, 1) > 0)
		;
}

/* ---- as deep as asked: about a KiB a call */

NAMED int recurse(int calls)
{
	volatile char room[960];
	room[0] = (char)calls;
	if (calls > 1)
		return recurse(calls - 1) + room[0];
	leaf();
	return room[0];
}

NAMED void *deep_thread(void *calls)
{
	recurse(*(int *)calls);
	return nullptr;
}

NAMED void in_thread(int calls)
{
	pthread_t thread;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 8 << 20);
	if (pthread_create(&thread, &attributes, deep_thread, &calls) || pthread_join(thread, nullptr))
		abort();
}

/* ---- signals: the instruction that faults is the only one that can be interrupted */

NAMED void on_signal(int, siginfo_t *, void *context)
{
	leaf();
#if defined(__x86_64__)
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
#else
	((ucontext_t *)context)->uc_mcontext.pc += 4;
#endif
}

NAMED int interrupted(int n)
{
	volatile int sum = n;
#if defined(__x86_64__)
	__asm__ volatile("ud2" ::: "memory");
#else
	__asm__ volatile("udf #0" ::: "memory");
#endif
	return sum + 1;
}

NAMED void with_signal(int flags)
{
	struct sigaction action = {};
	static char other[1 << 18];
	stack_t stack = {};
	stack.ss_sp = other;
	stack.ss_size = sizeof(other);
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | flags;
	if (sigaltstack(&stack, nullptr) || sigaction(SIGILL, &action, nullptr))
		abort();
	for (int i = 0; i < TIMES; i++)
		interrupted(i);
}

/* ---- fibers */

static ucontext_t here, there;

NAMED void fiber(void)
{
	for (;;) {
		leaf();
		swapcontext(&there, &here);
	}
}

NAMED void with_fiber(void)
{
	/* A copy of a stack that is nobody's ends with its page (preload/capture.c): here the page ends with
	 * the stack. */
	alignas(4096) static char stack[1 << 17];
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, fiber, 0);
	for (int i = 0; i < TIMES; i++)
		swapcontext(&here, &there);
}

/* ---- exceptions: a cleanup while one is under way, and a handler */

struct Guard {
	__attribute__((noinline)) ~Guard();
};

Guard::~Guard()
{
	leaf();
	zero = zero * 2;
}

NAMED void thrower(int n)
{
	if (n >= 0)
		throw n;
}

NAMED void unwound(int n)
{
	Guard guard;
	thrower(n);
	zero = n;
}

NAMED void catcher(int n)
{
	try {
		unwound(n);
	} catch (int) {
		leaf();
	}
}

/* ---- frames whose size is not known when they are compiled, and realigned ones */

NAMED void with_alloca(int n)
{
	char *room = (char *)alloca((size_t)(n * 37 % 3000 + 16));
	memset(room, n, 16);
	leaf();
	zero = room[0] - room[0];
}

NAMED void realigned(int n)
{
	alignas(128) volatile char room[256];
	char *more = (char *)alloca((size_t)(n % 100 + 16));
	room[n % 256] = 1;
	more[0] = 1;
	kept = more;
	leaf();
	zero = (int)((uintptr_t)room % 128);
}

NAMED int tail_target(int n)
{
	leaf();
	return n + 1;
}

NAMED int tail_caller(int n)
{
	return tail_target(n ^ 5);
}

NAMED int no_tail(int n)
{
	return tail_caller(n) + zero;
}

/* ---- this file's code mapped once more somewhere else: it can only use what it is given */

NAMED int second(void (*function)(void), int n)
{
	function();
	return n + 1;
}

static int map_again(struct dl_phdr_info *info, size_t, void *result)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, at = (uintptr_t)second;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || at < start || at >= start + p->p_memsz)
			continue;
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		uintptr_t slack = p->p_offset % 4096;
		char *again = (char *)mmap(nullptr, p->p_filesz + slack, PROT_READ | PROT_EXEC, MAP_PRIVATE,
		    fd, (off_t)(p->p_offset - slack));
		if (again == MAP_FAILED)
			abort();
		*(char **)result = again + slack + (at - start);
		return 1;
	}
	return 0;
}

NAMED void mapped_twice(void)
{
	int (*copy)(void (*)(void), int) = nullptr;
	dl_iterate_phdr(map_again, &copy);
	if (!copy || (void *)copy == (void *)second)
		abort();
	for (int i = 0; i < TIMES; i++)
		zero = copy(leaf, i) - i - 1;
	hold();
}

/* ---- a library that is gone when the profile is written */

NAMED void plugged(const char *path)
{
	for (int i = 0; i < TIMES; i++) {
		void *library = dlopen(path, RTLD_NOW);
		void (*call)(void (*)(void)) =
		    library ? (void (*)(void (*)(void)))dlsym(library, "plugin_call") : nullptr;
		if (!call)
			abort();
		call(leaf);
		if (i + 1 == TIMES)
			hold();
		dlclose(library);
	}
	if (dlopen(path, RTLD_NOW | RTLD_NOLOAD))
		abort();
}

/* ---- the program's own file goes away, or becomes another */

NAMED void without_file(const char *path, const char *other)
{
	if (other ? rename(other, path) : unlink(path))
		abort();
	for (int i = 0; i < TIMES; i++)
		leaf();
	hold();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	for (int i = 0; i < TIMES && !strcmp(mode, "deep"); i++)
		zero = recurse(n) * 0;
	if (!strcmp(mode, "thread"))
		for (int i = 0; i < TIMES; i++)
			in_thread(n);
	else if (!strcmp(mode, "signal"))
		with_signal(0);
	else if (!strcmp(mode, "altstack"))
		with_signal(SA_ONSTACK);
	else if (!strcmp(mode, "fiber"))
		with_fiber();
	else if (!strcmp(mode, "exception"))
		for (int i = 0; i < TIMES; i++)
			catcher(i);
	else if (!strcmp(mode, "frames"))
		for (int i = 0; i < TIMES; i++)
			with_alloca(i), realigned(i), no_tail(i);
	else if (!strcmp(mode, "twice"))
		mapped_twice();
	else if (!strcmp(mode, "plugin"))
		plugged(argv[2]);
	else if (!strcmp(mode, "nofile"))
		without_file(argv[2], argv[3]);
	else if (!strcmp(mode, "plain"))
		for (int i = 0; i < TIMES; i++)
			leaf();
	return 0;
}
