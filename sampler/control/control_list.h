/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a control socket says of its daemon and of each process: for `heaptap status`, doctor, serve and push.
 *
 * As text: records of strings, each with a final NUL; an empty one ends the record. The first says what it
 * is of, the others are KEY=VALUE, a time in ns since 1970. Keys of lists are "lost.CAUSE" and "label.KEY".
 * Readers pass over records and keys that they do not know, so a newer daemon may say more.
 *
 *     "process\0" "pid=4711\0" "service=redis\0" "samples=1204\0" "lost.full_ring=3\0" "label.host=a\0" "\0"
 *
 * Pure; sealed memory is made of it in control_server.c.
 */
#ifndef SAMPLER_CONTROL_CONTROL_LIST_H
#define SAMPLER_CONTROL_CONTROL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_PROCESSES_MAX = 1 << 18,
	CONTROL_LOSSES_MAX = 64, /* causes of one process; the rest is not written, and not read */
	CONTROL_LABELS_MAX = 64,
};

/* In all of these texts may be NULL in what is written: then the key is left out. What was read has ""
 * instead, is valid UTF-8 and contains nothing that is unsafe on a terminal. */

struct control_daemon {
	pid_t pid;
	int64_t since_unix_ns; /* its start */
	uint64_t cpu_ns;       /* its children's included */
	uint64_t rss_bytes;
	uint64_t disk_bytes;         /* of the store */
	uint64_t disk_budget_bytes;  /* 0: none */
	const char *version;         /* "0.1.0" */
	const char *store;           /* the folder of its profiles, of a session too */
	uint64_t store_depth;        /* so many folders below it they are */
	int64_t store_since_unix_ns; /* what is older there is none of its own; 0: all is */
	const char *config;          /* the file that is in force; "" or NULL: none, the defaults are */
	const char *off;             /* why nothing is sampled at all; "" or NULL: it is */
};

struct control_loss {
	const char *cause;
	uint64_t count; /* samples */
};

struct control_label {
	const char *key, *value;
};

/* Whether what is in use grows by more than chance (pprof/analysis/trend.h). */
struct control_growth {
	const char *kind; /* trend_kind_name(); "" or NULL: not known yet */
	/* of the rise; NaN and 0 where there is none */
	double bytes, bytes_error;
	int64_t since_unix_ns, until_unix_ns;
	double bytes_per_hour, bytes_per_hour_error; /* of one that goes on; else NaN */
};

#define CONTROL_GROWTH_NOT_KNOWN                                                                     \
	{                                                                                            \
		.bytes = NAN, .bytes_error = NAN, .bytes_per_hour = NAN, .bytes_per_hour_error = NAN \
	}

struct control_process {
	pid_t pid;
	const char *service; /* as the store names it */
	const char *exe;     /* path in the process' own root */
	const char *comm;
	const char *name;         /* which tells it apart from others of its program; "": comm does */
	const char *container_id; /* none: "" or NULL */
	int64_t since_unix_ns;    /* profiled since; of one that is not: since when that is known */
	int64_t start_unix_ns;    /* as its profiles have it (ORIGIN_IDENTITY_FORMAT); 0: not known */
	int64_t next_unix_ns;     /* when its next periodic snapshot is due; 0: not known, or never */
	bool profiled;
	const char *reason; /* why it is not profiled, one line; "" or NULL if it is */

	/* Estimates, NaN if not known: in use, the standard error of the bytes, objects. */
	double inuse_bytes, inuse_bytes_error, inuse_objects;
	double alloc_bytes; /* ever allocated, since it is profiled; NaN: not known */
	struct control_growth growth;
	uint64_t rss_bytes;
	uint64_t samples;
	const char *backend; /* "uprobe", "breakpoint", "copy"; none: "" or NULL */
	struct control_loss *losses;
	size_t loss_count;
	struct control_label *labels;
	size_t label_count;
};

/* What the crash-loop guard has denied, or anything else that is denied until a user says otherwise. */
struct control_denied {
	const char *exe, *library_build_id;
	int64_t since_unix_ns;
	const char *reason; /* "3 deaths by SIGSEGV within 30 s of the start of profiling, in 10 minutes" */
};

/* ---- writing */

/* Zeroed at first; fini frees it. */
struct control_list_writer {
	char *text;
	size_t bytes, capacity;
	int error;         /* -ENOMEM, or -E2BIG: what is not a process is above CONTROL_LIST_BYTES_MAX */
	uint64_t left_out; /* processes for which there was no room */
};

void control_list_write_daemon(struct control_list_writer *writer, const struct control_daemon *daemon);
/* Either the whole row or nothing, which is counted: some room is kept for all else. */
void control_list_write_process(struct control_list_writer *writer, const struct control_process *process);
void control_list_write_denied(struct control_list_writer *writer, const struct control_denied *denied);

/* Anything else that a user should know, one line: "/etc/heaptap/heaptap.conf:7: ...: the old one is in
 * force" */
void control_list_write_note(struct control_list_writer *writer, const char *note);
void control_list_writer_fini(struct control_list_writer *writer);

/* ---- reading */

struct control_list {
	struct control_daemon daemon; /* zeroed if the server has said nothing of itself */
	struct control_process *processes;
	size_t process_count, process_capacity;
	struct control_denied *denied;
	size_t denied_count, denied_capacity;
	const char **notes;
	size_t note_count, note_capacity;
	char *text; /* all strings are in here */
	/* those of all processes, one after the other */
	struct control_loss *losses;
	struct control_label *labels;
	size_t loss_count, label_count;
};

/* Takes a copy of the bytes. Returns 0, -EPROTO, -E2BIG or -ENOMEM. On 0 the caller must call fini. */
int control_list_parse(struct control_list *list, const void *bytes, size_t length);
void control_list_fini(struct control_list *list);

#endif
