/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/lobby.h"

#include "sampler/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	VISITORS = 16, /* at the door who have not spoken yet */

	/*
	 * A burst of more execs than this, before we get a CPU, finds the lobby empty; a pipe has 16 slots if
	 * no more are to be had. But a spare costs a page, a descriptor and 5 us, and most sessions need one:
	 * so there are few at first, and twice as many when programs come one after another, or when the
	 * session has lasted so long that the price is nothing to it; all of them when half are gone at a
	 * look.
	 */
	STOCK_MAX = 256,
	STOCK_LEAST = 16,
	STOCK_CLAIMS = 8,             /* one in so many spares claimed: more programs will come */
	STOCK_READY = 4,              /* the next ones to be claimed: prefaulted, 60 us each */
	STOCK_BATCH = 32,             /* made in one look */
	STOCK_AGE_NS = 100 * 1000000, /* then they grow; after twice as long again, and so on */
	STOCK_FILES = 8,              /* one in so many of our descriptors */
};

struct lobby_state {
	struct region_options options;
	uint64_t cookie;
	uint32_t next_id;
	int memory_fd, ledger_fd, door_fd;
	struct ledger *ledger;
	int read_fd, write_fd;
	int visitors[VISITORS];
	uint32_t visitor_count;
	bool knocked; /* there may be somebody at the door */
	char env[128];
	struct region *stock[STOCK_MAX]; /* in the order of their tickets */
	uint32_t count, room;
	uint32_t prefaulted; /* of them, the first */
	uint32_t wanted;     /* at most `room`; as many as the pipe has slots */
	uint32_t claims;     /* since `wanted` last grew */
	uint64_t grow_ns;    /* when it grows of itself */
	uint64_t age_ns;
	uint64_t turned_away; /* at the door, with the right cookie */
};

static int open_ledger(struct lobby_state *lobby)
{
	const struct ledger head = {.magic = LEDGER_MAGIC, .abi = REGION_ABI, .cookie = lobby->cookie};
	lobby->ledger_fd = memfd_create("heaptap-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (lobby->ledger_fd < 0 || ftruncate(lobby->ledger_fd, REGION_PAGE_BYTES) != 0)
		return -errno;
	if (write(lobby->ledger_fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
		return -EIO;
	if (fcntl(lobby->ledger_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	void *page = mmap(NULL, REGION_PAGE_BYTES, PROT_READ, MAP_SHARED, lobby->ledger_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	lobby->ledger = page;
	return 0;
}

static int open_memory(struct lobby_state *lobby)
{
	struct lobby page = {.magic = LOBBY_MAGIC, .abi = REGION_ABI, .cookie = lobby->cookie};
	snprintf(
	    page.ledger_path, sizeof(page.ledger_path), "/proc/%d/fd/%d", (int)getpid(), lobby->ledger_fd);
	snprintf(
	    page.tickets_path, sizeof(page.tickets_path), "/proc/%d/fd/%d", (int)getpid(), lobby->read_fd);
	lobby->memory_fd = memfd_create("heaptap-lobby", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (lobby->memory_fd < 0)
		return -errno;
	if (write(lobby->memory_fd, &page, sizeof(page)) != (ssize_t)sizeof(page))
		return -EIO;
	if (fcntl(lobby->memory_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
	    0)
		return -errno;
	snprintf(lobby->env, sizeof(lobby->env), "/proc/%d/fd/%d:%016" PRIx64, (int)getpid(),
	    lobby->memory_fd, lobby->cookie);
	return 0;
}

/* Only a root sampler has targets of other users, and needs a door. */
static void open_door(struct lobby_state *lobby)
{
	struct sockaddr_un address;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), lobby->memory_fd);
	socklen_t bytes = region_door_address(path, &address);
	int fd = geteuid() == 0 ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, STOCK_MAX) == 0)
		lobby->door_fd = fd;
	else if (fd >= 0)
		close(fd);
}

/* Spare, but for the door's, which are mapped at once. */
static struct region *region_make(struct lobby_state *lobby, bool map, int *error)
{
	struct region *region = malloc(sizeof(*region));
	uint64_t random;
	*error = -ENOMEM;
	if (!region)
		return NULL;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = lobby->cookie * (lobby->next_id + 1);
	uint32_t id = lobby->next_id++;
	int (*open_region)(struct region *, uint32_t, uint64_t, const struct region_options *) =
	    map ? region_open : region_open_spare;
	*error = open_region(
	    region, id, (random & 0xffffffff00000000ull) | (uint64_t)(id & 0xffff) << 16, &lobby->options);
	if (!*error)
		return region;
	free(region);
	return NULL;
}

static bool hand_over(int visitor, int fd)
{
	char byte = 0;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {
	    .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec data = {&byte, 1};
	const struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(visitor, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* 1: shows the cookie, which only processes that inherited it can read; 0: has not spoken yet; -1: a
 * stranger. */
static int visitor_known(const struct lobby_state *lobby, int visitor)
{
	uint64_t cookie = 0;
	ssize_t got = recv(visitor, &cookie, sizeof(cookie), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got == (ssize_t)sizeof(cookie) && cookie == lobby->cookie ? 1 : -1;
}

static void show_out(struct lobby_state *lobby, uint32_t i)
{
	close(lobby->visitors[i]);
	memmove(&lobby->visitors[i], &lobby->visitors[i + 1], (--lobby->visitor_count - i) * sizeof(int));
}

/* Lets in who waits outside, as long as there is room. */
static void let_in(struct lobby_state *lobby)
{
	int visitor;
	while (lobby->knocked && lobby->visitor_count < VISITORS) {
		visitor = accept4(lobby->door_fd, NULL, NULL, SOCK_CLOEXEC);
		lobby->knocked = visitor >= 0;
		if (visitor >= 0)
			lobby->visitors[lobby->visitor_count++] = visitor;
	}
}

/* The region that the next visitor with the cookie was handed, or NULL. */
static struct region *door_next(struct lobby_state *lobby)
{
	struct region *given = NULL;
	let_in(lobby);
	for (uint32_t i = 0; i < lobby->visitor_count && !given;) {
		int visitor = lobby->visitors[i], error, known = visitor_known(lobby, visitor);
		if (known == 0) {
			i++;
			continue;
		}
		struct region *region = known > 0 ? region_make(lobby, true, &error) : NULL;
		if (region && hand_over(visitor, region->fd)) {
			given = region;
		} else if (region) { /* has waited long enough */
			region_close(region);
			free(region);
		}
		lobby->turned_away += known > 0 && !given;
		show_out(lobby, i);
	}
	if (lobby->visitor_count == VISITORS && !given)
		/* has stood there longest without a word, while others may wait outside */
		show_out(lobby, 0);
	return given;
}

/* One more region and its ticket. -EAGAIN: the pipe is full. */
static int stock_one(struct lobby_state *lobby)
{
	int error;
	struct region *region = region_make(lobby, false, &error);
	if (!region)
		return error;
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

/* The pipe grows with the stock, so that it is full when all are there. A user may have so much in pipes. */
static void grow(struct lobby_state *lobby)
{
	lobby->claims = 0;
	if (lobby->wanted >= lobby->room)
		return;
	if (fcntl(lobby->write_fd, F_SETPIPE_SZ, (int)lobby->wanted * 2 * REGION_PAGE_BYTES) < 0)
		lobby->room = lobby->wanted;
	else
		lobby->wanted *= 2;
}

/* `left`: how many nobody has claimed. */
static void restock(struct lobby_state *lobby, uint32_t left)
{
	uint64_t now_ns = process_now_ns();
	if (now_ns >= lobby->grow_ns) {
		lobby->age_ns *= 2;
		lobby->grow_ns = now_ns + lobby->age_ns;
		grow(lobby);
	}
	if (lobby->claims >= lobby->wanted / STOCK_CLAIMS)
		grow(lobby);
	while (left < lobby->count && left < lobby->wanted / 2 && lobby->wanted < lobby->room)
		grow(lobby);
	for (uint32_t n = 0; n < STOCK_BATCH && lobby->count < lobby->wanted && stock_one(lobby) == 0; n++)
		;
	while (lobby->prefaulted < lobby->count && lobby->prefaulted < STOCK_READY)
		region_prefault(lobby->stock[lobby->prefaulted++]);
}

static int open_pipe(struct lobby_state *lobby)
{
	struct rlimit files;
	int fds[2];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0)
		return -errno;
	lobby->read_fd = fds[0];
	lobby->write_fd = fds[1];
	lobby->room = STOCK_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return -errno;
	while (lobby->room > STOCK_LEAST && lobby->room > files.rlim_cur / STOCK_FILES)
		lobby->room /= 2;
	return 0;
}

struct lobby_state *lobby_new(const struct region_options *options)
{
	struct lobby_state *lobby = calloc(1, sizeof(*lobby));
	int error;
	if (!lobby)
		return NULL;
	lobby->options = *options;
	lobby->memory_fd = lobby->ledger_fd = lobby->door_fd = lobby->read_fd = lobby->write_fd = -1;
	if (getrandom(&lobby->cookie, sizeof(lobby->cookie), 0) != (ssize_t)sizeof(lobby->cookie))
		goto fail;
	error = open_pipe(lobby);
	if (!error)
		error = open_ledger(lobby);
	if (!error)
		error = open_memory(lobby);
	if (error) {
		errno = -error;
		goto fail;
	}
	lobby->age_ns = STOCK_AGE_NS;
	lobby->grow_ns = process_now_ns() + lobby->age_ns;
	lobby->wanted = STOCK_LEAST;
	open_door(lobby);
	restock(lobby, 0);
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
	if (lobby->ledger)
		munmap(lobby->ledger, REGION_PAGE_BYTES);
	const int fds[] = {
	    lobby->memory_fd, lobby->ledger_fd, lobby->door_fd, lobby->read_fd, lobby->write_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (uint32_t i = 0; i < lobby->visitor_count; i++)
		close(lobby->visitors[i]);
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

int lobby_door_fd(const struct lobby_state *lobby)
{
	return lobby->door_fd;
}

void lobby_knock(struct lobby_state *lobby)
{
	lobby->knocked = lobby->door_fd >= 0;
}

/* The spare that was claimed first; NULL: it cannot be mapped here, and is not seen. */
static struct region *take_claimed(struct lobby_state *lobby)
{
	struct region *region = lobby->stock[0];
	memmove(&lobby->stock[0], &lobby->stock[1], --lobby->count * sizeof(lobby->stock[0]));
	lobby->prefaulted -= lobby->prefaulted > 0;
	lobby->claims++;
	if (region_map(region) == 0)
		return region;
	lobby->turned_away++;
	region_close(region);
	free(region);
	return NULL;
}

struct region *lobby_next(struct lobby_state *lobby)
{
	for (;;) {
		int unread = 0;
		if (ioctl(lobby->read_fd, FIONREAD, &unread) != 0)
			return NULL;
		uint32_t left = (uint32_t)((size_t)unread / sizeof(struct ticket));
		if (left >= lobby->count) {
			restock(lobby, left);
			return door_next(lobby);
		}
		struct region *region = take_claimed(lobby);
		restock(lobby, left);
		if (region)
			return region;
	}
}

uint64_t lobby_unserved(const struct lobby_state *lobby)
{
	return atomic_load_explicit(&lobby->ledger->unserved, memory_order_relaxed) + lobby->turned_away;
}

void lobby_set_period(struct lobby_state *lobby, uint64_t period_bytes)
{
	lobby->options.period_bytes = period_bytes;
	for (uint32_t i = 0; i < lobby->count; i++)
		if (region_map(lobby->stock[i]) == 0)
			atomic_store(&region_header(lobby->stock[i])->period_bytes, period_bytes);
}

void lobby_set_mode(struct lobby_state *lobby, enum region_mode mode)
{
	lobby->options.mode = mode;
	for (uint32_t i = 0; i < lobby->count; i++)
		if (region_map(lobby->stock[i]) == 0)
			atomic_store(&region_header(lobby->stock[i])->mode, mode);
}
