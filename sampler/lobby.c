/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/lobby.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	STOCK = 16, /* a pipe has 16 slots by default; a burst of more execs within a few ms finds the lobby empty */
};

struct lobby_state {
	struct region_options options;
	uint64_t cookie;
	uint32_t next_id;
	int memory_fd;
	int read_fd, write_fd;
	char env[128];
	struct region *stock[STOCK]; /* in the order of their tickets */
	uint32_t count;
};

static int open_memory(struct lobby_state *lobby)
{
	struct lobby page = {.magic = LOBBY_MAGIC, .abi = REGION_ABI, .cookie = lobby->cookie};
	snprintf(page.tickets_path, sizeof(page.tickets_path), "/proc/%d/fd/%d", (int)getpid(), lobby->read_fd);
	lobby->memory_fd = memfd_create("heaptap-lobby", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (lobby->memory_fd < 0)
		return -errno;
	if (write(lobby->memory_fd, &page, sizeof(page)) != (ssize_t)sizeof(page))
		return -EIO;
	if (fcntl(lobby->memory_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	snprintf(lobby->env, sizeof(lobby->env), "/proc/%d/fd/%d:%016" PRIx64, (int)getpid(), lobby->memory_fd,
	    lobby->cookie);
	return 0;
}

/* One more region and its ticket. -EAGAIN: the pipe is full. */
static int stock_one(struct lobby_state *lobby)
{
	struct region *region = malloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = lobby->cookie * (lobby->next_id + 1);
	uint32_t id = lobby->next_id++;
	int error = region_open(region, id, (random & 0xffffffff00000000ull) | (uint64_t)(id & 0xffff) << 16,
	    &lobby->options);
	if (error) {
		free(region);
		return error;
	}
	struct ticket ticket = {.cookie = lobby->cookie};
	snprintf(ticket.region_path, sizeof(ticket.region_path), "/proc/%d/fd/%d", (int)getpid(), region->fd);
	lobby->stock[lobby->count++] = region;
	if (write(lobby->write_fd, &ticket, sizeof(ticket)) == (ssize_t)sizeof(ticket))
		return 0;
	error = -errno;
	lobby->count--;
	region_close(region);
	free(region);
	return error;
}

static void restock(struct lobby_state *lobby)
{
	while (lobby->count < STOCK && stock_one(lobby) == 0)
		;
}

struct lobby_state *lobby_new(const struct region_options *options)
{
	struct lobby_state *lobby = calloc(1, sizeof(*lobby));
	int pipe_fds[2], error;
	if (!lobby)
		return NULL;
	lobby->options = *options;
	lobby->memory_fd = lobby->read_fd = lobby->write_fd = -1;
	if (getrandom(&lobby->cookie, sizeof(lobby->cookie), 0) != (ssize_t)sizeof(lobby->cookie) ||
	    pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0)
		goto fail;
	lobby->read_fd = pipe_fds[0];
	lobby->write_fd = pipe_fds[1];
	error = open_memory(lobby);
	if (error) {
		errno = -error;
		goto fail;
	}
	restock(lobby);
	if (lobby->count > 0)
		return lobby;
fail:
	error = errno;
	lobby_free(lobby);
	errno = error;
	return NULL;
}

void lobby_free(struct lobby_state *lobby)
{
	if (!lobby)
		return;
	for (uint32_t i = 0; i < lobby->count; i++) {
		region_close(lobby->stock[i]);
		free(lobby->stock[i]);
	}
	const int fds[] = {lobby->memory_fd, lobby->read_fd, lobby->write_fd};
	for (size_t i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(lobby);
}

const char *lobby_env(const struct lobby_state *lobby)
{
	return lobby->env;
}

int lobby_fd(const struct lobby_state *lobby)
{
	return lobby->write_fd;
}

struct region *lobby_next(struct lobby_state *lobby)
{
	int unread = 0;
	if (ioctl(lobby->read_fd, FIONREAD, &unread) != 0)
		return NULL;
	if ((size_t)unread / sizeof(struct ticket) >= lobby->count) {
		restock(lobby);
		return NULL;
	}
	struct region *region = lobby->stock[0];
	memmove(&lobby->stock[0], &lobby->stock[1], --lobby->count * sizeof(lobby->stock[0]));
	restock(lobby);
	return region;
}

void lobby_set_period(struct lobby_state *lobby, uint64_t period_bytes)
{
	lobby->options.period_bytes = period_bytes;
	for (uint32_t i = 0; i < lobby->count; i++)
		atomic_store(&region_header(lobby->stock[i])->period_bytes, period_bytes);
}

void lobby_set_mode(struct lobby_state *lobby, enum region_mode mode)
{
	lobby->options.mode = mode;
	for (uint32_t i = 0; i < lobby->count; i++)
		atomic_store(&region_header(lobby->stock[i])->mode, mode);
}
