/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a control socket. A server may be another user's: whatever it says is checked, and
 * answers take bounded time and memory. Texts and profiles are still hostile: a profile is to be read as
 * any other file.
 *
 * With a loop of one's own: connect and send (they wait 3 s at most), wait for the descriptor to become
 * readable, receive with patience 0 until -EAGAIN. Without: control_client_list() and
 * control_client_each().
 */
#ifndef SAMPLER_CONTROL_CONTROL_CLIENT_H
#define SAMPLER_CONTROL_CONTROL_CLIENT_H

#include "sampler/control/control_list.h"
#include "sampler/control/control_request.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	CONTROL_CLIENT_ANSWER_MS = 3000, /* for the first answer */
	CONTROL_CLIENT_WRITE_MS = 60000, /* between others */
};

/*
 * Connects to the daemon: `socket` as given by --socket, NULL for the order of control_path.h. Returns a
 * descriptor, or -errno with one line in `reason`: -ENOENT, -ECONNREFUSED: no daemon runs; -EACCES: we may
 * not ask it; -EPERM: it is neither root's nor ours.
 */
int control_client_connect(const char *socket, char *reason, size_t reason_bytes);

/* 0 or -errno. Also 0 if the server has hung up: it has said why. */
int control_client_send(int fd, const struct control_request *request);

/*
 * Waits for the next answer for patience_ms at most (0: does not wait). Returns 1; 0 at the end of answers;
 * -EAGAIN with patience 0, -ETIMEDOUT, -EPROTO, or -errno. *profile_fd: the descriptor of CONTROL_LISTED
 * and CONTROL_PROFILED, sealed and of answer->bytes, owned by the caller; otherwise -1.
 */
int control_client_receive(int fd, int patience_ms, struct control_answer *answer, int *profile_fd);

/* Reads what such a descriptor holds, and closes it. On 0 the caller frees *bytes. 0, -EPROTO, -ENOMEM or
 * -errno. */
int control_client_read(int profile_fd, uint64_t length, void **bytes);

/* The list: connects, asks, reads. 0, or -errno with one line in `reason`. On 0 the caller must call
 * control_list_fini. */
int control_client_list(const char *socket, struct control_list *list, char *reason, size_t reason_bytes);

/*
 * Asks for snapshots or profiles and calls `visit` with each answer after CONTROL_ASKED. visit owns
 * profile_fd (-1 with a snapshot); if it returns something other than 0, no more are waited for. Returns 0
 * if all have come; -ENOENT: there is no such process; -EBUSY; -EOPNOTSUPP; -ECONNRESET: the server has
 * gone, *missing answers have not come; or -errno. All with one line in `reason`.
 */
int control_client_each(const char *socket, const struct control_request *request,
    int (*visit)(void *context, const struct control_answer *answer, int profile_fd), void *context,
    uint32_t *missing, char *reason, size_t reason_bytes);

#endif
