/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_DESCRIPTOR_RANGE_H
#define SAMPLER_LINUX_DESCRIPTOR_RANGE_H

/* Closes all descriptors from `first` to `last`, both included. Uses close_range(2), or closes one after
 * another if the kernel has no such call (before Linux 5.9) or a filter refuses it. */
void descriptor_range_close(unsigned int first, unsigned int last);

#endif
