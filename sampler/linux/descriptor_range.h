/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_DESCRIPTOR_RANGE_H
#define SAMPLER_LINUX_DESCRIPTOR_RANGE_H

/* Closes all descriptors from `first` to `last`, both included: close_range(2), or one after another where
 * the kernel has no such call (before Linux 5.9) or a filter refuses it. */
void descriptor_range_close(unsigned int first, unsigned int last);

#endif
