// The hook for what autograd saves.
#pragma once

#include "swap/python/fields.h"

namespace tierpilot::swap::python {

/// The method `save` of a Swap: what stands in the place of the tensor. The usual ways are gone
/// here, as `_pack` in Python goes them, to which all others are left: no Python code runs, and so
/// no signal's handler.
PyObject* save(PyObject* self, PyObject* tensor);

}  // namespace tierpilot::swap::python
