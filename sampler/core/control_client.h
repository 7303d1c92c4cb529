/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a control socket. The server may be another user's: so each answer is checked, and
 * takes bounded time and memory. Texts and profiles stay hostile: read a profile as any other file.
 *
 * A caller with a loop of its own connects and sends (each waits 3 s at most), waits until the descriptor is
 * readable, and receives with patience 0 until -EAGAIN. Other callers use control_client_list() and
 * control_client_each().
 */
#ifndef SAMPLER_CORE_CONTROL_CLIENT_H
#define SAMPLER_CORE_CONTROL_CLIENT_H

#include "sampler/core/control_list.h"
#include "sampler/core/control_request.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	CONTROL_CLIENT_ANSWER_MS = 3000, /* for the first answer */
	CONTROL_CLIENT_WRITE_MS = 60000, /* between others */
};

/*
 * Connects to the daemon. socket: as given by --socket, or NULL for the order of control_socket.h. Returns a
 * descriptor, or -errno with one line in `reason`. -ENOENT, -ECONNREFUSED: no daemon runs; -EACCES: we may
 * not ask it; -EPERM: it runs neither as root nor as our user.
 */
int control_client_connect(const char *socket, char *reason, size_t reason_bytes);

/* Sends the request. 0 or -errno. Also 0 if the server has hung up: its answer says why. */
int control_client_send(int fd, const struct control_request *request);

/*
 * Waits for the next answer for patience_ms at most; 0: does not wait. Returns 1; 0 at the end of the
 * answers; -EAGAIN with patience 0, -ETIMEDOUT, -EPROTO, or -errno. *profile_fd: for CONTROL_LISTED and
 * CONTROL_PROFILED a sealed descriptor of answer->bytes bytes, owned by the caller; else -1.
 */
int control_client_receive(int fd, int patience_ms, struct control_answer *answer, int *profile_fd);

/* Reads the bytes of such a descriptor, and closes it. 0, -EPROTO, -ENOMEM or -errno. On 0 the caller
 * frees *bytes. */
int control_client_read(int profile_fd, uint64_t length, void **bytes);

/* Connects, asks for the list, and reads it. 0, or -errno with one line in `reason`. On 0 the caller must
 * call control_list_fini(). */
int control_client_list(const char *socket, struct control_list *list, char *reason, size_t reason_bytes);

/*
 * Asks for snapshots or profiles, and calls `visit` with each answer after CONTROL_ASKED. visit owns
 * profile_fd (-1 for a snapshot). If it returns something other than 0, no more answers are waited for.
 * Returns 0 if all have come, or -errno with one line in `reason`. -ENOENT: there is no such process;
 * -ENODATA: no such process has taken a sample yet; -ECONNRESET: the server has gone, and *missing answers
 * have not come.
 */
int control_client_each(const char *socket, const struct control_request *request,
    int (*visit)(void *context, const struct control_answer *answer, int profile_fd), void *context,
    uint32_t *missing, char *reason, size_t reason_bytes);

#endif
