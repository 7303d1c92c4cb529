/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap enable` and `heaptap disable`: a drop-in makes a systemd unit load the library, so that the daemon
 * profiles the unit. Both commands may be repeated. An interruption leaves each file as it was, or complete.
 */
#include "pprof/codec/folder.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/enable/enable_library.h"
#include "sampler/cmd/enable/enable_unit.h"
#include "sampler/cmd/enable/root_folder.h"
#include "sampler/cmd/enable/systemctl.h"
#include "sampler/cmd/enable/unit.h"
#include "sampler/core/control_socket.h"
#include "sampler/inject/preload_library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct job {
	struct root_folder root;
	struct enable_library library;
	bool changed, failed;
};

static void note(struct job *job, enum enable_unit_result result)
{
	job->changed = job->changed || result == ENABLE_UNIT_DONE;
	job->failed = job->failed || result == ENABLE_UNIT_FAILED;
}

/* Exit status 0, or 2 after a line. */
static int begin(struct job *job, const struct options *options)
{
	const struct enable_options *enable = &options->enable;

	memset(job, 0, sizeof(*job));
	job->root.fd = -1;
	if (enable->now && enable->root) {
		log_line("--now is for this machine, --root for another one");
		return STATUS_USAGE;
	}
	int error = root_folder_open(&job->root, enable->root);
	if (error) {
		log_line("%s: %s", enable->root, strerror(-error));
		return STATUS_USAGE;
	}
	enable_library_find(&job->library, &job->root, enable->library);
	return 0;
}

/* So that systemd knows of new files. Says so if it will not. */
static void reload(struct job *job)
{
	if (*job->root.path || !job->changed || !systemctl_runs())
		return;
	if (systemctl_reload()) {
		log_line("`systemctl daemon-reload` has failed: systemd does not know the new files yet");
		job->failed = true;
	}
}

/* What systemd has understood may differ from what we read: it has the last word. */
static void ask_systemd(struct job *job, const char *word)
{
	char unit[UNIT_NAME_BYTES], value[UNIT_PRELOAD_BYTES];

	if (*job->root.path || !systemctl_runs() || unit_name(word, unit))
		return;
	if (systemctl_preload(unit, value, sizeof(value)) != 0)
		return;
	size_t length = strlen(job->library.path);
	if (strncmp(value, job->library.path, length) == 0 && strchr(": ", value[length]))
		return;
	log_line(
	    "%s: systemd says LD_PRELOAD=%s, which does not begin with %s", unit, value, job->library.path);
	job->failed = true;
}

static void enable_units(struct job *job, const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++) {
		enum enable_unit_result result =
		    enable_unit_add(&job->root, options->operands[i], &job->library);

		note(job, result);
	}
	reload(job);
	for (int i = 0; i < options->operand_count && !job->failed; i++)
		ask_systemd(job, options->operands[i]);
	if (!job->changed || *job->root.path)
		return;
	if (!systemctl_runs()) {
		printf("systemd does not run here, and nothing else reads these files; without it: heaptap "
		       "daemon, "
		       "and start each program with LD_PRELOAD=%s\n",
		    job->library.path);
		return;
	}
	printf("a service loads the library when it is started again: systemctl restart");
	for (int i = 0; i < options->operand_count; i++)
		printf(" %s", options->operands[i]);
	putchar('\n');
}

static bool has_daemon(const char *control)
{
	int fd = control_socket_connect(control);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The folder that the file `off` is in: our own. */
static int off_folder(const char *path, unsigned int flags, struct folder *folder)
{
	const char *slash = strrchr(path, '/');
	char around[CONTROL_PATH_BYTES];

	snprintf(around, sizeof(around), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return folder_open(folder, NULL, around, FOLDER_OWN | flags, 0755);
}

static int off_make(const char *path)
{
	struct folder folder;
	/* made if it is missing, so that also a daemon that starts later finds the file */
	int error = off_folder(path, FOLDER_MAKE_LAST, &folder);

	if (error)
		return error;
	int fd = openat(folder.fd, CONTROL_OFF_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	error = fd < 0 ? -errno : 0;
	folder_close(&folder);
	if (fd >= 0)
		close(fd);
	return error;
}

static int off_remove(const char *path)
{
	struct folder folder;
	int error = off_folder(path, 0, &folder);

	if (error)
		return error == -ENOENT ? 0 : error;
	error = unlinkat(folder.fd, CONTROL_OFF_NAME, 0) == 0 || errno == ENOENT ? 0 : -errno;
	folder_close(&folder);
	return error;
}

/* The file `off`. Exit status. */
static int switch_all(const struct options *options, bool off)
{
	char control[CONTROL_PATH_BYTES], path[CONTROL_PATH_BYTES];
	int error = control_path_own(options->socket, geteuid(), control);

	if (!error)
		error = control_path_off(control, path);
	if (error) {
		log_line("the path of the control socket is too long");
		return EXIT_FAILURE;
	}
	error = off ? off_make(path) : off_remove(path);
	if (error) {
		log_line("%s: %s", path, strerror(-error));
		return EXIT_FAILURE;
	}
	const char *text = off ? "nothing is sampled until `heaptap enable --now`" : "the daemon samples";
	if (!has_daemon(control))
		text = off ? "no daemon runs; what one has left sampling goes on until one is started"
		           : "a daemon samples when it is started";
	printf("%s%s%s: %s\n", off ? "made " : "", path, off ? "" : " is not there", text);
	return EXIT_SUCCESS;
}

/* There must be a library to write down, and nobody may replace it. Exit status. */
static int check_library(const struct job *job)
{
	char reason[PATH_MAX * 3];

	if (!job->library.path) {
		log_line("%s%s is not there: %s", job->root.path, job->library.wanted,
		    !*job->root.path ? "install it first"
		                     : "install heaptap in the image first, or give the library's path "
		                       "in the image: --library PATH");
		return EXIT_FAILURE;
	}
	/* '%' begins a specifier of a unit file. */
	if (!preload_library_is_preloadable(job->library.path) || strchr(job->library.path, '%')) {
		log_line("LD_PRELOAD of a unit cannot hold the path %s", job->library.path);
		return EXIT_FAILURE;
	}
	if (!*job->root.path && geteuid() == 0 &&
	    enable_library_check(job->library.path, reason, sizeof(reason))) {
		log_line("%s", reason);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

int enable_command_run(struct options *options)
{
	const struct enable_options *enable = &options->enable;
	struct job job;

	if (!options->operand_count && !enable->now) {
		log_line("enable needs UNITs or --now");
		return STATUS_USAGE;
	}
	int status = begin(&job, options);
	if (!status && options->operand_count) {
		status = check_library(&job);
		if (!status)
			enable_units(&job, options);
	}
	if (!status && enable->now)
		status = switch_all(options, false);
	root_folder_close(&job.root);
	return status ? status : job.failed;
}

static void remove_one(void *context, const char *unit)
{
	struct job *job = context;

	note(job, enable_unit_remove(&job->root, unit));
}

/* Without operands and --now: all units. */
int disable_command_run(struct options *options)
{
	const struct enable_options *enable = &options->enable;
	struct job job;
	int status = begin(&job, options), error = 0;

	if (!status && enable->now)
		status = switch_all(options, true);
	if (!status && !options->operand_count && !enable->now)
		error = enable_unit_each(&job.root, remove_one, &job);
	if (error)
		log_line("%s" UNIT_FOLDER ": %s", job.root.path, strerror(-error));
	for (int i = 0; !status && i < options->operand_count; i++)
		remove_one(&job, options->operands[i]);
	if (!status)
		reload(&job);
	if (!status && job.changed && !*job.root.path)
		puts("a service that runs keeps the library until it is started again");
	root_folder_close(&job.root);
	return status ? status : job.failed || error;
}
