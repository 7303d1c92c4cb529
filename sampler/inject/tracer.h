/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracer is a thread of ours that stops one thread of another process, and lets it go again soon. It waits
 * only for a short time for its caller's decision, whatever the caller is doing meanwhile. When the tracer
 * ends, the kernel lets go of the stopped thread, even if that has not come to its stop yet. So each stop has
 * a tracer of the tracer's own, and there is one tracer at a time.
 */
#ifndef SAMPLER_INJECT_TRACER_H
#define SAMPLER_INJECT_TRACER_H

#include "sampler/inject/remote_call.h"

#include <pthread.h>

enum tracer_state {
	TRACER_STOPPING,
	TRACER_WAITING,
	TRACER_ANSWERED,
	TRACER_OVER, /* the stopped thread runs, or is about to be let go */
};

struct tracer {
	struct stopped_thread thread; /* registers and so on of its last stop */

	/* the tracer's own */
	pthread_t itself;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum tracer_state state;
	const struct remote_call *call;
	int error;
};

/* NULL if out of memory. The caller frees it with tracer_free. cancel_fd: as in stopped_thread.h. */
struct tracer *tracer_new(int cancel_fd);
void tracer_free(struct tracer *tracer);

/* Stops the thread until tracer_end, but for at most 40 ms. Returns 0; or -ENOMEM, or the error of
 * stopped_thread_stop. After an error the thread runs on, and tracer_end must not be called. */
int tracer_stop(struct tracer *tracer, pid_t tid);

/* Calls the function in the thread unless `call` is NULL, and lets the thread go in any case. Returns the
 * result of remote_call_run; -EAGAIN also if it was too late. */
int tracer_end(struct tracer *tracer, const struct remote_call *call);

#endif
