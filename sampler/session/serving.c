/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/serving.h"

#include "sampler/events/event_registry.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/session/process_losses.h"
#include "sampler/session/process_sums.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(
    (int)SNAPSHOT_ASKERS >= (int)CONTROL_SERVER_CLIENTS, "each client can wait for the same snapshot");

void serving_find_processes(const struct serving *serving)
{
	if (serving->heap && heap_capture_look(serving->heap, false))
		scheduler_hurry(serving->scheduler);
	event_registry_drain(serving->events);
}

/* ---- the list */

static uint64_t resident_bytes(pid_t pid)
{
	char text[PROC_STATUS_BYTES];

	if (proc_read(pid, "status", text, sizeof(text)) <= 0)
		return 0;
	return proc_status_number(text, "\nVmRSS:", 10, 0) << 10;
}

static int64_t next_unix_ns(const struct snapshot_series *series)
{
	if (!series || series->due_ns == UINT64_MAX)
		return 0;
	return clock_unix_ns() + (int64_t)(series->due_ns - clock_now_ns());
}

static void list_process(void *context, const struct target *target, int64_t start_unix_ns)
{
	const struct process *process = (const struct process *)target;
	struct control_loss losses[PROCESS_LOSSES];
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
	    .rss_bytes = resident_bytes(target->pid),
	    .backend = backend_name(process->image->backend),
	    .losses = losses,
	    .loss_count = process_losses(process, losses),
	};

	process_sums_fill(&row, process);
	control_list_write_process(context, &row);
}

static void on_list(void *context, struct control_list_writer *writer)
{
	const struct serving *serving = context;
	char store[PATH_MAX];
	unsigned int depth = 0;
	const bool has_store = serving->working_folder[0] &&
	    output_place(scheduler_setup(serving->scheduler)->output, serving->working_folder, store,
	        sizeof(store), &depth) == 0;
	const struct control_daemon daemon = {
	    .pid = getpid(),
	    .since_unix_ns = serving->since_unix_ns,
	    .cpu_ns = self_limits_cpu_ns(),
	    .rss_bytes = self_limits_rss_bytes(),
	    .version = HEAPTAP_VERSION,
	    .store = has_store ? store : NULL,
	    .store_depth = depth,
	    .store_since_unix_ns = serving->since_unix_ns,
	};

	serving_find_processes(serving);
	control_list_write_daemon(writer, &daemon);
	if (serving->heap)
		scheduler_each(serving->scheduler, &serving->heap->source.base, list_process, writer);
}

/* ---- requests */

/* The pids of the front and of the sampler mean all processes of the session. */
static bool means_all(const struct serving *serving, const struct control_request *request)
{
	return request->target == CONTROL_ALL || request->pid == serving->front || request->pid == getpid();
}

static uint32_t ask_snapshot(
    const struct serving *serving, const struct control_request *request, uint64_t asker)
{
	static const char cause[] = "heaptap snapshot";

	if (means_all(serving, request))
		return scheduler_want_all(serving->scheduler, cause, asker);
	if (request->target == CONTROL_PID)
		return scheduler_ask(serving->scheduler, request->pid, asker);
	return scheduler_serves(serving->scheduler, request->pid)
	    ? scheduler_want_all(serving->scheduler, cause, asker)
	    : 0;
}

static uint32_t ask_memory(
    const struct serving *serving, const struct control_request *request, uint64_t asker)
{
	if (means_all(serving, request))
		return scheduler_ask_memory(serving->scheduler, 0, asker);
	if (request->target == CONTROL_PID)
		return scheduler_ask_memory(serving->scheduler, request->pid, asker);
	return scheduler_serves(serving->scheduler, request->pid)
	    ? scheduler_ask_memory(serving->scheduler, 0, asker)
	    : 0;
}

static int64_t ask_cpu(struct serving *serving, const struct control_request *request, uint64_t asker)
{
	char word[32], file[PATH_MAX];
	int error;

	if (request->target != CONTROL_PID || !scheduler_serves(serving->scheduler, request->pid))
		return 0;
	snprintf(word, sizeof(word), "cpu%" PRIu64, ++serving->cpu.number);
	error = control_file(serving->control, word, file, sizeof(file));
	if (!error)
		error = cpu_profiles_start(&serving->cpu, request->pid, request->duration_ms, asker, file);
	return error ? error : 1;
}

static int64_t on_asked(void *context, const struct control_request *request, uint64_t asker)
{
	struct serving *serving = context;

	serving_find_processes(serving);
	if (request->target == CONTROL_SERVICE)
		return -EOPNOTSUPP;
	switch (request->verb) {
	case CONTROL_SNAPSHOT:
		return ask_snapshot(serving, request, asker);
	case CONTROL_PROFILE:
		return ask_memory(serving, request, asker);
	case CONTROL_CPU:
		return ask_cpu(serving, request, asker);
	case CONTROL_LIST:
		break;
	}
	return -EOPNOTSUPP;
}

static void on_gone(void *context, uint64_t asker)
{
	struct serving *serving = context;

	cpu_profiles_cancel(&serving->cpu, asker);
	scheduler_forget(serving->scheduler, asker);
}

/* ---- answers */

void serving_answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	const struct serving *serving = context;
	struct control_server *server = control_server_of(serving->control);
	char absolute[2 * PATH_MAX];

	if (error) {
		control_server_failed(server, asker, pid, error);
		return;
	}
	bool relative = path[0] != '/' && serving->working_folder[0];
	snprintf(absolute, sizeof(absolute), "%s%s%s", relative ? serving->working_folder : "",
	    relative ? "/" : "", path);
	control_server_written(server, asker, pid, absolute);
}

void serving_give(void *context, uint64_t asker, pid_t pid, int fd)
{
	const struct serving *serving = context;
	struct control_server *server = control_server_of(serving->control);

	if (fd < 0)
		control_server_failed(server, asker, pid, fd);
	else
		control_server_profiled(server, asker, pid, fd);
}

/* ---- the loop's side */

int serving_open(struct serving *serving, int epoll_fd)
{
	const struct control_handlers handlers = {
	    .context = serving, .list = on_list, .ask = on_asked, .gone = on_gone};
	int error;

	serving->since_unix_ns = clock_unix_ns();
	serving->cpu.giver = (struct in_memory_giver){serving_give, serving};
	if (!getcwd(serving->working_folder, sizeof(serving->working_folder)))
		serving->working_folder[0] = '\0';
	serving->control = control_open(epoll_fd, &handlers, &error);
	return error;
}

void serving_close(struct serving *serving)
{
	cpu_profiles_fini(&serving->cpu);
	control_close(serving->control);
	serving->control = NULL;
}

bool serving_event(struct serving *serving, int fd)
{
	return control_server_event(control_server_of(serving->control), fd);
}

uint64_t serving_tend(struct serving *serving, uint64_t now_ns)
{
	return cpu_profiles_tend(&serving->cpu, now_ns);
}

bool serving_reap(struct serving *serving, pid_t child, int status)
{
	return cpu_profiles_reap(&serving->cpu, child, status);
}
