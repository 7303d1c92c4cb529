/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/requests.h"

#include "sampler/intake/target_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- which processes */

/* The pids of the sampler and of its front stand for the whole session. */
static bool means_all(const struct core *core, const struct control_request *request)
{
	if (request->target == CONTROL_ALL)
		return true;
	if (request->target == CONTROL_SERVICE)
		return false;
	return request->pid == getpid() || (core->front && request->pid == core->front) ||
	    (request->target == CONTROL_SESSION && scheduler_serves(core->scheduler, request->pid));
}

typedef uint32_t ask_one(struct scheduler *scheduler, pid_t pid, uint64_t asker);

static uint32_t ask_service(const struct core *core, const char *service, ask_one *ask, uint64_t asker)
{
	uint32_t count = 0;

	books_each_process (process, &core->heap.intake.books) {
		const struct target *target = &process->target;

		if (!target->closed && target->plan && strcmp(target->plan->service, service) == 0)
			count += ask(core->scheduler, target->pid, asker);
	}
	return count;
}

/* Asks for one process, or for those of a service. */
static uint32_t ask_some(
    const struct core *core, const struct control_request *request, ask_one *ask, uint64_t asker)
{
	switch (request->target) {
	case CONTROL_PID:
		return ask(core->scheduler, request->pid, asker);
	case CONTROL_SERVICE:
		return ask_service(core, request->service, ask, asker);
	default:
		return 0;
	}
}

/* ---- what of them */

static int64_t ask_cpu(struct core *core, const struct control_request *request, uint64_t asker)
{
	char file[PATH_MAX + 32];

	if (request->target != CONTROL_PID || !scheduler_serves(core->scheduler, request->pid))
		return 0;
	snprintf(file, sizeof(file), "%scpu%" PRIu64, core->cpu_file_prefix, ++core->cpu.number);
	const int error = cpu_profiles_start(&core->cpu, request->pid, request->duration_ms, asker, file);
	return error ? error : 1;
}

static int64_t ask_all_or_some(struct core *core, const struct control_request *request, uint64_t asker)
{
	switch (request->verb) {
	case CONTROL_SNAPSHOT:
		return means_all(core, request)
		    ? scheduler_ask_all(core->scheduler, "heaptap snapshot", asker)
		    : ask_some(core, request, scheduler_ask, asker);
	case CONTROL_PROFILE:
		return means_all(core, request) ? scheduler_ask_memory(core->scheduler, 0, asker)
		                                : ask_some(core, request, scheduler_ask_memory, asker);
	case CONTROL_CPU:
		return ask_cpu(core, request, asker);
	case CONTROL_LIST:
		break;
	}
	return -EOPNOTSUPP;
}

static int64_t on_asked(void *context, const struct control_request *request, uint64_t asker)
{
	struct core *core = context;

	if (request->verb != CONTROL_LIST && core->handlers->is_off && core->handlers->is_off(core))
		return -ECANCELED;
	core_find_processes(core);
	const int64_t count = ask_all_or_some(core, request, asker);
	const bool is_unsampled =
	    !count && core->handlers->is_unsampled && core->handlers->is_unsampled(core, request);
	return is_unsampled ? -ENODATA : count;
}

static void on_list(void *context, struct control_list_writer *writer)
{
	struct core *core = context;

	core_find_processes(core); /* samples that have not been read yet would be called lost */
	core->handlers->list(core, writer);
}

static void on_gone(void *context, uint64_t asker)
{
	struct core *core = context;

	cpu_profiles_cancel(&core->cpu, asker);
	scheduler_forget(core->scheduler, asker);
}

/* ---- the socket */

int requests_open(struct core *core, int listen_fd, gid_t group, const char *cpu_file_prefix)
{
	const struct control_handlers handlers = {
	    .context = core, .list = on_list, .ask = on_asked, .gone = on_gone};
	int error = 0;

	snprintf(core->cpu_file_prefix, sizeof(core->cpu_file_prefix), "%s", cpu_file_prefix);
	core->server = control_server_new(core->epoll_fd, listen_fd, group, &handlers, &error);
	return error;
}

void requests_close(struct core *core)
{
	cpu_profiles_fini(&core->cpu);
	control_server_free(core->server);
	core->server = NULL;
}

uint32_t requests_want_all(struct core *core, const char *cause)
{
	core_find_processes(core);
	return scheduler_ask_all(core->scheduler, cause, 0);
}
