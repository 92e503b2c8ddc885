/* What makes a file of functions a module of Python. The file defines REVISION and `methods`. */

#ifndef STRANDLINE_MODULE_H
#define STRANDLINE_MODULE_H

#define COMPILED_MODULE(name, doc)                                                                 \
    static int add_constants(PyObject *module)                                                     \
    {                                                                                              \
        return PyModule_AddIntConstant(module, "REVISION", REVISION);                              \
    }                                                                                              \
    static PyModuleDef_Slot slots[] = {                                                            \
        {Py_mod_exec, add_constants},                                                              \
        {0, NULL},                                                                                 \
    };                                                                                             \
    static struct PyModuleDef definition = {                                                       \
        PyModuleDef_HEAD_INIT, #name, doc, 0, methods, slots, NULL, NULL, NULL,                    \
    };                                                                                             \
    PyMODINIT_FUNC PyInit_##name(void)                                                             \
    {                                                                                              \
        return PyModuleDef_Init(&definition);                                                      \
    }

#endif
