/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/event_registry.h"

#include "pprof/text/clock.h"
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <stdlib.h>

enum { SWEEP_NS = 500 * 1000000 }; /* between checks of all processes: an EXIT record may have been lost */

/* ---- the end of a process */

static void finish(struct event_registry *r, struct event_process *s, enum target_end end, int status)
{
	target_close(&s->target, end, status);
	s->target.command = s->target.pid == r->setup.launch->pid;
	r->setup.listener.closed(r->setup.listener.context, &s->target);
}

static void on_replaced(void *context, struct event_process *process, enum target_end end)
{
	finish(context, process, end, 0);
}

static void on_first_sample(void *context, struct event_process *process)
{
	const struct event_registry *r = context;

	r->setup.listener.watched(r->setup.listener.context, &process->target);
}

/* COMMAND's own end waits for the front, which knows its status. */
static bool is_over(const struct event_registry *r, const struct event_process *s)
{
	const struct launch *launch = r->setup.launch;

	return s->target.pid == launch->pid && !launch->front_gone ? launch->ended
	                                                           : target_has_ended(&s->target);
}

void event_registry_sweep(struct event_registry *r, bool all)
{
	const struct launch *launch = r->setup.launch;
	bool drained = false;

	for (struct event_process *s = r->intake.subjects.list, *next; s; s = next) {
		next = s->next;
		bool is_command = s->target.pid == launch->pid;
		if (s->target.closed || (!s->exits && !all && !is_command))
			continue;
		if (!is_over(r, s)) {
			/* a thread of the process has ended: if all are looked at, that was long ago */
			s->exits = s->exits && !all;
			continue;
		}
		if (!drained) {
			/* May add and remove processes: begin again. */
			drained = true;
			event_registry_drain(r);
			next = r->intake.subjects.list;
		} else if (is_command && launch->status_known) {
			finish(r, s, TARGET_EXITED, launch->status);
		} else {
			finish(r, s, TARGET_GONE, 0);
		}
	}
}

void event_registry_tend(struct event_registry *r, uint64_t now_ns)
{
	if (!r || r->stopped)
		return;
	event_intake_drain(&r->intake, false);
	counters_tend(r->counters);
	if (r->setup.verbosity >= 0)
		memory_bound_say(r->setup.memory);
	bool all = now_ns - r->sweep_ns >= SWEEP_NS;
	if (all)
		r->sweep_ns = now_ns;
	event_registry_sweep(r, all);
}

void event_registry_drain(struct event_registry *r)
{
	if (r && !r->stopped)
		event_intake_drain(&r->intake, true);
}

void event_registry_stop(struct event_registry *r)
{
	if (!r)
		return;
	event_registry_drain(r);
	r->stopped = true;
	for (struct event_process *s = r->intake.subjects.list, *next; s; s = next) {
		next = s->next;
		if (!s->target.closed)
			finish(r, s, TARGET_ALIVE, 0);
	}
}

struct event_process *event_registry_find(const struct event_registry *r, pid_t pid)
{
	return r ? event_processes_find(&r->intake.subjects, pid) : NULL;
}

void event_registry_release(struct event_registry *r, struct event_process *process)
{
	event_processes_remove(&r->intake.subjects, process);
}

bool event_registry_settled(const struct event_registry *r)
{
	return !r || !r->setup.launch->ended || !event_registry_find(r, r->setup.launch->pid);
}

bool event_registry_empty(const struct event_registry *r)
{
	return !r || !r->intake.subjects.list;
}

/* ---- the beginning */

static void drain(void *context)
{
	event_registry_drain(context);
}

int event_registry_attach_command(struct event_registry *r, pid_t command)
{
	int error = counters_attach_waiting(r->counters, command);

	if (!error && !event_processes_add(&r->intake.subjects, command, NULL, clock_now_ns()))
		error = -ENOMEM;
	return error;
}

void event_registry_cancel(struct event_registry *r, pid_t command)
{
	struct event_process *s = event_registry_find(r, command);

	if (s)
		event_registry_release(r, s);
}

int event_registry_attach_running(struct event_registry *r, pid_t pid)
{
	struct event_process *s = event_processes_add(&r->intake.subjects, pid, NULL, clock_now_ns());

	if (!s)
		return -ENOMEM;
	target_read_maps(&s->target, clock_now_ns(), 0); /* its name is used only if its file is mapped */
	event_process_look(s);
	int error = s->target.pidfd < 0 ? -ESRCH : counters_attach_running(r->counters, pid, drain, r);
	if (error) {
		event_registry_release(r, s);
		return error;
	}
	/* Records report mappings that are newer than the trackers. To read those again does no harm. */
	target_read_maps(&s->target, clock_now_ns(), 0);
	return 0;
}

struct event_registry *event_registry_new(const struct event_registry_setup *setup, int *error)
{
	struct event_registry *r = setup->event_count ? calloc(1, sizeof(*r)) : NULL;

	*error = setup->event_count ? -ENOMEM : 0;
	if (!r)
		return NULL;
	r->setup = *setup;
	r->counters = counters_open(setup->events, setup->event_count, setup->stack_bytes, error);
	r->intake = (struct event_intake){
	    .events = setup->events,
	    .event_count = setup->event_count,
	    .counters = r->counters,
	    .by_thread = setup->by_thread,
	    .first_sample = on_first_sample,
	    .replaced = on_replaced,
	    .context = r,
	    .subjects = {.modules = setup->modules, .memory = setup->memory},
	};
	if (!r->counters || (*error = event_intake_init(&r->intake)) != 0) {
		event_registry_free(r);
		return NULL;
	}
	struct rings *rings = counters_rings(r->counters);
	for (size_t i = 0; i < rings_count(rings); i++) /* without that, a full ring is noticed at a tick */
		(void)epoll_set_add(setup->epoll_fd, rings_fd(rings, i));
	return r;
}

void event_registry_free(struct event_registry *r)
{
	if (!r)
		return;
	event_intake_fini(&r->intake);
	counters_close(r->counters);
	free(r);
}
