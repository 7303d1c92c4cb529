/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program run that is started with the library gets its region: a pool of one session, whose pages
 * are not the region's own (proto/region.h).
 *
 * All integers are in native byte order.
 */
#ifndef PROTO_REGION_POOL_H
#define PROTO_REGION_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define REGION_POOL_MAGIC 0x7962626f6c706831ull
#define LEDGER_MAGIC      0x72656764656c6831ull

/* The environment variable with "<pool path>:<cookie, 16 hex digits>,<pid of COMMAND>", set by `heaptap
 * record`. The pid is that of the one process in which the library meets the snapshot signal, unless the
 * header says everywhere. */
#define REGION_ENV "HEAPTAP"

/* With any value but "" and "0" the library does nothing in this process. */
#define REGION_DISABLE_ENV "HEAPTAP_DISABLE"

/* Read-only page that proves the session; see REGION_ENV. */
struct region_pool_page {
	uint64_t magic;
	uint32_t abi;
	uint32_t reserved;
	uint64_t cookie;
	char tickets_path[64]; /* "/proc/<sampler>/fd/<n>": the pipe */
	char ledger_path[64];  /* likewise */
};

/* The one page of the session that any of its targets may write. */
struct ledger {
	uint64_t magic;
	uint32_t abi;
	uint32_t reserved;
	uint64_t cookie;
	_Atomic uint64_t unserved; /* runs that found no ticket; each run counts itself */
};

struct ticket {
	uint64_t cookie;
	/* "/proc/<sampler>/fd/<n>" each: of the region's file and of its buffers' file */
	char region_path[28], buffers_path[28];
};

/* Abstract name of the region socket (preload/region_socket.h): "heaptap", the pool's path, which names the
 * sampler, and 24 bits of the cookie, so that nobody can bind the name before the session begins. The other
 * 40 bits stay secret: any user can read the name. Returns the length of the address. */
static inline socklen_t region_socket_address(
    const char *pool_path, uint64_t cookie, struct sockaddr_un *address)
{
	static const char prefix[] = "heaptap", digits[] = "0123456789abcdef";
	size_t length = strnlen(pool_path, 64);
	char *to = address->sun_path + 1;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(to, prefix, sizeof(prefix) - 1);
	to += sizeof(prefix) - 1;
	memcpy(to, pool_path, length);
	to += length;
	*to++ = '-';
	for (int shift = 60; shift >= 40; shift -= 4)
		*to++ = digits[cookie >> shift & 0xf];
	return (socklen_t)(to - (char *)address);
}

/* The same socket as a file, "/tmp/.heaptap-proc-4711-fd-5-0123ab". An abstract name belongs to a network
 * namespace: a sandbox with a network namespace and a user namespace of its own has only this file to reach
 * the sampler. */
static inline socklen_t region_socket_file(
    const char *pool_path, uint64_t cookie, struct sockaddr_un *address)
{
	static const char folder[] = "/tmp/.";
	const size_t prefix = sizeof(folder) - 1;
	struct sockaddr_un name;
	const socklen_t bytes = region_socket_address(pool_path, cookie, &name);
	const size_t length = bytes - offsetof(struct sockaddr_un, sun_path) - 1;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, folder, prefix);
	for (size_t i = 0; i < length; i++)
		address->sun_path[prefix + i] =
		    (char)(name.sun_path[1 + i] == '/' ? '-' : name.sun_path[1 + i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + prefix + length + 1);
}

_Static_assert(sizeof(struct region_pool_page) == 152, "pool layout");
_Static_assert(sizeof(struct ledger) == 32, "ledger layout");
_Static_assert(sizeof(struct ticket) == 64, "a ticket is one read");

#endif
