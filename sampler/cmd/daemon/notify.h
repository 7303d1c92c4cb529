/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager: sd_notify(3) without libsystemd, one datagram to $NOTIFY_SOCKET. Without
 * that variable these functions do nothing.
 */
#ifndef SAMPLER_CMD_DAEMON_NOTIFY_H
#define SAMPLER_CMD_DAEMON_NOTIFY_H

#include <stdint.h>

/* Reads the variables of the environment, and removes them, so that no child uses them. Call it once,
 * before the other functions. */
void notify_open(void);

/* Sends lines as in sd_notify(3): "READY=1", "STOPPING=1\nSTATUS=...". Never waits. */
__attribute__((format(printf, 1, 2))) void notify_tell(const char *format, ...);

/* Tells that a reload begins, with the time that Type=notify-reload wants. READY=1 ends the reload. */
void notify_reloading(void);

/* How often to send WATCHDOG=1: half of the watchdog's time. 0 if there is no watchdog. */
uint64_t notify_watchdog_ns(void);

#endif
