/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/attaching.h"

#include "pprof/text/log_line.h"
#include "sampler/attach/attachment.h"
#include "sampler/attach/delivery.h"
#include "sampler/attach/fitness.h"
#include "sampler/daemon/daemon_state.h"
#include "sampler/daemon/verdict.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/loader/preload_library.h"
#include "sampler/region/region_offer.h"
#include "sampler/target/target_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { LIVE_MAX = REGION_OFFER_SEGMENTS * REGION_SEGMENT_SLOTS };

static int open_library(struct daemon *d)
{
	char path[PATH_MAX];
	if (d->library_fd >= 0)
		return 0;
	int error = attach_library_find(path, sizeof(path));
	int fd = error ? error : delivery_open(path);
	d->library_fd = fd < 0 ? -1 : fd;
	if (fd >= 0)
		*modules_library(d->modules) = (struct module_library){
		    DELIVERY_NAME, strdup(proc_fd_path((char[PROC_PATH_BYTES]){0}, fd))};
	return fd < 0 ? fd : 0;
}

static struct region *make_region(struct daemon *d, uint64_t period_bytes)
{
	struct region *region = malloc(sizeof(*region));
	uint64_t key = 0;
	const struct region_options options = {
	    .period_bytes = period_bytes,
	    .clock_id = region_clock(),
	    .live_max = LIVE_MAX,
	    .mode = REGION_MODE_COPY,
	};
	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		key = clock_now_ns() << 16;
	if (region && region_open(region, d->next_region++, key & ~REGION_KEY_PLACE, &options) == 0) {
		region_header(region)->offered = 1; /* the next daemon takes it up as if it was */
		region_header(region)->session = (uint64_t)d->identity.unix_ns;
		region_prefault(region);
		return region;
	}
	free(region);
	return NULL;
}

static uint64_t resident_bytes(pid_t pid)
{
	char status[4096];
	(void)proc_read(pid, "status", status, sizeof(status));
	return proc_status_number(status, "\nVmRSS:", 10, 0) << 10;
}

/* The entry says why not if it does not work. */
static void attach(struct daemon *d, struct roster_entry *entry, const struct verdict *verdict)
{
	struct attachment attachment;
	struct region *region = make_region(d, verdict_period(d, verdict));
	struct target_plan *plan = calloc(1, sizeof(*plan));
	struct registry_attached attached = {
	    .pid = entry->pid, .rss_bytes = resident_bytes(entry->pid), .plan = plan,
	    .period_bytes = verdict_period(d, verdict)};
	if (!region || !plan) {
		free(region);
		free(plan);
		return;
	}
	verdict_plan(plan, d, verdict);
	int error = attachment_begin(&attachment, entry->pid, region, d->modules, d->library_fd);
	if (error) {
		region_close(region);
		free(region);
		free(plan);
		verdict_refuse(entry, "cannot be attached to: %s", attachment.reason);
		return;
	}
	attached.again = attachment.reused;
	entry->ino = region->ino;
	if (registry_attach(&d->heap.registry, region, &attached) != 0)
		return;
	entry->state = ROSTER_PROFILED;
	entry->first = entry->attached = true;
	entry->since_ns = clock_now_ns();
	entry->since_unix_ns = clock_unix_ns();
	if (d->options.verbosity > 0)
		log_line("pid %d: attached, service %s", (int)entry->pid, plan->service);
}

bool attaching_try(struct daemon *d, struct roster_entry *entry, bool has_library)
{
	struct fitness fitness;
	struct verdict *verdict = verdict_make(d, entry, has_library);
	entry->state = ROSTER_OTHER;
	if (!verdict)
		return true;
	/* Of nearly all processes nothing need be said: nobody has asked for them. */
	const bool wanted = has_library || verdict->decision.verdict == DECISION_PROFILE;
	if (wanted && !verdict_is_no(d, entry, verdict)) {
		int error = open_library(d);
		if (error)
			verdict_refuse(entry, "cannot be attached to: no " ATTACH_LIBRARY_NAME ": %s",
			    strerror(-error));
		else if (!fitness_examine(&fitness, entry->pid, false))
			verdict_refuse(entry, "%s%s%s", fitness.cause, fitness.remedy[0] ? ": " : "",
			    fitness.remedy);
		else
			attach(d, entry, verdict);
	}
	free(verdict);
	return true;
}
