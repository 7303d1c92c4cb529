/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap adopt PID`: a session of a process whose sampler has died. */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/session.h"
#include "sampler/cmd/record/session_state.h"
#include "sampler/core/core.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/region_takeover.h"
#include "sampler/perf/probe.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets a uprobe on the library that the target has mapped. The target names the file, so the file is
 * verified. */
static int probe_of_orphan(struct heap_capture *h, pid_t pid, uint64_t trigger_address)
{
	char own[PATH_MAX], library[32];
	uint64_t mapped_offset, offset;
	int fd = preload_library_find(own, sizeof(own));

	if (fd == 0)
		fd = region_takeover_library(pid, trigger_address, own, &mapped_offset);
	if (fd < 0)
		return fd;
	int error = trigger_find(fd, &offset);
	if (!error && offset + REGION_BREAKPOINT_AT != mapped_offset)
		error = -EPROTO;
	snprintf(library, sizeof(library), "/proc/self/fd/%d", fd);
	if (!error)
		error = probe_open(
		    &h->probe, BACKEND_UPROBE, library, h->options->stack_bytes, h->options->period_bytes);
	h->probe.library = NULL; /* only needed for the open */
	close(fd);
	return error;
}

/* Finds the region of a target whose sampler has died (by malloc, owned by the caller), and sets options
 * and probe accordingly. The backend is a uprobe or copy: breakpoints would have to be set again on every
 * thread of every process. Returns 0 or -errno. */
static int find_orphan(struct heap_capture *h, struct options *options, pid_t pid, struct region **region)
{
	*region = calloc(1, sizeof(**region));
	int error = *region ? region_takeover_open(pid, *region) : -ENOMEM;
	if (error) {
		free(*region);
		return error;
	}
	h->options = &options->record.heap;
	h->verbosity = options->verbosity;
	options->record.heap.period_bytes = atomic_load(&region_header(*region)->period_bytes);
	if (probe_of_orphan(h, pid, region_header(*region)->trigger_address) != 0)
		error = probe_open(&h->probe, BACKEND_COPY, "", options->record.heap.stack_bytes,
		    options->record.heap.period_bytes);
	if (error) {
		region_close(*region);
		free(*region);
	}
	return error;
}

static const char *why_not_adopted(int error)
{
	switch (-error) {
	case ENOENT:
		return "it is not being profiled (it has not mapped heaptap's shared memory)";
	case EBUSY:
		return "its sampler is alive; use `heaptap snapshot PID`";
	case EPERM:
		return "opening another process' mapping needs root";
	case EPROTO:
		return "its shared memory was made by another version of heaptap, or is damaged";
	default:
		return strerror(-error);
	}
}

int session_adopt(struct options *options)
{
	struct session s;
	struct region *region;
	char *end;
	long pid = strtol(options->operands[0], &end, 10);

	if (*end || pid <= 0 || options->operand_count != 1) {
		log_line(
		    "'%s' is not a process id; usage: heaptap adopt [OPTIONS] PID", options->operands[0]);
		return STATUS_USAGE;
	}
	if (output_check_folder(options->output, options->verbosity < 0))
		return STATUS_USAGE;
	session_init(&s, options, SIGNALS_ADOPTED, -1);
	s.core.has_heap = true;
	session_without_command(&s, 0);
	int error = find_orphan(&s.core.heap, options, (pid_t)pid, &region);
	if (!error) {
		error = session_open(&s);
		if (!error)
			error = arrivals_adopt(&s.core.heap.registry, region);
		else
			region_close(region), free(region);
	}
	if (error) {
		log_line("pid %ld cannot be adopted: %s", pid, why_not_adopted(error));
		return EXIT_FAILURE;
	}
	if (options->verbosity > 0)
		log_line("pid %ld adopted, backend %s", pid, backend_name(s.core.heap.probe.backend));
	int status = core_run(&s.core);
	session_close(&s);
	return status;
}
