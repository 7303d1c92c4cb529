/* SPDX-License-Identifier: Apache-2.0 */
/* A running session, for the files that begin one: with COMMAND (session.c), with processes that run
 * already (session_attach.c), or with a process whose sampler has died (session_adopt.c). */
#ifndef SAMPLER_CMD_RECORD_SESSION_STATE_H
#define SAMPLER_CMD_RECORD_SESSION_STATE_H

#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/record/attachments.h"
#include "sampler/cmd/record/end_summary.h"
#include "sampler/core/control_folder.h"
#include "sampler/core/core.h"
#include "sampler/write/event_source.h"
#include "sampler/write/sink.h"

struct session_socket {
	char folder[CONTROL_FOLDER_BYTES];
	int folder_fd; /* -1: no folder is open */
	char name[32]; /* of the socket in the folder; "" if it is not bound */
};

/*
 * --max-rss and --max-cpu: a session's limits on its own load. Once a second the sampler looks at its memory
 * and CPU time. Above a limit the sampling period doubles, which halves the number of samples. Weights stay
 * right, since every sample carries the period that it was drawn with. The period is never lowered again.
 */
struct session_limits {
	uint64_t rss_max_bytes;   /* 0: no limit */
	uint32_t cpu_max_percent; /* of one CPU; 0: no limit */
	uint64_t looked_ns, cpu_ns;
	uint64_t raised; /* times */
};

enum session_load {
	SESSION_LOAD_FINE,
	SESSION_LOAD_MEMORY, /* above the limit */
	SESSION_LOAD_CPU,
};

struct session {
	const struct options *options;
	struct core core;
	struct sink_files files;
	struct sink_announced announced; /* with --push */
	struct session_socket socket;
	int socket_error; /* why there is no socket, as -errno; 0: there is one */
	struct event_source event_source;
	int events_error; /* why no events are sampled, if some were requested */
	enum signals_role role;
	int front_fd;         /* to the front; -1: there is none, or it has ended */
	int command_fd;       /* COMMAND's pidfd, needed if the front has died; -1: none */
	bool summarized;      /* the user was told what COMMAND's end has left */
	bool done_sent;       /* the front was told that all is done, or cannot be told */
	bool stopping;        /* no more is sampled */
	uint64_t ended_ns;    /* when COMMAND's end was seen; 0: not yet */
	uint64_t progress_ns; /* time after COMMAND's end at which the progress is logged next */
	uint64_t alive_ns;    /* when the front was last told that the sampler works */
	struct end_summary summary;
	struct session_limits limits;
	uint32_t terminations;           /* SIGTERMs to a session with a front */
	uint64_t end_ns;                 /* when --duration is over; 0: it has not begun, or there is none */
	struct attachments *attachments; /* of running processes; NULL: none */
	bool attachments_stopped;
	int64_t since_unix_ns;
};

/* Nothing is open yet. front_fd: -1 if there is no front. */
void session_init(
    struct session *session, const struct options *options, enum signals_role role, int front_fd);

/* The session has no front and no COMMAND, but a running process (0: none). */
void session_without_command(struct session *session, pid_t pid);

/* The heap is captured too if core.has_heap is set, and was probed. Returns 0 or -errno; call session_close()
 * in both cases. */
int session_open(struct session *session);
void session_close(struct session *session);

/* Looks at the sampler's load if a second has passed since the last look. now_ns: monotonic. */
enum session_load session_look_at_load(struct session_limits *limits, uint64_t now_ns);

/* ---- session_socket.c */

/* Returns the listening descriptor, or -errno. */
int session_socket_open(struct session_socket *socket);

/* Removes the socket. Also without a session_socket_open(), if folder_fd is -1. */
void session_socket_close(struct session_socket *socket);

/* Writes the session's answer to "list" (sampler/core/control_list.h). */
void session_list_write(struct core *core, struct control_list_writer *writer);

#endif
