/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/ladder.h"

#include "pprof/array.h"
#include "sampler/notice.h"
#include "sampler/switches.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_NS = 500 * 1000000,
	SILENT_SAMPLES = 8, /* without a stack; less may be on its way */
	/* that found so many: the first of them may have come while the rings stood still */
	SILENT_LOOKS = 2,
	DEAF_IMAGES = 2,              /* then the uprobe is no good for the next one either */
	SWITCHES_NS = 1000 * 1000000, /* between looks at how often a process switches */
};

enum region_mode ladder_mode(const struct ladder *ladder)
{
	return ladder->probe->backend == BACKEND_UPROBE && ladder->deaf_images < DEAF_IMAGES
	    ? REGION_MODE_TRIGGER
	    : REGION_MODE_COPY;
}

static void detach(struct image *image)
{
	probe_detach(image->fds, image->fd_count);
	image->fds = NULL;
	image->fd_count = image->fd_room = 0;
}

static void to_copy(struct ladder *ladder, struct image *image)
{
	atomic_store(&region_header(image->region)->mode, REGION_MODE_COPY);
	detach(image);
	ladder->to_copy++;
	image->rung = BACKEND_COPY;
}

static int attach_one(const struct ladder *ladder, struct image *image, const struct process *process)
{
	int *fds = NULL;
	size_t count = 0;
	int error = probe_attach(ladder->probe, process->pid, image->trigger_address, &fds, &count);
	if (error)
		return error;
	/* It has executed another program before we were done: that one would keep our breakpoint to its end.
	 * */
	if (!process_is_there(process)) {
		probe_detach(fds, count);
		return -ESRCH;
	}
	if (array_reserve(&image->fds, &image->fd_room, image->fd_count + count, sizeof(*fds)) != 0) {
		probe_detach(fds, count);
		return -ENOMEM;
	}
	if (count)
		memcpy(image->fds + image->fd_count, fds, count * sizeof(*fds));
	image->fd_count += count;
	free(fds);
	return 0;
}

/* Every process of the image that is there; the children to come inherit it. 0, or -errno with nothing left
 * open. */
static int attach(const struct ladder *ladder, struct image *image)
{
	int error = 0;
	for (uint32_t i = 0; i < REGION_PLACES && image->live_processes && (!error || error == -ESRCH); i++)
		if (image->process[i] && !image->process[i]->finished && image->process[i]->pidfd >= 0)
			error = attach_one(ladder, image, image->process[i]);
	if (image->fd_count && (!error || error == -ESRCH))
		return 0;
	detach(image);
	return error ? error : -ESRCH;
}

void ladder_begin(struct ladder *ladder, struct image *image, const struct process *process)
{
	image->rung = ladder_mode(ladder) == REGION_MODE_TRIGGER ? BACKEND_UPROBE : BACKEND_COPY;
	image->event_rung = image->rung;
	if (ladder->probe->backend == BACKEND_COPY || image->rung == BACKEND_UPROBE || process->pidfd < 0)
		return;
	int error = attach(ladder, image);
	if (error == 0) {
		image->rung = image->event_rung = BACKEND_BREAKPOINT;
		ladder->to_breakpoint += ladder->probe->backend == BACKEND_UPROBE;
		atomic_store(&region_header(image->region)->mode, REGION_MODE_TRIGGER);
	} else if (error != -ESRCH) {
		to_copy(ladder, image);
		ladder->causes[LADDER_REFUSED]++;
		if (ladder->verbosity > 0)
			notice_print("pid %d: breakpoint refused (%s), stacks are copied by the hook instead",
			    (int)process->pid, strerror(-error));
	}
}

/* ---- a rung that is silent */

/* Samples whose stacks should have come by an event, and those that have, since the last look. */
static bool is_silent(struct process *process, bool overrun)
{
	const struct region_place *place = region_place(process->image->region, process->place);
	const struct process_counters *c = &process->counters;
	uint64_t due = atomic_load_explicit(&place->triggered, memory_order_relaxed),
	         came = c->taken - c->copied;
	bool comes = came != process->came_seen;
	process->came_seen = came;
	if (comes || overrun || (int64_t)(due - process->due_seen) < 0) {
		process->silent_looks = 0;
		process->due_seen = due;
		/* in however many looks: most programs take few */
	} else if (due - process->due_seen >= SILENT_SAMPLES) {
		process->silent_looks++;
		process->due_seen = due;
	}
	return process->silent_looks >= SILENT_LOOKS;
}

static const struct process *silent_process(struct image *image, bool overrun)
{
	const struct process *found = NULL;
	for (uint32_t i = 0; i < REGION_PLACES && image->live_processes; i++)
		if (image->process[i] && !image->process[i]->finished &&
		    is_silent(image->process[i], overrun))
			found = image->process[i];
	return found;
}

static void step_down(struct ladder *ladder, struct image *image, const struct process *process)
{
	enum backend from = image->rung;
	ladder->causes[LADDER_SILENT]++;
	ladder->deaf_images += from == BACKEND_UPROBE;
	if (from == BACKEND_UPROBE && attach(ladder, image) == 0) {
		image->rung = image->event_rung = BACKEND_BREAKPOINT;
		ladder->to_breakpoint++;
	} else {
		to_copy(ladder, image);
	}
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		if (image->process[i])
			image->process[i]->silent_looks = 0;
	if (ladder->verbosity > 0 || (ladder->verbosity == 0 && ladder->causes[LADDER_SILENT] == 1))
		notice_print("pid %d: samples are taken but no stack comes by the %s: %s from now on",
		    (int)process->pid, backend_name(from), backend_name(image->rung));
}

/* ---- a breakpoint that costs too much */

static void look_at_switches(struct ladder *ladder, struct image *image, uint64_t now_ns)
{
	const struct process *process = image->process[0];
	uint64_t turns;
	if (image->rung != BACKEND_BREAKPOINT || !ladder->may_yield ||
	    now_ns - image->turns_ns < SWITCHES_NS || !process || process->finished || process->pidfd < 0 ||
	    switches_read(process->pid, &turns) != 0)
		return;
	uint64_t elapsed = now_ns - image->turns_ns, came = turns - image->turns;
	bool first = image->turns_ns == 0 || turns < image->turns; /* a thread's count goes with it */
	image->turns = turns;
	image->turns_ns = now_ns;
	if (first || came * 1000000000u / elapsed <= SWITCHES_PER_SECOND_MAX)
		return;
	/* Samples that are in the rings already still count. */
	to_copy(ladder, image);
	ladder->causes[LADDER_SWITCHES]++;
	if (ladder->verbosity > 0)
		notice_print("pid %d switches %" PRIu64
		             " times a second: stacks are copied by the hook instead of the breakpoint",
		    (int)process->pid, came * 1000000000u / elapsed);
}

bool ladder_tend(struct ladder *ladder, struct image *images, uint64_t ring_lost, uint64_t now_ns)
{
	enum region_mode before = ladder_mode(ladder);
	if (ladder->probe->backend == BACKEND_COPY || now_ns - ladder->looked_ns < LOOK_NS)
		return false;
	ladder->looked_ns = now_ns;
	bool overrun = ring_lost != ladder->ring_lost; /* then stacks are missing for another reason */
	ladder->ring_lost = ring_lost;
	for (struct image *image = images; image; image = image->next) {
		if (!image->settled || image->rung == BACKEND_COPY)
			continue;
		look_at_switches(ladder, image, now_ns);
		const struct process *process = silent_process(image, overrun);
		if (process && image->rung != BACKEND_COPY)
			step_down(ladder, image, process);
	}
	return ladder_mode(ladder) != before;
}

void ladder_describe(const struct ladder *ladder, char *text, size_t bytes)
{
	text[0] = '\0';
	if (ladder->to_breakpoint || ladder->to_copy)
		snprintf(text, bytes,
		    "backend changed: %" PRIu64 " images to breakpoint, %" PRIu64
		    " to copy (breakpoint refused %" PRIu64 ", no stacks came %" PRIu64
		    ", too many context switches %" PRIu64 ")",
		    ladder->to_breakpoint, ladder->to_copy, ladder->causes[LADDER_REFUSED],
		    ladder->causes[LADDER_SILENT], ladder->causes[LADDER_SWITCHES]);
}
