/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/safe_point.h"

#include "sampler/inject/remote_call.h"
#include "sampler/linux/proc.h"
#include "sampler/unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	FRAMES_MOST = 512,
	ROOM_BYTES = 64 << 10, /* dlopen and a constructor take less than 16 KiB */
};

/* The exports of glibc's malloc.o. Its internal functions lie between these. */
static const char *const malloc_names[] = {"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc",
    "posix_memalign", "valloc", "pvalloc", "malloc_trim", "malloc_usable_size", "mallinfo", "mallinfo2",
    "mallopt", "malloc_stats", "malloc_info", "cfree", "__libc_malloc", "__libc_free", "__libc_calloc",
    "__libc_realloc", "__libc_memalign", "__libc_valloc", "__libc_pvalloc", "__libc_mallopt"};

/* Functions that hold locks of the heap, of the loader, or of the list of threads. */
static const char *const held_names[] = {"fork", "_Fork", "__fork", "__libc_fork", "vfork", "__vfork",
    "posix_spawn", "posix_spawnp", "system", "popen", "exit", "_exit", "quick_exit", "abort",
    "__cxa_finalize", "__cxa_atexit", "atexit", "on_exit", "pthread_create", "pthread_exit", "pthread_detach",
    "pthread_getattr_np", "pthread_kill", "pthread_cancel", "pthread_setname_np", "setuid", "seteuid",
    "setreuid", "setresuid", "setgid", "setegid", "setregid", "setresgid", "setgroups", "initgroups",
    "dlopen", "dlsym", "dlvsym", "dlclose", "dlerror", "dladdr", "dladdr1", "dlinfo", "dlmopen",
    "dl_iterate_phdr", "__libc_dlopen_mode", "__libc_dlsym", "__libc_dlclose", "fexecve", "execve", "mtrace",
    "muntrace"};

static bool is_in(uint64_t address, uint64_t low, uint64_t high)
{
	return address >= low && address < high;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

#define AMONG(name, names) is_among(name, names, sizeof(names) / sizeof((names)[0]))

/* The range of malloc.o: from the end of the last other function before its first export, to the start of the
 * next other function behind its last export. */
static void find_libc_malloc(struct safe_point *point)
{
	const struct exports *libc = &point->libc;
	uint64_t first = UINT64_MAX, last = 0, low = libc->low, high = libc->high;

	for (size_t i = 0; i < libc->count; i++)
		if (AMONG(libc->list[i].name, malloc_names)) {
			first = libc->list[i].start < first ? libc->list[i].start : first;
			last = libc->list[i].end > last ? libc->list[i].end : last;
		}
	for (size_t i = 0; i < libc->count; i++) {
		const struct export *other = &libc->list[i];

		if (AMONG(other->name, malloc_names))
			continue;
		if (other->end <= first && other->end > low)
			low = other->end;
		if (other->start >= last && other->start < high)
			high = other->start;
	}
	point->allocator_low = low;
	point->allocator_high = high;
}

/* Which malloc do programs call? The first definition in the loader's order. An allocator outside libc is
 * found like any other object that exports malloc. */
static void find_allocator(struct safe_point *point, uint64_t libc_base)
{
	const uint64_t program = address_space_auxiliary(point->space, AT_PHDR);

	for (size_t i = 0; i < point->space->count; i++) {
		const struct mapping *mapping = &point->space->mappings[i];
		struct exports exports;

		if (mapping->offset != 0 || mapping->path[0] != '/' || mapping->start == libc_base ||
		    (mapping->start >= point->loader_low && mapping->start < point->loader_high) ||
		    (i > 0 && strcmp(mapping->path, point->space->mappings[i - 1].path) == 0))
			continue;
		if (exports_read(&exports, point->space, mapping->start) == 0 &&
		    exports_address(&exports, "malloc") && exports_address(&exports, "free")) {
			point->allocator_low = exports.low;
			point->allocator_high = exports.high;
			point->allocator_is_program = is_in(program, exports.low, exports.high);
		}
		exports_free(&exports);
		if (point->allocator_high)
			return;
	}
	find_libc_malloc(point);
}

int safe_point_open(struct safe_point *point, const struct address_space *space, struct modules *modules)
{
	const struct mapping *libc = address_space_file(space, "libc.so.6", false);
	const struct mapping *loader = address_space_find(space, address_space_auxiliary(space, AT_BASE));

	*point = (struct safe_point){.space = space};
	if (!libc || !loader)
		return -ENOEXEC;
	for (size_t i = 0; i < space->count; i++) /* mappings of the same file, one behind the other */
		if (strcmp(space->mappings[i].path, loader->path) == 0) {
			point->loader_low = point->loader_low ? point->loader_low : space->mappings[i].start;
			point->loader_high = space->mappings[i].end;
		}
	int error = exports_read(&point->libc, space, libc->start);
	if (error)
		return error;
	find_allocator(point, libc->start);
	point->maps = maps_new(modules, space->pid, false);
	return point->maps ? maps_read_proc(point->maps) : -ENOMEM;
}

void safe_point_close(struct safe_point *point)
{
	exports_free(&point->libc);
	maps_free(point->maps);
	point->maps = NULL;
}

static struct regs regs_of(const struct user_regs_struct *from)
{
#if defined(__x86_64__)
	/* by DWARF number: System V ABI AMD64 supplement, figure 3.36 */
	return (struct regs){
	    .pc = from->rip,
	    .r = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp,
	        from->r8, from->r9, from->r10, from->r11, from->r12, from->r13, from->r14, from->r15},
	    .known = 0xffff,
	};
#else
	const struct regs_arch *arch = regs_arch_native();
	struct regs regs = {.pc = from->pc, .known = (UINT64_C(1) << arch->count) - 1};
	memcpy(regs.r, from->regs, sizeof(from->regs)); /* x0 to x30 have these numbers in DWARF too */
	regs.r[arch->sp] = from->sp;
	return regs;
#endif
}

/* A thread that waits in pthread_join holds no lock. A thread that is leaving pthread_join may hold one. */
static bool is_waiting_in_join(const char *name, const struct stopped_thread *thread)
{
	return (strcmp(name, "pthread_join") == 0 || strcmp(name, "pthread_timedjoin_np") == 0 ||
	           strcmp(name, "pthread_clockjoin_np") == 0) &&
	    stopped_thread_system_call(thread) == SYS_futex;
}

/* A thread that waits for a descriptor, a child or a signal is in no allocator: allocators wait only for
 * locks and for time. */
static bool is_resting(const struct safe_point *point, const struct stopped_thread *thread)
{
	const struct export *function = exports_at(&point->libc, stopped_thread_program_counter(thread));

	switch (stopped_thread_system_call(thread)) {
#if defined(__x86_64__)
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
	case SYS_accept:
	case SYS_pause:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_read:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept4:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
		return true;
	case SYS_restart_syscall: /* a poll or a sleep that goes on */
		return function && strstr(function->name, "poll");
	default:
		return false;
	}
}

static enum safe_point_verdict check_frame(
    const struct safe_point *point, const struct stopped_thread *thread, uint64_t pc, bool rests)
{
	if (is_in(pc, point->loader_low, point->loader_high))
		return SAFE_POINT_LOADER;
	if (is_in(pc, point->allocator_low, point->allocator_high))
		return point->allocator_is_program && rests ? SAFE_POINT_SAFE : SAFE_POINT_ALLOCATOR;
	if (!is_in(pc, point->libc.low, point->libc.high))
		return SAFE_POINT_SAFE;
	const struct export *function = exports_at(&point->libc, pc);
	if (!function)
		return SAFE_POINT_SAFE;
	if (AMONG(function->name, held_names))
		return SAFE_POINT_LIBC;
	if (strstr(function->name, "join") && strncmp(function->name, "pthread_", 8) == 0 &&
	    !is_waiting_in_join(function->name, thread))
		return SAFE_POINT_LIBC;
	return SAFE_POINT_SAFE;
}

/* Code outside libc is on the stack: a thread that begins or ends has none. */
static bool has_own_frame(const struct safe_point *point, const struct unwind_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_in(frames[i].pc, point->libc.low, point->libc.high) &&
		    !is_in(frames[i].pc, point->loader_low, point->loader_high))
			return true;
	return false;
}

/* Is this the stack that the thread began on? The kernel names the main thread's stack. For any other thread,
 * glibc keeps the descriptor, to which the thread pointer points, at the top of the stack. That is also true
 * of a stack that the program gave to glibc, and of the only thread of a child that another thread has
 * forked. The frames tell nothing: a coroutine's may end like a thread's. Neither does the mapping: a stack
 * in the heap is only a part of it. */
static bool is_own_stack(const struct stopped_thread *thread, const struct mapping *mapping)
{
	const uint64_t descriptor = stopped_thread_pointer(thread);

	return strcmp(mapping->path, "[stack]") == 0 ||
	    (strcmp(mapping->path, "[heap]") != 0 &&
	        is_in(descriptor, stopped_thread_stack_pointer(thread), mapping->end));
}

/* The room below the stack pointer, in its mapping. The kernel extends the main thread's stack. */
static bool has_room(const struct safe_point *point, const struct stopped_thread *thread)
{
	uint64_t sp = stopped_thread_stack_pointer(thread);
	const struct mapping *mapping = address_space_find(point->space, sp);

	if (!mapping || !is_own_stack(thread, mapping))
		return false;
	if (strcmp(mapping->path, "[stack]") == 0)
		return mapping->end - sp < (4 << 20) && sp - mapping->start > REMOTE_CALL_FRAME_BYTES;
	return sp - mapping->start > ROOM_BYTES + REMOTE_CALL_FRAME_BYTES;
}

/* Does the frame lie in a file that was replaced or removed, and of which too little could be read from the
 * process' memory? Of the C library and the loader, also if they cannot be read for another reason. */
static bool is_gone(struct safe_point *point, const struct unwind_frame *frame)
{
	const struct map *map = maps_find(point->maps, frame->pc);

	if (!frame->module || frame->module->readable || !map)
		return false;
	const char *path = map_path(map), *name = frame->module->path;

	if (proc_undeleted_length(path) == strlen(path) &&
	    !is_in(frame->pc, point->libc.low, point->libc.high) &&
	    !is_in(frame->pc, point->loader_low, point->loader_high))
		return false;
	const char *slash = strrchr(name, '/');
	snprintf(point->gone, sizeof(point->gone), "%s", slash ? slash + 1 : name);
	return true;
}

/* linux/rseq.h: the descriptor of the last sequence stays there until the kernel looks at it. */
static bool is_in_sequence(const struct safe_point *point, const struct stopped_thread *thread)
{
	enum { DESCRIPTOR_AT = 8 }; /* rseq_cs, in struct rseq */
	struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} sequence;
	const uint64_t area = thread->sequences;
	uint64_t descriptor = 0;

	return area != 0 &&
	    address_space_read(point->space, area + DESCRIPTOR_AT, &descriptor, sizeof(descriptor)) == 0 &&
	    descriptor != 0 &&
	    address_space_read(point->space, descriptor, &sequence, sizeof(sequence)) == 0 &&
	    stopped_thread_program_counter(thread) - sequence.start < sequence.bytes;
}

enum safe_point_verdict safe_point_check(struct safe_point *point, const struct stopped_thread *thread,
    const unsigned char *stack, size_t stack_bytes)
{
	struct unwind_frame frames[FRAMES_MOST];
	const struct regs regs = regs_of(&thread->registers);
	const struct unwind_input input = {
	    .arch = regs_arch_native(),
	    .regs = &regs,
	    .maps = point->maps,
	    .stack_address = stopped_thread_stack_pointer(thread),
	    .stack = stack,
	    .stack_bytes = stack_bytes,
	    .stack_want = stack_bytes,
	    .reaches_end = false,
	};
	size_t count = 0;
	enum unwind_outcome outcome = unwind_stack(&input, frames, FRAMES_MOST, &count);
	bool rests = is_resting(point, thread);

	for (size_t i = 1; i < count; i++)
		/* a thread that a signal has interrupted does not wait */
		rests = rests && !frames[i].activation;
	/* Also looks beyond a signal handler: the interrupted code may hold a lock. */
	for (size_t i = 0; i < count; i++) {
		enum safe_point_verdict verdict = check_frame(point, thread, frames[i].pc, rests);

		if (verdict != SAFE_POINT_SAFE)
			return verdict;
	}
	if (is_in_sequence(point, thread))
		return SAFE_POINT_SEQUENCE;
	for (size_t i = 0; i < count; i++)
		if (is_gone(point, &frames[i]))
			return SAFE_POINT_GONE;
	if (outcome == UNWIND_STACK_SWITCH || !has_room(point, thread))
		return SAFE_POINT_STACK;
	if ((outcome != UNWIND_COMPLETE && outcome != UNWIND_END_GUESSED) || !count)
		return SAFE_POINT_UNKNOWN;
	return has_own_frame(point, frames, count) ? SAFE_POINT_SAFE : SAFE_POINT_LIBC;
}

const char *safe_point_text(enum safe_point_verdict verdict)
{
	static const char *const texts[] = {
	    [SAFE_POINT_SAFE] = "safe",
	    [SAFE_POINT_LOADER] = "in the loader",
	    [SAFE_POINT_ALLOCATOR] = "in the allocator",
	    [SAFE_POINT_LIBC] = "in fork, exit, or the beginning or end of a thread",
	    [SAFE_POINT_SEQUENCE] = "in a restartable sequence",
	    [SAFE_POINT_STACK] = "on a stack that is not its own, or has too little room",
	    [SAFE_POINT_GONE] = "in a file that is gone",
	    [SAFE_POINT_UNKNOWN] = "on a stack that cannot be followed to its end",
	};

	return verdict < SAFE_POINT_VERDICTS ? texts[verdict] : "?";
}
