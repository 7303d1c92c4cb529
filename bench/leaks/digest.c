/* SPDX-License-Identifier: Apache-2.0 */
/* A C extension that forgets to give back a copy. python_*.py use it. */
#include <Python.h>

__attribute__((noinline)) static char *make_copy(const char *bytes, Py_ssize_t length)
{
	char *copy = malloc((size_t)length);

	memcpy(copy, bytes, (size_t)length);
	return copy;
}

static PyObject *sign(PyObject *module, PyObject *argument)
{
	char *bytes;
	Py_ssize_t length;
	long sum = 0;

	if (PyBytes_AsStringAndSize(argument, &bytes, &length))
		return NULL;
	for (const char *copy = make_copy(bytes, length); length-- > 0; copy++)
		sum += *copy;
	return PyLong_FromLong(sum);
}

static PyMethodDef methods[] = {{"sign", sign, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "digest", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_digest(void)
{
	return PyModule_Create(&module);
}
