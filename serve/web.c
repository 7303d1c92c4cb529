/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/web.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- the sandbox */

int web_drop_root(char *error, size_t error_bytes)
{
	static const char *const names[] = {"heaptap-serve", "nobody"};
	const struct passwd *user = NULL;

	if (geteuid() != 0)
		return 0;
	for (size_t i = 0; i < 2 && !user; i++)
		user = getpwnam(names[i]);
	if (!user || user->pw_uid == 0) {
		snprintf(error, error_bytes,
		    "there is no user heaptap-serve or nobody, and as root the server reads nothing from a "
		    "network");
		return -ENOENT;
	}
	if (setgroups(0, NULL) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid)) {
		int err = -errno;

		snprintf(error, error_bytes, "cannot become user %s: %s", user->pw_name, strerror(-err));
		return err;
	}
	return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define WHOLE UINT32_MAX /* for an int: the kernel reads only these bits */

/* Calls of libc, libmicrohttpd and ours. Each works on what is open already. */
static const int allowed[] = {SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write),
    SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg), SCMP_SYS(sendfile), SCMP_SYS(shutdown), SCMP_SYS(accept), SCMP_SYS(accept4),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(poll),
    SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_ctl), SCMP_SYS(futex), SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap),
    SCMP_SYS(madvise), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep), SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigaction), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getrandom), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sysinfo), SCMP_SYS(exit), SCMP_SYS(exit_group),
    SCMP_SYS(membarrier),
    /* For the thread of jobs.c, if it first runs after the filter is set. */
    SCMP_SYS(rseq), SCMP_SYS(set_robust_list),
    /* fstat(3), which is newfstatat(fd, "", ...) here: the path cannot be looked at, but nothing is
     * opened by it. */
    SCMP_SYS(newfstatat)};

/* Allowed only if (argument & mask) == value. */
static const struct condition {
	int call;
	unsigned int argument;
	scmp_datum_t mask, value;
} conditions[] = {
    /* Memory, but none that is executed. */
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    /* No owner for SIGIO, which would be a signal to any process. */
    {SCMP_SYS(fcntl), 1, WHOLE, F_GETFD},
    {SCMP_SYS(fcntl), 1, WHOLE, F_SETFD},
    {SCMP_SYS(fcntl), 1, WHOLE, F_GETFL},
    {SCMP_SYS(fcntl), 1, WHOLE, F_SETFL},
    /* No TCP Fast Open, which connects without connect(2). */
    {SCMP_SYS(sendto), 3, MSG_FASTOPEN, 0},
    {SCMP_SYS(sendmsg), 2, MSG_FASTOPEN, 0},
};

static int allow_conditions(scmp_filter_ctx filter)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]) && !err; i++) {
		const struct condition *at = &conditions[i];

		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, at->call, 1,
		    SCMP_CMP(at->argument, SCMP_CMP_MASKED_EQ, at->mask, at->value));
	}
	/* abort(3) */
	return err ? err
	           : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
	                 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
}

static int load_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!err)
		err = allow_conditions(filter);
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!err)
		err = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return err;
}

int web_enter_sandbox(void)
{
	const struct rlimit none = {0, 0};

	tzset(); /* reads a file, once */
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_NPROC, &none);
	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return SANITIZED ? 0 : load_filter();
}

/* ---- the loop */

int web_loop_add(int epoll_fd, struct loop_source *source, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	source->fd = fd;
	return 0;
}

void web_loop_remove(int epoll_fd, struct loop_source *source)
{
	if (source->fd >= 0)
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
}

/* Waits once, timeout_ms at most, and calls ready() of sources that are ready. Takes one event at a time, so
 * that no event of a source waits here that a call removes or frees. 0 or -errno. */
static int wait_once(int epoll_fd, int timeout_ms)
{
	struct epoll_event event;
	int count;

	for (int round = 0; round < 64; round++) {
		count = epoll_wait(epoll_fd, &event, 1, round ? 0 : timeout_ms);
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count <= 0)
			return 0;
		struct loop_source *source = event.data.ptr;
		source->ready(source, event.events);
	}
	return 0;
}

/* ---- the process */

enum { FILES_MAX = 8192 };

/* All of it lives as long as the process. */
static struct web web;
static struct connection_listener listeners[COMMAND_LINE_LISTEN_MAX];
static struct loop_source broker_source, jobs_source;

static void on_broker(struct loop_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	if (!broker_client_event(web.server.broker))
		web.stopped = true;
}

static void on_jobs(struct loop_source *source, uint32_t events)
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
	err = web_loop_add(web.epoll_fd, &broker_source, broker_client_fd(web.server.broker), EPOLLIN);
	if (!err)
		err = web_loop_add(web.epoll_fd, &jobs_source, jobs_fd(web.server.jobs), EPOLLIN);
	for (size_t i = 0; i < setup->count && !err; i++) {
		listeners[i].address = setup->addresses[i];
		err = web_connection_listen(&web, &listeners[i], setup->fds[i], files / setup->count);
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
		int timeout_ms = web_connection_tend(&web, now_ns), err;

		catalog_tend(web.server.catalog, now_ns);
		for (size_t i = 0; i < count; i++) {
			int due_ms = web_connection_run(&listeners[i]);

			timeout_ms = due_ms < timeout_ms ? due_ms : timeout_ms;
		}
		err = wait_once(web.epoll_fd, timeout_ms);
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
	if (web_drop_root(error, sizeof(error))) {
		log_line("%s", error);
		return EXIT_FAILURE;
	}
	err = open_server(setup);
	if (!err)
		err = open_loop(setup);
	if (!err)
		say_where(setup);
	if (!err)
		err = web_enter_sandbox();
	if (err) {
		log_line("the web process cannot start: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	return loop(setup->count);
}
