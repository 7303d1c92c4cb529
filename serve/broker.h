/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the process that a user starts, with the user's rights. It opens control sockets and profile
 * files for the web process, and hands over descriptors without reading what they hold.
 */
#ifndef SERVE_BROKER_H
#define SERVE_BROKER_H

#include <stddef.h>
#include <stdint.h>

struct command_line;

/* Serves until the web process ends, or until a signal or the front's end stops us. Closes web_fd, our end of
 * the socket pair. SIGCHLD is blocked from then on. */
void broker_run(const struct command_line *line, int web_fd);

/*
 * ---- broker_message.c: what the web process and its broker say to each other
 *
 * They send structs in packets of a SOCK_SEQPACKET socket pair.
 *
 * The web process parses what browsers send, and may open nothing. The broker, which started it, opens files
 * and control sockets for it and hands over descriptors. The broker reads no byte that comes from a network
 * or a profile. Of a list it reads only where rows begin, which processes the rows are about, and in which
 * folder root's and our own samplers write.
 */
enum broker_verb {
	/* the lists of all control sockets: a reply each, with an error if it is late, and a last reply */
	BROKER_LIST,
	BROKER_PROFILE,  /* the heap of a process, now */
	BROKER_CPU,      /* where a process spends CPU time, for duration_ms */
	BROKER_SNAPSHOT, /* a snapshot as a file, written by the process' session or daemon */
	BROKER_CMDLINE,  /* the bytes of /proc/PID/cmdline, of a process in the last list of `server` */
	BROKER_SCAN,     /* the files that were given, and those of samplers: see file_list.h */
	BROKER_OPEN,     /* a descriptor of one of these files */
	BROKER_SPOOLS,   /* what `heaptap push` has sent and what waits, as text: see spool_files.h */
	BROKER_CANCEL,   /* of the question with this id: nobody waits any more */
};

struct broker_question {
	uint64_t id;     /* chosen by the web process; never 0 */
	uint64_t server; /* of a control socket, as in the reply to BROKER_LIST */
	uint64_t file;   /* BROKER_OPEN: see file_list.h */
	uint32_t duration_ms;
	uint32_t verb; /* enum broker_verb */
	int32_t pid;
	uint32_t zero;
};

enum { BROKER_TEXT_BYTES = 4352 };

/* A descriptor comes with it if there is something to read. */
struct broker_reply {
	uint64_t id;
	uint64_t server;
	uint64_t bytes;               /* what the descriptor holds */
	uint32_t user;                /* BROKER_LIST: the sampler's user */
	uint32_t foreign;             /* BROKER_LIST: the user may list only processes of his own */
	uint32_t left_out;            /* BROKER_LIST: rows left out: of other users' processes, or too many */
	int32_t error;                /* 0 or -errno */
	uint32_t last;                /* no reply to this question follows */
	char text[BROKER_TEXT_BYTES]; /* the error in words; BROKER_SNAPSHOT: the path */
};

/* Sends a struct, and a descriptor that stays the caller's (-1: none). 0 or -errno; -EAGAIN: no room. */
int broker_message_send(int fd, const void *message, size_t bytes, int passed_fd);

/* Does not wait. Returns 1; 0 if the other process has ended; -EAGAIN if nothing has come; -EPROTO if the
 * message has another size; or -errno. *passed_fd: the caller's; -1 if there is none. */
int broker_message_receive(int fd, void *message, size_t bytes, int *passed_fd);

#endif
