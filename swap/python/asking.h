// The hook for what the backward pass asks for.
#pragma once

#include "swap/python/fields.h"

namespace tierpilot::swap::python {

/// The method `get` of a handle: the tensor, as `_get` of a Swap in Python has it, to which all is
/// left that is not as usual.
PyObject* ask(PyObject* self, PyObject* nothing);

}  // namespace tierpilot::swap::python
