/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the attach library (libheaptap-attach.so) learns of its region. A process that has no library yet opens
 * it as a descriptor of the holder, /proc/PID/fd/4, or as a file in a folder that is made for that: the
 * library finds that name in the loader's list, and its region beside it: the two files of the region are
 * /proc/PID/fd/5 and /proc/PID/fd/6, or come from a socket in the folder. To a process that has the library
 * the sampler writes this into the library's data.
 */
#ifndef PROTO_ATTACH_REQUEST_H
#define PROTO_ATTACH_REQUEST_H

#include <stdint.h>

#define ATTACH_REQUEST_MAGIC   0x5145524854544148ull
#define ATTACH_REQUEST_SYMBOL  "heaptap_attach_request"
#define ATTACH_SYMBOL          "heaptap_attach" /* void (void): attach as the request says */
#define DETACH_SYMBOL          "heaptap_detach" /* void (void): the reverse */
#define ATTACH_LIBRARY_FD_NAME "4"
#define ATTACH_REGION_FD_NAME  "5"
#define ATTACH_BUFFERS_FD_NAME "6"
#define ATTACH_LIBRARY_FILE    "libheaptap-attach.so"
#define ATTACH_REGION_FILE     "region"
enum { ATTACH_LIBRARY_FD = 4, ATTACH_REGION_FD = 5, ATTACH_BUFFERS_FD = 6 };
struct attach_request {
	uint64_t magic;
	uint32_t abi;         /* REGION_ABI; 0: another copy of the library is in use */
	uint32_t attachments; /* successful ones so far; counted by the library */
	/* in the target's view; empty: nothing is asked for */
	char region_path[112];
};

_Static_assert(sizeof(struct attach_request) == 128, "request layout");

#endif
