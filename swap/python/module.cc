// The Python module tierpilot_swap_hooks: what tierpilot.swap's hooks do at each call. fields.py
// has the same in Python.
#include "swap/python/fields.h"
#include "swap/python/known.h"

namespace {

PyMethodDef functions[] = {
    {"know",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tierpilot::swap::python::know)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tierpilot_swap_hooks",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_tierpilot_swap_hooks() {
  tierpilot::swap::python::Ref module(PyModule_Create(&definition));
  if (!module || !tierpilot::swap::python::intern_names() ||
      !tierpilot::swap::python::add_fields(module.get()))
    return nullptr;
  return module.release();
}
