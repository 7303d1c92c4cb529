/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/listed.h"

#include "pprof/table/array.h"
#include "sampler/control/control_client.h"
#include "sampler/control/control_peer.h"
#include "sampler/control/control_rows.h"
#include "sampler/control/control_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_LINE_BYTES = 64 << 10 };

static bool has(const struct listed *listed, pid_t pid)
{
	for (size_t i = 0; i < listed->count; i++)
		if (listed->pids[i] == pid)
			return true;
	return false;
}

static int note(struct listed *listed, pid_t pid)
{
	int err = array_reserve(&listed->pids, &listed->capacity, listed->count + 1, sizeof(*listed->pids));

	if (!err)
		listed->pids[listed->count++] = pid;
	return err;
}

/* Notes whom a list is about that is handed on as it is. */
static int note_all(struct listed *listed, struct control_rows rows)
{
	struct control_row row;
	int err = 0;

	while (!err && control_rows_next(&rows, &row))
		err = note(listed, row.pid);
	return err;
}

/* Moves the rows that stay to the beginning of the text. A process has one row: more would count it twice. */
static int sift(
    struct listed *listed, struct control_rows rows, size_t most, uint64_t *bytes, uint32_t *left_out)
{
	char *to = (char *)(uintptr_t)rows.at;
	struct control_row row;
	size_t looks = 0;
	int err = 0;

	*bytes = 0;
	for (; !err && looks < most && control_rows_next(&rows, &row); looks++) {
		if (!row.pid || has(listed, row.pid) || !control_peer_may_speak(listed->user, row.pid)) {
			++*left_out;
			continue;
		}
		err = note(listed, row.pid);
		memmove(to + *bytes, row.text, row.bytes);
		*bytes += row.bytes;
	}
	*left_out += looks == most && rows.at < rows.end;
	return err;
}

static void note_store(struct listed *listed, const struct control_rows *rows)
{
	const struct control_store store = control_rows_store(rows);

	free(listed->store);
	listed->store = *store.path == '/' ? strdup(store.path) : NULL;
	listed->store_depth = store.depth;
	listed->store_since_ns = store.since_unix_ns;
}

int listed_take(struct listed *listed, int fd, uint64_t *bytes, size_t sockets, uint32_t *left_out)
{
	const bool trusted = control_peer_is_trusted(listed->user);
	const uint64_t said_bytes = *bytes,
	               most_bytes = trusted ? CONTROL_LIST_BYTES_MAX : LISTED_BYTES_OF_USER / sockets;
	void *text;
	int kept_fd = trusted ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1, err = trusted && kept_fd < 0 ? -errno : 0;

	if (err) {
		close(fd);
		return err;
	}
	listed->count = 0;
	*left_out = 0;
	*bytes = said_bytes < most_bytes ? said_bytes : most_bytes;
	err = control_client_read(fd, *bytes, &text);
	if (!err) {
		const struct control_rows rows = {text, (const char *)text + *bytes};

		*left_out = *bytes < said_bytes;
		if (trusted)
			note_store(listed, &rows);
		err = trusted ? note_all(listed, rows)
		              : sift(listed, rows, LISTED_ROWS_OF_USER / sockets, bytes, left_out);
		if (!err && !trusted)
			kept_fd = control_server_memory(text, *bytes);
		free(text);
	}
	if (err && kept_fd >= 0)
		close(kept_fd);
	return err ? err : kept_fd;
}

int listed_command_line(const struct listed *listed, pid_t pid, uint64_t *bytes)
{
	char *text;
	size_t length = 0;
	ssize_t got = 0;
	int process_fd = has(listed, pid) ? control_peer_open_process(listed->user, pid) : -EPERM, fd;

	if (process_fd < 0)
		return process_fd;
	fd = openat(process_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	close(process_fd);
	text = fd >= 0 ? malloc(COMMAND_LINE_BYTES) : NULL;
	while (text && length < COMMAND_LINE_BYTES &&
	    (got = read(fd, text + length, COMMAND_LINE_BYTES - length)) > 0)
		length += (size_t)got;
	if (fd >= 0)
		close(fd);
	*bytes = length;
	fd = text && got >= 0 ? control_server_memory(text, length) : -ESRCH;
	free(text);
	return fd;
}

void listed_fini(struct listed *listed)
{
	free(listed->pids);
	free(listed->store);
	*listed = (struct listed){0};
}
