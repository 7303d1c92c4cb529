/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap daemon`: one per machine (or per user), in the foreground. It finds the processes that carry the
 * library, and profiles the ones that its rules choose, until it is told to end. The processes run on then
 * and sample into their regions, where the next daemon finds the samples.
 *
 * To the main loop of sampler/core/core.h the daemon adds:
 *
 *   notices     a process has loaded the library (finder.h)
 *   pidfds      a process has ended
 *   signals     SIGTERM and SIGINT end the daemon, SIGHUP reads the configuration again, SIGUSR1 takes a
 *               snapshot of every process
 *   off         the file `off` beside the control socket
 *   the look    the sweep of /proc, the store, the watchdog
 *
 * Stacks are sampled by the copy backend alone. So they wait in the regions while no daemon runs, and the
 * daemon opens no file for a probe that a target has chosen.
 */
#include "pprof/codec/file.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/process_life.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/daemon/account_share.h"
#include "sampler/cmd/daemon/attach_jobs.h"
#include "sampler/cmd/daemon/candidate.h"
#include "sampler/cmd/daemon/crash_guard.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/finder.h"
#include "sampler/cmd/daemon/notify.h"
#include "sampler/cmd/daemon/off_switch.h"
#include "sampler/cmd/daemon/periods.h"
#include "sampler/cmd/daemon/policy.h"
#include "sampler/cmd/daemon/retention.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_socket.h"
#include "sampler/core/own_resources.h"
#include "sampler/core/requests.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/write/interval.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SWEEP_NS_S = 2,
	LOOK_NS = 50 * 1000000, /* the finder looks at processes for so long, then other work is done */
	LOOK_BURST_NS_S = 2,
	CLAIM_TRIES = 100,
	STATUS_NS_S = 10, /* between STATUS lines for the service manager */
	TUNE_NS_S = 10,   /* between looks at periods and growth */
	/* One child that writes profiles of the same files one after the other needs a tenth of the time. So
	 * periodic profiles wait for each other. A profile that a user has asked for does not wait. */
	PATIENCE_NS_S = 1,
	BATCH_S = 10,        /* one child writes for so long at most */
	ACCOUNT_ROOM = 8,    /* so many periodic profiles of an account may wait, however many of others do */
	WRITE_AT_END_S = 10, /* profiles that wait when the daemon is told to end are still written */
	REFRESH_SHARE_NS = 20 * 1000000,
};

static const uint64_t second_ns = UINT64_C(1000000000);

/* ---- snapshots */

static int claim(void *context, const struct target *target, const char *name, char *path, size_t path_bytes)
{
	const struct daemon *d = ((const struct core *)context)->command;
	const struct store_claim wish = {
	    .service = target->plan ? target->plan->service : target->title,
	    .snapshot = name,
	    .owner = target->plan ? target->plan->owner : "unknown",
	    .pid = target->pid,
	    .time_s = time(NULL),
	    .oom = target->closed && target->series && oom_watch_kills(&target->series->death) > 0 &&
	        target->end == TARGET_EXITED && WIFSIGNALED(target->status) &&
	        WTERMSIG(target->status) == SIGKILL,
	};
	int error, tries = 0;

	do /* an earlier daemon may have written a file of this name in this second */
		error = store_claim(d->store, &wish, path, path_bytes);
	while (!error && access(path, F_OK) == 0 && ++tries < CLAIM_TRIES);
	return error;
}

/* ---- signals */

static void reload(struct daemon *d)
{
	notify_reloading();
	daemon_configuration_reload(d);
	notify_tell("READY=1");
}

static void want_all(struct daemon *d)
{
	if (d->off.off)
		log_line("no snapshots: everything is off while %s exists", d->off.path);
	else
		(void)requests_want_all(&d->core, "a signal to heaptap");
}

static void on_signal(struct core *core, int number)
{
	struct daemon *d = core->command;

	if (number == SIGHUP)
		reload(d);
	else if (number == SIGUSR1)
		want_all(d);
	else
		d->ending = true;
}

static bool on_child(struct core *core, pid_t child, int status)
{
	struct daemon *d = core->command;

	(void)status;
	return retention_reap(&d->retention, child);
}

/* ---- the loop */

static void move_switch(struct daemon *d)
{
	log_line("%s: %s", d->off.path,
	    d->off.off ? "found: nothing is sampled until it is removed, and nothing written"
	               : "gone: sampling goes on");
	scheduler_pause(d->core.scheduler, d->off.off);
	if (d->off.off)
		candidate_stop_all(d);
	else
		policy_match_all_again(d);
}

static bool is_due(uint64_t *last_ns, uint64_t now_ns, uint64_t every_ns)
{
	if (now_ns - *last_ns < every_ns)
		return false;
	*last_ns = now_ns;
	return true;
}

static void tell_manager(struct daemon *d, uint64_t now_ns)
{
	uint64_t watchdog_ns = notify_watchdog_ns();

	if (watchdog_ns && is_due(&d->watchdog_ns, now_ns, watchdog_ns / 2))
		notify_tell("WATCHDOG=1");
	if (is_due(&d->status_ns, now_ns, STATUS_NS_S * second_ns))
		notify_tell("STATUS=%s%zu processes are profiled%s%s", d->off.off ? "off: " : "",
		    process_life_running(&d->core.heap.registry), d->note[0] ? "; " : "", d->note);
}

static void save_guard(struct daemon *d, bool last)
{
	const int error = crash_guard_save(d->guard, d->guard_path, clock_now_ns(), last);

	if (error && (last || error != d->guard_error))
		log_line("%s: %s: %s", d->guard_path, strerror(-error),
		    last ? "the newest entries of the deny list are lost" : "the daemon tries again");
	d->guard_error = error;
}

static uint64_t before_look(struct core *core)
{
	struct daemon *d = core->command;
	const uint64_t now_ns = clock_now_ns();

	if (off_switch_look(&d->off, now_ns))
		move_switch(d);
	attach_jobs_give_up(d, now_ns);
	return finder_run(d->finder, now_ns);
}

static uint64_t after_look(struct core *core)
{
	struct daemon *d = core->command;
	const uint64_t now_ns = clock_now_ns();

	retention_run(&d->retention, d->store, now_ns);
	periods_limit_load(d, now_ns);
	save_guard(d, false);
	if (is_due(&d->tuned_ns, now_ns, TUNE_NS_S * second_ns)) {
		periods_tune(d);
		log_line_tell_held(false);
	}
	tell_manager(d, now_ns);
	return UINT64_MAX;
}

static bool on_event(struct core *core, int fd)
{
	struct daemon *d = core->command;

	if (fd == d->off.fd || fd == finder_fd(d->finder) || attach_jobs_event(d, fd))
		return false; /* before_look() looks at the switch and the notices in any case */
	(void)candidate_ended(d, fd);
	return true;
}

static bool is_over(struct core *core)
{
	return ((const struct daemon *)core->command)->ending;
}

static bool is_off(const struct core *core)
{
	return ((const struct daemon *)core->command)->off.off;
}

/* ---- beginning and end */

/* Writes the last profiles of processes that have ended: no later daemon can write them. */
static void write_what_waits(struct daemon *d)
{
	const uint64_t end_ns = clock_now_ns() + WRITE_AT_END_S * second_ns;
	uint64_t written, ended;

	scheduler_hurry_writing(d->core.scheduler, true);
	while (!scheduler_settled(d->core.scheduler) && clock_now_ns() < end_ns) {
		struct pollfd signals = {.fd = d->core.signal_fd, .events = POLLIN};

		(void)scheduler_tend(d->core.scheduler, clock_now_ns());
		(void)poll(&signals, 1, 20);
		core_read_signals(&d->core);
	}
	scheduler_progress(d->core.scheduler, &written, &ended);
	if (ended > written)
		log_line("%" PRIu64 " profiles of processes that have ended could not be written in time",
		    ended - written);
}

static int open_ground(struct daemon *d)
{
	const int error = core_open(&d->core, SIGNALS_DAEMON, SIGUSR1);

	d->processes.epoll_fd = d->core.epoll_fd;
	d->guard = crash_guard_new();
	return error || d->guard ? error : -ENOMEM;
}

/* Opens the control socket, and looks for the file `off` beside it. 0, or -errno after a line. */
static int open_socket(struct daemon *d)
{
	const gid_t group = control_peer_group();
	const char *slash = strrchr(d->socket_path, '/');
	char path[CONTROL_PATH_BYTES], prefix[CONTROL_PATH_BYTES + 16];
	const int fd = control_socket_bind(d->socket_path, group);

	if (fd < 0) {
		log_line(
		    "%s: %s", d->socket_path, fd == -EADDRINUSE ? "another daemon serves it" : strerror(-fd));
		return fd;
	}
	snprintf(prefix, sizeof(prefix), "%.*s.%d.", slash ? (int)(slash - d->socket_path) + 1 : 0,
	    d->socket_path, (int)getpid());
	const int error = requests_open(&d->core, fd, group, prefix);
	if (control_path_off(d->socket_path, path) == 0)
		off_switch_open(&d->off, path);
	if (d->off.fd >= 0)
		(void)epoll_set_add(d->core.epoll_fd, d->off.fd);
	return error;
}

/* Also without open_socket(). */
static void close_socket(struct daemon *d)
{
	const bool served = d->core.server != NULL;

	requests_close(&d->core);
	if (served)
		unlink(d->socket_path);
	off_switch_close(&d->off);
}

static int open_capture(struct daemon *d)
{
	d->core.settings = (struct snapshot_settings){
	    .interval_ns = INTERVAL_USUAL,
	    .min_samples = MIN_SAMPLES_DEFAULT,
	    .detail = SYMBOL_FULL,
	    .verbosity = d->verbosity > 0 ? d->verbosity - 1 : -1,
	    .sink = store_sink(d->store),
	};
	const struct scheduler_setup setup = {
	    .reserve = claim,
	    .may_wait = account_share_may_wait,
	    .pace = {.patience_ns = PATIENCE_NS_S * second_ns,
	        .batch_ns = BATCH_S * second_ns,
	        .room = WRITER_BATCH,
	        .account_room = ACCOUNT_ROOM},
	    .refresh_share_ns = REFRESH_SHARE_NS,
	    .began_unix_ns = d->session.unix_ns,
	    .began_ns = d->session.monotonic_ns,
	    .began_pid = d->session.pid,
	};
	int error = core_open_scheduler(&d->core, setup);
	if (error)
		return error;
	d->core.has_heap = true;
	error = heap_capture_probe(&d->core.heap, &d->heap_options, d->verbosity);
	return error ? error : core_open_heap(&d->core, NULL, true);
}

static int open_finder(struct daemon *d)
{
	static char library[PATH_MAX];
	const struct finder_setup setup = {
	    .library = preload_library_find(library, sizeof(library)) == 0 ? library : NULL,
	    .epoll_fd = d->core.epoll_fd,
	    .sweep_ns = SWEEP_NS_S * second_ns,
	    .look = candidate_look,
	    .opened = candidate_opened,
	    .swept = candidate_swept,
	    .account = policy_match_account,
	    .passed = candidate_passed,
	    .budget_ns = LOOK_NS,
	    .burst_ns = LOOK_BURST_NS_S * second_ns,
	    .context = d,
	};

	d->finder = finder_new(&setup);
	if (!d->finder)
		return -ENOMEM;
	if (finder_fd(d->finder) < 0 && d->verbosity > 0)
		log_line("new processes are found within %d s, not at once: %s", SWEEP_NS_S,
		    geteuid() ? "we are not root" : strerror(-finder_error(d->finder)));
	return 0;
}

static int open_all(struct daemon *d)
{
	int error = output_init(&d->core.output, NULL);

	if (!error)
		error = open_ground(d);
	if (!error)
		error = daemon_configuration_open_store(d);
	if (!error)
		error = open_socket(d);
	if (!error)
		error = open_capture(d);
	return error ? error : open_finder(d);
}

static void close_all(struct daemon *d)
{
	attach_jobs_end(d);
	finder_free(d->finder);
	close_socket(d);
	process_table_fini(&d->processes);
	core_close(&d->core);
	crash_guard_free(d->guard);
	store_close(d->store);
	daemon_configuration_close(d);
	if (d->library_copy.fd >= 0)
		close(d->library_copy.fd);
}

/* What the daemon decides, and the command line does not. */
static void choose_options(struct daemon *d)
{
	d->heap_options = (struct heap_capture_options){.backend = BACKEND_COPY,
	    .period_bytes = RULES_PERIOD_BYTES_DEFAULT,
	    .stack_bytes = STACK_BYTES_DEFAULT,
	    .temporary_ns = TEMPORARY_NS_DEFAULT,
	    .signal = SIGUSR1};
	d->core.memory.max_bytes = memory_bound_bytes(d->rules->daemon.memory_bytes);
}

int daemon_run(struct options *options)
{
	static const struct core_handlers handlers = {.signal = on_signal,
	    .event = on_event,
	    .reap = on_child,
	    .before_look = before_look,
	    .after_look = after_look,
	    .is_over = is_over,
	    .list = daemon_list_write,
	    .is_off = is_off,
	    .is_unsampled = daemon_list_is_unsampled};
	static struct daemon d = {.library_copy = {.fd = -1}, .round = 1, .off = {.fd = -1}};
	int status = EXIT_FAILURE;

	if (options->daemon.check)
		return rules_check(options->daemon.config) == 0 ? EXIT_SUCCESS : STATUS_USAGE;
	notify_open();
	umask(0027);
	d.core = core_of(&handlers);
	d.core.command = &d;
	d.config = options->daemon.config;
	d.since_unix_ns = clock_unix_ns();
	if (control_path_own(options->socket, geteuid(), d.socket_path) != 0) {
		log_line("--socket: the path is too long");
		return STATUS_USAGE;
	}
	int error = daemon_configuration_open(&d, options->daemon.store);
	if (error)
		return STATUS_USAGE;
	own_resources_raise_limits();
	d.verbosity = options->verbosity;
	choose_options(&d);
	error = open_all(&d);
	if (error) {
		log_line("the daemon cannot start: %s", strerror(-error));
	} else {
		notify_tell("READY=1");
		if (d.verbosity >= 0)
			log_line("profiles go to %s; control socket %s%s", d.store_path, d.socket_path,
			    d.off.off ? "; the file 'off' is beside it: nothing is sampled" : "");
		scheduler_pause(d.core.scheduler, d.off.off);
		status = core_run(&d.core);
		notify_tell("STOPPING=1");
		write_what_waits(&d);
		save_guard(&d, true);
		log_line_tell_held(true);
	}
	close_all(&d);
	return status;
}
