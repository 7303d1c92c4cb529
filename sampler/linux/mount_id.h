/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_MOUNT_ID_H
#define SAMPLER_LINUX_MOUNT_ID_H

/* The number of the mount through which a descriptor was opened, also before Linux 5.8 (STATX_MNT_ID). The
 * device tells less: one may be mounted in many places. -1: not known. */
int mount_id_of(int fd);

#endif
