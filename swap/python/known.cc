#include "swap/python/known.h"

namespace tierpilot::swap::python {

Known known{};
Names names{};

PyObject* know(PyObject*, PyObject* arguments, PyObject* named) {
  static const char* const kWords[] = {
      "tensor",     "parameter",      "strided",      "types",  "storage_of",
      "is_tracing", "is_inference",   "nodes_so_far", "stored", "handle",
      "untouched",  "weak_reference", "least_bytes",  nullptr};
  Known told{};
  if (PyArg_ParseTupleAndKeywords(arguments, named, "$OOOOOOOOOOOOn", const_cast<char**>(kWords),
                                  &told.tensor, &told.parameter, &told.strided, &told.types,
                                  &told.storage_of, &told.is_tracing, &told.is_inference,
                                  &told.nodes_so_far, &told.stored, &told.handle, &told.untouched,
                                  &told.weak_reference, &told.least_bytes) == 0)
    return nullptr;
  for (PyObject* object : {told.tensor, told.parameter, told.strided, told.types, told.storage_of,
                           told.is_tracing, told.is_inference, told.nodes_so_far, told.stored,
                           told.handle, told.untouched, told.weak_reference})
    Py_INCREF(object);  // for as long as the process lives
  known = told;
  Py_RETURN_NONE;
}

bool intern_names() {
  const struct {
    PyObject** name;
    const char* text;
  } kNames[] = {
      {&names.base, "_base"},
      {&names.cdata, "_cdata"},
      {&names.version, "_version"},
      {&names.acquire, "acquire"},
      {&names.class_of, "__class__"},
      {&names.convolved, "_convolved"},
      {&names.data_ptr, "data_ptr"},
      {&names.detach, "detach"},
      {&names.dtype, "dtype"},
      {&names.get, "_get"},
      {&names.grad_fn, "grad_fn"},
      {&names.is_cpu, "is_cpu"},
      {&names.is_leaf, "is_leaf"},
      {&names.is_neg, "is_neg"},
      {&names.is_nested, "is_nested"},
      {&names.known, "_known"},
      {&names.layer, "_layer"},
      {&names.layout, "layout"},
      {&names.nbytes, "nbytes"},
      {&names.node, "node"},
      {&names.pack, "_pack"},
      {&names.prefetch, "_prefetch"},
      {&names.reap, "_reap"},
      {&names.release, "release"},
      {&names.requires_grad, "requires_grad"},
      {&names.returned, "_returned"},
      {&names.shape, "shape"},
      {&names.storage_offset, "storage_offset"},
      {&names.stream, "_current_stream"},
      {&names.stride, "stride"},
  };
  for (const auto& [name, text] : kNames)
    if ((*name = PyUnicode_InternFromString(text)) == nullptr) return false;
  return true;
}

}  // namespace tierpilot::swap::python
