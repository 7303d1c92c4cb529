/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the scheduler, after cmocka's headers: a source whose snapshots are empty files, and a target.
 * */
#ifndef TESTS_UNIT_SCHEDULER_DESK_H
#define TESTS_UNIT_SCHEDULER_DESK_H

#include "sampler/intake/target_plan.h"
#include "sampler/write/interval.h"
#include "sampler/write/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

struct desk {
	struct snapshot_source source; /* first */
	struct snapshot_settings settings;
	struct output output;
	struct target target;
	int error;  /* of taking */
	bool empty; /* nothing was sampled */
	bool asks;  /* the program asks for one */
	bool waits; /* its snapshots are written when the gate opens */
	unsigned int tries, answers, released, dropped[SNAPSHOT_DROPS];
	bool full;             /* no more may wait */
	uint64_t asker, goes;  /* who turns out to have gone when he is told; 0: nobody */
	int answer, told[4];   /* how often, by asker */
	struct snapshot *last; /* that was taken */
	char names[4][16];
};

static inline int write_nothing(const struct writer_item *item, void **shared)
{
	(void)shared;
	(void)item;
	return 0;
}

static int gate[2];

static inline int write_at_the_gate(const struct writer_item *item, void **shared)
{
	char byte;

	(void)shared;
	(void)item;
	close(gate[1]); /* should the test end, so do we */
	return read(gate[0], &byte, 1) == 1 ? 0 : -EPIPE;
}

static inline void discard(struct writer_item *item)
{
	free(item);
}

static inline bool has(
    const struct snapshot_source *source, const struct target *target, enum snapshot_reason reason)
{
	(void)target;
	return reason == SNAPSHOT_REASON_ASKED || !((const struct desk *)source)->empty;
}

static inline void look(
    struct snapshot_source *source, struct target *target, uint64_t now_ns, enum snapshot_look how)
{
	struct desk *desk = (struct desk *)source;

	(void)now_ns, (void)how;
	if (desk->asks)
		snapshot_request_ask(&target->series->numbered, SNAPSHOT_BY_PROGRAM, "the program", NULL, 0);
	desk->asks = false;
}

static inline int take(struct snapshot_source *source, struct target *target,
    const struct snapshot_order *order, struct snapshot **snapshot)
{
	struct desk *desk = (struct desk *)source;

	assert_ptr_equal(target, &desk->target);
	snprintf(desk->names[desk->tries++ % 4], sizeof(desk->names[0]), "%s", order->name);
	if (desk->error)
		return desk->error;
	*snapshot = calloc(1, sizeof(**snapshot));
	assert_non_null(*snapshot);
	(*snapshot)->item = (struct writer_item){
	    .write = desk->waits ? write_at_the_gate : write_nothing, .discard = discard};
	(*snapshot)->path = "a path";
	desk->last = *snapshot;
	return 0;
}

static inline void dropped(
    struct snapshot_source *source, const struct target *target, enum snapshot_drop why)
{
	(void)target;
	((struct desk *)source)->dropped[why]++;
}

static inline bool may_wait(void *context, const struct target *target)
{
	(void)target;
	return !((const struct desk *)context)->full;
}

static inline void release(struct snapshot_source *source, struct target *target)
{
	assert_null(target->series);
	((struct desk *)source)->released++;
}

static inline void tell(struct desk *desk, uint64_t asker, pid_t pid, int error)
{
	assert_int_equal(pid, desk->target.pid);
	desk->answers++;
	desk->asker = asker;
	desk->answer = error;
	desk->told[asker % 4]++;
	if (asker == desk->goes)
		scheduler_forget(desk->source.scheduler, asker);
}

static inline void on_answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	assert_true(error || strcmp(path, "a path") == 0);
	tell(context, asker, pid, error);
}

static inline void give(void *context, uint64_t asker, pid_t pid, int fd)
{
	assert_true(fd < 0);
	tell(context, asker, pid, fd);
}

static const struct snapshot_source_kind kind = {.look = look,
    .has = has,
    .in_memory = true,
    .grows = true,
    .take = take,
    .dropped = dropped,
    .release = release};

static inline void open_planned(
    struct desk *desk, pid_t pid, struct scheduler *scheduler, const struct target_plan *plan)
{
	assert_non_null(scheduler);
	desk->source = (struct snapshot_source){.kind = &kind, .scheduler = scheduler};
	assert_true(target_init(&desk->target, pid, 0));
	desk->target.readable = true;
	desk->target.plan = plan;
	const struct target_listener listener = scheduler_listener(&desk->source);
	listener.watched(listener.context, &desk->target);
}

static inline void open_target(struct desk *desk, pid_t pid, struct scheduler *scheduler)
{
	open_planned(desk, pid, scheduler, NULL);
}

static inline void open_desk_every(struct desk *desk, pid_t pid, uint64_t interval_ns)
{
	memset(desk, 0, sizeof(*desk));
	desk->settings.verbosity = -1;
	desk->settings.interval_ns = interval_ns;
	const struct scheduler_setup setup = {.settings = &desk->settings,
	    .output = &desk->output,
	    .answer = on_answer,
	    .may_wait = may_wait,
	    .context = desk,
	    .memory = {give, desk}};
	open_target(desk, pid, scheduler_new(&setup));
}

static inline void open_desk(struct desk *desk, pid_t pid)
{
	open_desk_every(desk, pid, 0);
}

/* Waits for the writer's child. */
static inline void reap(struct desk *desk)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);

	assert_true(pid > 0);
	scheduler_reap(desk->source.scheduler, pid, status);
}

static inline void close_target(struct desk *desk)
{
	const struct target_listener listener = scheduler_listener(&desk->source);

	desk->target.closed = true;
	listener.closed(listener.context, &desk->target);
	if (!desk->error && !desk->empty && !desk->dropped[SNAPSHOT_DROP_CROWD] &&
	    !desk->dropped[SNAPSHOT_DROP_PAUSED]) {
		assert_false(scheduler_settled(desk->source.scheduler));
		reap(desk);
	}
	assert_true(scheduler_settled(desk->source.scheduler));
	assert_int_equal(desk->released, 1);
	target_fini(&desk->target);
}

static inline void close_desk(struct desk *desk)
{
	close_target(desk);
	scheduler_free(desk->source.scheduler);
}

#endif
