/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_stress SECONDS ALPHA BETA: a program that is hard to walk. Six threads allocate without a pause, each
 * byte is checked, and a timer interrupts them a thousand times a second with a handler on a stack of its
 * own:
 *   0, 1  recursion, 1 to 120 frames deep, some of them of a size that is known at run time only
 *   2     exceptions through frames whose destructors free, which allocate while they fly
 *   3     fibers (swapcontext) on stacks from malloc
 *   4     ALPHA and BETA, libraries with a function work(size), opened and closed in turn; of one shape, they
 *         follow each other at one address
 *   5     forked children that allocate
 * Prints rounds, faults and how often work() was where the other library's had been. Status 1 after a fault.
 */
#include <alloca.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace
{

constexpr int THREADS = 6, FIBERS = 4;
constexpr std::size_t FIBER_BYTES = 64 * 1024;
std::atomic<bool> over{false};
std::atomic<long> rounds[THREADS], faults{0}, handled{0}, same_place{0};
const char *libraries[2];
/* Nothing of this thread is in an allocator now: its handler may call one. */
thread_local volatile std::sig_atomic_t allocator_is_free = 0;
thread_local unsigned long random_state = 0;

unsigned random_below(unsigned limit)
{
	random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(random_state >> 33) % limit;
}

struct Block {
	unsigned char *bytes, mark;
	std::size_t size;

	explicit Block(std::size_t wanted)
	    : bytes((unsigned char *)std::malloc(wanted)), mark((unsigned char)wanted), size(wanted)
	{
		std::memset(bytes, mark, size);
	}
	~Block()
	{
		for (std::size_t i = 0; i < size; i += 1 + size / 16)
			faults += bytes[i] != mark;
		std::free(bytes);
	}
};

__attribute__((noinline)) unsigned descend(unsigned depth)
{
	/* Of every third frame the unwinder must know the size by its frame pointer. */
	volatile char *room = (volatile char *)(depth % 3 == 0 ? alloca(16 + random_below(200)) : alloca(16));
	room[0] = (char)depth;
	Block block(1 + random_below(400));
	unsigned below = depth == 0 ? 0 : descend(depth - 1);
	return below + (unsigned char)room[0] + block.mark;
}

void on_timer(int)
{
	int saved = errno;
	handled++;
	if (allocator_is_free) {
		allocator_is_free = 0; /* the next signal may come within this handler's own malloc */
		descend(3);
		allocator_is_free = 1;
	}
	errno = saved;
}

/* Time outside of the allocator, so that the handler allocates, too. */
__attribute__((noinline)) void spin()
{
	allocator_is_free = 1;
	for (volatile unsigned i = 0; i < 20000; i = i + 1)
		;
	allocator_is_free = 0;
}

__attribute__((noinline)) void thrown(unsigned depth)
{
	Block block(1 + random_below(300));
	if (depth == 0)
		throw std::string(40 + random_below(100), 'x');
	try {
		thrown(depth - 1);
	} catch (std::string &text) {
		if (depth % 4 != 0)
			throw;
		faults += text[0] != 'x';
		throw text + "y";
	}
}

void throw_once()
{
	try {
		thrown(1 + random_below(20));
	} catch (std::string &text) {
		faults += text.size() < 40;
	}
}

struct Fiber {
	ucontext_t own, *back;
	char *stack;
};

void fiber_main(unsigned high, unsigned low)
{
	Fiber *fiber = (Fiber *)(((unsigned long)high << 32) | low);
	for (;;) {
		descend(1 + random_below(30));
		swapcontext(&fiber->own, fiber->back);
	}
}

void switch_fibers(Fiber *fibers, ucontext_t *back)
{
	Fiber *fiber = &fibers[random_below(FIBERS)];
	if (!fiber->stack || random_below(50) == 0) { /* a new one, on memory that was another's before */
		std::free(fiber->stack);
		fiber->stack = (char *)std::malloc(FIBER_BYTES);
		fiber->back = back;
		getcontext(&fiber->own);
		fiber->own.uc_stack.ss_sp = fiber->stack;
		fiber->own.uc_stack.ss_size = FIBER_BYTES;
		fiber->own.uc_link = nullptr;
		makecontext(&fiber->own, (void (*)())fiber_main, 2, (unsigned)((unsigned long)fiber >> 32),
		    (unsigned)(unsigned long)fiber);
	}
	swapcontext(back, &fiber->own);
}

void use_library(unsigned which, void **places)
{
	void *library = dlopen(libraries[which], RTLD_NOW | RTLD_LOCAL);
	void *(*work)(std::size_t) = library ? (void *(*)(std::size_t))dlsym(library, "work") : nullptr;
	if (!work) {
		faults++;
		return;
	}
	places[which] = (void *)work;
	same_place += places[0] == places[1];
	for (int i = 0; i < 40; i++) {
		unsigned char *block = (unsigned char *)work(100 + which);
		block[99] = (unsigned char)i;
		faults += block[99] != (unsigned char)i;
		std::free(block);
		if (i % 10 == 0)
			usleep(300); /* the sampler learns meanwhile */
	}
	dlclose(library);
}

void fork_once()
{
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < 50; i++)
			descend(1 + random_below(40));
		_exit(faults == 0 ? 0 : 1);
	}
	int status = 1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	faults += status != 0;
	usleep(200000);
}

void *run(void *argument)
{
	long thread = (long)argument;
	stack_t alternate = {};
	Fiber fibers[FIBERS] = {};
	ucontext_t back;
	void *places[2] = {};
	random_state = (unsigned long)thread + 1;
	alternate.ss_size = 64 * 1024;
	alternate.ss_sp = std::malloc(alternate.ss_size);
	sigaltstack(&alternate, nullptr);
	while (!over) {
		switch (thread) {
		case 2:
			throw_once();
			break;
		case 3:
			switch_fibers(fibers, &back);
			break;
		case 4:
			use_library(rounds[thread] % 2, places);
			break;
		case 5:
			fork_once();
			break;
		default:
			descend(1 + random_below(120));
		}
		if (random_below(8) == 0)
			spin();
		rounds[thread]++;
	}
	for (Fiber &fiber : fibers)
		std::free(fiber.stack);
	alternate.ss_flags = SS_DISABLE;
	void *stack = alternate.ss_sp;
	sigaltstack(&alternate, nullptr);
	std::free(stack);
	return nullptr;
}

} // namespace

int main(int argc, char *argv[])
{
	if (argc != 4)
		return 2;
	unsigned seconds = (unsigned)std::strtoul(argv[1], nullptr, 10);
	libraries[0] = argv[2];
	libraries[1] = argv[3];
	struct sigaction action = {};
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART | SA_ONSTACK;
	sigaction(SIGALRM, &action, nullptr);
	struct itimerval each_ms = {{0, 1000}, {0, 1000}};
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], nullptr, run, (void *)i);
	setitimer(ITIMER_REAL, &each_ms, nullptr);
	time_t end = time(nullptr) + (time_t)seconds;
	while (time(nullptr) < end)
		usleep(100000);
	over = true;
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	std::printf("rounds");
	for (std::atomic<long> &count : rounds)
		std::printf(" %ld", count.load());
	std::printf(", signals %ld, faults %ld, libraries in one place %ld\n", handled.load(), faults.load(),
	    same_place.load());
	return faults == 0 ? 0 : 1;
}
