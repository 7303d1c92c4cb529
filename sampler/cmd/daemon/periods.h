/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling periods of all program runs: those of the rules, raised by the load limiter. */
#ifndef SAMPLER_CMD_DAEMON_PERIODS_H
#define SAMPLER_CMD_DAEMON_PERIODS_H

#include <stdint.h>

struct daemon;

/* Sets the periods of program runs whose rule has a period. */
void periods_scale(struct daemon *daemon);

/* The limiter has changed daemon->load.raised, which was `before`: changes the periods of all program
 * runs. */
void periods_load_changed(struct daemon *daemon, uint32_t before);

/* For services whose rule has a number of samples per hour: changes the periods to come nearer to it. */
void periods_tune(struct daemon *daemon);

#endif
