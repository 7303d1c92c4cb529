/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/profile: a profile as a file, the sum of several, or the part of it that filters select. Pure: for
 * the thread of jobs.h. */
#ifndef SERVE_API_FILE_H
#define SERVE_API_FILE_H

#include "serve/api_answer.h"

/* Of one without filters it is the file, byte by byte. */
void api_file_make(struct reply *reply, const struct api_question *question);

#endif
