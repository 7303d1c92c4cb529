/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracer stops one thread of another process, and lets it go again soon, whatever its caller is doing then,
 * or waiting for: it is a thread of ours that waits for the answer no longer than its patience. When it ends
 * the kernel lets go of the thread, also if that has not come to its stop yet; so there is a tracer for each
 * stop, and no more than one at a time.
 */
#ifndef SAMPLER_ATTACH_TRACER_H
#define SAMPLER_ATTACH_TRACER_H

#include "sampler/attach/remote_call.h"

#include <pthread.h>

enum tracer_state {
	TRACER_STOPPING,
	TRACER_WAITING,
	TRACER_ANSWERED,
	TRACER_OVER, /* the thread runs, or is about to be let go */
};

struct tracer {
	struct stopped_thread thread; /* registers and so on, of its last stop */

	/* its own */
	pthread_t itself;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum tracer_state state;
	const struct remote_call *call;
	int error;
};

/* Owned by the caller, to be freed by tracer_free. NULL: no memory. cancel_fd: as in stopped_thread.h. */
struct tracer *tracer_new(int cancel_fd);
void tracer_free(struct tracer *tracer);

/* Stops the thread until tracer_end, but no longer than 40 ms. Returns 0; or, if the thread runs on and
 * tracer_end is not to be called: -ENOMEM: there is no tracer; or what stopped_thread_stop returns. */
int tracer_stop(struct tracer *tracer, pid_t tid);

/* Calls the function in the thread, unless that is NULL. Returns what remote_call_run returns; -EAGAIN also
 * because it was too late for that. The thread has been let go in any case. */
int tracer_end(struct tracer *tracer, const struct remote_call *call);

#endif
