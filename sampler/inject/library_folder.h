/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder in a target's own root that has the library as a file, and a socket that hands out the region. It
 * is for a target without a /proc of its own pid namespace, and for machines where a file in memory may not
 * be executed. A child process makes the folder, and removes it when it is told to or its parent has died.
 */
#ifndef SAMPLER_INJECT_LIBRARY_FOLDER_H
#define SAMPLER_INJECT_LIBRARY_FOLDER_H

#include "sampler/inject/holder.h"

/* Returns 0, and the caller calls handed_end; -ETIMEDOUT or -ECANCELED like holder_start; or -errno: no
 * folder in the target's root takes executable files, or we may not write there. */
int library_folder_start(
    struct handed *handed, pid_t target, int library_fd, const struct region *region, int cancel_fd);

#endif
