/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/retention.h"

#include "pprof/store/store.h"
#include "pprof/text/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
	AGAIN_S = 60,  /* between two children, for the case that the store cannot be looked at */
	CHILD_S = 600, /* then the child ends: it may hang in a file system */
	CHILD_NICE = 5,
};

/* In the child, which ends with the daemon: nothing is lost if it is killed at any moment. */
static void look(struct store *store)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "heaptap-store");
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_S);
	if (nice(CHILD_NICE) == -1)
		errno = 0; /* the nice value is higher already */
	_exit(store_thin(store) ? 1 : 0);
}

void retention_run(struct retention *retention, struct store *store, uint64_t now_ns)
{
	pid_t child;

	if (retention->child || now_ns < retention->next_ns || !store_is_overdue(store, time(NULL)))
		return;
	retention->next_ns = now_ns + AGAIN_S * (uint64_t)CLOCK_NS_PER_S;
	child = fork();
	if (child == 0)
		look(store);
	if (child > 0)
		retention->child = child;
}

bool retention_reap(struct retention *retention, pid_t pid)
{
	if (pid != retention->child)
		return false;
	retention->child = 0;
	return true;
}
