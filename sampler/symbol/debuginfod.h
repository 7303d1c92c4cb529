/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from servers ($DEBUGINFOD_URLS), through libdebuginfod where it is installed.
 *
 * Meant for a short-lived process, the writer of one profile: the state belongs to the process. A server that
 * does not answer delays the process once, by some seconds, and not once for each file: after the first
 * failure other than "no such file", or when all downloads together have used up their time, no server is
 * asked again. The profile then has the names found on this machine, and the text of debuginfod_describe()
 * says so in it.
 */
#ifndef SAMPLER_SYMBOL_DEBUGINFOD_H
#define SAMPLER_SYMBOL_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* a download of less than 100 KiB in this time is given up; $DEBUGINFOD_TIMEOUT replaces it */
	DEBUGINFOD_SILENCE_SECONDS = 10,
	DEBUGINFOD_TOTAL_SECONDS = 60, /* for all files of the process; $DEBUGINFOD_MAXTIME replaces it */
};

/* Returns a descriptor of the debug file, which the caller must verify, or -errno. Libdebuginfod caches the
 * files that it fetches. */
int debuginfod_open(const uint8_t *build_id, size_t build_id_bytes);

/* Writes the result of all requests, as a comment for the profile. False if no file was asked for. */
bool debuginfod_describe(char *text, size_t text_bytes);

/* True if $DEBUGINFOD_URLS names a server. */
bool debuginfod_has_servers(void);

#endif
