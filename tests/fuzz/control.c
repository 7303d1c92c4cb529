/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a control socket's other end says, as no server or client of ours would: a list, a request, an
 * answer. Whatever can be read can be written and read again.
 *
 * Input: a byte that says what it is, the bytes.
 */
#include "sampler/core/control_list.h"
#include "sampler/core/control_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t use(const char *text)
{
	return strlen(text);
}

static void read_list(const void *bytes, size_t size)
{
	struct control_list list;
	size_t sum = 0;

	if (control_list_parse(&list, bytes, size) != 0)
		return;
	sum += use(list.daemon.version) + use(list.daemon.off) + use(list.daemon.store);
	for (size_t i = 0; i < list.process_count; i++) {
		const struct control_process *process = &list.processes[i];

		sum += use(process->service) + use(process->exe) + use(process->reason);
		for (size_t n = 0; n < process->loss_count; n++)
			sum += use(process->losses[n].cause) + (process->losses[n].count != 0);
		for (size_t n = 0; n < process->label_count; n++)
			sum += use(process->labels[n].key) + use(process->labels[n].value);
	}
	for (size_t i = 0; i < list.denied_count; i++)
		sum += use(list.denied[i].exe) + use(list.denied[i].reason);
	for (size_t i = 0; i < list.note_count; i++)
		sum += use(list.notes[i]);
	if (sum > size)
		abort();
	control_list_fini(&list);
}

static void read_request(const void *bytes, size_t size)
{
	struct control_request request, again;
	char text[CONTROL_REQUEST_BYTES];

	if (control_request_parse(&request, bytes, size) != 0)
		return;
	int length = control_request_format(&request, text);
	if (length < 0 || control_request_parse(&again, text, (size_t)length) != 0 ||
	    memcmp(&request, &again, sizeof(request)) != 0)
		abort();
}

static void read_answer(const void *bytes, size_t size)
{
	static struct control_answer answer, again;
	static char text[CONTROL_ANSWER_BYTES];

	if (control_answer_parse(&answer, bytes, size) != 0)
		return;
	int length = control_answer_format(&answer, text);
	if (length < 0 || control_answer_parse(&again, text, (size_t)length) != 0 ||
	    memcmp(&answer, &again, sizeof(answer)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	char *copy = malloc(size); /* of just that size, so that a byte too many is seen */
	memcpy(copy, data + 1, size - 1);
	switch (data[0] % 3) {
	case 0:
		read_list(copy, size - 1);
		break;
	case 1:
		read_request(copy, size - 1);
		break;
	default:
		read_answer(copy, size - 1);
	}
	free(copy);
	return 0;
}
