// Python's objects, by the interface that all its versions from 3.9 on have.
#pragma once

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <utility>

namespace tierpilot::swap::python {

/// One reference, or none.
class Ref {
 public:
  Ref() = default;
  /// Takes a reference over.
  explicit Ref(PyObject* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    Ref before(std::exchange(object_, std::exchange(other.object_, nullptr)));
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref to(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }

  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }
  [[nodiscard]] bool is(PyObject* other) const { return object_ == other; }

 private:
  PyObject* object_ = nullptr;
};

inline Ref attribute(PyObject* of, PyObject* name) {
  return Ref(PyObject_GetAttr(of, name));
}

template <typename... Given>
Ref called(PyObject* what, Given*... given) {
  return Ref(PyObject_CallFunctionObjArgs(what, given..., nullptr));
}

template <typename... Given>
Ref called_method(PyObject* of, PyObject* name, Given*... given) {
  return Ref(PyObject_CallMethodObjArgs(of, name, given..., nullptr));
}

}  // namespace tierpilot::swap::python
