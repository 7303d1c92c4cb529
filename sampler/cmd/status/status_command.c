/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/status/status_command.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/status/status_json.h"
#include "sampler/cmd/status/status_table.h"
#include "sampler/core/control_client.h"
#include "sampler/linux/screen.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Profiled processes come first, and those with most in use in front. The others are sorted by service. */
static int by_importance(const void *a, const void *b)
{
	const struct control_process *x = a, *y = b;
	double x_bytes = isfinite(x->inuse_bytes) ? x->inuse_bytes : -1;
	double y_bytes = isfinite(y->inuse_bytes) ? y->inuse_bytes : -1;
	int order;

	if (x->profiled != y->profiled)
		return x->profiled ? -1 : 1;
	if (x->profiled && x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	order = strcmp(x->service, y->service);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Is the process named by one of the words, by pid or service? */
static bool is_named(const struct control_process *process, char *const *words, bool *named)
{
	char pid[16];
	bool found = false;

	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	for (size_t i = 0; words[i]; i++) {
		if (strcmp(words[i], pid) == 0 || strcmp(words[i], process->service) == 0)
			found = named[i] = true;
	}
	return found;
}

/* Keeps only the processes that are named, and logs the names that the daemon does not know. False if it
 * knows none. */
static bool choose(struct control_list *list, const struct options *options)
{
	bool *named = calloc((size_t)options->operand_count + 1, sizeof(*named));
	size_t kept = 0;

	for (size_t i = 0; named && i < list->process_count; i++) {
		if (is_named(&list->processes[i], options->operands, named))
			list->processes[kept++] = list->processes[i];
	}
	for (int i = 0; named && i < options->operand_count; i++) {
		if (!named[i])
			log_line("the daemon knows no process or service %s", options->operands[i]);
	}
	free(named);
	list->process_count = kept;
	return kept > 0;
}

int status_command_run(struct options *options)
{
	const struct read_options *read = &options->read;
	struct spool_list spools;
	struct control_list list;
	struct screen screen;
	char reason[512];
	int status = 1;

	if (control_client_list(options->socket, &list, reason, sizeof(reason))) {
		log_line("%s", reason);
		return 1;
	}
	(void)spool_list_read(&spools); /* without memory there are none */
	if (options->operand_count && !choose(&list, options))
		goto out;
	if (list.process_count)
		qsort(list.processes, list.process_count, sizeof(*list.processes), by_importance);
	if (screen_open(&screen, options->output, !read->no_pager, read->memory_max_bytes) == 0) {
		if (read->json)
			status_json_write(screen.out, &list, &spools, clock_unix_ns());
		else
			status_table_print(&screen, &list, &spools, clock_unix_ns());
		status = screen_close(&screen, 0);
	}
out:
	spool_list_fini(&spools);
	control_list_fini(&list);
	return status;
}
