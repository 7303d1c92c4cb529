/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of libheaptap-attach.so that the processes of a session load: a file in memory, which nobody can
 * change any more. So all of them, whosever they are, may share it, and with it the uprobe. */
#ifndef SAMPLER_ATTACH_DELIVERY_H
#define SAMPLER_ATTACH_DELIVERY_H

#define DELIVERY_NAME "libheaptap-attach.so"

/* Reads the library at `path`. Returns a descriptor, which the caller closes; -ENOEXEC: it is of another
 * version; or -errno. */
int delivery_open(const char *path);

#endif
