/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the web process, as the broker sees it. */
#ifndef SERVE_WEB_CHILD_H
#define SERVE_WEB_CHILD_H

#include <sys/types.h>

/* It ends when its end of the socket pair is alone; if not in time, it is ended. SIGCHLD must be blocked.
 * Returns the exit status of the whole. */
int web_child_await(pid_t web);

#endif
