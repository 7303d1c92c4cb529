/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/arch/regs.h"

#include <elf.h>

/* enum perf_event_x86_regs: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8..r15 */
static const uint8_t perf_to_dwarf[24] = {0, 3, 2, 1, 4, 5, 6, 7, 16, REGS_NONE, REGS_NONE, REGS_NONE,
    REGS_NONE, REGS_NONE, REGS_NONE, REGS_NONE, 8, 9, 10, 11, 12, 13, 14, 15};

const struct regs_arch regs_x86_64 = {
    .name = "x86-64",
    .e_machine = EM_X86_64,
    .count = 17,
    .sp = 7,
    .fp = 6,
    .ra = 16,
    .ra_in_register = false,
    .tracked_count = 6,
    .tracked = {3, 6, 12, 13, 14, 15}, /* rbx rbp r12-r15 */
    .preserved = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12,
    .perf_mask = 0xff0fff,
    .perf_pc = 8,
    .perf_to_dwarf = perf_to_dwarf,
    .perf_count = 24,
    .arguments = {5, 4, 1, 2, 8, 9},     /* rdi rsi rdx rcx r8 r9 */
    .copied = {3, 6, 7, 12, 13, 14, 15}, /* rbx rbp rsp r12-r15 */
    .copied_count = 7,
    .copied_sp = 2,
    .code_mask = ~UINT64_C(0),
    .record_ends_frame = true,
};
