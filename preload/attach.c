/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/attach.h"

#include "preload/arguments.h"
#include "preload/capture.h"
#include "preload/claim.h"
#include "preload/loader_lock.h"
#include "preload/lock_all.h"
#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/module_list.h"
#include "preload/one_thread.h"
#include "preload/overcommit.h"
#include "preload/raw_file.h"
#include "preload/sample.h"
#include "preload/sample_clock.h"
#include "preload/seccomp_filter.h"
#include "preload/session.h"
#include "preload/signal.h"
#include "preload/start_files.h"
#include "preload/tables.h"
#include "preload/thread.h"
#include "proto/region.h"
#include "proto/region_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/memfd.h>

/* True when a seccomp filter is in force: then we make only system calls that the loader makes too. Unknown
 * counts as true. */
static bool is_filtered(void)
{
	char text[4096];
	int fd = raw_file_open("/proc/self/status", O_RDONLY);

	if (fd < 0)
		return true;
	ssize_t got = raw_file_read(fd, text, sizeof(text) - 1);
	raw_file_close(fd);
	if (got <= 0)
		return true;
	text[got] = '\0';
	const char *line = strstr(text, "\nSeccomp:\t");
	return !line || line[10] != '0';
}

/* A page that reads zero in a forked child. */
static _Atomic uint32_t *map_wiped(void)
{
	void *page = memory_map(REGION_PAGE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (!page)
		return NULL;
	if (madvise(page, REGION_PAGE_BYTES, MADV_WIPEONFORK) != 0) {
		memory_unmap(page, REGION_PAGE_BYTES);
		return NULL;
	}
	return page;
}

/* glibc's own hook at fork: its pthread_atfork is no function of the library, but calls this with our handle.
 * musl has pthread_atfork itself, and never unloads us. */
static bool register_atfork(void)
{
	extern void *__dso_handle __attribute__((visibility("hidden")));
	struct lookup wishes[2] = {{.name = "__register_atfork"}, {.name = "pthread_atfork"}};
	lookup_next(wishes, 2);
	int (*reg)(void (*)(void), void (*)(void), void (*)(void), void *) =
	    (int (*)(void (*)(void), void (*)(void), void (*)(void), void *))(uintptr_t)wishes[0].found;
	int (*reg_here)(void (*)(void), void (*)(void), void (*)(void)) =
	    (int (*)(void (*)(void), void (*)(void), void (*)(void)))(uintptr_t)wishes[1].found;
	if (reg)
		return reg(claim_forking, NULL, claim_forked, &__dso_handle) == 0;
	return reg_here && reg_here(claim_forking, NULL, claim_forked) == 0;
}

/* No uprobe fires in a copy of the library. The sampler may change the mode again once it has seen us. */
static void avoid_uprobe(struct region_header *header, const struct region_module *own)
{
	uint32_t trigger = REGION_MODE_TRIGGER;

	if (header->uprobe_ino && own->ino &&
	    (own->ino != header->uprobe_ino || own->dev != header->uprobe_dev))
		atomic_compare_exchange_strong(&header->mode, &trigger, REGION_MODE_COPY);
}

/* The program run's part of the header. */
static void describe_image(struct region_header *header, uint32_t pid, bool strict, bool runs)
{
	struct region_module own = {0};

	module_list_write((unsigned char *)header + header->offsets.modules, !strict, &own);
	avoid_uprobe(header, &own);
	start_files_write(header, runs);
	if (!runs && header->wants_command_line == 1) /* a running program may have changed it */
		arguments_write((char *)header + header->offsets.command_line);
	header->pid = pid;
	header->trigger_address = capture_breakpoint();
	header->unseen = !runs && lookup_before("malloc") ? REGION_UNSEEN_MALLOC : 0u;
}

static struct claim_setup claim_setup_of(struct region_header *header, uint32_t pid, _Atomic uint32_t *wiped)
{
	return (struct claim_setup){
	    .place =
	        {
	            .base = (unsigned char *)header,
	            .offsets = header->offsets,
	            .segments = header->segments,
	            .start_segments = header->start_segments,
	            .large_buffers = header->large_buffers,
	            .key = header->key,
	            .no_peak = header->no_peak == 1,
	            .record_mmap = header->record_mmap == 1,
	        },
	    .pid = pid,
	    .wiped = wiped,
	};
}

/* glibc's loader reads the counter when it starts a program on x86-64: none starts where that is
 * forbidden. */
static enum clock_counter counter_of(bool strict, bool runs)
{
#if defined(__x86_64__)
	const bool read_by_loader = !runs && thread_libc_is_glibc();
#else
	const bool read_by_loader = false;
#endif
	return !strict ? CLOCK_ASK : read_by_loader ? CLOCK_READ : CLOCK_UNKNOWN;
}

/* What is done once, however often the process is attached to. */
struct lasting {
	_Atomic uint32_t *wiped;
	bool done, atfork;
};

static void leave_library_out(void)
{
	uintptr_t start = 0, end = 0;

	lookup_extent((const void *)(uintptr_t)leave_library_out, &start, &end);
	lock_all_leave_out(LOCK_ALL_LIBRARY, (const void *)start, end - start);
}

static void open_lasting(struct lasting *lasting, bool strict)
{
	if (strict)
		seccomp_filter_note();
	if (lasting->done)
		return;
	lasting->done = true;
	leave_library_out();
	lasting->wiped = strict ? NULL : map_wiped();
	lasting->atfork = register_atfork();
	if (lasting->atfork)
		loader_lock_find_list();
}

static struct lasting lasting;

static void seed(void)
{
	const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);

	if (random)
		sample_seed(random);
}

static bool turn_down(struct region_header *header, uint32_t pid, enum region_declined reason)
{
	header->pid = pid;
	session_decline(header, reason);
	return false;
}

bool attach_to(struct region_header *header, bool strict, bool runs)
{
	atomic_store(&header->state, REGION_CLAIMED);
	thread_open(strict ? 0 : runs ? (uint32_t)syscall(SYS_gettid) : (uint32_t)getpid(), !runs);
	uint32_t pid = strict && !runs ? thread_tid() : (uint32_t)getpid();
	open_lasting(&lasting, strict);
	/* a child that does not notice the fork would write into its parent's place */
	if (!lasting.atfork && !lasting.wiped)
		return turn_down(header, pid, REGION_DECLINED_NO_FORK_NOTICE);
	const struct tables_wish wish = {
	    .period_bytes = atomic_load(&header->period_bytes),
	    .segments = header->segments,
	    .mappings = header->record_mmap == 1 ? TABLES_MAPPINGS
	        : runs                           ? TABLES_MAPPINGS_IF_ROOM
	                                         : TABLES_NO_MAPPINGS,
	    .may_advise = !strict,
	};
	if (!tables_open(&wish))
		return turn_down(header, pid, REGION_DECLINED_NO_MEMORY);
	if (!strict)
		madvise(header, region_start_bytes(header), MADV_DONTDUMP);
	describe_image(header, pid, strict, runs);
	tables_tell(header);
	seed();
	sample_clock_open((int)header->clock_id, counter_of(strict, runs));
	header->clock_id = (uint32_t)sample_clock_chosen();
	one_thread_open();
	lock_all_leave_out(LOCK_ALL_REGION, header, region_start_bytes(header));
	const struct claim_setup setup = claim_setup_of(header, pid, lasting.wiped);
	claim_open(&setup);
	/* Under a filter we make only system calls that the loader makes too; sigaction is none of them. */
	bool everywhere = header->signal_everywhere == 1;
	if (!runs && !strict && header->snapshot_signal >= 1 && header->snapshot_signal <= 64 &&
	    (everywhere || session_is_command(pid)))
		signal_open((int)header->snapshot_signal, everywhere);
	if (!runs)
		atomic_store_explicit(&header->state, REGION_READY, memory_order_release);
	return true;
}

/*
 * The offer: a program run that has found no session makes a region itself, so that a daemon can find it in
 * its address space at any time later (proto/region.h). Nobody is waited for, no descriptor stays open, and
 * the only page touched is the header's. strict: by such system calls alone as the loader makes too.
 */

static int open_memfd(const char *name, uint64_t bytes)
{
	int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || syscall(SYS_ftruncate, fd, bytes) == 0)
		return fd;
	raw_file_close(fd);
	return -1;
}

/* The buffers' file, in its place in the region. */
static bool map_buffers(unsigned char *region, const struct region_offsets *offsets)
{
	const uint64_t bytes = region_buffers_bytes(offsets);
	const int fd = open_memfd("heaptap-buffers", bytes);

	if (fd < 0)
		return false;
	const bool mapped = memory_replace(region + offsets->buffers, bytes, fd);
	raw_file_close(fd);
	return mapped;
}

/* The beginning of a file that has room for more segments. NULL if there can be no file. A file beyond
 * RLIMIT_FSIZE would end the program with SIGXFSZ. */
static void *map_files(struct region_offsets *offsets, uint64_t bytes)
{
	region_lay_out(offsets, REGION_OFFER_SEGMENTS, REGION_OFFER_LARGE_BUFFERS);
	const int fd =
	    session_affordable(RLIMIT_FSIZE, offsets->end) ? open_memfd("heaptap", offsets->end) : -1;
	if (fd < 0)
		return NULL;
	void *start = memory_map(bytes, MAP_SHARED | MAP_NORESERVE, fd);
	raw_file_close(fd);
	if (!start || map_buffers(start, offsets))
		return start;
	memory_unmap(start, bytes);
	return NULL;
}

/* Takes two calls of mmap, but has no name in /proc/PID/maps, and no seals. */
static void *map_anonymous(const struct region_offsets *offsets)
{
	unsigned char *start = memory_map(offsets->end, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	if (!start || memory_cover(start + offsets->buffers, region_buffers_bytes(offsets)))
		return start;
	memory_unmap(start, offsets->end);
	return NULL;
}

/* A region with its header written, mode off, not to be unmapped. NULL: there is no room for it. */
static struct region_header *offer_region(bool strict)
{
	struct region_offsets offsets;
	uint32_t segments = REGION_OFFER_SEGMENTS;

	region_lay_out(&offsets, REGION_START_SEGMENTS_LEAST, REGION_OFFER_LARGE_BUFFERS);
	const uint64_t bytes = offsets.end;
	if (overcommit_is_strict(OVERCOMMIT_PATH) || !session_affordable(RLIMIT_AS, bytes))
		return NULL;
	struct region_header *header = strict ? NULL : map_files(&offsets, bytes);
	if (!header) {
		segments = REGION_START_SEGMENTS_LEAST;
		region_lay_out(&offsets, segments, REGION_OFFER_LARGE_BUFFERS);
		header = map_anonymous(&offsets);
	}
	if (!header)
		return NULL;
	header->abi = REGION_ABI;
	header->offsets = offsets;
	header->segments = segments;
	header->start_segments = REGION_START_SEGMENTS_LEAST;
	header->large_buffers = REGION_OFFER_LARGE_BUFFERS;
	header->clock_id = CLOCK_MONOTONIC_COARSE;
	header->offered = 1;
	atomic_store_explicit(&header->period_bytes, REGION_OFFER_PERIOD_BYTES, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* who reads the magic number reads all of this */
	header->magic = REGION_MAGIC;
	return header;
}

/* All that takes a system call or a lock is done now, as if there was a sampler: nothing of the kind may be
 * done later. */
static bool offer(bool strict)
{
	struct region_header *header = offer_region(strict);

	if (!header)
		return false;
	const uint32_t own = strict ? 0 : (uint32_t)getpid();
	thread_open(own, true);
	open_lasting(&lasting, strict);
	const struct tables_wish wish = {
	    .period_bytes = REGION_OFFER_PERIOD_BYTES, .segments = header->segments, .may_advise = !strict};
	if ((!lasting.atfork && !lasting.wiped) || !tables_open(&wish)) {
		memory_unmap(header, region_start_bytes(header));
		return false;
	}
	if (!strict)
		madvise(header, region_start_bytes(header), MADV_DONTDUMP);
	start_files_write(header, false);
	header->unseen = lookup_before("malloc") ? REGION_UNSEEN_MALLOC : 0u;
	header->trigger_address = capture_breakpoint();
	tables_tell(header);
	seed();
	sample_clock_open((int)header->clock_id, counter_of(strict, false));
	one_thread_open();
	lock_all_leave_out(LOCK_ALL_REGION, header, region_start_bytes(header));
	/* Whether it will still be this process that takes a place is known if forks are told. */
	const uint32_t pid = !lasting.atfork ? 0 : strict ? thread_tid() : own;
	const struct claim_setup setup = claim_setup_of(header, pid, lasting.wiped);
	claim_offer(&setup);
	atomic_store_explicit(&header->state, REGION_OFFERED, memory_order_release);
	return true;
}

static bool attach_region(void)
{
	bool found, strict;

	if (session_forbidden())
		return false;
	strict = is_filtered();
	struct region_header *header = session_region(strict, &found);
	if (!header)
		return !found && offer(strict);
	const uint64_t bytes = region_start_bytes(header);
	const bool attached = attach_to(header, strict, false);
	if (!attached)
		memory_unmap(header, bytes);
	return attached;
}

/* gcc's ThreadSanitizer intercepts what attaching calls (open, mmap, sigaction), and is not ready for that
 * when the first hook is reached. (clang's is in the program itself, whose calls do not reach us.) */
static bool has_thread_sanitizer(void)
{
	struct lookup runtime = {.name = "__tsan_init"};

	lookup_next(&runtime, 1);
	return runtime.found != NULL;
}

/* There may be two copies of the library, of `heaptap record` and of /etc/ld.so.preload. The program calls
 * the first, which calls the second: each would count the same blocks. So the first has the session, or the
 * offer. */
static bool is_second(void)
{
	const void *other = lookup_before("heaptap_api");

	return other && lookup_beside(other, "malloc");
}

static bool refused;

void attach(void)
{
	int saved = errno;

	if (claim_begin()) {
		const bool second = is_second();

		refused = !second && has_thread_sanitizer();
		if (second || refused || !attach_region())
			claim_close();
	}
	errno = saved;
}

/* That runtime is ready before the constructors are called, but may have called a hook before. */
void attach_refuse(void)
{
	if (refused && !session_forbidden())
		session_refuse(is_filtered(), REGION_DECLINED_SANITIZER);
}

bool attach_early(void)
{
	if (!thread_on_main_stack())
		return false;
	attach();
	return true;
}
