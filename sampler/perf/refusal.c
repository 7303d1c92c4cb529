/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/refusal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define NOT_PERMITTED "not permitted (kernel.perf_event_paranoid, capabilities or a seccomp filter)"
#define PERMIT                                                             \
	"run as root, or: sudo sysctl kernel.perf_event_paranoid=1; in a " \
	"container: " REFUSAL_CONTAINER_REMEDY

static const struct {
	int number;
	const char *reason, *remedy;
} rows[] = {
    {EACCES, NOT_PERMITTED, PERMIT},
    {EPERM, NOT_PERMITTED, PERMIT},
    {ENOSYS, "this kernel has no perf events", "a kernel with CONFIG_PERF_EVENTS"},
    {ENOSPC, "no debug register free (a debugger or another profiler has them)", ""},
};

bool refusal_is_permission(int error)
{
	return error == -EACCES || error == -EPERM;
}

const char *refusal_reason(int error)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].number == -error)
			return rows[i].reason;
	return strerror(-error);
}

const char *refusal_remedy(int error)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].number == -error)
			return rows[i].remedy;
	return "";
}
