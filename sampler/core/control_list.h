/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a control socket: the sampler itself, and each process that it knows. For `heaptap status`,
 * doctor, serve and push.
 *
 * The list is text. It consists of records, and a record of strings that end with NUL; an empty string ends
 * the record. The first string is the kind of the record, the others are KEY=VALUE. Times are ns since 1970.
 * Keys of lists are "lost.CAUSE" and "label.KEY". Readers pass over records and keys that they do not know,
 * so a newer sampler may write more.
 *
 *     "process\0" "pid=4711\0" "service=redis\0" "samples=1204\0" "lost.full_ring=3\0" "label.host=a\0" "\0"
 *
 * Pure. control_server.c makes sealed memory of the text.
 */
#ifndef SAMPLER_CORE_CONTROL_LIST_H
#define SAMPLER_CORE_CONTROL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_PROCESSES_MAX = 1 << 18,
	CONTROL_LOSSES_MAX = 64, /* causes of one process; more are neither written nor read */
	CONTROL_LABELS_MAX = 64,
};

/* A writer may leave texts NULL: then the key is not written. A reader gets "" instead of NULL. Texts that
 * were read are valid UTF-8, and contain nothing that is unsafe on a terminal. */

struct control_daemon {
	pid_t pid;
	int64_t since_unix_ns; /* its start */
	uint64_t cpu_ns;       /* with its children */
	uint64_t rss_bytes;
	uint64_t disk_bytes;         /* of the store */
	uint64_t disk_budget_bytes;  /* 0: none */
	const char *version;         /* "0.1.0" */
	const char *store;           /* the folder of its profiles, of a session too */
	uint64_t store_depth;        /* the profiles are so many folders below it */
	int64_t store_since_unix_ns; /* older files there are not its own; 0: all files are its own */
	const char *config;          /* the file that is in force; "" or NULL: the defaults are */
	const char *off;             /* why nothing is sampled at all; "" or NULL: sampling is on */
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
	/* Of the rise; NaN and 0 if there is none. */
	double bytes, bytes_error;
	int64_t since_unix_ns, until_unix_ns;
	double bytes_per_hour, bytes_per_hour_error; /* if the rise goes on; else NaN */
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
	const char *name;         /* tells it apart from other processes of its program; "": comm does */
	const char *container_id; /* none: "" or NULL */
	int64_t since_unix_ns;    /* profiled since; if it is not profiled, known since */
	int64_t start_unix_ns;    /* as its profiles have it (ORIGIN_IDENTITY_FORMAT); 0: not known */
	int64_t next_unix_ns;     /* when its next periodic snapshot is due; 0: not known, or never */
	bool profiled;
	const char *reason; /* why it is not profiled, one line; "" or NULL if it is */

	/* Estimates of what is in use, with the standard error of the bytes; NaN: not known. */
	double inuse_bytes, inuse_bytes_error, inuse_objects;
	double alloc_bytes; /* allocated since it is profiled; NaN: not known */
	struct control_growth growth;
	uint64_t rss_bytes;
	uint64_t samples;
	const char *backend; /* "uprobe", "breakpoint", "copy"; none: "" or NULL */
	struct control_loss *losses;
	size_t loss_count;
	struct control_label *labels;
	size_t label_count;
};

/* An executable that is not profiled until a user says otherwise, such as by the crash-loop guard. */
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
	int error; /* -ENOMEM; -E2BIG: the records of no process take more than CONTROL_LIST_BYTES_MAX */
	uint64_t left_out; /* processes for which there was no room */
};

void control_list_write_daemon(struct control_list_writer *writer, const struct control_daemon *daemon);
/* Writes the whole row, or nothing if there is no room; then it counts the row in left_out. Some room is
 * kept for the other records. */
void control_list_write_process(struct control_list_writer *writer, const struct control_process *process);
void control_list_write_denied(struct control_list_writer *writer, const struct control_denied *denied);

/* Writes one line that a user should know: "/etc/heaptap/heaptap.conf:7: ...: the old one is in force" */
void control_list_write_note(struct control_list_writer *writer, const char *note);
void control_list_writer_fini(struct control_list_writer *writer);

/* ---- reading */

struct control_list {
	struct control_daemon daemon; /* all zero if the list has no record of the sampler */
	struct control_process *processes;
	size_t process_count, process_capacity;
	struct control_denied *denied;
	size_t denied_count, denied_capacity;
	const char **notes;
	size_t note_count, note_capacity;
	char *text; /* all strings are in here */
	/* Of all processes, one after the other. */
	struct control_loss *losses;
	struct control_label *labels;
	size_t loss_count, label_count;
};

/* Parses a copy of the bytes. 0, -EPROTO, -E2BIG or -ENOMEM. On 0 the caller must call
 * control_list_fini(). */
int control_list_parse(struct control_list *list, const void *bytes, size_t length);
void control_list_fini(struct control_list *list);

/* ---- reading the records of processes alone, for a program that hands a list on: of a process only its
 * bytes and its pid, of the sampler only where its profiles are */

/* What is left of the text. */
struct control_rows {
	const char *at, *end;
};

struct control_row {
	const char *text;
	size_t bytes; /* with the empty string that ends it */
	pid_t pid;    /* 0: the record has no pid, or several */
};

/* Where a sampler says that its profiles are: see struct control_daemon. */
struct control_store {
	const char *path; /* points into the text; "": there are none */
	unsigned int depth;
	int64_t since_unix_ns;
};

/* Reads the sampler's record, which is the first one. */
struct control_store control_rows_store(const struct control_rows *rows);

/* Reads the next record of a process. Returns 1, or 0 at the end. A record that is cut off does not count. */
int control_rows_next(struct control_rows *rows, struct control_row *row);

#endif
