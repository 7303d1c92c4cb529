/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap's configuration file: how it is read, its section `[daemon]`, and the usual places of the file and
 * of the store. Each program reads its own sections.
 */
#ifndef PPROF_STORE_CONFIG_FILE_H
#define PPROF_STORE_CONFIG_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/text/ini_text.h"

enum { CONFIG_FILE_BYTES_MAX = 1 << 20 };

/* ini_text_parse() of a file. 0, or -errno with one line in `error`: "FILE:LINE: what is wrong", or why the
 * file cannot be read. */
int config_file_read(const struct ini_text_reader *reader, const char *path, char *error, size_t error_bytes);

/* ---- the section `[daemon]`. The daemon, heaptap-serve (listen, token-file) and heaptap-push (store) read
 * it. */

#define DAEMON_SECTION_KEYS "store, disk, days, free, cpu, memory, listen, token-file"

#define DAEMON_SECTION_FILE_ROOT  "/etc/heaptap/heaptap.conf"
#define DAEMON_SECTION_STATE_ROOT "/var/lib/heaptap"
#define DAEMON_SECTION_STORE_NAME "store" /* in the state's folder */

enum { DAEMON_SECTION_PATH_BYTES = 4096, DAEMON_SECTION_LISTEN_MOST = 8 };

struct daemon_section {
	char *store;           /* an absolute path; NULL: the usual one, daemon_section_store() */
	uint64_t disk_bytes;   /* budget of the store, 1 MiB at least */
	uint32_t days;         /* 1..3650 */
	uint32_t free_percent; /* of the file system that stays free, 0..99 */
	uint32_t cpu_percent;  /* of one CPU, 1..100 */
	uint64_t memory_bytes; /* of the daemon, 16 MiB at least */
	char *
	    listen[DAEMON_SECTION_LISTEN_MOST]; /* "127.0.0.1:7337", "[::1]:7337", "/run/heaptap/http.sock" */
	size_t listen_count;
	char *token_file; /* an absolute path, or NULL */
};

/* Sets the defaults: 1G, 7 days, 10%, 5%, 256M. */
void daemon_section_init(struct daemon_section *section);
void daemon_section_fini(struct daemon_section *section);

/* Takes one KEY = VALUE. 0, or -EINVAL or -ENOMEM with `error`: what is wrong, and what is allowed. */
int daemon_section_set(
    struct daemon_section *section, const char *name, const char *value, char error[INI_TEXT_ERROR_BYTES]);

/* For the running user. Root: /etc/heaptap/heaptap.conf, /var/lib/heaptap/store; else
 * $XDG_CONFIG_HOME/heaptap/heaptap.conf and $XDG_STATE_HOME/heaptap/store, with ~/.config and ~/.local/state
 * in place of variables that are not set. 0, or -ENOENT (no home), -ENAMETOOLONG. */
int daemon_section_file(char path[DAEMON_SECTION_PATH_BYTES]);
int daemon_section_store(char path[DAEMON_SECTION_PATH_BYTES]);

/* ---- where stores may be, for commands that read them: as a configuration file says, else at the usual
 * place */

enum { CONFIG_FILE_STORES = 2 };

/* Finds the paths of two stores: the store of the user's own daemon, then the store of the machine's daemon.
 * A path that both have comes once. A store need not exist. If `given` (--store) is not NULL, it is the only
 * path. A configuration file that cannot be read counts as no file. Returns the number of paths. */
size_t config_file_stores(const char *given, char paths[CONFIG_FILE_STORES][DAEMON_SECTION_PATH_BYTES]);

#endif
