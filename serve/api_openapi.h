/* SPDX-License-Identifier: Apache-2.0 */
/* The description of /api/v1 for programs and their generators: openapi.json of this folder, in the
 * program. */
#ifndef SERVE_API_OPENAPI_H
#define SERVE_API_OPENAPI_H

/* JSON, OpenAPI 3.0. */
const char *api_openapi(void);

#endif
