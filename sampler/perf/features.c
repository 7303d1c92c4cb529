/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/features.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

/* No process has this id. The kernel judges the attributes before it looks for the process, so no event is
 * made. */
static int try_with(enum features feature)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = attr.exclude_hv = attr.disabled = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	if (feature == FEATURES_DATA_PAGE_SIZE)
		attr.sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
	attr.mmap = attr.mmap2 = attr.build_id = feature == FEATURES_BUILD_ID;
	attr.remove_on_exec = feature == FEATURES_REMOVE_ON_EXEC;
	if (feature == FEATURES_LOST)
		attr.read_format |= PERF_FORMAT_LOST;
	return (int)syscall(SYS_perf_event_open, &attr, INT_MAX, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

bool features_has(enum features feature)
{
	static enum { UNKNOWN, YES, NO } known[FEATURES_COUNT];

	if (known[feature] == UNKNOWN) {
		/* ESRCH: the attributes are accepted. E2BIG: an attribute is beyond the end of the kernel's
		 * struct. */
		known[feature] = try_with(feature) < 0 && (errno == EINVAL || errno == E2BIG) ? NO : YES;
	}
	return known[feature] == YES;
}

enum features_obstacle features_obstacle(void)
{
	/* EFAULT: the attributes cannot be read. Filters refuse the call before that, and so does
	 * perf_event_paranoid in some kernels; in Debian's 6.1 its check comes after. */
	if (syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) >= 0 || errno == EFAULT)
		return FEATURES_REACHED;
	return errno == EACCES ? FEATURES_PARANOID : FEATURES_FILTERED;
}

/* ---- why events are refused */

#define NOT_PERMITTED "not permitted (kernel.perf_event_paranoid, capabilities or a seccomp filter)"
#define PERMIT                                                             \
	"run as root, or: sudo sysctl kernel.perf_event_paranoid=1; in a " \
	"container: " FEATURES_CONTAINER_REMEDY

static const struct {
	int number;
	const char *reason, *remedy;
} rows[] = {
    {EACCES, NOT_PERMITTED, PERMIT},
    {EPERM, NOT_PERMITTED, PERMIT},
    {ENOSYS, "this kernel has no perf events", "a kernel with CONFIG_PERF_EVENTS"},
    {ENOSPC, "no debug register free (a debugger or another profiler has them)", ""},
};

bool features_refusal_is_permission(int error)
{
	return error == -EACCES || error == -EPERM;
}

const char *features_refusal_reason(int error)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].number == -error)
			return rows[i].reason;
	return strerror(-error);
}

const char *features_refusal_remedy(int error)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].number == -error)
			return rows[i].remedy;
	return "";
}
