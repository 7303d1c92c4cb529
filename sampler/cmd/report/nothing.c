/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/nothing.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/core/control_client.h"
#include "sampler/core/control_folder.h"
#include "sampler/core/control_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- no profile yet */

enum {
	PATIENCE_MS = 1000, /* for the answer of a sampler, which may be stopped */
	NAMED = 4,          /* most processes that are named */
};

struct search {
	struct stat folder;
	unsigned int found;
};

static bool is_folder(const struct search *search, const char *path)
{
	struct stat status;

	return *path == '/' && stat(path, &status) == 0 && status.st_dev == search->folder.st_dev &&
	    status.st_ino == search->folder.st_ino;
}

static void say(struct search *search, const struct control_process *process)
{
	const int64_t left_ns = process->next_unix_ns - clock_unix_ns();
	char next[96] = "";

	if (search->found++ >= NAMED)
		return;
	if (process->profiled && !process->samples)
		text_append(next, sizeof(next), ", nothing sampled yet");
	if (process->next_unix_ns)
		text_append(next, sizeof(next), ", next snapshot in %" PRId64 " s",
		    left_ns > 0 ? (left_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S : 0);
	log_line("%s (pid %d) is being recorded here%s; heaptap snapshot %d writes a profile now",
	    process->comm, (int)process->pid, next, (int)process->pid);
}

static void say_all(struct search *search, const struct control_list *list)
{
	if (!is_folder(search, list->daemon.store))
		return;
	for (size_t i = 0; i < list->process_count; i++)
		say(search, &list->processes[i]);
}

static void ask(struct search *search, int fd)
{
	const struct control_request request = {.verb = CONTROL_LIST};
	struct control_answer answer;
	struct control_list list;
	void *bytes;
	int list_fd;

	if (control_client_send(fd, &request) != 0 ||
	    control_client_receive(fd, PATIENCE_MS, &answer, &list_fd) != 1 || list_fd < 0 ||
	    control_client_read(list_fd, answer.bytes, &bytes) != 0)
		return;
	if (control_list_parse(&list, bytes, (size_t)answer.bytes) == 0) {
		say_all(search, &list);
		control_list_fini(&list);
	}
	free(bytes);
}

static int look_into(void *context, int folder_fd, const char *folder, uid_t owner)
{
	const bool is_trusted = folder_fd >= 0 && control_peer_is_trusted(owner);
	int fd = is_trusted ? fcntl(folder_fd, F_DUPFD_CLOEXEC, 0) : -1;
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	(void)folder;
	while (listing && (entry = readdir(listing))) {
		int socket_fd = control_folder_is_socket(entry->d_name)
		    ? control_folder_connect(folder_fd, entry->d_name, owner, PATIENCE_MS)
		    : -1;

		if (socket_fd < 0)
			continue;
		ask(context, socket_fd);
		close(socket_fd);
	}
	if (listing)
		closedir(listing);
	else if (fd >= 0)
		close(fd);
	return 0;
}

bool nothing_yet_say(const char *folder)
{
	struct search search = {.found = 0};

	if (stat(folder, &search.folder) != 0)
		return false;
	control_folder_each(look_into, &search);
	if (search.found > NAMED)
		log_line(
		    "and %u more; heaptap snapshot --all writes a profile of each", search.found - NAMED);
	return search.found;
}

/* ---- no stack */

enum { LINE_BYTES = 1024 };

bool nothing_matches(
    const struct traces *traces, const struct read_options *read, char *text, size_t text_bytes)
{
	const struct {
		const char *name, *regex;
		bool given;
	} filters[] = {
	    {"focus", read->focus, read->focus},
	    {"ignore", read->ignore, read->ignore},
	    {"module", read->module, read->module},
	    {"thread", read->thread, read->thread},
	    {"size", NULL, read->size_bytes.given},
	    {"age", NULL, read->age_ns.given},
	};
	bool given = false, regex = false;

	if (traces->row_count)
		return false;
	text[0] = '\0';
	text_append(text, text_bytes, "Nothing matches");
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		if (!filters[i].given)
			continue;
		text_append(text, text_bytes, "%s --%s", given ? " with" : "", filters[i].name);
		if (filters[i].regex)
			text_append(text, text_bytes, " '%s'", filters[i].regex);
		given = true;
		regex = regex || filters[i].regex;
	}
	text_append(text, text_bytes, "%s.", regex ? " (a regular expression, in which case matters)" : "");
	return given;
}

void nothing_matches_say(const struct traces *traces, const struct read_options *read)
{
	char line[LINE_BYTES];

	if (nothing_matches(traces, read, line, sizeof(line)))
		log_line("%s", line);
}
