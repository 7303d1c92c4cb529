/* SPDX-License-Identifier: Apache-2.0 */
/* build: -D_GNU_SOURCE */
/*
 * A process that pretends to be a sampler: trust_lend FD COOKIE KIND [POOL_PATH]
 *
 * Has a pool's page as descriptor FD and says so by the file `lends`. When the file `end` is there it writes
 * to `lent` what has come of it: `nothing`, `taken` (its region was), or `secret` (that of trust_secret.h is
 * in its region). All files are in the working folder.
 *
 *   region    all as a sampler makes it, but of this user
 *   offsets   the region's header has an offset out of bounds
 *   unsealed  nothing is sealed; the region is truncated when it is taken
 *   borrowed  all is root's: the page is written into a region that root's sampler has given us (POOL_PATH
 *             says by which socket), the tickets are in the named pipe `tickets`, and the region is another
 *             one of that sampler
 *   copied    the page is the file `page`, which root has copied from `written`; the rest as borrowed
 *   place     FD only says where the file `place` is, and opens nothing
 */
#include "proto/region.h"
#include "proto/region_layout.h"
#include "proto/region_pool.h"
#include "tests/targets/trust_secret.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static void give_up(const char *what)
{
	perror(what);
	exit(3);
}

static void path_of(char *path, size_t bytes, int fd)
{
	snprintf(path, bytes, "/proc/%d/fd/%d", (int)getpid(), fd);
}

static int memory(const char *name)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? (give_up("memfd"), -1) : fd;
}

static void seal(int fd, int seals)
{
	if (fcntl(fd, F_ADD_SEALS, seals) != 0)
		give_up("seals");
}

/* A region as the sampler makes it. */
static void write_header(int fd, int buffers_fd, uint64_t modules)
{
	struct region_header header = {.magic = REGION_MAGIC,
	    .abi = REGION_ABI,
	    .segments = 4,
	    .start_segments = 4,
	    .large_buffers = 8,
	    .clock_id = 1};

	region_lay_out(&header.offsets, header.segments, header.large_buffers);
	if (ftruncate(fd, (off_t)header.offsets.end) != 0 ||
	    ftruncate(buffers_fd, (off_t)region_buffers_bytes(&header.offsets)) != 0)
		give_up("size");
	header.offsets.modules = modules ? modules : header.offsets.modules;
	if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		give_up("header");
}

/* A region of root's session, by its socket, as for an image of another user. */
static int ask(const char *pool_path, uint64_t cookie, int *buffers_fd)
{
	struct sockaddr_un address;
	const socklen_t bytes = region_socket_address(pool_path, cookie, &address);
	const int to = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char byte;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec data = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fds[2] = {-1, -1};

	if (connect(to, (struct sockaddr *)&address, bytes) != 0 ||
	    send(to, &cookie, sizeof(cookie), MSG_NOSIGNAL) != sizeof(cookie) || recvmsg(to, &message, 0) < 1)
		give_up("socket");
	memcpy(fds, CMSG_DATA(&control.header), sizeof(fds));
	close(to);
	*buffers_fd = fds[1];
	return fds[0];
}

static bool is_taken(const struct region_header *header)
{
	return atomic_load(&header->state) != REGION_SPARE;
}

static bool has_secret(int buffers_fd)
{
	static const char secret[] = TRUST_SECRET_BEGIN TRUST_SECRET_END;
	struct stat status;

	if (fstat(buffers_fd, &status) != 0)
		give_up("buffers");
	const size_t bytes = (size_t)status.st_size;
	void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, buffers_fd, 0);
	if (at == MAP_FAILED)
		give_up("buffers");
	const bool found = memmem(at, bytes, secret, sizeof(secret) - 1) != NULL;
	munmap(at, bytes);
	return found;
}

static void tell(const char *file, const char *word)
{
	FILE *to = fopen(file, "w");

	if (!to || fputs(word, to) < 0 || fclose(to) != 0)
		give_up(file);
}

static void await_end(void)
{
	while (access("end", F_OK) != 0)
		usleep(5000);
}

int main(int argc, char *argv[])
{
	if (argc < 4)
		return 2;
	const int place = atoi(argv[1]);
	const uint64_t cookie = strtoull(argv[2], NULL, 16);
	const char *kind = argv[3];
	const bool roots = strcmp(kind, "borrowed") == 0 || strcmp(kind, "copied") == 0,
	           unsealed = strcmp(kind, "unsealed") == 0;
	if (strcmp(kind, "place") == 0) {
		const int fd = open("place", O_PATH);

		if (fd < 0 || dup2(fd, place) != place)
			give_up("place");
		tell("lends", "");
		await_end();
		return 0;
	}
	int tickets[2] = {-1, -1}, buffers = roots ? -1 : memory("heaptap-buffers"),
	    region = roots ? ask(argv[4], cookie, &buffers) : memory("heaptap");
	if (!roots)
		write_header(region, buffers, strcmp(kind, "offsets") == 0 ? UINT64_C(1) << 62 : 0);
	if (!roots && !unsealed)
		seal(region, F_SEAL_SHRINK | F_SEAL_GROW), seal(buffers, F_SEAL_SHRINK | F_SEAL_GROW);
	if (roots ? (tickets[0] = tickets[1] = open("tickets", O_RDWR)) < 0 : pipe2(tickets, O_DIRECT) != 0)
		give_up("tickets");

	struct ticket ticket = {.cookie = cookie};
	struct region_pool_page page = {.magic = REGION_POOL_MAGIC, .abi = REGION_ABI, .cookie = cookie};
	path_of(ticket.region_path, sizeof(ticket.region_path), region);
	path_of(ticket.buffers_path, sizeof(ticket.buffers_path), buffers);
	path_of(page.tickets_path, sizeof(page.tickets_path), tickets[0]);
	path_of(page.ledger_path, sizeof(page.ledger_path), region);
	if (write(tickets[1], &ticket, sizeof(ticket)) != sizeof(ticket))
		give_up("ticket");

	int pool;
	if (strcmp(kind, "copied") == 0) {
		FILE *file = fopen("written", "w");

		if (!file || fwrite(&page, sizeof(page), 1, file) != 1 || fclose(file) != 0)
			give_up("written");
		while (access("page", F_OK) != 0)
			usleep(5000);
		pool = open("page", O_RDONLY);
	} else if (roots) {
		int other;

		pool = ask(argv[4], cookie, &other);
		if (pwrite(pool, &page, sizeof(page), 0) != sizeof(page))
			give_up("page");
		seal(pool, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	} else {
		pool = memory("heaptap-pool");
		if (write(pool, &page, sizeof(page)) != sizeof(page))
			give_up("page");
		if (!unsealed)
			seal(pool, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	}
	if (pool < 0 || dup2(pool, place) != place)
		give_up("pool");

	struct stat status;
	if (fstat(region, &status) != 0)
		give_up("region");
	struct region_header *header =
	    mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
	if (header == MAP_FAILED)
		give_up("mmap");
	atomic_store(&header->mode, REGION_MODE_COPY);
	atomic_store(&header->period_bytes, 1);
	tell("lends", "");
	while (access("end", F_OK) != 0) {
		if (unsealed && is_taken(header)) {
			tell("lent", "taken");
			return ftruncate(region, 0) != 0;
		}
		usleep(unsealed ? 50 : 5000);
	}
	tell("lent",
	    strcmp(kind, "offsets") != 0 && has_secret(buffers) ? "secret"
	        : is_taken(header)                              ? "taken"
	                                                        : "nothing");
	return 0;
}
