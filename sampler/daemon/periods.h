/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling periods of all images: what the rules say, and what the daemon's own load makes of it. */
#ifndef SAMPLER_DAEMON_PERIODS_H
#define SAMPLER_DAEMON_PERIODS_H

#include <stdint.h>

struct daemon;

/* Those that are configured, as daemon->load has them raised. */
void periods_scale(struct daemon *daemon);

/* daemon->load was raised so far before: all follow. */
void periods_load_changed(struct daemon *daemon, uint32_t before);

/* Brings those of services with a number of samples per hour nearer to that number. */
void periods_tune(struct daemon *daemon);

#endif
