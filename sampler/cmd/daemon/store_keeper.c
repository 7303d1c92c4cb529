/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/store_keeper.h"

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

void store_keeper_run(struct store_keeper *keeper, struct store *store, uint64_t now_ns)
{
	pid_t child;

	if (keeper->child || now_ns < keeper->next_ns || !store_is_overdue(store, time(NULL)))
		return;
	keeper->next_ns = now_ns + AGAIN_S * (uint64_t)CLOCK_NS_PER_S;
	child = fork();
	if (child == 0)
		look(store);
	if (child > 0)
		keeper->child = child;
}

bool store_keeper_reap(struct store_keeper *keeper, pid_t pid)
{
	if (pid != keeper->child)
		return false;
	keeper->child = 0;
	return true;
}
