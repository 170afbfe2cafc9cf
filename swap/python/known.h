// What the hooks need to know of PyTorch and of the classes in Python: set once, by `know`
// (saved.py).
#pragma once

#include "swap/python/ref.h"

namespace tierpilot::swap::python {

struct Known {
  // Classes, and the functions that say whether a model is traced and whether inference mode is on.
  PyObject *tensor, *parameter, *strided, *types, *storage_of, *is_tracing, *is_inference,
      *nodes_so_far;
  PyObject *stored, *handle, *untouched, *weak_reference;
  Py_ssize_t least_bytes;
};

/// Names of attributes and methods.
struct Names {
  PyObject *base, *cdata, *version, *acquire, *class_of, *convolved, *data_ptr, *detach, *dtype,
      *get, *grad_fn, *is_cpu, *is_leaf, *is_neg, *is_nested, *known, *layer, *layout, *nbytes,
      *node, *pack, *prefetch, *reap, *release, *requires_grad, *returned, *shape, *storage_offset,
      *stream, *stride;
};

extern Known known;
extern Names names;

/// Python's `know(...)`, by names of `Known`.
PyObject* know(PyObject* module, PyObject* arguments, PyObject* named);
/// False: with an error set.
bool intern_names();

}  // namespace tierpilot::swap::python
