/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the web process and its broker say to each other, over a socket pair of SOCK_SEQPACKET, a struct a
 * packet. The web process parses what browsers send, and may open nothing; the broker, which started it,
 * opens files and control sockets for it and hands over descriptors. It reads no byte that comes from a
 * network or a profile, and of a list nothing but where rows begin, which processes they are about, and in
 * which folder root's and our own samplers write.
 */
#ifndef SERVE_BROKER_MESSAGE_H
#define SERVE_BROKER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum broker_verb {
	/* every control socket's list: a reply each, an error if it is late, and a last one without */
	BROKER_LIST,
	BROKER_PROFILE,  /* the heap of a process, now */
	BROKER_CPU,      /* where it spends CPU time, for duration_ms */
	BROKER_SNAPSHOT, /* a snapshot as a file, by its own session or daemon */
	BROKER_CMDLINE,  /* the bytes of /proc/PID/cmdline, of a process in the last list of `server` */
	BROKER_SCAN,   /* the files that were given, and of the samplers of the last lists: see file_list.h */
	BROKER_OPEN,   /* one of them */
	BROKER_SPOOLS, /* what heaptap push has sent, and what waits: text, see spool_list.h */
	BROKER_CANCEL, /* of an earlier request: nobody waits any more */
};

struct broker_request {
	uint64_t id;     /* the web process' number for it, never 0 */
	uint64_t server; /* of a control socket, as in the reply to BROKER_LIST */
	uint64_t file;   /* BROKER_OPEN: see file_list.h */
	uint32_t duration_ms;
	uint32_t verb; /* enum broker_verb */
	int32_t pid;
	uint32_t zero;
};

enum { BROKER_TEXT_BYTES = 4352 };

/* With a descriptor where there is something to read. */
struct broker_reply {
	uint64_t id;
	uint64_t server;
	uint64_t bytes;               /* what the descriptor holds */
	uint32_t user;                /* BROKER_LIST: who speaks */
	uint32_t foreign;             /* and may of his own processes alone */
	uint32_t left_out;            /* BROKER_LIST: rows of other processes, or too many */
	int32_t error;                /* 0 or -errno */
	uint32_t last;                /* no reply to this request follows */
	char text[BROKER_TEXT_BYTES]; /* why there is an error; BROKER_SNAPSHOT: the path */
};

/* Sends a struct with a descriptor, which stays the caller's; -1: none. 0 or -errno; -EAGAIN: no room. */
int broker_message_send(int fd, const void *message, size_t bytes, int passed_fd);

/* Does not wait. 1; 0 at the other's end; -EAGAIN; -EPROTO: not of that size; or -errno. *passed_fd: the
 * caller's, -1: none. */
int broker_message_receive(int fd, void *message, size_t bytes, int *passed_fd);

#endif
