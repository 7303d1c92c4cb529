/* SPDX-License-Identifier: Apache-2.0 */
/* What is being recorded into a folder now, for a user who looks there before there is a profile. */
#ifndef SAMPLER_CMD_REPORT_RECORDED_HERE_H
#define SAMPLER_CMD_REPORT_RECORDED_HERE_H

#include <stdbool.h>

/* Prints a line for each process. Asks only sessions of root and of our own user. False if there is none. */
bool recorded_here_say(const char *folder);

#endif
