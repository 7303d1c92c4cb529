/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a session, and what the session answers to "list". Through the socket `heaptap
 * snapshot` and `heaptap serve` reach the sampler: <folder>/<pid of the sampler>.sock, in the first folder
 * of control_folder.h that is ours. The protocol is that of sampler/core/control_request.h.
 *
 * The client must be the sampler's user or root, and the server must be the folder's owner: both sides check
 * SO_PEERCRED for every connection.
 */
#include "pprof/codec/folder.h"
#include "pprof/text/clock.h"
#include "sampler/cmd/record/session_state.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/own_resources.h"
#include "sampler/core/process_row.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Opens the first folder that is our own, or makes it. Returns its descriptor. */
static int find_folder(char folder[CONTROL_FOLDER_BYTES])
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
	size_t count = control_folders(folders, geteuid());

	for (size_t i = 0; i < count; i++) {
		struct folder own;

		if (folder_open(&own, NULL, folders[i], FOLDER_OWN | FOLDER_MAKE_LAST, 0700))
			continue;
		folder_close(&own);
		int fd =
		    control_folder_open(folders[i], geteuid()); /* fails for a link: clients follow none */
		if (fd < 0)
			continue;
		snprintf(folder, CONTROL_FOLDER_BYTES, "%s", folders[i]);
		return fd;
	}
	return -EACCES;
}

/* Returns a listening descriptor, or -errno. The socket has another name until it listens: a client that
 * finds one that does not listen takes its sampler for killed, and removes it. */
static int bind_in_folder(struct session_socket *own)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char early[sizeof(own->name)];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -EMFILE;
	snprintf(own->name, sizeof(own->name), "%d.sock", (int)getpid());
	snprintf(early, sizeof(early), ".%d.new", (int)getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", own->folder_fd, early);
	(void)unlinkat(own->folder_fd, early, 0); /* a sampler that was killed may have had our pid */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0 &&
	    renameat(own->folder_fd, early, own->folder_fd, own->name) == 0)
		return fd;
	int error = -errno;
	(void)unlinkat(own->folder_fd, early, 0);
	close(fd);
	return error;
}

int session_socket_open(struct session_socket *own)
{
	own->name[0] = '\0';
	own->folder_fd = find_folder(own->folder);
	return own->folder_fd < 0 ? own->folder_fd : bind_in_folder(own);
}

void session_socket_close(struct session_socket *own)
{
	if (own->folder_fd >= 0 && own->name[0])
		unlinkat(own->folder_fd, own->name, 0);
	if (own->folder_fd >= 0)
		close(own->folder_fd);
	own->folder_fd = -1;
}

/* ---- the answer to "list" */

static int64_t next_unix_ns(const struct snapshot_series *series)
{
	if (!series || series->periodic.due_ns == UINT64_MAX)
		return 0;
	return clock_unix_ns() + (int64_t)(series->periodic.due_ns - clock_now_ns());
}

static void list_process(void *context, const struct target *target, int64_t start_unix_ns)
{
	const struct process *process = (const struct process *)target;
	struct control_loss losses[PROCESS_ROW_LOSSES];
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
	    .rss_bytes = process_row_resident_bytes(target->pid),
	    .backend = backend_name(process->run->capture.backend),
	};

	process_row_fill(&row, losses, process);
	control_list_write_process(context, &row);
}

void session_list_write(struct core *core, struct control_list_writer *writer)
{
	const struct session *s = core->command;
	char store[PATH_MAX];
	unsigned int depth = 0;
	const bool has_store = core->working_folder[0] &&
	    output_place(&core->output, core->working_folder, store, sizeof(store), &depth) == 0;
	const struct control_daemon daemon = {
	    .pid = getpid(),
	    .since_unix_ns = s->since_unix_ns,
	    .cpu_ns = own_resources_cpu_with_children_ns(),
	    .rss_bytes = own_resources_rss_bytes(),
	    .version = HEAPTAP_VERSION,
	    .store = has_store ? store : NULL,
	    .store_depth = depth,
	    .store_since_unix_ns = s->since_unix_ns,
	};

	control_list_write_daemon(writer, &daemon);
	if (core->has_heap)
		scheduler_each(core->scheduler, &core->heap.source.base, list_process, writer);
}
