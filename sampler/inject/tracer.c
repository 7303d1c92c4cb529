/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/tracer.h"

#include "pprof/text/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A runnable thread stops when it next gets a CPU. */
#define STOP_LIMIT_NS (UINT64_C(1) * 1000000000)
#define PATIENCE_NS   (UINT64_C(40) * 1000000)
#define CALL_LIMIT_NS (UINT64_C(30) * 1000000000)

struct tracer *tracer_new(int cancel_fd)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	pthread_condattr_t monotonic;

	if (!tracer)
		return NULL;
	tracer->thread.cancel_fd = cancel_fd;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&tracer->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&tracer->mutex, NULL);
	return tracer;
}

void tracer_free(struct tracer *tracer)
{
	if (!tracer)
		return;
	pthread_mutex_destroy(&tracer->mutex);
	pthread_cond_destroy(&tracer->changed);
	free(tracer);
}

static void set_state(struct tracer *tracer, enum tracer_state state)
{
	pthread_mutex_lock(&tracer->mutex);
	tracer->state = state;
	pthread_cond_signal(&tracer->changed);
	pthread_mutex_unlock(&tracer->mutex);
}

/* NULL also if the caller's answer does not come in time. */
static const struct remote_call *await_answer(struct tracer *tracer)
{
	const uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	const struct timespec end = {
	    .tv_sec = (time_t)(end_ns / CLOCK_NS_PER_S), .tv_nsec = (long)(end_ns % CLOCK_NS_PER_S)};

	pthread_mutex_lock(&tracer->mutex);
	while (tracer->state == TRACER_WAITING &&
	    pthread_cond_timedwait(&tracer->changed, &tracer->mutex, &end) == 0)
		;
	const struct remote_call *call = tracer->state == TRACER_ANSWERED ? tracer->call : NULL;
	tracer->state = TRACER_OVER;
	pthread_mutex_unlock(&tracer->mutex);
	return call;
}

static void *trace(void *argument)
{
	struct tracer *tracer = argument;
	int error = stopped_thread_stop(&tracer->thread, tracer->thread.tid, STOP_LIMIT_NS);

	tracer->error = error;
	set_state(tracer, error ? TRACER_OVER : TRACER_WAITING);
	if (error)
		return NULL;
	const struct remote_call *call = await_answer(tracer);
	if (call)
		tracer->error = remote_call_run(call, &tracer->thread, CALL_LIMIT_NS);
	else
		remote_call_decline(&tracer->thread);
	return NULL;
}

int tracer_stop(struct tracer *tracer, pid_t tid)
{
	tracer->thread.tid = tid;
	tracer->state = TRACER_STOPPING;
	if (pthread_create(&tracer->itself, NULL, trace, tracer) != 0)
		return -ENOMEM;
	pthread_mutex_lock(&tracer->mutex);
	while (tracer->state == TRACER_STOPPING)
		pthread_cond_wait(&tracer->changed, &tracer->mutex);
	const int error = tracer->error;
	pthread_mutex_unlock(&tracer->mutex);
	if (error)
		pthread_join(tracer->itself, NULL);
	return error;
}

int tracer_end(struct tracer *tracer, const struct remote_call *call)
{
	pthread_mutex_lock(&tracer->mutex);
	const bool in_time = tracer->state == TRACER_WAITING;
	if (in_time) {
		tracer->call = call;
		tracer->state = TRACER_ANSWERED;
		pthread_cond_signal(&tracer->changed);
	}
	pthread_mutex_unlock(&tracer->mutex);
	pthread_join(tracer->itself, NULL);
	return in_time && call ? tracer->error : -EAGAIN;
}
