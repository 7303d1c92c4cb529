/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a session, through which `heaptap snapshot` and `heaptap serve` reach its sampler:
 * <folder>/<pid of the sampler>.sock, in the first folder of control_folder.h that is ours. The protocol is
 * that of sampler/control/control_request.h.
 *
 * The client must be the sampler's user or root, the server the folder's owner: both sides check SO_PEERCRED
 * for every connection.
 */
#ifndef SAMPLER_SESSION_CONTROL_H
#define SAMPLER_SESSION_CONTROL_H

#include "sampler/control/control_server.h"

#include <stddef.h>

struct control;

struct control *control_open(int epoll_fd, const struct control_handlers *handlers, int *error);
void control_close(struct control *control); /* removes the socket; NULL is fine */

/* NULL for NULL, which its functions take. */
struct control_server *control_server_of(struct control *control);

/* "<folder>/4711.WORD": a name in its folder for a file of the sampler's own. 0 or -ENAMETOOLONG. */
int control_file(const struct control *control, const char *word, char *path, size_t path_bytes);

#endif
