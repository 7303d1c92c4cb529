/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/snapshot_client.h"

#include "proto/region.h"
#include "sampler/session/control.h"
#include "sampler/terminal/log_line.h"
#include "sampler/cli/options.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	ANSWER_MS = 3000, /* for a sampler to say whether it has to do with it: it may be stopped */
	WRITE_MS = 60000, /* between profiles */
};

struct asking {
	const char *what; /* "all" or a number */
	long sampler;     /* whom to ask first; 0: no idea */
	unsigned int written, failed;
};

/* One packet: "written PID PATH", "failed PID WHY", "asked N", "unknown". */
static void take_answer(struct asking *asking, char *text)
{
	char *pid = strchr(text, ' '), *rest = pid ? strchr(pid + 1, ' ') : NULL;
	if (!rest)
		return;
	*pid++ = '\0';
	*rest++ = '\0';
	if (strcmp(text, "written") == 0) {
		asking->written++;
		printf("%s\n", rest);
		fflush(stdout);
	} else {
		asking->failed++;
		log_line("pid %s: %s", pid, rest);
	}
}

/* -ECONNREFUSED: nobody listens there any more. */
static int snapshot_client_one(struct asking *asking, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[CONTROL_MESSAGE_BYTES];
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int length = snprintf(text, sizeof(text), "snapshot %s", asking->what);
	int error = 0, patience_ms = ANSWER_MS;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
		error = -errno;
	while (!error) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		int ready = poll(&poll_fd, 1, patience_ms);
		ssize_t got = ready == 1 ? recv(fd, text, sizeof(text) - 1, 0) : -1;
		if (ready == 0)
			error = -ETIMEDOUT;
		if (got <= 0)
			break;
		text[got] = '\0';
		patience_ms = WRITE_MS;
		take_answer(asking, text);
	}
	close(fd);
	return error;
}

static bool is_enough(const struct asking *asking)
{
	return asking->written + asking->failed > 0 && strcmp(asking->what, "all") != 0;
}

static void snapshot_client_socket(struct asking *asking, const char *path)
{
	int error = snapshot_client_one(asking, path);
	if (error == -ECONNREFUSED)
		unlink(path);               /* its sampler was killed */
	else if (error && error != -ENOENT) /* it has just ended */
		log_line("%s: %s", path, strerror(-error));
}

/* The process' own environment may say who watches it; if not, or if it was changed, everybody is asked. */
static long likely_sampler(const char *pid)
{
	char path[64], *text = NULL;
	size_t room = 0;
	long sampler = 0;
	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	FILE *file = fopen(path, "re");
	while (file && !sampler && getdelim(&text, &room, '\0', file) > 0)
		if (sscanf(text, REGION_ENV "=/proc/%ld/fd/", &sampler) != 1)
			sampler = 0;
	if (file)
		fclose(file);
	free(text);
	return sampler;
}

static void snapshot_client_folder(struct asking *asking, const char *folder)
{
	char path[PATH_MAX], likely[PATH_MAX] = "";
	DIR *open_folder = opendir(folder);
	const struct dirent *entry;
	if (open_folder && asking->sampler) {
		snprintf(likely, sizeof(likely), "%s/%ld.sock", folder, asking->sampler);
		if (access(likely, F_OK) == 0)
			snapshot_client_socket(asking, likely);
	}
	while (open_folder && !is_enough(asking) && (entry = readdir(open_folder))) {
		const char *dot = strrchr(entry->d_name, '.');
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (dot && strcmp(dot, ".sock") == 0 && strcmp(path, likely) != 0)
			snapshot_client_socket(asking, path);
	}
	if (open_folder)
		closedir(open_folder);
}

/* Root may ask everybody's. */
static void snapshot_client_others(struct asking *asking)
{
	static const char *const roots[][2] = {{"/tmp", "heaptap-%*u%n"}, {"/run/user", "%*u%n"}};
	for (size_t i = 0; i < 2 && geteuid() == 0; i++) {
		DIR *root = opendir(roots[i][0]);
		const struct dirent *entry;
		while (root && !is_enough(asking) && (entry = readdir(root))) {
			char path[PATH_MAX];
			int length = 0;
			(void)sscanf(entry->d_name, roots[i][1], &length);
			if (!length || entry->d_name[length] || strcmp(entry->d_name, "heaptap-0") == 0)
				continue;
			snprintf(path, sizeof(path), i == 0 ? "%s/%s" : "%s/%s/heaptap", roots[i][0],
			    entry->d_name);
			snapshot_client_folder(asking, path);
		}
		if (root)
			closedir(root);
	}
}

int snapshot_client_run(struct options *options)
{
	struct asking asking = {.what = "all"};
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
	if (options->all == (options->operand_count > 0) || options->operand_count > 1) {
		log_line("snapshot needs one PID, or --all");
		return 2;
	}
	if (!options->all) {
		char *end;
		asking.what = options->operands[0];
		long pid = strtol(asking.what, &end, 10);
		if (pid < 1 || pid > INT_MAX || *end) {
			log_line("'%s' is not a process id", asking.what);
			return 2;
		}
		asking.sampler = likely_sampler(asking.what);
	}
	size_t count = control_folders(folders, geteuid());
	for (size_t i = 0; i < count && !is_enough(&asking); i++) {
		bool again = false;
		for (size_t n = 0; n < i; n++)
			again = again || strcmp(folders[n], folders[i]) == 0;
		if (!again)
			snapshot_client_folder(&asking, folders[i]);
	}
	if (!is_enough(&asking))
		snapshot_client_others(&asking);
	if (!asking.written && !asking.failed)
		log_line(
		    options->all ? "no process is being profiled" : "no heaptap of yours profiles pid %s",
		    asking.what);
	return asking.written && !asking.failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
