/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager is told, and asked for: sd_notify(3) without libsystemd, one datagram to
 * $NOTIFY_SOCKET. Without that variable all of this does nothing.
 */
#ifndef SAMPLER_DAEMON_NOTIFY_H
#define SAMPLER_DAEMON_NOTIFY_H

#include <stdint.h>
#include <sys/types.h>

/* Reads the environment once, before any other. The variables are removed: no child is to use them. */
void notify_open(void);

/* "READY=1", "STOPPING=1\nSTATUS=..."; lines as in sd_notify(3). Never waits. */
__attribute__((format(printf, 1, 2))) void notify_tell(const char *format, ...);

/* Before a reload, with the time that Type=notify-reload wants; READY=1 ends it. */
void notify_reloading(void);

/* How often the watchdog wants to hear of us: half of its time; 0: there is none. */
uint64_t notify_watchdog_ns(void);

/* Keeps a descriptor for the next daemon, under a name, or forgets it. */
void notify_store(const char *name, int fd);
void notify_forget(const char *name);

/* A descriptor that was kept, with its name; -1: there are no more. The caller owns it; the name is valid until
 * the next call. */
int notify_next_stored(const char **name);

#endif
