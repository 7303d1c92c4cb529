/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a control socket, as the kernel noted it at connect(2) or listen(2). */
#ifndef SAMPLER_CONTROL_CONTROL_PEER_H
#define SAMPLER_CONTROL_CONTROL_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTROL_NO_GROUP ((gid_t)-1)

/* The group `heaptap`, or CONTROL_NO_GROUP if there is none here. */
gid_t control_peer_group(void);

/* Is it root, our own user, or of the group, be it one of its supplementary ones? */
bool control_peer_may(int fd, gid_t group);

#endif
