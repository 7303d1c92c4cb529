/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/control_sockets.h"

#include "pprof/table/array.h"
#include "sampler/core/control_client.h"
#include "sampler/core/control_folder.h"
#include "sampler/core/control_list.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many sockets the user has who owns this one. */
static size_t count_of_user(const struct control_sockets *sockets, const struct control_sockets_item *item)
{
	size_t count = 0;

	for (size_t i = 0; i < sockets->count; i++)
		count += sockets->items[i].owner == item->owner;
	return count;
}

/* Is there room for one more socket of that user? */
static bool has_room(const struct control_sockets *sockets, uid_t owner)
{
	size_t his = 0, others = 0;

	if (sockets->count == CONTROL_SOCKETS_MAX || control_peer_is_trusted(owner))
		return sockets->count < CONTROL_SOCKETS_MAX;
	for (size_t i = 0; i < sockets->count; i++) {
		his += sockets->items[i].owner == owner;
		others += !control_peer_is_trusted(sockets->items[i].owner);
	}
	return his < CONTROL_SOCKETS_OF_USER && others < CONTROL_SOCKETS_OF_OTHERS;
}

/* Notes a socket. A known socket keeps its number. */
static void note(struct control_sockets *sockets, const char *folder, const char *name, uid_t owner)
{
	struct control_sockets_item *item = sockets->items, *end = item + sockets->count;

	while (item < end &&
	    (strcmp(item->folder, folder) != 0 || strcmp(item->name, name) != 0 || item->owner != owner))
		item++;
	if (item == end) {
		if (!has_room(sockets, owner) || strlen(folder) >= sizeof(item->folder) ||
		    strlen(name) >= sizeof(item->name))
			return;
		*item = (struct control_sockets_item){.number = ++sockets->next_number, .owner = owner};
		strcpy(item->folder, folder);
		strcpy(item->name, name);
		sockets->count++;
	}
	item->seen = true;
}

static void listed_fini(struct listed *listed)
{
	free(listed->pids);
	free(listed->store);
	*listed = (struct listed){0};
}

static int look_into(void *context, int folder_fd, const char *folder, uid_t owner)
{
	struct control_sockets *sockets = context;
	int fd = folder_fd < 0 ? -1 : fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t left = control_peer_is_trusted(owner) ? SIZE_MAX : CONTROL_SOCKETS_NAMES;
	char only[32];

	snprintf(only, sizeof(only), "%d.sock", (int)sockets->only);
	while (listing && left-- && (entry = readdir(listing)))
		if (sockets->only ? strcmp(entry->d_name, only) == 0
		                  : control_folder_is_socket(entry->d_name))
			note(sockets, folder, entry->d_name, owner);
	if (listing)
		closedir(listing);
	else if (fd >= 0)
		close(fd);
	return 0;
}

void control_sockets_look(struct control_sockets *sockets)
{
	size_t kept = 0;

	for (size_t i = 0; i < sockets->count; i++)
		sockets->items[i].seen = false;
	if (sockets->with_daemon)
		note(sockets, "", "", 0);
	if (sockets->with_sessions)
		control_folder_each(look_into, sockets);
	for (size_t i = 0; i < sockets->count; i++) {
		if (sockets->items[i].seen)
			sockets->items[kept++] = sockets->items[i];
		else
			listed_fini(&sockets->items[i].listed);
	}
	sockets->count = kept;
}

static int connect_session(const struct control_sockets_item *item)
{
	int folder_fd = control_folder_open(item->folder, item->owner), fd;

	if (folder_fd < 0)
		return folder_fd;
	fd = control_folder_connect(folder_fd, item->name, item->owner, 0);
	if (fd == -ECONNREFUSED)
		unlinkat(folder_fd, item->name, 0); /* its sampler was killed */
	close(folder_fd);
	return fd;
}

struct control_sockets_item *control_sockets_find(struct control_sockets *sockets, uint64_t number)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->items[i].number == number)
			return &sockets->items[i];
	return NULL;
}

int control_sockets_connect(const struct control_sockets *sockets, struct control_sockets_item *item)
{
	char reason[512];
	int fd = item->folder[0] ? connect_session(item)
	                         : control_client_connect(sockets->daemon_path, reason, sizeof(reason));

	if (fd >= 0)
		item->listed.user = control_peer_user(fd);
	return fd;
}

/* ---- what may be handed on of a list */

enum { COMMAND_LINE_BYTES = 64 << 10 };

static bool has(const struct listed *listed, pid_t pid)
{
	for (size_t i = 0; i < listed->count; i++)
		if (listed->pids[i] == pid)
			return true;
	return false;
}

static int note_pid(struct listed *listed, pid_t pid)
{
	int err = array_reserve(&listed->pids, &listed->capacity, listed->count + 1, sizeof(*listed->pids));

	if (!err)
		listed->pids[listed->count++] = pid;
	return err;
}

/* Notes the processes of a list that is handed on whole. */
static int note_all(struct listed *listed, struct control_rows rows)
{
	struct control_row row;
	int err = 0;

	while (!err && control_rows_next(&rows, &row))
		err = note_pid(listed, row.pid);
	return err;
}

/* Moves the rows that stay to the beginning of the text. A process keeps one row: more would count
 * it twice. */
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
		err = note_pid(listed, row.pid);
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

int control_sockets_take_list(const struct control_sockets *all, struct control_sockets_item *item, int fd,
    uint64_t *bytes, uint32_t *left_out)
{
	struct listed *listed = &item->listed;
	const size_t sockets = count_of_user(all, item);
	const bool trusted = control_peer_is_trusted(listed->user);
	const uint64_t said_bytes = *bytes,
	               most_bytes =
	                   trusted ? CONTROL_LIST_BYTES_MAX : CONTROL_SOCKETS_BYTES_OF_USER / sockets;
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
		              : sift(listed, rows, CONTROL_SOCKETS_ROWS_OF_USER / sockets, bytes, left_out);
		if (!err && !trusted)
			kept_fd = control_server_memory(text, *bytes);
		free(text);
	}
	if (err && kept_fd >= 0)
		close(kept_fd);
	return err ? err : kept_fd;
}

int control_sockets_command_line(const struct control_sockets_item *item, pid_t pid, uint64_t *bytes)
{
	const struct listed *listed = &item->listed;
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
