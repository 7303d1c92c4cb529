/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory_limit.h"

#include "preload/claim.h"
#include "preload/lock_all.h"
#include "preload/memory.h"
#include "preload/one_thread.h"
#include "preload/place.h"
#include "preload/raw_file.h"
#include "preload/sample.h"
#include "preload/seccomp_filter.h"
#include "preload/session.h"
#include "preload/signal.h"
#include "preload/tables.h"
#include "preload/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* False: the limit was another process'. A vfork child sets its own, but its memory is its parent's, and so
 * is the thread id that the C library has noted: asked by that id, the kernel answers with the parent's
 * limit. */
static bool read_own(int resource, struct rlimit *limit)
{
	struct rlimit noted;
	const uint32_t tid = thread_tid();

	return tid && syscall(SYS_prlimit64, 0, resource, NULL, limit) == 0 &&
	    syscall(SYS_prlimit64, tid, resource, NULL, &noted) == 0 && noted.rlim_cur == limit->rlim_cur;
}

static bool has_number(const char *text, const char *name, uint64_t number)
{
	const char *at = strstr(text, name);
	uint64_t read = 0;

	for (at = at ? at + strlen(name) : ""; *at >= '0' && *at <= '9' && read <= UINT32_MAX; at++)
		read = 10 * read + (uint64_t)(*at - '0');
	return read == number && *at == '\n';
}

/* By the C library's word if it has one that says so, else by the kernel's. There a vfork child has a pid of
 * its own; its parent may have several threads. */
static bool has_one_thread(void)
{
	char text[4096];

	if (*one_thread_word != 0)
		return true;
	if (seccomp_filter_is_noted())
		return false; /* it may punish openat */
	const int fd = raw_file_open("/proc/self/status", O_RDONLY);
	if (fd < 0)
		return false;
	const ssize_t got = raw_file_read(fd, text, sizeof(text) - 1);
	raw_file_close(fd);
	text[got > 0 ? got : 0] = '\0';
	return has_number(text, "\nPid:\t", thread_tid()) && has_number(text, "\nThreads:\t", 1);
}

static void give_back_tables(void)
{
	tables_give_back();
	if (claim_is_image())
		tables_tell(place_header());
}

/* Of an offer that nobody has taken nothing was seen before. */
static bool is_sampled(void)
{
	const enum claim_state now = claim_state();

	return now == CLAIM_OPEN || now == CLAIM_FORKED;
}

static void stop(void)
{
	struct region_header *header = place_header();
	const uint64_t bytes = place_start_bytes(), first = getauxval(AT_PAGESZ);

	if (is_sampled())
		atomic_fetch_add(&header->not_afforded, 1);
	signal_leave();
	if (atomic_load(&header->attaching) == REGION_ATTACHED)
		claim_detach(); /* it may be attached to again: no thread is to leave off for good */
	else
		claim_close();
	place_leave();
	lock_all_leave_out(LOCK_ALL_REGION, NULL, 0);
	/* malloc may just be reading what it watches in the header (region_set_period). Last, when the limit
	 * has room for that. */
	memory_unmap((unsigned char *)header + first, bytes - first);
	place_unmap_grown();
	(void)memory_retire(header, first);
	sample_stop(false);
	tables_close();
}

static bool is_within(int resource, const struct rlimit *limit)
{
	return session_within(limit, 2 * tables_bytes()) &&
	    (resource != RLIMIT_AS || session_within(limit, place_bytes()));
}

void memory_limit_changed(int resource)
{
	const int saved = errno;
	struct rlimit limit;

	if (place_header() && (resource == RLIMIT_AS || resource == RLIMIT_DATA) &&
	    read_own(resource, &limit)) {
		session_note_limit(resource, &limit);
		if (!session_within(&limit, 2 * tables_bytes()))
			give_back_tables();
		if (!is_within(resource, &limit) && !sample_thread.inside && has_one_thread())
			stop();
	}
	errno = saved;
}
