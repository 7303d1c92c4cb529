/* SPDX-License-Identifier: Apache-2.0 */
#include "push/poison_check.h"

bool poison_check_failed(
    struct poison_check *poison, uint64_t number, bool answered, uint64_t now_ns, uint64_t give_up_ns)
{
	if (!answered) {
		*poison = (struct poison_check){0};
		return false;
	}
	if (number == poison->probe) {
		*poison = (struct poison_check){.number = poison->number, .since_ns = now_ns};
		return false;
	}
	if (number != poison->number)
		*poison = (struct poison_check){.number = number, .since_ns = now_ns};
	poison->attempts++;
	return poison->attempts >= POISON_CHECK_ATTEMPTS && now_ns - poison->since_ns >= give_up_ns;
}
