/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_pool.h"

#include "proto/region_pool.h"

#include "pprof/text/clock.h"
#include "sampler/linux/memory_file.h"

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
#include <unistd.h>

enum {
	/*
	 * If more programs than this start before we get a CPU, the later ones find no region; a pipe has 16
	 * slots if the user may not have more. But a spare costs a page, two descriptors and 8 us, and most
	 * sessions need only one. So there are few at first; their number doubles when programs start one
	 * after another, and as the session gets older; it becomes the maximum when one look finds that half
	 * of them are gone.
	 */
	STOCK_MAX = 256,
	STOCK_LEAST = 16,
	STOCK_CLAIMS = 8,             /* when one in so many spares was claimed, make more */
	STOCK_READY = 4,              /* the next ones to be claimed: prefaulted, 60 us each */
	STOCK_BATCH = 32,             /* regions made in one look */
	STOCK_AGE_NS = 100 * 1000000, /* age at which the stock grows; again at twice that age, and so on */
	STOCK_FILES = 16,             /* share of our descriptors: one spare for so many */
};

struct region_pool {
	struct region_options options;
	uint64_t cookie;
	uint32_t next_id;
	int memory_fd, ledger_fd;
	struct region_socket *socket; /* NULL: none */
	int socket_error;             /* why not */
	struct ledger *ledger;
	int read_fd, write_fd;
	char env[128];
	struct region *stock[STOCK_MAX]; /* in the order of their tickets */
	uint32_t count, room;
	uint32_t prefaulted; /* how many of the first ones are prefaulted */
	uint32_t wanted;     /* at most `room`; as many as the pipe has slots */
	uint32_t claims;     /* since `wanted` last grew */
	uint64_t grow_ns;    /* when it grows because of its age */
	uint64_t age_ns;
	uint64_t turned_away; /* spares that were claimed and could not be mapped here */
};

static int open_ledger(struct region_pool *pool)
{
	const struct ledger head = {.magic = LEDGER_MAGIC, .abi = REGION_ABI, .cookie = pool->cookie};

	pool->ledger_fd = memory_file_create("heaptap-ledger");
	if (pool->ledger_fd < 0)
		return pool->ledger_fd;
	if (ftruncate(pool->ledger_fd, REGION_PAGE_BYTES) != 0)
		return -errno;
	if (write(pool->ledger_fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
		return -EIO;
	if (fcntl(pool->ledger_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	void *page = mmap(NULL, REGION_PAGE_BYTES, PROT_READ, MAP_SHARED, pool->ledger_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	pool->ledger = page;
	return 0;
}

/* As others find it. */
static void name_descriptor(char *path, size_t path_bytes, int fd)
{
	snprintf(path, path_bytes, "/proc/%d/fd/%d", (int)getpid(), fd);
}

static int open_memory(struct region_pool *pool)
{
	struct region_pool_page page = {
	    .magic = REGION_POOL_MAGIC, .abi = REGION_ABI, .cookie = pool->cookie};

	name_descriptor(page.ledger_path, sizeof(page.ledger_path), pool->ledger_fd);
	name_descriptor(page.tickets_path, sizeof(page.tickets_path), pool->read_fd);
	pool->memory_fd = memory_file_create("heaptap-pool");
	if (pool->memory_fd < 0)
		return pool->memory_fd;
	if (write(pool->memory_fd, &page, sizeof(page)) != (ssize_t)sizeof(page))
		return -EIO;
	if (fcntl(pool->memory_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
	    0)
		return -errno;
	snprintf(pool->env, sizeof(pool->env), "/proc/%d/fd/%d:%016" PRIx64, (int)getpid(), pool->memory_fd,
	    pool->cookie);
	return 0;
}

/* For program runs that may not open what lies in our /proc/PID/fd (preload/region_socket.h). */
static void open_socket(struct region_pool *pool)
{
	char path[64];

	name_descriptor(path, sizeof(path), pool->memory_fd);
	pool->socket = region_socket_new(path, pool->cookie, &pool->socket_error);
}

/* Makes a spare region; those for the socket are mapped at once. */
static struct region *region_make(struct region_pool *pool, bool map, int *error)
{
	struct region *region = malloc(sizeof(*region));
	uint64_t random;

	*error = -ENOMEM;
	if (!region)
		return NULL;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = pool->cookie * (pool->next_id + 1);
	uint32_t id = pool->next_id++;
	int (*open_region)(struct region *, uint32_t, uint64_t, const struct region_options *) =
	    map ? region_open : region_open_spare;
	*error = open_region(
	    region, id, ((random & 0xffffffff00000000ull) | id << 16) & ~REGION_KEY_PLACE, &pool->options);
	if (!*error)
		return region;
	free(region);
	return NULL;
}

/* Hands a region to the next visitor that has the cookie, and returns it; NULL: none. */
static struct region *socket_next(struct region_pool *pool)
{
	int visitor, error;

	while (pool->socket && (visitor = region_socket_next(pool->socket)) >= 0) {
		struct region *region = region_make(pool, true, &error);

		if (region_socket_give(pool->socket, visitor, region))
			return region;
		if (region)
			region_close(region);
		free(region);
	}
	return NULL;
}

/* Adds one region and its ticket. -EAGAIN: the pipe is full. */
static int stock_one(struct region_pool *pool)
{
	int error;
	struct region *region = region_make(pool, false, &error);

	if (!region)
		return error;
	struct ticket ticket = {.cookie = pool->cookie};
	name_descriptor(ticket.region_path, sizeof(ticket.region_path), region->fd);
	name_descriptor(ticket.buffers_path, sizeof(ticket.buffers_path), region->buffers_fd);
	pool->stock[pool->count++] = region;
	if (write(pool->write_fd, &ticket, sizeof(ticket)) == (ssize_t)sizeof(ticket))
		return 0;
	error = -errno;
	pool->count--;
	region_close(region);
	free(region);
	return error;
}

/* The pipe grows with the stock, so that it is full when the stock is. The kernel limits the size of a user's
 * pipes. */
static void grow(struct region_pool *pool)
{
	pool->claims = 0;
	if (pool->wanted >= pool->room)
		return;
	if (fcntl(pool->write_fd, F_SETPIPE_SZ, (int)pool->wanted * 2 * REGION_PAGE_BYTES) < 0)
		pool->room = pool->wanted;
	else
		pool->wanted *= 2;
}

/* `left`: how many are unclaimed. */
static void restock(struct region_pool *pool, uint32_t left)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns >= pool->grow_ns) {
		pool->age_ns *= 2;
		pool->grow_ns = now_ns + pool->age_ns;
		grow(pool);
	}
	if (pool->claims >= pool->wanted / STOCK_CLAIMS)
		grow(pool);
	while (left < pool->count && left < pool->wanted / 2 && pool->wanted < pool->room)
		grow(pool);
	for (uint32_t n = 0; n < STOCK_BATCH && pool->count < pool->wanted && stock_one(pool) == 0; n++)
		;
	while (pool->prefaulted < pool->count && pool->prefaulted < STOCK_READY)
		region_prefault(pool->stock[pool->prefaulted++]);
}

static int open_pipe(struct region_pool *pool)
{
	struct rlimit files;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0)
		return -errno;
	pool->read_fd = fds[0];
	pool->write_fd = fds[1];
	pool->room = STOCK_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return -errno;
	while (pool->room > STOCK_LEAST && pool->room > files.rlim_cur / STOCK_FILES)
		pool->room /= 2;
	return 0;
}

struct region_pool *region_pool_new(const struct region_options *options)
{
	struct region_pool *pool = calloc(1, sizeof(*pool));
	int error;

	if (!pool)
		return NULL;
	pool->options = *options;
	pool->memory_fd = pool->ledger_fd = pool->read_fd = pool->write_fd = -1;
	if (getrandom(&pool->cookie, sizeof(pool->cookie), 0) != (ssize_t)sizeof(pool->cookie))
		goto fail;
	error = open_pipe(pool);
	if (!error)
		error = open_ledger(pool);
	if (!error)
		error = open_memory(pool);
	if (error) {
		errno = -error;
		goto fail;
	}
	pool->age_ns = STOCK_AGE_NS;
	pool->grow_ns = clock_now_ns() + pool->age_ns;
	pool->wanted = STOCK_LEAST;
	open_socket(pool);
	restock(pool, 0);
	if (pool->count > 0)
		return pool;
fail:
	error = errno;
	region_pool_free(pool);
	errno = error;
	return NULL;
}

void region_pool_free(struct region_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->count; i++) {
		region_close(pool->stock[i]);
		free(pool->stock[i]);
	}
	if (pool->ledger)
		munmap(pool->ledger, REGION_PAGE_BYTES);
	const int fds[] = {pool->memory_fd, pool->ledger_fd, pool->read_fd, pool->write_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	region_socket_free(pool->socket);
	free(pool);
}

const char *region_pool_env(const struct region_pool *pool)
{
	return pool->env;
}

int region_pool_fd(const struct region_pool *pool)
{
	return pool->write_fd;
}

int region_pool_socket_fd(const struct region_pool *pool, size_t i)
{
	return pool->socket ? region_socket_fd(pool->socket, i) : -1;
}

int region_pool_socket_error(const struct region_pool *pool)
{
	return pool->socket_error;
}

void region_pool_knock(struct region_pool *pool)
{
	if (pool->socket)
		region_socket_knock(pool->socket);
}

/* The spare that was claimed first; NULL: it cannot be mapped here, so its program run is not profiled. */
static struct region *take_claimed(struct region_pool *pool)
{
	struct region *region = pool->stock[0];

	memmove(&pool->stock[0], &pool->stock[1], --pool->count * sizeof(pool->stock[0]));
	pool->prefaulted -= pool->prefaulted > 0;
	pool->claims++;
	if (region_map(region) == 0)
		return region;
	pool->turned_away++;
	region_close(region);
	free(region);
	return NULL;
}

struct region *region_pool_next(struct region_pool *pool)
{
	for (;;) {
		int unread = 0;

		if (ioctl(pool->read_fd, FIONREAD, &unread) != 0)
			return NULL;
		uint32_t left = (uint32_t)((size_t)unread / sizeof(struct ticket));
		if (left >= pool->count) {
			restock(pool, left);
			return socket_next(pool);
		}
		struct region *region = take_claimed(pool);
		restock(pool, left);
		if (region)
			return region;
	}
}

struct region *region_pool_make(struct region_pool *pool)
{
	int error;
	struct region *region = region_make(pool, true, &error);

	if (region)
		region_prefault(region);
	errno = -error;
	return region;
}

uint64_t region_pool_unserved(const struct region_pool *pool)
{
	return atomic_load_explicit(&pool->ledger->unserved, memory_order_relaxed) + pool->turned_away +
	    region_socket_refused(pool->socket);
}

uint64_t region_pool_unmapped(const struct region_pool *pool)
{
	return pool->turned_away;
}

uint64_t region_pool_strangers(const struct region_pool *pool)
{
	return region_socket_strangers(pool->socket);
}

uint64_t region_pool_crowded_out(const struct region_pool *pool)
{
	return region_socket_crowded_out(pool->socket);
}

void region_pool_set_period(struct region_pool *pool, uint64_t period_bytes)
{
	pool->options.period_bytes = period_bytes;
	for (uint32_t i = 0; i < pool->count; i++)
		if (region_map(pool->stock[i]) == 0)
			region_set_period(region_header(pool->stock[i]), period_bytes);
}

void region_pool_set_mode(struct region_pool *pool, enum region_mode mode)
{
	pool->options.mode = mode;
	for (uint32_t i = 0; i < pool->count; i++)
		if (region_map(pool->stock[i]) == 0)
			atomic_store(&region_header(pool->stock[i])->mode, mode);
}
