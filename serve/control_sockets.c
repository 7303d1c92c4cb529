/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/control_sockets.h"

#include "sampler/control/control_client.h"
#include "sampler/control/control_folder.h"
#include "sampler/control/control_peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t control_sockets_count(const struct control_sockets *sockets, const struct control_sockets_item *item)
{
	size_t count = 0;

	for (size_t i = 0; i < sockets->count; i++)
		count += sockets->items[i].owner == item->owner;
	return count;
}

/* For one more of that user. */
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

/* Known ones keep their number. */
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
