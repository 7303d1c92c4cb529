/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target: one process while it executes one program, and what heap and events both need to know: its
 * identity, its address space, its stacks, its end. struct process and struct event_process (books/) begin
 * with a target.
 */
#ifndef SAMPLER_INTAKE_TARGET_H
#define SAMPLER_INTAKE_TARGET_H

#include "pprof/text/throttle.h"
#include "proto/region.h"
#include "sampler/linux/jit_files.h"
#include "sampler/linux/process_name.h"
#include "sampler/linux/threads.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TARGET_NAME_BYTES = 256, TARGET_TITLE_BYTES = 64, TARGET_UNPROFILED_BYTES = 384 };

enum target_end {
	TARGET_ALIVE,
	TARGET_EXITED,   /* status known: exit code or signal */
	TARGET_GONE,     /* ended, status unknown */
	TARGET_UNSEEN,   /* ended, status unknown, before we had a pidfd of the process */
	TARGET_EXEC,     /* executes another program now */
	TARGET_DETACHED, /* runs on, and is not sampled any more */
};

/*
 * What a process had mapped when a stack was copied, where no records of the kernel tell. The process may
 * have called dlclose since, and another file may be at the address now.
 *
 * A time is the process' own count of its calls of dlclose (proto/loader_log.h). Maps that were read while
 * the count did not change are the maps of that count. For any other time two things are known: the code
 * that is never unmapped, and the libraries that the process has noted. If two libraries may have been in
 * one place at that time, neither is believed.
 */

/* The process' count and notes, in shared memory: hostile. */
struct target_past_source {
	const struct region_place *place; /* NULL: it does not count */
	const struct region_header *header;
	const struct loader_log *log;
	uint64_t log_until; /* up to this count the notes, an ancestor's, are good */
};

struct target_past {
	struct target_past_source source;
	uint64_t read_at;  /* when the target's maps were read, or TARGET_PAST_UNKNOWN */
	uint64_t readings; /* of the target's maps */
	/* the maps of another time; NULL if there are none yet */
	struct maps *maps;
	uint64_t at, of_reading;
	bool whole; /* the process has noted all libraries of that time */
};

#define TARGET_PAST_UNKNOWN UINT64_MAX

/* target.c and walk.c: when the maps were read, and when they may be read again */
struct target_reading {
	uint64_t read_ns;       /* when they were last read, or looked at */
	uint64_t look_ns;       /* wait before the next look whether they have changed */
	uint64_t retry_ns;      /* wait before they are read again for a stack in no map */
	struct throttle work;   /* CPU time of readings, in nanoseconds */
	struct throttle prompt; /* extra readings */
};

/* target.c: names and unwind rows of code made at run time */
struct target_generated {
	struct perf_map_file perf_map;
	struct jitdump_file jitdump; /* has lines too */
	struct jit_rows *rows;       /* a reference; NULL: none */
	uint64_t rows_read_ns;       /* when; 0: never */
	uint64_t rows_retry_ns;      /* wait before they are read again for a stack without rows */
	uint64_t noted_ns;           /* when a stack led through such code; 0: never */
};

struct snapshot_series;
struct target_plan;

struct target {
	pid_t pid;     /* 0: unknown */
	int pidfd;     /* -1: none */
	bool readable; /* /proc/PID is this process': its pid was checked */
	bool command;  /* the process that the user launched, or attached to */

	/* target_close() */
	bool closed; /* has ended, or executes another program: its books do not change any more */
	enum target_end end;
	int status; /* wait status, TARGET_EXITED */

	/* "executed PROG, which is not profiled: REASON", where PROG does not load the library; else empty */
	char unprofiled[TARGET_UNPROFILED_BYTES];
	/* The name that the user knows: redis-server, though the file is redis-check-rdb. */
	char title[TARGET_TITLE_BYTES];
	/* The title with what distinguishes the process from others of its program, for tables
	 * (process_name.h); "" if the title does. Valid UTF-8. */
	char full_name[PROCESS_NAME_BYTES];
	char name[TARGET_NAME_BYTES]; /* path of the executable, as far as it is known */
	/* Absolute path by which the program was executed, if the path leads to the same file; else empty. */
	char called[TARGET_NAME_BYTES];

	uint64_t start_ns;
	uint64_t sampled_ns;    /* since when the process is sampled: its start, or later if it ran before */
	uint64_t code_address;  /* mapped while it executes the program that we know; 0: unknown */
	size_t maps_room_bytes; /* for the maps, when they are read; 0: no bound */
	struct maps *maps;      /* owned, as the stacks are */
	struct stacks *stacks;
	struct threads *threads; /* owned; NULL: names are not needed */
	struct target_reading reading;
	struct target_past past; /* what was mapped earlier */
	struct target_generated generated;

	const struct target_plan *plan; /* target_plan.h; NULL: none; the run's */
	struct snapshot_series *series; /* the scheduler's; NULL until it makes one */
};

/* Makes a target without maps. False if memory is short; call target_fini() in any case. */
bool target_init(struct target *target, pid_t pid, uint64_t start_ns);
void target_fini(struct target *target);

/* The target's books are closed. Asks the kernel for the status of a process that is TARGET_GONE. */
void target_close(struct target *target, enum target_end end, int status);

/* Writes the kernel's path of the executable, " (deleted)" included, into `path`. False if it is unknown. */
bool target_read_executable(const struct target *target, char path[TARGET_NAME_BYTES]);

/* Sets the title to the last part of a path. */
void target_set_title(struct target *target, const char *path);

/* Reads the full name of a live process, which may change it at any time. Give it to
 * target_set_full_name() once it is known that the process has executed no other program meanwhile. False
 * if the process has ended. */
bool target_read_full_name(const struct target *target, char name[PROCESS_NAME_BYTES]);
void target_set_full_name(struct target *target, const char name[PROCESS_NAME_BYTES]);

/* The user of the process, for log_line_of(). In a session all processes are the session's user's. */
uid_t target_user(const struct target *target);

/* The account of the process, as a number that cannot be foreseen; 0 if the plan names no account. */
uint64_t target_account(const struct target *target);

/* The account of a process without a plan: its user, as a number that no named account has. 0 if the user is
 * unknown (-1), because the process was reaped before the look. */
uint64_t target_account_of_user(uid_t user);

/* Reads the maps of a live process again if the last reading is `every_ns` old or more. True if they were
 * read. They stay unchanged if the process has just ended or executes another program. */
bool target_read_maps(struct target *target, uint64_t now_ns, uint64_t every_ns);

/* Takes over maps that were read at that time; 0: never. They may be the target's own already. */
void target_take_maps(struct target *target, struct maps *maps, uint64_t read_ns);

/* May the program make us read its maps now? It may have thousands of mappings: all readings together get a
 * twentieth of a processor, and 100 ms in advance. */
bool target_maps_allowed(struct target *target, uint64_t now_ns);

/* For a process without records of its mappings: looks now and then whether they have changed, and reads
 * them again if so. */
void target_look_at_maps(struct target *target, uint64_t now_ns);

/* How often the process has unmapped libraries (proto/loader_log.h); 0 if it does not count. */
uint64_t target_unmaps(const struct target *target);

/* The maps were read; `before` is the count at the beginning of the reading. */
void target_note_reading(struct target *target, uint64_t before);

/* The maps of that time (struct target_past), or the present ones if they are of that time. Valid until
 * the next call or reading. NULL if memory is short. */
struct maps *target_maps_at(struct target *target, uint64_t unmaps);

/* Notes where the names of code made at run time are, while the process lives. The process may change its
 * user, its root and the file, so this is repeated when a stack leads through such code, once a second. */
void target_note_perf_map(struct target *target);
void target_met_generated_code(struct target *target, uint64_t now_ns);

/* Reads new unwind rows from the jit-PID.dump of the process: once a second, or sooner if they are WANTED,
 * with waits that grow where reading does not help. Returns whether there are new rows. */
bool target_read_jit_rows(struct target *target, bool wanted, uint64_t now_ns);

/* Whether the process has ended, by its pidfd, or by its pid if no descriptor was left for a pidfd. */
bool target_has_ended(const struct target *target);

/* A thread of the process was sampled: keeps its name, if names are needed. told: see threads_see(). */
void target_see_thread(struct target *target, uint32_t tid, bool told);

/* Callbacks about targets, for the scheduler of their snapshots. */
struct target_listener {
	void (*watched)(void *context, struct target *target); /* it has something to write */
	/* The target's books are closed. Called once; leads to the owner's release, now or later. */
	void (*closed)(void *context, struct target *target);
	void *context;
};

#endif
