/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/discovery.h"

#include "pprof/text/json.h"
#include "serve/endpoint_list.h"
#include "serve/request.h"

#include <stdlib.h>
#include <string.h>

/* A name of a label to Prometheus. Those that begin with "__" are instructions to it, and these are ours. */
static bool is_name(const char *name)
{
	if (!*name || strncmp(name, "__", 2) == 0 || strcmp(name, "service_name") == 0 ||
	    strcmp(name, "pid") == 0)
		return false;
	for (const char *at = name; *at; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';

		if (!letter && (at == name || *at < '0' || *at > '9'))
			return false;
	}
	return true;
}

/* Of several labels of one name the first counts. */
static bool is_given_before(const struct control_process *process, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (strcmp(process->labels[i].key, process->labels[number].key) == 0)
			return true;
	return false;
}

static void write_labels(struct json *json, const struct catalog_process *process)
{
	const struct control_process *listed = process->listed;
	char text[32];

	json_text(json, "service_name", process->service);
	snprintf(text, sizeof(text), "%d", (int)process->key.pid);
	json_text(json, "pid", text);
	snprintf(text, sizeof(text), "/pid/%d", (int)process->key.pid);
	json_text(json, "__profile_path_prefix__", text);
	for (size_t i = 0; i < listed->label_count; i++)
		if (is_name(listed->labels[i].key) && !is_given_before(listed, i))
			json_text(json, listed->labels[i].key, listed->labels[i].value);
}

void discovery_write(FILE *out, const struct catalog_process *processes, size_t count, const char *address)
{
	struct json json = {.out = out};

	json_array(&json, NULL);
	for (size_t i = 0; i < count; i++) {
		if (!processes[i].listed)
			continue;
		json_object(&json, NULL);
		json_array(&json, "targets");
		json_text(&json, NULL, address);
		json_end(&json);
		json_object(&json, "labels");
		write_labels(&json, &processes[i]);
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
}

void answer_discovery(struct request *request)
{
	size_t count, length = 0;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &count);
	char *text = NULL, address[CLIENT_ADDRESS_BYTES];
	FILE *out = open_memstream(&text, &length);

	client_server_address(&request->client, address);
	if (out)
		discovery_write(out, processes, count, address);
	if (out && fclose(out) == 0) {
		reply_bytes(&request->reply, 200, REPLY_JSON, blob_new(text, length));
	} else {
		free(text);
		reply_text(&request->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	request_finish(request);
}
