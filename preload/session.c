/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/session.h"

#include "preload/arguments.h"
#include "preload/memory.h"
#include "preload/overcommit.h"
#include "preload/owned_file.h"
#include "preload/raw_file.h"
#include "preload/region_socket.h"
#include "proto/attach_request.h"
#include "proto/region_layout.h"
#include "proto/region_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

/*
 * `heaptap record` sets both variables. From a program that gains privileges when it starts the loader takes
 * LD_PRELOAD, but not ours. What that program executes may be root's: with /etc/ld.so.preload the library is
 * there too, and our variable is still that of whoever started the first program.
 */
static bool is_preloaded_by_environment(void)
{
	static const char name[] = "libheaptap.so";
	const size_t own = sizeof(name) - 1;
	const char *entry = find_env("LD_PRELOAD");

	while (entry && *entry) {
		const size_t length = strcspn(entry, " :");

		if (length >= own && memcmp(entry + length - own, name, own) == 0 &&
		    (length == own || entry[length - own - 1] == '/'))
			return true;
		entry += length + (entry[length] != '\0');
	}
	return false;
}

/* In another pid namespace, and after the sampler has ended, the path leads to a file of another process. Not
 * every file of root's or ours was written by its owner: it may be a copy of somebody's, or the region that
 * root's sampler has given to a program. But a file in memory that has this very size and is sealed holds
 * what its owner has put there. */
static bool read_pool_page(int folder, const char *path, uint64_t cookie, struct region_pool_page *pool)
{
	uint64_t bytes;
	int fd = owned_file_open(folder, path, S_IFREG, O_RDWR, OWNED_FILE_NO_OTHERS, &bytes);

	if (fd < 0)
		return false;
	const bool got = bytes == sizeof(*pool) && owned_file_is_sealed(fd) &&
	    raw_file_read_at(fd, pool, sizeof(*pool), 0) == (ssize_t)sizeof(*pool);
	raw_file_close(fd);
	return got && pool->magic == REGION_POOL_MAGIC && pool->abi == REGION_ABI && pool->cookie == cookie &&
	    memchr(pool->tickets_path, '\0', sizeof(pool->tickets_path)) &&
	    memchr(pool->ledger_path, '\0', sizeof(pool->ledger_path));
}

/* folder: of who has the pool's page, the sampler. */
static bool read_ticket(int folder, const struct region_pool_page *pool, struct ticket *ticket)
{
	uint64_t bytes;
	int fd = owned_file_open(folder, pool->tickets_path, S_IFIFO, O_RDONLY, OWNED_FILE_NO_OTHERS, &bytes);

	if (fd < 0)
		return false;
	ssize_t got = raw_file_read(fd, ticket, sizeof(*ticket));
	raw_file_close(fd);
	return got == (ssize_t)sizeof(*ticket) && ticket->cookie == pool->cookie &&
	    memchr(ticket->region_path, '\0', sizeof(ticket->region_path)) &&
	    memchr(ticket->buffers_path, '\0', sizeof(ticket->buffers_path));
}

/* There is no spare region: too many programs have started at once, or the sampler is stopped. The program
 * run must not wait, so it is not profiled, but it is counted. */
static void count_unserved(int folder, const struct region_pool_page *pool)
{
	struct ledger *ledger = NULL;
	uint64_t bytes;
	int fd = owned_file_open(folder, pool->ledger_path, S_IFREG, O_RDWR, OWNED_FILE_NO_OTHERS, &bytes);

	if (fd < 0)
		return;
	if (bytes == REGION_PAGE_BYTES)
		ledger = memory_map(REGION_PAGE_BYTES, MAP_SHARED, fd);
	raw_file_close(fd);
	if (!ledger)
		return;
	if (ledger->magic == LEDGER_MAGIC && ledger->abi == REGION_ABI && ledger->cookie == pool->cookie)
		atomic_fetch_add(&ledger->unserved, 1);
	memory_unmap(ledger, REGION_PAGE_BYTES);
}

void session_decline(struct region_header *header, enum region_declined reason)
{
	header->declined = reason;
	atomic_store_explicit(&header->state, REGION_DECLINED, memory_order_release);
}

bool session_within(const struct rlimit *limit, uint64_t bytes)
{
	return limit->rlim_cur == RLIM_INFINITY || bytes <= limit->rlim_cur / 4;
}

/* Of address space and of data, as they were read last; 0: never. */
static _Atomic rlim_t noted_space, noted_data;

void session_note_limit(int resource, const struct rlimit *limit)
{
	if (resource == RLIMIT_AS)
		atomic_store(&noted_space, limit->rlim_cur);
	else if (resource == RLIMIT_DATA)
		atomic_store(&noted_data, limit->rlim_cur);
}

/* The loader has just made the same system call. */
bool session_affordable(int resource, uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
		return false;
	session_note_limit(resource, &limit);
	return session_within(&limit, bytes);
}

void session_ask_limits(void)
{
	(void)session_affordable(RLIMIT_AS, 0);
	(void)session_affordable(RLIMIT_DATA, 0);
}

bool session_affordable_later(uint64_t bytes, uint64_t private_bytes)
{
	const struct rlimit space = {.rlim_cur = atomic_load(&noted_space)},
	                    data = {.rlim_cur = atomic_load(&noted_data)};

	return session_within(&space, bytes) && (!private_bytes || session_within(&data, private_bytes));
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

static const struct region_files none = {-1, -1};

static void close_files(const struct region_files *files)
{
	if (files->fd >= 0)
		raw_file_close(files->fd);
	if (files->buffers_fd >= 0)
		raw_file_close(files->buffers_fd);
}

/* Puts the buffers in their place in the mapping of the region's own file. */
static bool map_buffers(void *region, const struct region_offsets *offsets, int buffers_fd)
{
	unsigned char *place = (unsigned char *)region + offsets->buffers;

	return memory_replace(place, region_buffers_bytes(offsets), buffers_fd);
}

/* Maps a region whose header has been checked; closes the descriptors. */
static struct region_header *map_region(
    const struct region_files *files, const struct region_header *head, uint32_t pid)
{
	struct region_header *header = NULL;
	const uint64_t bytes = region_start_bytes(head);
	const bool strict = overcommit_is_strict(OVERCOMMIT_PATH);

	if (!strict && session_affordable(RLIMIT_AS, bytes))
		header = memory_map(bytes, MAP_SHARED, files->fd);
	if (header && !map_buffers(header, &head->offsets, files->buffers_fd)) {
		memory_unmap(header, bytes);
		header = NULL;
	}
	if (!header)
		decline(files->fd, pid, strict ? REGION_DECLINED_OVERCOMMIT : REGION_DECLINED_NO_MEMORY);
	close_files(files);
	return header;
}

/* Its size must not change while it is mapped. To ask is no system call of the loader's; under a filter the
 * region is its maker's word, as is all that is in it. */
static bool has_size_sealed(int fd, bool filtered)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW, seals = filtered ? size : fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & size) == size;
}

/* The sizes of both files. */
struct sizes {
	uint64_t bytes, buffers_bytes;
};

/* Of files of root's or ours: the descriptors if they are a region's, else they are closed. */
static struct region_files check_region(
    struct region_files files, const struct sizes *sizes, bool filtered, struct region_header *head)
{
	if (files.fd >= 0 && files.buffers_fd >= 0 &&
	    raw_file_read_at(files.fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head) &&
	    region_is_whole(head, sizes->bytes) &&
	    sizes->buffers_bytes == region_buffers_bytes(&head->offsets) &&
	    has_size_sealed(files.fd, filtered || head->filtered == 1) &&
	    has_size_sealed(files.buffers_fd, filtered || head->filtered == 1))
		return files;
	close_files(&files);
	return none;
}

/* Of files that came by a socket. */
static struct region_files check_received(
    struct region_files files, enum owned_file_others others, struct region_header *head)
{
	struct sizes sizes;

	if (files.fd >= 0 && owned_file_check(files.fd, others, &sizes.bytes) &&
	    owned_file_check(files.buffers_fd, others, &sizes.buffers_bytes))
		return check_region(files, &sizes, false, head);
	close_files(&files);
	return none;
}

/* folder: that of the process that has both open. */
static struct region_files open_files(int folder, const char *path, const char *buffers_path,
    enum owned_file_others others, struct sizes *sizes)
{
	return (struct region_files){
	    .fd = owned_file_open(folder, path, S_IFREG, O_RDWR, others, &sizes->bytes),
	    .buffers_fd =
	        owned_file_open(folder, buffers_path, S_IFREG, O_RDWR, others, &sizes->buffers_bytes),
	};
}

/*
 * The sampler is root, or our own user, and may have no number in our user namespace; but nobody who has a
 * number there can have made such a file. The path comes from the sampler, or is beside that of our own code,
 * which came the same way: whoever can exchange one can exchange the other.
 */
static struct region_files open_attached(const char *path, struct region_header *head)
{
	static const char beside[] = "/proc/0/fd/" ATTACH_BUFFERS_FD_NAME; /* in the same folder */
	struct sizes sizes = {0};
	const int folder = owned_file_folder(path);

	if (folder < 0)
		return check_received(region_socket_receive(path), OWNED_FILE_UNNUMBERED, head);
	const struct region_files files = open_files(folder, path, beside, OWNED_FILE_UNNUMBERED, &sizes);
	raw_file_close(folder);
	return check_region(files, &sizes, false, head);
}

struct region_header *session_region_at(const char *path, void *over, uint64_t over_bytes)
{
	struct region_header head;
	const struct region_files files = open_attached(path, &head);

	if (files.fd < 0)
		return NULL;
	if (!over || region_start_bytes(&head) != over_bytes || overcommit_is_strict(OVERCOMMIT_PATH))
		return map_region(&files, &head, 0);
	bool replaced = memory_replace(over, over_bytes, files.fd);
	if (replaced && !map_buffers(over, &head.offsets, files.buffers_fd)) {
		(void)memory_cover(over, over_bytes);
		replaced = false;
	}
	close_files(&files);
	return replaced ? over : NULL;
}

/* If a ticket is read but the region is not used, the sampler counts that: no program run becomes ready. */
static struct region_files open_by_ticket(
    int folder, const struct region_pool_page *pool, bool filtered, struct region_header *head)
{
	struct ticket ticket;
	struct sizes sizes = {0};

	if (!read_ticket(folder, pool, &ticket)) {
		count_unserved(folder, pool);
		return none;
	}
	const struct region_files files =
	    open_files(folder, ticket.region_path, ticket.buffers_path, OWNED_FILE_NO_OTHERS, &sizes);
	return check_region(files, &sizes, filtered, head);
}

/* By the socket if the program run may not open the descriptors of the sampler. Returns the region's
 * descriptors and its first bytes, or none. */
static struct region_files open_region(bool filtered, struct region_header *head, bool *found)
{
	char path[64];
	uint64_t cookie;
	struct region_pool_page pool;
	struct region_files files = none;
	const char *value = is_preloaded_by_environment() ? find_env(REGION_ENV) : NULL;

	*found = false;
	if (!value || !parse_env(value, path, sizeof(path), &cookie))
		return none;
	const int folder = owned_file_folder(path);
	if (folder >= 0) {
		*found = read_pool_page(folder, path, cookie, &pool);
		if (*found)
			files = open_by_ticket(folder, &pool, filtered, head);
		raw_file_close(folder);
	}
	return *found || filtered
	    ? files
	    : check_received(region_socket_ask(path, cookie), OWNED_FILE_NO_OTHERS, head);
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
	const struct region_files files = open_region(filtered, &head, found);

	return files.fd < 0 ? NULL : map_region(&files, &head, filtered ? 0 : (uint32_t)getpid());
}

void session_refuse(bool filtered, enum region_declined reason)
{
	struct region_header head;
	bool found;
	const struct region_files files = open_region(filtered, &head, &found);

	if (files.fd < 0)
		return;
	decline(files.fd, filtered ? 0 : (uint32_t)getpid(), reason);
	close_files(&files);
}
