/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/thread.h"

#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/sample.h"
#include "proto/region.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

extern void *__libc_stack_end __attribute__((weak));

enum {
	BEGINS = 64, /* threads between pthread_create and their first instruction; more stay unknown */

/* A thread's stack mapping ends above the control block, by less than this. It is subtracted at the low end
 * too, which only makes the range that we read smaller. */
#if defined(__x86_64__)
	STACK_SLACK_BYTES = 8 * 1024, /* glibc's struct pthread has 2304 bytes; static TLS is below */
#else
	STACK_SLACK_BYTES = 64 * 1024, /* static TLS is above too */
#endif
	/* If the main stack has no limit: the kernel places no mapping of its own choice within 128 MiB below
	 * the stack's end (mmap_base). */
	MAIN_STACK_BYTES = 100 << 20,
	/* space for the frames of thread_start and clone above ours: they show the unwinder that the stack
	 * ends */
	OUTER_FRAMES_BYTES = 1024,
	/* of musl, in every version, at the thread pointer's side; the id is at 48 in 1.2, and on aarch64
	 * 168 bytes below the pointer */
	CONTROL_BLOCK_BYTES = 176,
	STRUCT_BYTES_MAX = 65536, /* of glibc's struct pthread: any more is not believed */
};

static uint64_t tid_offset;
static uint64_t block_below; /* bytes of the control block in front of where the thread pointer points */
/* Of the main thread's stack; 0 unknown. The lower one is raised by any thread. */
static uintptr_t main_low;
static uintptr_t main_end;
static struct sample_thread *_Atomic main_thread; /* NULL: its bounds are not known */
static struct region_stack *known_stacks;         /* room for REGION_STACKS, private; NULL: none */
static uint32_t known_count, known_main_tid;

/* glibc moved these from libpthread to libc in 2.34; looked up, so that the library loads under either. */
static int (*attr_init)(pthread_attr_t *attr);
static int (*attr_destroy)(pthread_attr_t *attr);
static int (*attr_getstacksize)(const pthread_attr_t *attr, size_t *bytes);
static int (*attr_getguardsize)(const pthread_attr_t *attr, size_t *bytes);
static int (*attr_getstack)(const pthread_attr_t *attr, void **low, size_t *bytes);

/* What is known of a thread's stack before it runs. */
struct stack_asked {
	size_t bytes;        /* without the guard; 0 unknown */
	uintptr_t low, high; /* of one that the program gives; else 0 */
};

struct thread_begin {
	_Atomic uint32_t used;
	void *(*function)(void *);
	void *argument;
	struct stack_asked stack;
};
static struct thread_begin begins[BEGINS];

static uintptr_t thread_pointer(void)
{
	uintptr_t pointer;
#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#else
#error "heaptap knows x86-64 and aarch64"
#endif
	return pointer;
}

/* The control block begins at the thread pointer on x86-64, and ends there on aarch64 (variants II and I of
 * Drepper, "ELF Handling For Thread-Local Storage"). */
static bool block_is_below(void)
{
#if defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

static uintptr_t control_block(void)
{
	return thread_pointer() - block_below;
}

uint32_t thread_tid(void)
{
	if (!tid_offset)
		return 0;
	uint32_t tid;
	__builtin_memcpy(&tid, (const void *)(control_block() + tid_offset), sizeof(tid));
	return tid;
}

bool thread_libc_is_glibc(void)
{
	return &__libc_stack_end != NULL;
}

uintptr_t thread_main_stack_end(void)
{
	if (&__libc_stack_end)
		return (uintptr_t)__libc_stack_end;
	return getauxval(AT_RANDOM); /* musl: the kernel put these bytes just above the first frame */
}

/* For a libc that does not publish the offset (musl): finds the only 32-bit word of the control block that
 * equals the thread id. */
static uint64_t find_tid(uint32_t tid)
{
	uint64_t found = 0;

	for (uint64_t offset = sizeof(void *); offset < CONTROL_BLOCK_BYTES; offset += sizeof(uint32_t)) {
		uint32_t value;

		__builtin_memcpy(&value, (const void *)(control_block() + offset), sizeof(value));
		if (value == tid && found)
			return 0;
		if (value == tid)
			found = offset;
	}
	return found;
}

/* What may be read as the main thread's stack: the program may have placed other stacks, with gaps between,
 * below the limit. */
static uintptr_t main_stack_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= MAIN_STACK_BYTES)
		return MAIN_STACK_BYTES;
	return limit.rlim_cur;
}

bool thread_on_main_stack(void)
{
	uintptr_t end = thread_main_stack_end(), here = (uintptr_t)__builtin_frame_address(0);

	return here < end && end - here < main_stack_bytes();
}

/* field: {bits, elements, offset}, as libthread_db reads it; struct_bytes likewise; NULL: the libc has
 * none. */
static void find_control_block(const uint32_t *field, const uint32_t *struct_bytes, uint32_t tid)
{
	bool known = field && field[0] == 32 && field[2] < STRUCT_BYTES_MAX && field[2] % 4 == 0;

	if (block_is_below())
		known =
		    known && struct_bytes && *struct_bytes > field[2] && *struct_bytes <= STRUCT_BYTES_MAX;
	block_below = !block_is_below() ? 0 : known ? *struct_bytes : CONTROL_BLOCK_BYTES;
	tid_offset = known ? field[2] : tid ? find_tid(tid) : 0;
	if (tid && thread_tid() != tid)
		tid_offset = 0;
}

enum wish {
	WISH_TID,
	WISH_STRUCT_BYTES,
	WISH_ATTR_INIT,
	WISH_ATTR_DESTROY,
	WISH_STACK_SIZE,
	WISH_GUARD_SIZE,
	WISH_STACK,
	WISHES,
};

void thread_open(uint32_t tid, bool main)
{
	struct lookup wishes[WISHES] = {
	    [WISH_TID] = {.name = "_thread_db_pthread_tid"},
	    [WISH_STRUCT_BYTES] = {.name = "_thread_db_sizeof_pthread"},
	    [WISH_ATTR_INIT] = {.name = "pthread_attr_init"},
	    [WISH_ATTR_DESTROY] = {.name = "pthread_attr_destroy"},
	    [WISH_STACK_SIZE] = {.name = "pthread_attr_getstacksize"},
	    [WISH_GUARD_SIZE] = {.name = "pthread_attr_getguardsize"},
	    [WISH_STACK] = {.name = "pthread_attr_getstack"},
	};

	lookup_next(wishes, WISHES);
	find_control_block(wishes[WISH_TID].found, wishes[WISH_STRUCT_BYTES].found, tid);
	attr_init = (int (*)(pthread_attr_t *))(uintptr_t)wishes[WISH_ATTR_INIT].found;
	attr_destroy = (int (*)(pthread_attr_t *))(uintptr_t)wishes[WISH_ATTR_DESTROY].found;
	attr_getstacksize =
	    (int (*)(const pthread_attr_t *, size_t *))(uintptr_t)wishes[WISH_STACK_SIZE].found;
	attr_getguardsize =
	    (int (*)(const pthread_attr_t *, size_t *))(uintptr_t)wishes[WISH_GUARD_SIZE].found;
	attr_getstack =
	    (int (*)(const pthread_attr_t *, void **, size_t *))(uintptr_t)wishes[WISH_STACK].found;

	main_end = thread_main_stack_end();
	__atomic_store_n(&main_low, main_end ? main_end - main_stack_bytes() : 0, __ATOMIC_RELAXED);
	if (main) {
		sample_thread.stack_top = main_end;
		sample_thread.stack_low = main_low;
		atomic_store_explicit(&main_thread, &sample_thread, memory_order_relaxed);
	}
}

/* Of several threads' values the highest stays. */
static void raise_low(uintptr_t *low, uintptr_t to)
{
	uintptr_t now = __atomic_load_n(low, __ATOMIC_SEQ_CST);

	while (
	    now < to && !__atomic_compare_exchange_n(low, &now, to, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* In whole pages, of which the kernel maps and protects. */
static uintptr_t end_of(const void *start, size_t bytes)
{
	const uintptr_t page_bytes = getauxval(AT_PAGESZ), end = (uintptr_t)start + bytes;

	return page_bytes ? (end + page_bytes - 1) & ~(page_bytes - 1) : end;
}

/* A coroutine's stack at a fixed address, with a gap above: a copy from there up to main_end would end the
 * program, wherever its limit for the stack is large enough (ulimit -s unlimited). It has the mapping before
 * it can run there, whichever thread made it. */
void thread_mapped(const void *start, size_t bytes)
{
	const uintptr_t end = end_of(start, bytes);

	if ((uintptr_t)start >= main_end || end <= __atomic_load_n(&main_low, __ATOMIC_RELAXED))
		return;
	raise_low(&main_low, end);
	struct sample_thread *thread = atomic_load(&main_thread);
	if (thread)
		raise_low(&thread->stack_low, end);
}

void thread_unreadable(const void *start, size_t bytes)
{
	const uintptr_t end = end_of(start, bytes);

	if ((uintptr_t)start < sample_thread.stack_top && end > sample_thread.stack_low)
		raise_low(&sample_thread.stack_low, end);
	thread_mapped(start, bytes);
}

void thread_know_stacks(const struct region_stack *stacks, uint32_t count, uint32_t main_tid)
{
	known_count = 0;
	if (!known_stacks)
		known_stacks = memory_map(REGION_STACKS * sizeof(*stacks), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	known_main_tid = main_tid;
	if (!known_stacks)
		return;
	count = count < REGION_STACKS ? count : REGION_STACKS;
	memcpy(known_stacks, stacks, count * sizeof(*stacks));
	known_count = count;
}

/* The control block lies at the high end of a thread's own stack, whoever allocated that. A caller that is on
 * another stack now (of a signal, of a coroutine) stays unknown, like one that runs there later. */
static void bounds_from_known(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), block = control_block();
	uint32_t low = 0, high = known_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (known_stacks[middle].high <= block)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < known_count && known_stacks[low].low <= here && here < block &&
	    block < known_stacks[low].high) {
		sample_thread.stack_low = known_stacks[low].low;
		sample_thread.stack_top = block;
	} else if (main_low <= here && here < main_end) {
		/* Others may run there too, on a stack within the main thread's, and end. */
		if (thread_tid() == known_main_tid)
			atomic_store(&main_thread, &sample_thread); /* for who raises main_low from now on */
		raise_low(&sample_thread.stack_low, __atomic_load_n(&main_low, __ATOMIC_SEQ_CST));
		sample_thread.stack_top = main_end;
	}
}

void thread_find_bounds(void)
{
	if (!sample_thread.stack_top && known_stacks)
		bounds_from_known();
}

void thread_first_event(void)
{
	sample_thread.tid = thread_tid();
	thread_find_bounds();
}

/* The control block lies at the high end of the stack. Not always if the program gives the stack: where
 * thread-local storage is not small, musl puts both into a mapping of their own, and the stack begins at its
 * end. What is between the two is not the stack's. */
static void bounds_from(const struct stack_asked *asked)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0), block = control_block();
	const bool apart = asked->high && (block < asked->low || block >= asked->high);
	const uintptr_t top = apart ? asked->high : block;

	if (frame >= top || (apart && frame < asked->low) || asked->bytes <= top - frame + STACK_SLACK_BYTES)
		return;
	sample_thread.stack_low = top - asked->bytes + STACK_SLACK_BYTES;
	sample_thread.stack_top = top - frame > OUTER_FRAMES_BYTES ? frame + OUTER_FRAMES_BYTES : top;
}

static void *thread_start(void *argument)
{
	struct thread_begin *begin = argument;
	void *(*function)(void *) = begin->function;
	void *with = begin->argument;
	const struct stack_asked stack = begin->stack;

	atomic_store_explicit(&begin->used, 0, memory_order_release);
	if (stack.bytes)
		bounds_from(&stack);
	return function(with);
}

/* Bytes of the stack that `attr` asks for, less its guard; 0 unknown. */
static size_t stack_bytes_of(const pthread_attr_t *attr)
{
	size_t stack = 0, guard = 0;
	pthread_attr_t defaults;

	if (!attr_getstacksize || !attr_getguardsize || !attr_init || !attr_destroy)
		return 0;
	const pthread_attr_t *asked = attr;
	if (!asked) {
		if (attr_init(&defaults) != 0)
			return 0;
		asked = &defaults;
	}
	if (attr_getstacksize(asked, &stack) != 0 || attr_getguardsize(asked, &guard) != 0)
		stack = guard = 0;
	if (!attr)
		attr_destroy(&defaults);
	return stack > guard ? stack - guard : 0;
}

/* glibc answers also where the program gives none: with an end at 0. */
static struct stack_asked stack_of(const pthread_attr_t *attr)
{
	struct stack_asked asked = {.bytes = stack_bytes_of(attr)};
	void *low;
	size_t bytes;

	if (attr && attr_getstack && attr_getstack(attr, &low, &bytes) == 0 && low &&
	    (uintptr_t)low + bytes > (uintptr_t)low) {
		asked.low = (uintptr_t)low;
		asked.high = (uintptr_t)low + bytes;
	}
	return asked;
}

struct thread_begin *thread_creating(const pthread_attr_t *attr, void *(**function)(void *), void **argument)
{
	for (uint32_t i = 0; i < BEGINS; i++) {
		struct thread_begin *begin = &begins[i];
		uint32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&begin->used, &nobody, 1))
			continue;
		begin->function = *function;
		begin->argument = *argument;
		begin->stack = stack_of(attr);
		*function = thread_start;
		*argument = begin;
		return begin;
	}
	return NULL;
}

void thread_not_created(struct thread_begin *begin)
{
	if (begin)
		atomic_store(&begin->used, 0);
}
