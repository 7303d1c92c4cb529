/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/web.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "serve/connection.h"
#include "serve/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES_MAX = 8192 };

/* All of it lives as long as the process. */
static struct web web;
static struct connection_listener listeners[COMMAND_LINE_LISTEN_MAX];
static struct event_source broker_source, jobs_source;

static void on_broker(struct event_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	if (!broker_client_event(web.server.broker))
		web.stopped = true;
}

static void on_jobs(struct event_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	jobs_event(web.server.jobs);
}

static int open_server(const struct web_setup *setup)
{
	struct server *server = &web.server;
	struct catalog_setup catalog = {.with_files = setup->line->operand_count > 0};
	int err;

	server->token = *setup->token;
	server->broker = broker_client_new(setup->broker_fd);
	server->jobs = server->broker ? jobs_new(&err) : NULL;
	if (!server->jobs)
		return server->broker ? err : -ENOMEM;
	server->snapshots = snapshots_new(server->broker);
	server->delta_clients = delta_clients_new();
	server->counters = counters_new();
	catalog.broker = server->broker;
	catalog.snapshots = server->snapshots;
	catalog.jobs = server->jobs;
	catalog.counters = server->counters;
	catalog.with_samplers = !catalog.with_files || setup->line->socket || setup->line->sampler;
	server->catalog =
	    server->snapshots && server->delta_clients && server->counters ? catalog_new(&catalog) : NULL;
	return server->catalog ? 0 : -ENOMEM;
}

/* Raises the limit of descriptors. Returns how many there are for connections. */
static size_t raise_limits(void)
{
	struct rlimit files = {.rlim_cur = FILES_MAX};

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	files.rlim_cur = files.rlim_cur < FILES_MAX ? files.rlim_cur : FILES_MAX;
	return files.rlim_cur > 2 * CONNECTION_OTHER_FDS ? files.rlim_cur - CONNECTION_OTHER_FDS
	                                                 : files.rlim_cur / 2;
}

static int open_loop(const struct web_setup *setup)
{
	const size_t files = raise_limits();
	int err;

	web.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (web.epoll_fd < 0)
		return -errno;
	broker_source.ready = on_broker;
	jobs_source.ready = on_jobs;
	err = event_loop_add(web.epoll_fd, &broker_source, broker_client_fd(web.server.broker), EPOLLIN);
	if (!err)
		err = event_loop_add(web.epoll_fd, &jobs_source, jobs_fd(web.server.jobs), EPOLLIN);
	for (size_t i = 0; i < setup->count && !err; i++) {
		listeners[i].address = setup->addresses[i];
		err = connection_listen(&web, &listeners[i], setup->fds[i], files / setup->count);
	}
	return err;
}

static void say_where(const struct web_setup *setup)
{
	for (size_t i = 0; i < setup->count && setup->line->verbosity >= 0; i++)
		log_line("serving on %s%s%s", listeners[i].address.is_unix ? "" : "http://",
		    listeners[i].text, listeners[i].address.is_unix ? "" : "/");
}

static int loop(size_t count)
{
	while (!web.stopped) {
		uint64_t now_ns = clock_now_ns();
		int timeout_ms = connection_tend(&web, now_ns), err;

		catalog_tend(web.server.catalog, now_ns);
		for (size_t i = 0; i < count; i++) {
			int due_ms = connection_run(&listeners[i]);

			timeout_ms = due_ms < timeout_ms ? due_ms : timeout_ms;
		}
		err = event_loop_wait(web.epoll_fd, timeout_ms);
		if (err) {
			log_line("the web process cannot wait: %s", strerror(-err));
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}

int web_run(const struct web_setup *setup)
{
	char error[256];
	int err;

	prctl(PR_SET_NAME, "heaptap-web");
	/* A terminal and a service manager send these to all processes; the broker ends us. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (gethostname(web.own_name, sizeof(web.own_name) - 1))
		web.own_name[0] = '\0';
	if (sandbox_drop_root(error, sizeof(error))) {
		log_line("%s", error);
		return EXIT_FAILURE;
	}
	err = open_server(setup);
	if (!err)
		err = open_loop(setup);
	if (!err)
		say_where(setup);
	if (!err)
		err = sandbox_enter();
	if (err) {
		log_line("the web process cannot start: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	return loop(setup->count);
}
