// A hook's turn with what a Swap holds: nobody else changes it meanwhile.
#pragma once

#include "swap/python/fields.h"

namespace tierpilot::swap::python {

/// The lock of a Swap, if nobody has it: who would have to wait does so in Python, where signals'
/// handlers run.
class Turn {
 public:
  explicit Turn(Owner& owner);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn();

  /// Whether all is as it mostly is: its core is open, nothing is told that has to be done before a
  /// save or a use, and what has ended could be seen to.
  [[nodiscard]] bool usual();
  /// What has left is let go of. False: with an error set.
  [[nodiscard]] bool let_go();

 private:
  Owner& owner_;
  bool taken_;
};

/// A call of the library, which may wait for a GPU.
template <typename Call>
auto in_core(const Core& core, Call call) {
  PyThreadState* given_up = core.waits ? PyEval_SaveThread() : nullptr;
  const auto result = call(*core.swap);
  if (given_up != nullptr) PyEval_RestoreThread(given_up);
  return result;
}

/// An attribute that nobody has set is none.
inline bool is_none(PyObject* object) {
  return object == nullptr || object == Py_None;
}

/// Whether this is a plain `object` of class `type`, and no other one's.
inline bool exactly(PyObject* object, PyObject* type) {
  return object != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

}  // namespace tierpilot::swap::python
