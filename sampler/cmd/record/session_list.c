/* SPDX-License-Identifier: Apache-2.0 */
/* What a session answers to "list": itself and its processes. */
#include "pprof/text/clock.h"
#include "sampler/cmd/record/session_state.h"
#include "sampler/core/own_resources.h"
#include "sampler/core/process_row.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

static int64_t next_unix_ns(const struct snapshot_series *series)
{
	if (!series || series->periodic.due_ns == UINT64_MAX)
		return 0;
	return clock_unix_ns() + (int64_t)(series->periodic.due_ns - clock_now_ns());
}

static void list_process(void *context, const struct target *target, int64_t start_unix_ns)
{
	const struct process *process = (const struct process *)target;
	struct control_loss losses[PROCESS_ROW_LOSSES];
	struct control_process row = {
	    .pid = target->pid,
	    .service = target->title,
	    .exe = target->name,
	    .comm = target->title,
	    .name = target->full_name,
	    .since_unix_ns = start_unix_ns,
	    .start_unix_ns = start_unix_ns,
	    .next_unix_ns = next_unix_ns(target->series),
	    .profiled = true,
	    .growth = CONTROL_GROWTH_NOT_KNOWN,
	    .rss_bytes = process_row_resident_bytes(target->pid),
	    .backend = backend_name(process->run->capture.backend),
	};

	process_row_fill(&row, losses, process);
	control_list_write_process(context, &row);
}

void session_list_write(struct core *core, struct control_list_writer *writer)
{
	const struct session *s = core->command;
	char store[PATH_MAX];
	unsigned int depth = 0;
	const bool has_store = core->working_folder[0] &&
	    output_place(&core->output, core->working_folder, store, sizeof(store), &depth) == 0;
	const struct control_daemon daemon = {
	    .pid = getpid(),
	    .since_unix_ns = s->since_unix_ns,
	    .cpu_ns = own_resources_cpu_with_children_ns(),
	    .rss_bytes = own_resources_rss_bytes(),
	    .version = HEAPTAP_VERSION,
	    .store = has_store ? store : NULL,
	    .store_depth = depth,
	    .store_since_unix_ns = s->since_unix_ns,
	};

	control_list_write_daemon(writer, &daemon);
	if (core->has_heap)
		scheduler_each(core->scheduler, &core->heap.source.base, list_process, writer);
}
