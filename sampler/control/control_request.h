/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of control sockets: what a client may ask, and what it is answered. Pure: bytes in, structs
 * out.
 *
 * The daemon has one control socket (control_path.h), each `heaptap record` one of its own
 * (sampler/session/session_socket.h); both speak this. SOCK_SEQPACKET, one message a packet, of text without
 * a final newline or NUL; one request a connection:
 *
 *     -> "list"                        what is known of the daemon and its processes
 *     -> "snapshot TARGET"             a profile of each of these processes, as a file of its own
 *     -> "profile TARGET"              the same as shared memory, without a file
 *     -> "cpu MILLISECONDS TARGET"     likewise, of the time they spend on CPUs from now on for so long;
 *                                      to hang up cancels it
 *           TARGET   4711              one process
 *                    all               all there are
 *                    service NAME      all of a service
 *                    session 4711      all of the session that this process belongs to
 *
 *     <- "busy"                        too many others are waiting: try again later. Sent at once
 *     <- "unknown"                     there is no such process. Sent at once
 *     <- "unsupported"                 this server is of another version, or has no such thing. Sent at once
 *     <- "off"                         the daemon is switched off. Sent at once
 *     <- "asked 2"                     there are; how many answers will follow. Sent at once
 *     <- "list BYTES" + descriptor     a sealed memfd of that size with the text of control_list.h
 *     <- "written 4711 /path"          for each process, when its file is complete
 *     <- "profile 4711 BYTES" + descriptor   when its profile is complete: a sealed memfd, pprof in gzip
 *     <- "gone 4711"                   it has ended before there was one
 *     <- "failed 4711 No space left on device"
 *        end of file                   nothing else follows; as the first answer: that was no request
 *
 * A descriptor comes with SCM_RIGHTS. Its seals (SEAL, SHRINK, GROW, WRITE) make it safe to read.
 */
#ifndef SAMPLER_CONTROL_CONTROL_REQUEST_H
#define SAMPLER_CONTROL_CONTROL_REQUEST_H

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

/* Length of the text (without its NUL), or -EINVAL if it is no valid request. */
int control_request_format(const struct control_request *request, char text[CONTROL_REQUEST_BYTES]);

/* 0, or -EINVAL. */
int control_request_parse(struct control_request *request, const void *bytes, size_t length);

enum control_answer_kind {
	CONTROL_BUSY,
	CONTROL_UNKNOWN,
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
	uint32_t count; /* CONTROL_ASKED: at least 1 */
	pid_t pid;      /* CONTROL_WRITTEN, CONTROL_PROFILED, CONTROL_GONE, CONTROL_FAILED */
	uint64_t bytes; /* CONTROL_LISTED, CONTROL_PROFILED: size of what the descriptor holds */
	char text[CONTROL_ANSWER_BYTES]; /* CONTROL_WRITTEN: path, not empty; CONTROL_FAILED: why. Hostile */
};

/* Length of the text (without its NUL); what does not fit of `text` is cut off. */
int control_answer_format(const struct control_answer *answer, char text[CONTROL_ANSWER_BYTES]);

/* 0, or -EPROTO. */
int control_answer_parse(struct control_answer *answer, const void *bytes, size_t length);

#endif
