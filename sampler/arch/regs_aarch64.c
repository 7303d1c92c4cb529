/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/arch/regs.h"

#include <elf.h>

/* enum perf_event_arm_regs: x0..x29 lr sp pc; DWARF has x0..x30 sp at 31 and no column for pc */
static const uint8_t perf_to_dwarf[33] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, REGS_NONE};

/*
 * A return address signed by PAC has its code in the bits above the virtual address; with 48-bit user
 * addresses those are bits 48 to 63, pointer tags included. For the machine we run on regs_arch_native()
 * asks.
 */
const struct regs_arch regs_aarch64 = {
    .name = "aarch64",
    .e_machine = EM_AARCH64,
    .count = 32,
    .sp = 31,
    .fp = 29,
    .ra = 30,
    .ra_in_register = true,
    .tracked_count = 11,
    .tracked = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
    .preserved = UINT64_C(0x7ff) << 19 | UINT64_C(1) << 31,
    .perf_mask = UINT64_C(0x1ffffffff),
    .perf_pc = 32,
    .perf_to_dwarf = perf_to_dwarf,
    .perf_count = 33,
    .arguments = {0, 1, 2, 3, 4, 5},
    .copied = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, /* x19-x30 sp */
    .copied_count = 13,
    .copied_sp = 12,
    .code_mask = (UINT64_C(1) << 48) - 1,
};
