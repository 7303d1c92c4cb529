/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap snapshot PID` and `heaptap snapshot --all`: requests snapshots from the samplers, and waits for
 * the files. */
#include "pprof/store/exit_code.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/core/control_client.h"
#include "sampler/core/control_folder.h"
#include "sampler/core/control_peer.h"
#include "sampler/inject/profiled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ANSWER_MS = 3000, /* a sampler says so soon whether it profiles the process, unless it is stopped */
	WRITE_MS = 60000, /* between two profiles */
	STRANGER_MS = 60000,   /* for all answers from a folder of another user: there might be no end */
	STRANGER_SOCKETS = 64, /* so many sockets in such a folder are asked */
	UNASKED_NAMES = 10000, /* so many more names in it are read and counted */
	LISTED = 4,            /* so many profiled processes are named if the user's is not profiled */
};

struct asking {
	char what[32]; /* "all", "4711" or "session 4711" */
	pid_t pid;     /* 0: all */
	pid_t sampler; /* the sampler that the environment of the process names, asked first; 0: unknown */
	unsigned int written, failed, busy; /* busy: samplers that did not listen */
	/* Of the folder that is being searched. A stranger is an owner who is not our user. */
	uid_t owner;
	uint64_t end_ns;            /* when a stranger's time is over */
	unsigned int sockets;       /* that were asked */
	unsigned int unasked;       /* sockets of a stranger that were not asked */
	unsigned int unasked_names; /* names that were read after the last socket was asked */
	unsigned int foreign;       /* answers of a stranger about processes that are not his */
	/* Of all folders. */
	bool incomplete; /* some sockets were not asked */
	char
	    refused[CONTROL_FOLDER_BYTES]; /* a folder with our name that another user owns or may write to */
};

/* A profile's path may contain terminal control sequences, and was chosen by another process. */
static void print_path(const struct asking *asking, const char *path)
{
	char text[CONTROL_ANSWER_BYTES];

	snprintf(text, sizeof(text), "%s", path);
	if (asking->owner != geteuid() || isatty(STDOUT_FILENO))
		utf8_disarm(text, strlen(text));
	puts(text);
	fflush(stdout);
}

/* Handles a packet: "written PID PATH" or "failed PID WHY". False if it is neither. */
static bool take_answer(struct asking *asking, char *text)
{
	char *pid = strchr(text, ' '), *rest = pid ? strchr(pid + 1, ' ') : NULL;

	if (!rest)
		return false;
	*pid++ = '\0';
	*rest++ = '\0';
	if (!control_peer_may_speak(asking->owner, (pid_t)strtol(pid, NULL, 10))) {
		asking->foreign++;
	} else if (strcmp(text, "written") == 0) {
		asking->written++;
		print_path(asking, rest);
	} else if (strcmp(text, "failed") == 0) {
		asking->failed++;
		log_line("pid %s: %s", pid, rest);
	} else {
		return false;
	}
	return true;
}

/* Receives the next packet. Returns its length, 0 at the end of file, or -errno; -ETIMEDOUT after
 * patience_ms. */
static ssize_t receive(int fd, char text[CONTROL_ANSWER_BYTES], int patience_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int ready = poll(&poll_fd, 1, patience_ms);

	if (ready != 1)
		return ready == 0 ? -ETIMEDOUT : -errno;
	ssize_t got = recv(fd, text, CONTROL_ANSWER_BYTES - 1, 0);
	/* The sampler has not read our request ("busy"). Its answer can still be received. */
	if (got < 0 && errno == ECONNRESET)
		got = recv(fd, text, CONTROL_ANSWER_BYTES - 1, MSG_DONTWAIT);
	text[got > 0 ? got : 0] = '\0';
	return got < 0 ? -errno : got;
}

/* How long to wait: usual_ms, but for a stranger no longer than the rest of his time. */
static int bounded_ms(const struct asking *asking, int usual_ms)
{
	const uint64_t now_ns = clock_now_ns();

	if (asking->owner == geteuid())
		return usual_ms;
	const uint64_t rest_ms = now_ns < asking->end_ns ? (asking->end_ns - now_ns) / 1000000 : 0;
	return rest_ms < (uint64_t)usual_ms ? (int)rest_ms : usual_ms;
}

/* Reads "asked N", "unknown" or "busy", then at most N answers. *outstanding: the number of answers that
 * have not come. */
static int read_answers(struct asking *asking, int fd, unsigned int *outstanding)
{
	char text[CONTROL_ANSWER_BYTES];

	for (int usual_ms = ANSWER_MS;; usual_ms = WRITE_MS) {
		const int wait_ms = bounded_ms(asking, usual_ms);
		ssize_t got = wait_ms ? receive(fd, text, wait_ms) : -ETIMEDOUT;

		if (got == -ETIMEDOUT)
			return -ETIMEDOUT;
		if (got <= 0)
			return *outstanding ? -ECONNRESET : 0;
		if (*outstanding == 0) {
			asking->busy += strcmp(text, "busy") == 0;
			if (sscanf(text, "asked %u", outstanding) != 1 || *outstanding == 0)
				return 0;
		} else if (!take_answer(asking, text)) {
			return -EPROTO;
		} else if (--*outstanding == 0) {
			return 0;
		}
	}
}

/* Reads the answers. Snapshots that the sampler has promised and not answered count as failed. */
static int take_answers(struct asking *asking, int fd)
{
	unsigned int outstanding = 0;
	int error = read_answers(asking, fd, &outstanding);

	if (!outstanding)
		return error;
	asking->failed++;
	log_line("the sampler has not answered for %u snapshot%s", outstanding, outstanding == 1 ? "" : "s");
	return error;
}

/* Asks the sampler that serves the socket. 0 or -errno; -ECONNREFUSED if the sampler is gone. */
static int ask_one(struct asking *asking, int folder_fd, const char *name)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "snapshot %s", asking->what), error = 0;
	int fd = control_folder_connect(folder_fd, name, asking->owner, bounded_ms(asking, ANSWER_MS));

	if (fd < 0)
		return fd;
	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length && errno != EPIPE &&
	    errno != ECONNRESET) /* else the answer says why */
		error = -errno;
	if (!error)
		error = take_answers(asking, fd);
	close(fd);
	return error;
}

static bool is_enough(const struct asking *asking)
{
	return asking->written + asking->failed > 0 && asking->pid;
}

/* Has a stranger used up the time or the number of sockets that he may have? */
static bool is_too_much(const struct asking *asking)
{
	return asking->owner != geteuid() &&
	    (asking->sockets >= STRANGER_SOCKETS || bounded_ms(asking, ANSWER_MS) == 0);
}

/* Is the next name in the folder of use, if only to count it? */
static bool may_read_on(struct asking *asking)
{
	if (is_too_much(asking))
		asking->unasked_names++;
	return !is_enough(asking) && asking->unasked_names <= UNASKED_NAMES;
}

static void ask_socket(struct asking *asking, int folder_fd, const char *folder, const char *name)
{
	if (is_too_much(asking)) {
		asking->unasked++;
		return;
	}
	int error = ask_one(asking, folder_fd, name);
	if (error == -ECONNREFUSED)
		unlinkat(folder_fd, name, 0); /* its sampler was killed */
	if (error == -ECONNREFUSED || error == -ENOENT)
		return; /* that took no time, and must not cost a living session its turn */
	asking->sockets++;
	if (error)
		log_line("%s/%s: %s", folder, name, strerror(-error));
}

static void say_foreign(const struct asking *asking, const char *folder)
{
	if (asking->foreign)
		log_line(
		    "%s: %u answers of user %u were left out: they are about processes of other users, or "
		    "about processes that have ended",
		    folder, asking->foreign, (unsigned int)asking->owner);
}

/* Logs how many sessions were not asked: they must not look as if they did not exist. */
static void say_unasked(struct asking *asking, const char *folder)
{
	const bool uncounted = asking->unasked_names > UNASKED_NAMES;

	if (is_enough(asking) || (!asking->unasked && !uncounted))
		return;
	asking->incomplete = true;
	log_line("%s: %s%u more sessions of user %u were not asked: only %d are asked, for %d s at most",
	    folder, uncounted ? "at least " : "", asking->unasked, (unsigned int)asking->owner,
	    STRANGER_SOCKETS, STRANGER_MS / 1000);
}

/* Asks all sockets in a folder until it is enough. */
static int ask_folder(void *context, int folder_fd, const char *folder, uid_t owner)
{
	struct asking *asking = context;
	char likely[32] = "";
	int fd = folder_fd < 0 ? -1 : fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	asking->owner = owner;
	asking->end_ns = clock_now_ns() + (uint64_t)STRANGER_MS * 1000000;
	asking->sockets = asking->unasked = asking->unasked_names = asking->foreign = 0;
	if (owner == geteuid() && (folder_fd == -EPERM || folder_fd == -ENOTDIR))
		snprintf(asking->refused, sizeof(asking->refused), "%s", folder);
	/* A stranger's sampler cannot profile a process of another user, so its answer would be a lie. */
	if (listing && (!asking->pid || control_peer_may_speak(owner, asking->pid))) {
		snprintf(likely, sizeof(likely), "%d.sock", (int)asking->sampler);
		if (asking->sampler)
			ask_socket(asking, fd, folder, likely);
		while (may_read_on(asking) && (entry = readdir(listing)))
			if (control_folder_is_socket(entry->d_name) && strcmp(entry->d_name, likely) != 0)
				ask_socket(asking, fd, folder, entry->d_name);
		say_unasked(asking, folder);
		say_foreign(asking, folder);
	}
	if (listing)
		closedir(listing);
	else if (fd >= 0)
		close(fd);
	return is_enough(asking);
}

struct listing {
	char text[256];
	unsigned int count;
	pid_t pid;
	bool has_pid; /* the process of that pid has the library, and its sampler lives */
};

static int list_one(void *context, pid_t pid, const char *name, bool sampled)
{
	struct listing *listing = context;

	if (!sampled)
		return 0;
	if (pid == listing->pid) {
		listing->has_pid = true;
		return 1;
	}
	if (listing->count++ < LISTED)
		text_append(listing->text, sizeof(listing->text), "%s%d (%s)",
		    listing->count > 1 ? ", " : "; profiled here: ", (int)pid, name);
	return 0;
}

/* Logs that no sampler profiles the process, and which processes are profiled. */
static void say_unknown(const struct asking *asking)
{
	struct listing listing = {.text = "", .pid = asking->pid};
	const char *whose = geteuid() == 0 ? "" : " by you";

	if (asking->refused[0])
		log_line("%s is ignored: you must own it, and nobody else may write there", asking->refused);
	profiled_each(list_one, &listing);
	if (listing.count > LISTED)
		text_append(listing.text, sizeof(listing.text), ", ...");
	if (!asking->pid)
		log_line("no process is being profiled%s", whose);
	else if (listing.has_pid)
		log_line("pid %d: it has heaptap's library, but has taken no sample yet: nothing is written",
		    (int)asking->pid);
	else
		log_line("pid %d is not being profiled%s%s", (int)asking->pid, whose, listing.text);
}

/* Handles an answer of the daemon. */
static int take_from_daemon(void *context, const struct control_answer *answer, int profile_fd)
{
	struct asking *asking = context;

	if (profile_fd >= 0)
		close(profile_fd);
	if (answer->kind == CONTROL_WRITTEN) {
		asking->written++;
		print_path(asking, answer->text);
	} else {
		asking->failed++;
		log_line("pid %d: %s", (int)answer->pid,
		    answer->kind == CONTROL_GONE ? "it has ended" : answer->text);
	}
	return 0;
}

/* Asks the daemon, which may profile the process too. False if no daemon runs, or if it does not know the
 * process; `reason` says so. */
static bool ask_daemon(struct asking *asking, const struct options *options,
    const struct control_request *request, char *reason, size_t reason_bytes)
{
	const char *chosen = options->socket ? options->socket : getenv("HEAPTAP_SOCKET");
	uint32_t missing;

	/* Any user may serve a socket that the user has named. */
	asking->owner = chosen && *chosen ? (uid_t)-1 : geteuid();
	int error = control_client_each(
	    options->socket, request, take_from_daemon, asking, &missing, reason, reason_bytes);
	if (missing) {
		asking->failed++;
		log_line("%s", reason);
	}
	if (error == -ECANCELED || (error == -ENODATA && !asking->written)) {
		asking->failed++;
		log_line("%s", reason);
	}
	asking->busy += error == -EBUSY;
	return error == 0 || error == -ECANCELED || error == -ENODATA || missing;
}

/* Asks only the daemon: the user has named its socket or a service. pid 0: all. Returns the exit status. */
static int ask_daemon_alone(const struct options *options, pid_t pid)
{
	struct control_request request = {
	    .verb = CONTROL_SNAPSHOT, .target = pid ? CONTROL_PID : CONTROL_ALL, .pid = pid};
	struct asking asking = {.pid = pid};
	char reason[512];

	if (options->snapshot.service) {
		request.target = CONTROL_SERVICE;
		if (snprintf(request.service, sizeof(request.service), "%s", options->snapshot.service) >=
		    (int)sizeof(request.service)) {
			log_line("the name of a service has at most %d bytes", CONTROL_SERVICE_BYTES - 1);
			return STATUS_USAGE;
		}
	}
	if (!ask_daemon(&asking, options, &request, reason, sizeof(reason))) {
		log_line("%s", reason);
		return EXIT_FAILURE;
	}
	return asking.written && !asking.failed ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Asks samplers, and the daemon if none of them is enough. pid 0: all. Returns the exit status. */
static int ask_about(const struct options *options, pid_t pid, bool session)
{
	const struct control_request request = {
	    .verb = CONTROL_SNAPSHOT, .target = pid ? CONTROL_PID : CONTROL_ALL, .pid = pid};
	struct asking asking = {.pid = pid, .sampler = pid ? profiled_sampler(pid) : 0};
	char reason[512];

	if (pid)
		snprintf(asking.what, sizeof(asking.what), "%s%d", session ? "session " : "", (int)pid);
	else
		strcpy(asking.what, "all");
	control_folder_each(ask_folder, &asking);
	if (!session && !is_enough(&asking))
		(void)ask_daemon(&asking, options, &request, reason, sizeof(reason));
	bool unheard = asking.busy && !is_enough(&asking);
	if (unheard)
		log_line("too many others are waiting for snapshots of %s; try again later",
		    asking.busy == 1 ? "a session" : "your sessions");
	else if (!asking.written && !asking.failed && !asking.incomplete)
		say_unknown(&asking);
	const bool complete = !asking.incomplete || is_enough(&asking);
	return asking.written && !asking.failed && !unheard && complete ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The pid that a word is, or 0 after a line. */
static pid_t pid_parse(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (pid >= 1 && pid <= INT_MAX && !*end && *word >= '0' && *word <= '9')
		return (pid_t)pid;
	if (!word[strspn(word, "0123456789")])
		log_line("'%s' is not a process id", word);
	else
		log_line("'%s' is not a process id; by name: heaptap snapshot $(pidof %s)", word, word);
	return 0;
}

int snapshot_client_run(struct options *options)
{
	int status = EXIT_SUCCESS,
	    ways = options->snapshot.all + (options->snapshot.session != 0) +
	    (options->snapshot.service != NULL) + (options->operand_count > 0);

	if (ways != 1) {
		log_line(ways
		        ? "PIDs, --session PID, --service NAME and --all each choose the processes: give "
		          "only one of them"
		        : "snapshot needs PIDs, --session PID, --service NAME or --all");
		return STATUS_USAGE;
	}
	for (int i = 0; i < options->operand_count; i++)
		if (!pid_parse(options->operands[i]))
			return STATUS_USAGE;
	bool daemon_alone = options->snapshot.service || (options->socket && !options->snapshot.session);
	if (!options->operand_count)
		return daemon_alone
		    ? ask_daemon_alone(options, 0)
		    : ask_about(options, options->snapshot.session, options->snapshot.session != 0);
	for (int i = 0; i < options->operand_count; i++) {
		pid_t pid = pid_parse(options->operands[i]);
		int answer = daemon_alone ? ask_daemon_alone(options, pid) : ask_about(options, pid, false);

		if (answer != EXIT_SUCCESS)
			status = EXIT_FAILURE;
	}
	return status;
}
