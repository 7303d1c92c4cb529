/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon answers to "list": itself, its processes, what is denied, and notes. */
#include "pprof/model/labels.h"
#include "pprof/text/clock.h"
#include "sampler/books/process_life.h"
#include "sampler/cmd/daemon/account_share.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/core/control_list.h"
#include "sampler/core/control_request.h"
#include "sampler/core/own_resources.h"
#include "sampler/core/process_row.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/proc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXE_BYTES = 256 }; /* longer paths are cut in the rows of processes that are not profiled */

static void write_daemon(struct daemon *d, struct control_list_writer *writer)
{
	struct store_counters counters = {0};

	store_count(d->store, &counters);
	const struct control_daemon daemon = {
	    .pid = getpid(),
	    .since_unix_ns = d->since_unix_ns,
	    .cpu_ns = own_resources_cpu_with_children_ns(),
	    .rss_bytes = own_resources_rss_bytes(),
	    .disk_bytes = counters.disk_bytes,
	    .disk_budget_bytes = d->rules->daemon.disk_bytes,
	    .version = HEAPTAP_VERSION,
	    .store = d->store_path,
	    .store_depth = 2, /* SERVICE/DAY */
	    .config = d->config,
	    .off = d->off.off ? d->off.path : NULL,
	};
	control_list_write_daemon(writer, &daemon);
}

/* The books of a living process. NULL if it is not profiled, or has not taken a sample yet. */
static const struct process *process_of(const struct daemon *d, const struct process_entry *entry)
{
	return entry->state == PROCESS_PROFILED ? process_life_find(&d->core.heap.registry, entry->pid)
	                                        : NULL;
}

bool daemon_list_is_unsampled(const struct core *core, const struct control_request *request)
{
	const struct daemon *d = core->command;

	for (size_t i = 0; i < d->processes.count; i++) {
		const struct process_entry *entry = d->processes.entries[i];
		const bool is_meant = request->target == CONTROL_ALL || entry->pid == request->pid ||
		    (request->target == CONTROL_SERVICE && entry->service &&
		        strcmp(entry->service, request->service) == 0);

		if (is_meant && entry->state == PROCESS_PROFILED && !process_of(d, entry))
			return true;
	}
	return false;
}

static size_t fill_labels(const struct process *process, struct labels *labels, struct control_label *rows)
{
	const struct target_plan *plan = process->target.plan;

	if (!plan || strncmp(plan->labels, LABELS_COMMENT, strlen(LABELS_COMMENT)) != 0 ||
	    labels_add_comment(labels, plan->labels + strlen(LABELS_COMMENT)) != 0)
		return 0;
	for (size_t i = 0; i < labels->count; i++)
		rows[i] = (struct control_label){labels->rows[i].name, labels->rows[i].value};
	return labels->count;
}

static void write_process(
    const struct daemon *d, const struct process_entry *entry, struct control_list_writer *writer)
{
	struct control_loss losses[PROCESS_ROW_LOSSES];
	struct control_label rows[LABELS_MAX];
	struct labels labels = {0};
	char exe[EXE_BYTES];
	const struct process *process = process_of(d, entry);

	snprintf(exe, sizeof(exe), "%s", entry->exe ? entry->exe : "");
	const bool on = entry->state == PROCESS_PROFILED && !entry->reason && !d->off.off;
	struct control_process row = {
	    .pid = entry->pid,
	    .service = entry->service,
	    .exe = entry->state == PROCESS_PROFILED ? entry->exe : exe,
	    .comm = entry->comm,
	    .container_id = entry->container,
	    .since_unix_ns = entry->since_unix_ns,
	    .profiled = on,
	    .reason = d->off.off ? "everything is off" : entry->reason,
	    .inuse_bytes = NAN,
	    .inuse_bytes_error = NAN,
	    .inuse_objects = NAN,
	    .alloc_bytes = NAN,
	    .growth = CONTROL_GROWTH_NOT_KNOWN,
	    .rss_bytes = process_row_resident_bytes(entry->pid),
	    .backend = on ? "copy" : NULL,
	    .labels = rows,
	};
	if (process) {
		process_row_fill(&row, losses, process);
		row.name = process->target.full_name;
		row.start_unix_ns = scheduler_start_unix_ns(d->core.scheduler, &process->target);
		row.label_count = fill_labels(process, &labels, rows);
	}
	control_list_write_process(writer, &row);
	labels_fini(&labels);
}

enum rank { RANK_FIRST, RANK_CHILD, RANK_REFUSED, RANKS, RANK_NONE = RANKS };

/* The order of rows: if there is no room for all, the last ones are left out. */
static enum rank rank_of(const struct process_entry *entry)
{
	const bool refused = entry->state == PROCESS_REFUSED || entry->state == PROCESS_ATTACHING;

	if (entry->state == PROCESS_PROFILED)
		return entry->first ? RANK_FIRST : RANK_CHILD;
	return refused && entry->reason ? RANK_REFUSED : RANK_NONE;
}

/* Returns how many rows are left out. */
static uint64_t write_rank(const struct daemon *d, struct control_list_writer *writer, enum rank rank)
{
	static const size_t most_bytes[RANKS] = {
	    [RANK_FIRST] = SIZE_MAX,
	    [RANK_CHILD] = CONTROL_LIST_BYTES_MAX / 8,
	    [RANK_REFUSED] = CONTROL_LIST_BYTES_MAX / 32,
	};
	struct account_share_rows share = {.most_bytes = most_bytes[rank]};

	for (size_t i = 0; i < d->processes.count; i++) {
		const struct process_entry *entry = d->processes.entries[i];
		const size_t before = writer->bytes;

		if (rank_of(entry) != rank || !account_share_has_row(&share, entry->uid))
			continue;
		write_process(d, entry, writer);
		account_share_take_row(&share, entry->uid, writer->bytes - before);
	}
	return share.left_out;
}

static void write_processes(const struct daemon *d, struct control_list_writer *writer)
{
	uint64_t left_out = 0;
	char note[128];

	for (int rank = 0; rank < RANKS; rank++)
		left_out += write_rank(d, writer, (enum rank)rank);
	left_out += writer->left_out;
	snprintf(note, sizeof(note),
	    "%" PRIu64 " processes are not in this list: their users have too many, or there is no room",
	    left_out);
	if (left_out)
		control_list_write_note(writer, note);
}

void daemon_list_write(struct core *core, struct control_list_writer *writer)
{
	struct daemon *d = core->command;

	write_daemon(d, writer);
	write_processes(d, writer);
	for (size_t i = 0; i < crash_guard_count(d->guard); i++) {
		const struct crash_guard_denied *denied = crash_guard_at(d->guard, i);
		const struct control_denied row = {
		    denied->exe, denied->library, denied->since_unix_ns, denied->reason};

		control_list_write_denied(writer, &row);
	}
	char dropped[256];
	for (int why = SNAPSHOT_DROP_CROWD; why < SNAPSHOT_DROPS; why++)
		if (heap_source_dropped_describe(
		        d->core.heap.source.dropped, (enum snapshot_drop)why, dropped, sizeof(dropped)))
			control_list_write_note(writer, dropped);
	if (d->note[0])
		control_list_write_note(writer, d->note);
}
