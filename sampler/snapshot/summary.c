/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/summary.h"

#include "sampler/snapshot/resident_text.h"
#include "sampler/terminal/amount.h"
#include "sampler/terminal/log_line.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Of COMMAND, and of larger processes, it is said what their resident memory consists of. */
enum { RESIDENT_SAID_BYTES = 16 << 20 };

const char *summary_bytes(double bytes, char *text, size_t text_bytes)
{
	char amount[AMOUNT_BYTES];

	snprintf(text, text_bytes, "%s", amount_bytes(bytes, amount));
	return text;
}

void summary_end(const struct target *target, char *text, size_t text_bytes)
{
	int status = target->status;
	const char *name;
	switch (target->end) {
	case TARGET_EXITED:
		if (WIFEXITED(status)) {
			snprintf(text, text_bytes, "exited with status %d", WEXITSTATUS(status));
		} else {
			name = sigabbrev_np(WTERMSIG(status));
			snprintf(text, text_bytes, "was killed by SIG%s", name ? name : "?");
		}
		break;
	case TARGET_EXEC:
		snprintf(
		    text, text_bytes, "%s", target->unseen[0] ? target->unseen : "executed another program");
		break;
	case TARGET_GONE:
		snprintf(text, text_bytes, "has ended; how is not known (not a child of heaptap)");
		break;
	case TARGET_UNSEEN:
		snprintf(text, text_bytes, "had ended before heaptap saw it; how is not known");
		break;
	default:
		snprintf(text, text_bytes, "is running");
		break;
	}
}

static void print_estimate(
    const char *when, double bytes, double bytes_error, double objects, double objects_error)
{
	char value[32], error[32];
	log_line("  %-7s %s +- %s in %.0f +- %.0f objects", when, summary_bytes(bytes, value, sizeof(value)),
	    summary_bytes(bytes_error, error, sizeof(error)), objects, objects_error);
}

static void print_samples(const struct heap_snapshot *s)
{
	const struct region_place *place = region_place(s->process->image->region, s->process->place);
	const struct process_counters *c = &s->process->counters;
	char text[512];
	int at = snprintf(text, sizeof(text), "%" PRIu64 " taken, %" PRIu64 " without a stack",
	    s->view.allocated.samples, s->view.lost_alloc.samples + c->before_restart);
	if (c->before_restart)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "; sampled before restart: %" PRIu64,
		    c->before_restart);
	for (uint32_t i = 0; i < REGION_LOSS_COUNT && at < (int)sizeof(text) - 48; i++) {
		struct tally tally = region_read_tally(&place->lost[i]);
		if (tally.samples)
			at += snprintf(text + at, sizeof(text) - (size_t)at, "; %s: %" PRIu64,
			    region_loss_name((enum region_loss)i), tally.samples);
	}
	for (uint32_t i = 0; i < UNWIND_COUNTS && at < (int)sizeof(text) - 48; i++)
		if (i != UNWIND_COMPLETE && c->outcome[i])
			at += snprintf(text + at, sizeof(text) - (size_t)at, "; %s: %" PRIu64,
			    unwind_outcome_name((enum unwind_outcome)i), c->outcome[i]);
	if (c->no_room + c->inherited_no_room && at < (int)sizeof(text) - 48)
		snprintf(text + at, sizeof(text) - (size_t)at, "; no memory for: %" PRIu64,
		    c->no_room + c->inherited_no_room);
	log_line("  samples %s", text);
}

static void print_peak(const struct region_place *place)
{
	double objects = (double)atomic_load(&place->peak_objects_q16) / (1 << WEIGHT_OBJECTS_SHIFT);
	double bytes = (double)atomic_load(&place->peak_bytes_q8) / (1 << WEIGHT_BYTES_SHIFT);
	double variance = (double)atomic_load(&place->peak_variance);
	double objects_variance =
	    (double)atomic_load(&place->peak_objects_variance) / (1 << WEIGHT_OBJECTS_VARIANCE_SHIFT);
	print_estimate("peak", bytes, sqrt(variance), objects, sqrt(objects_variance));
}

void summary_print(const struct heap_snapshot *s, int error)
{
	const struct process *process = s->process;
	const struct region_place *place = region_place(process->image->region, process->place);
	char end[SUMMARY_END_BYTES];
	summary_end(&process->target, end, sizeof(end));
	log_line("%s (pid %d) %s", process->target.title, (int)process->target.pid, end);

	if (atomic_load(&place->peak_order))
		print_peak(place);
	print_estimate("at end", s->view.inuse.bytes, sqrt(s->view.inuse.bytes_variance),
	    s->view.inuse.objects, sqrt(s->view.inuse.objects_variance));
	print_samples(s);
	if (process->target.command || s->resident.largest.parts.total_bytes >= RESIDENT_SAID_BYTES)
		resident_text_print(&s->resident, s->live_scan.now_ns, NULL);
	if (region_unseen_text(process->image->region))
		log_line("  %s", region_unseen_text(process->image->region));
	if (process->place == 0 && region_placeless(process->image->region))
		log_line("  not profiled: %" PRIu64 " forked children without a free place",
		    region_placeless(process->image->region));
	if (process->place == 0 && region_not_cut_off(process->image->region))
		log_line("  not profiled since they changed their user id: %" PRIu64
		         " forked children that could not be cut off from the stacks of others",
		    region_not_cut_off(process->image->region));
	if (error) {
		log_line("  profile not written: %s: %s", s->path, strerror(-error));
		return;
	}
	log_line("  profile %s", s->path);
	log_line("  show it: heaptap report %s", s->path);
	log_line("  or: go tool pprof -http=: %s", s->path);
}
