/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/requests.h"

#include "pprof/text/log_line.h"
#include "sampler/control/control_peer.h"
#include "sampler/control/control_socket.h"
#include "sampler/daemon/daemon_list.h"
#include "sampler/daemon/daemon_state.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/target/target_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(
    (int)SNAPSHOT_ASKERS >= (int)CONTROL_SERVER_CLIENTS, "each client can wait for the same snapshot");

/* ---- which processes */

/* Whoever asks means the processes that there are now, not at our last look. */
static void find_processes(struct daemon *d)
{
	if (heap_capture_look(&d->heap, false))
		scheduler_hurry(d->scheduler);
}

uint32_t requests_want_all(struct daemon *d, const char *cause, uint64_t asker)
{
	if (d->off.off) {
		log_line("no snapshots: everything is off, while %s exists", d->off.path);
		return 0;
	}
	find_processes(d);
	return scheduler_want_all(d->scheduler, cause, asker);
}

/* Of a session: the daemon is one, with all of its processes. */
static bool means_all(const struct daemon *d, const struct control_request *request)
{
	return request->target == CONTROL_ALL ||
	    (request->target == CONTROL_SESSION &&
	        (request->pid == getpid() || scheduler_serves(d->scheduler, request->pid)));
}

typedef uint32_t ask_one(struct scheduler *scheduler, pid_t pid, uint64_t asker);

static uint32_t ask_service(struct daemon *d, const char *service, ask_one *ask, uint64_t asker)
{
	const struct table *processes = &d->heap.intake.processes;
	uint32_t count = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct target *target = &((const struct process *)processes->entries[i].item)->target;

		if (!target->closed && target->plan && strcmp(target->plan->service, service) == 0)
			count += ask(d->scheduler, target->pid, asker);
	}
	return count;
}

/* Of a process, or of those of a service. */
static uint32_t ask_some(
    struct daemon *d, const struct control_request *request, ask_one *ask, uint64_t asker)
{
	switch (request->target) {
	case CONTROL_PID:
		return ask(d->scheduler, request->pid, asker);
	case CONTROL_SERVICE:
		return ask_service(d, request->service, ask, asker);
	default:
		return 0;
	}
}

/* ---- what of them */

static int64_t ask_cpu(struct daemon *d, const struct control_request *request, uint64_t asker)
{
	char file[CONTROL_PATH_BYTES + 64];
	const char *slash = strrchr(d->socket_path, '/');

	if (request->target != CONTROL_PID || !scheduler_serves(d->scheduler, request->pid))
		return 0;
	snprintf(file, sizeof(file), "%.*s.%d.cpu%" PRIu64, slash ? (int)(slash - d->socket_path) + 1 : 0,
	    d->socket_path, (int)getpid(), ++d->cpu.number);
	int error = cpu_profiles_start(&d->cpu, request->pid, request->duration_ms, asker, file);
	return error ? error : 1;
}

static int64_t on_asked(void *context, const struct control_request *request, uint64_t asker)
{
	struct daemon *d = context;

	if (d->off.off && request->verb != CONTROL_LIST)
		return -ECANCELED;
	find_processes(d);
	switch (request->verb) {
	case CONTROL_SNAPSHOT:
		return means_all(d, request) ? scheduler_want_all(d->scheduler, "heaptap snapshot", asker)
		                             : ask_some(d, request, scheduler_ask, asker);
	case CONTROL_PROFILE:
		return means_all(d, request) ? scheduler_ask_memory(d->scheduler, 0, asker)
		                             : ask_some(d, request, scheduler_ask_memory, asker);
	case CONTROL_CPU:
		return ask_cpu(d, request, asker);
	case CONTROL_LIST:
		break;
	}
	return -EOPNOTSUPP;
}

static void on_list(void *context, struct control_list_writer *writer)
{
	find_processes(context); /* what has not been read yet is not lost */
	daemon_list_write(context, writer);
}

static void on_gone(void *context, uint64_t asker)
{
	struct daemon *d = context;

	cpu_profiles_cancel(&d->cpu, asker);
	scheduler_forget(d->scheduler, asker);
}

/* ---- answers */

void requests_answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	const struct daemon *d = context;

	if (error)
		control_server_failed(d->control, asker, pid, error);
	else
		control_server_written(d->control, asker, pid, path);
}

static void give(void *context, uint64_t asker, pid_t pid, int fd)
{
	const struct daemon *d = context;

	if (fd < 0)
		control_server_failed(d->control, asker, pid, fd);
	else
		control_server_profiled(d->control, asker, pid, fd);
}

/* ---- the socket */

int requests_open(struct daemon *d)
{
	const gid_t group = control_peer_group();
	const struct control_handlers handlers = {
	    .context = d, .list = on_list, .ask = on_asked, .gone = on_gone};
	char path[CONTROL_PATH_BYTES];
	int error = 0, fd = control_socket_bind(d->socket_path, group);

	if (fd < 0) {
		log_line(
		    "%s: %s", d->socket_path, fd == -EADDRINUSE ? "another daemon serves it" : strerror(-fd));
		return fd;
	}
	d->cpu.giver = (struct in_memory_giver){give, d};
	d->control = control_server_new(d->epoll_fd, fd, group, &handlers, &error);
	if (control_path_off(d->socket_path, path) == 0)
		off_switch_open(&d->off, path);
	if (d->off.fd >= 0)
		(void)epoll_set_add(d->epoll_fd, d->off.fd);
	return error;
}

void requests_close(struct daemon *d)
{
	cpu_profiles_fini(&d->cpu);
	control_server_free(d->control);
	if (d->control)
		unlink(d->socket_path);
}
