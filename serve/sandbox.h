/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the web process may still do: read and write what it has open, accept connections, take memory. It can
 * open nothing, connect to nobody, start nothing, and signal nobody else. The kernel refuses whatever else a
 * faulty parser might be made to try.
 */
#ifndef SERVE_SANDBOX_H
#define SERVE_SANDBOX_H

#include <stddef.h>

/* Called before anything from the network is read. If we are root, becomes the user heaptap-serve, or nobody.
 * 0, or -errno with one line in error. */
int sandbox_drop_root(char *error, size_t error_bytes);

/* Filters the system calls of all threads, from now on. 0 or -errno. Does nothing if a sanitizer is
 * built in. */
int sandbox_enter(void);

#endif
