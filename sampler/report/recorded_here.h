/* SPDX-License-Identifier: Apache-2.0 */
/* What is being recorded into a folder right now, for who looks there before there is a profile. */
#ifndef SAMPLER_REPORT_RECORDED_HERE_H
#define SAMPLER_REPORT_RECORDED_HERE_H

#include <stdbool.h>

/* Says it, a line for each process. Asks sessions of root and our own user alone. False: nothing is. */
bool recorded_here_say(const char *folder);

#endif
