/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of control sockets: what a client may ask, and the answers. Pure: bytes in, structs out.
 *
 * The daemon has a control socket (control_socket.h), and each `heaptap record` has its own
 * (sampler/cmd/record/session_socket.c). Both speak this protocol: SOCK_SEQPACKET, a message a packet, text
 * without a final newline or NUL, one request for each connection:
 *
 *     -> "list"                        what is known of the daemon and its processes
 *     -> "snapshot TARGET"             a heap profile of each process of TARGET, as a file
 *     -> "profile TARGET"              the same as shared memory, without a file
 *     -> "cpu MILLISECONDS TARGET"     a profile of the CPU time from now on, for so long, as shared memory;
 *                                      to hang up cancels it
 *           TARGET   4711              one process; the sampler's own pid, or its front's, means all
 *                    all               all processes
 *                    service NAME      the processes of a service
 *                    session 4711      the processes of the session that this process belongs to
 *
 *     <- "busy"                        too many other clients are waiting: try again later. Sent at once
 *     <- "unknown"                     there is no such process. Sent at once
 *     <- "unsampled"                   the process is profiled, but has taken no sample yet. Sent at once
 *     <- "unsupported"                 this server cannot do that, or is of another version. Sent at once
 *     <- "off"                         the daemon is switched off. Sent at once
 *     <- "asked 2"                     so many answers will follow. Sent at once
 *     <- "list BYTES" + descriptor     a sealed memfd of that size with the text of control_list.h
 *     <- "written 4711 /path"          for each process, when its file is complete
 *     <- "profile 4711 BYTES" + descriptor   when its profile is complete: a sealed memfd, pprof in gzip
 *     <- "gone 4711"                   the process has ended before there was a profile of it
 *     <- "failed 4711 No space left on device"
 *        end of file                   no more answers; if it comes first, the request was invalid
 *
 * A descriptor comes with SCM_RIGHTS. Its seals (SEAL, SHRINK, GROW, WRITE) make it safe to read.
 */
#ifndef SAMPLER_CORE_CONTROL_REQUEST_H
#define SAMPLER_CORE_CONTROL_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_SERVICE_BYTES = 128 + 1,
	CONTROL_CPU_MS_MAX = 600000,
	CONTROL_REQUEST_BYTES = 192, /* the longest, and a NUL */
	CONTROL_ANSWER_BYTES = 4352, /* likewise: a path is at most 4096 bytes */
};

#define CONTROL_PROFILE_BYTES_MAX (UINT64_C(256) << 20)
#define CONTROL_LIST_BYTES_MAX    (UINT64_C(32) << 20)

enum control_verb {
	CONTROL_LIST,
	CONTROL_SNAPSHOT,
	CONTROL_PROFILE,
	CONTROL_CPU,
};

enum control_target {
	CONTROL_PID,
	CONTROL_ALL,
	CONTROL_SERVICE,
	CONTROL_SESSION,
};

struct control_request {
	enum control_verb verb;
	enum control_target target;
	uint32_t duration_ms;                /* CONTROL_CPU: 1 to CONTROL_CPU_MS_MAX */
	pid_t pid;                           /* CONTROL_PID, CONTROL_SESSION */
	char service[CONTROL_SERVICE_BYTES]; /* CONTROL_SERVICE: not empty, no control characters */
};

/* Writes the request as text. Returns its length without the NUL, or -EINVAL if the request is invalid. */
int control_request_format(const struct control_request *request, char text[CONTROL_REQUEST_BYTES]);

/* Parses a request. 0 or -EINVAL. */
int control_request_parse(struct control_request *request, const void *bytes, size_t length);

enum control_answer_kind {
	CONTROL_BUSY,
	CONTROL_UNKNOWN,
	CONTROL_UNSAMPLED,
	CONTROL_UNSUPPORTED,
	CONTROL_OFF,
	CONTROL_ASKED,
	CONTROL_LISTED,
	CONTROL_WRITTEN,
	CONTROL_PROFILED,
	CONTROL_GONE,
	CONTROL_FAILED,
};

struct control_answer {
	enum control_answer_kind kind;
	uint32_t count;                  /* CONTROL_ASKED: at least 1 */
	pid_t pid;                       /* CONTROL_WRITTEN, CONTROL_PROFILED, CONTROL_GONE, CONTROL_FAILED */
	uint64_t bytes;                  /* CONTROL_LISTED, CONTROL_PROFILED: the size of the sealed memory */
	char text[CONTROL_ANSWER_BYTES]; /* CONTROL_WRITTEN: path, not empty; CONTROL_FAILED: why. Hostile */
};

/* Writes the answer as text; answer->text is cut to fit. Returns the length without the NUL. */
int control_answer_format(const struct control_answer *answer, char text[CONTROL_ANSWER_BYTES]);

/* Parses an answer. 0 or -EPROTO. */
int control_answer_parse(struct control_answer *answer, const void *bytes, size_t length);

#endif
