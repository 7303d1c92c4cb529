/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/session.h"

#include "preload/arguments.h"
#include "preload/raw_file.h"
#include "preload/memory.h"
#include "preload/overcommit.h"
#include "preload/region_socket.h"
#include "proto/region_pool.h"
#include "proto/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Not getenv: programs define their own (bash does). */
static const char *find_env(const char *name)
{
	size_t length = strlen(name);
	for (char **entry = arguments_environment(); entry && *entry; entry++)
		if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
			return *entry + length + 1;
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<path>:<16 hex digits>", and what follows a comma is not for here */
static bool parse_env(const char *value, char *path, size_t path_bytes, uint64_t *cookie)
{
	const char *colon = strrchr(value, ':');
	if (!colon || (size_t)(colon - value) >= path_bytes || strcspn(colon + 1, ",") != 16)
		return false;
	memcpy(path, value, (size_t)(colon - value));
	path[colon - value] = '\0';
	*cookie = 0;
	for (const char *c = colon + 1; *c && *c != ','; c++) {
		if (hex_digit(*c) < 0)
			return false;
		*cookie = *cookie << 4 | (uint64_t)hex_digit(*c);
	}
	return true;
}

/* Opens a file of the session and reads its first bytes. In another pid namespace the path may lead to a file
 * of another process: pread removes nothing from a pipe or socket, and the caller checks the bytes before
 * anything is mapped. No fstat: its symbol version is newer than the oldest glibc we load under. */
static int open_checked(const char *path, int flags, void *head, size_t bytes)
{
	int fd = raw_file_open(path, flags | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (raw_file_read_at(fd, head, bytes, 0) == (ssize_t)bytes)
		return fd;
	raw_file_close(fd);
	return -1;
}

static bool read_pool_page(const char *path, uint64_t cookie, struct region_pool_page *pool)
{
	int fd = open_checked(path, O_RDONLY, pool, sizeof(*pool));
	if (fd < 0)
		return false;
	raw_file_close(fd);
	return pool->magic == REGION_POOL_MAGIC && pool->abi == REGION_ABI && pool->cookie == cookie &&
	    memchr(pool->tickets_path, '\0', sizeof(pool->tickets_path)) &&
	    memchr(pool->ledger_path, '\0', sizeof(pool->ledger_path));
}

static bool read_ticket(const char *path, uint64_t cookie, struct ticket *ticket)
{
	int fd = raw_file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	ssize_t got = raw_file_read(fd, ticket, sizeof(*ticket));
	raw_file_close(fd);
	return got == (ssize_t)sizeof(*ticket) && ticket->cookie == cookie &&
	    memchr(ticket->region_path, '\0', sizeof(ticket->region_path));
}

/* There is no spare region: too many programs have started at once, or the sampler is stopped. The image must
 * not wait, so it is not profiled, but it is counted. */
static void count_unserved(const struct region_pool_page *pool)
{
	struct ledger head;
	int fd = open_checked(pool->ledger_path, O_RDWR, &head, sizeof(head));
	if (fd < 0)
		return;
	struct ledger *ledger = NULL;
	if (head.magic == LEDGER_MAGIC && head.abi == REGION_ABI && head.cookie == pool->cookie)
		ledger = memory_map(REGION_PAGE_BYTES, MAP_SHARED, fd);
	raw_file_close(fd);
	if (!ledger)
		return;
	atomic_fetch_add(&ledger->unserved, 1);
	memory_unmap(ledger, REGION_PAGE_BYTES);
}

void session_decline(struct region_header *header, enum region_declined reason)
{
	header->declined = reason;
	atomic_store_explicit(&header->state, REGION_DECLINED, memory_order_release);
}

static bool header_good(const struct region_header *header)
{
	const struct region_offsets *offsets = &header->offsets;
	uint64_t slots_bytes = (uint64_t)header->segments * REGION_SEGMENT_SLOTS * sizeof(struct region_slot);
	return header->magic == REGION_MAGIC && header->abi == REGION_ABI &&
	    offsets->end > REGION_PAGE_BYTES && offsets->places >= REGION_PAGE_BYTES &&
	    header->segments <= REGION_SEGMENTS && offsets->slots + slots_bytes <= offsets->kept &&
	    offsets->kept + slots_bytes <= offsets->addresses &&
	    offsets->addresses + slots_bytes / sizeof(struct region_slot) * sizeof(uint64_t) <=
	    offsets->end &&
	    offsets->command_line + REGION_COMMAND_LINE_BYTES <= offsets->end &&
	    offsets->walk % REGION_PAGE_BYTES == 0 && offsets->walk < offsets->end &&
	    sizeof(struct walk_area) <= offsets->end - offsets->walk;
}

bool session_within(const struct rlimit *limit, uint64_t bytes)
{
	return limit->rlim_cur == RLIM_INFINITY || bytes <= limit->rlim_cur / 4;
}

/* The loader has just made the same system call. */
bool session_affordable(int resource, uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(resource, &limit) == 0 && session_within(&limit, bytes);
}

/* Tells the sampler why the region is not used. Maps only its first page: there may be no room for more. */
static void decline(int fd, uint32_t pid, enum region_declined reason)
{
	struct region_header *header = memory_map(REGION_PAGE_BYTES, MAP_SHARED, fd);
	if (!header)
		return;
	header->pid = pid;
	session_decline(header, reason);
	memory_unmap(header, REGION_PAGE_BYTES);
}

/* Maps a region whose header has been read; closes the descriptor. */
static struct region_header *map_region(int fd, const struct region_header *head, uint32_t pid)
{
	struct region_header *header = NULL;
	uint64_t bytes = head->offsets.end;
	char last;
	if (header_good(head) && raw_file_read_at(fd, &last, 1, bytes - 1) == 1) {
		const bool strict = overcommit_is_strict(OVERCOMMIT_PATH);
		if (!strict && session_affordable(RLIMIT_AS, bytes))
			header = memory_map(bytes, MAP_SHARED, fd);
		if (!header)
			decline(fd, pid, strict ? REGION_DECLINED_OVERCOMMIT : REGION_DECLINED_NO_MEMORY);
	}
	raw_file_close(fd);
	return header;
}

/* A file that came by a socket must not be able to shrink while it is mapped. */
static int check_received(int fd, struct region_header *head)
{
	if (fd < 0)
		return -1;
	if (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK &&
	    raw_file_read_at(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head))
		return fd;
	raw_file_close(fd);
	return -1;
}

struct region_header *session_region_at(const char *path, void *over, uint64_t over_bytes)
{
	struct region_header head;
	int fd = open_checked(path, O_RDWR, &head, sizeof(head));
	if (fd < 0)
		fd = check_received(region_socket_receive(path), &head);
	if (fd < 0)
		return NULL;
	if (!over || head.offsets.end != over_bytes || !header_good(&head) ||
	    overcommit_is_strict(OVERCOMMIT_PATH))
		return map_region(fd, &head, 0);
	bool replaced = memory_replace(over, over_bytes, fd);
	raw_file_close(fd);
	return replaced ? over : NULL;
}

/* If a ticket is read but the region is not used, the sampler counts that: no image becomes ready. */
static int open_by_ticket(const struct region_pool_page *pool, struct region_header *head)
{
	struct ticket ticket;
	if (read_ticket(pool->tickets_path, pool->cookie, &ticket))
		return open_checked(ticket.region_path, O_RDWR, head, sizeof(*head));
	count_unserved(pool);
	return -1;
}

/* By the socket if the image may not open the descriptors of the sampler. Returns the region's descriptor and
 * the first bytes, or -1. */
static int open_region(bool filtered, struct region_header *head, bool *found)
{
	char path[64];
	uint64_t cookie;
	struct region_pool_page pool;
	const char *value = find_env(REGION_ENV);
	*found = false;
	if (!value || !parse_env(value, path, sizeof(path), &cookie))
		return -1;
	*found = read_pool_page(path, cookie, &pool);
	if (*found)
		return open_by_ticket(&pool, head);
	return filtered ? -1 : check_received(region_socket_ask(path, cookie), head);
}

bool session_is_command(uint32_t pid)
{
	const char *value = find_env(REGION_ENV);
	const char *colon = value ? strrchr(value, ':') : NULL, *comma = colon ? strchr(colon, ',') : NULL;
	uint64_t number = 0;
	for (const char *c = comma ? comma + 1 : ""; *c >= '0' && *c <= '9' && number <= UINT32_MAX; c++)
		number = 10 * number + (uint64_t)(*c - '0');
	return number != 0 && number == pid;
}

bool session_forbidden(void)
{
	const char *value = getauxval(AT_SECURE) ? "1" : find_env(REGION_DISABLE_ENV);
	return value && value[0] && strcmp(value, "0") != 0;
}

struct region_header *session_region(bool filtered, bool *found)
{
	struct region_header head;
	const int fd = open_region(filtered, &head, found);
	return fd < 0 ? NULL : map_region(fd, &head, filtered ? 0 : (uint32_t)getpid());
}

void session_refuse(bool filtered, enum region_declined reason)
{
	struct region_header head;
	bool found;
	const int fd = open_region(filtered, &head, &found);
	if (fd < 0)
		return;
	if (header_good(&head))
		decline(fd, filtered ? 0 : (uint32_t)getpid(), reason);
	raw_file_close(fd);
}
