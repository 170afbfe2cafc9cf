#include "swap/python/fields.h"

#include <structmember.h>

#include <cstddef>
#include <initializer_list>

#include "swap/python/asking.h"
#include "swap/python/saving.h"

namespace tierpilot::swap::python {
namespace {

/// The references that an object of each kind has.
template <typename Kind>
constexpr PyObject* Kind::*kReferences[] = {};
template <>
constexpr PyObject* Owner::*kReferences<Owner>[] = {
    &Owner::lock,   &Owner::ended,      &Owner::over,  &Owner::live,       &Owner::by_number,
    &Owner::places, &Owner::unfinished, &Owner::takes, &Owner::used_handle};
template <>
constexpr PyObject* Stored::*kReferences<Stored>[] = {
    &Stored::root, &Stored::witness, &Stored::key,   &Stored::storage,
    &Stored::weak, &Stored::layout,  &Stored::others};
template <>
constexpr PyObject* Handle::*kReferences<Handle>[] = {&Handle::owner, &Handle::stored,
                                                      &Handle::layout, &Handle::counter};
template <>
constexpr PyObject* Untouched::*kReferences<Untouched>[] = {&Untouched::tensor};

template <typename Kind>
int traverse(PyObject* self, visitproc visit, void* arg) {
  for (PyObject* Kind::*reference : kReferences<Kind>)
    Py_VISIT(reinterpret_cast<Kind*>(self)->*reference);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

template <typename Kind>
int clear(PyObject* self) {
  for (PyObject* Kind::*reference : kReferences<Kind>)
    Py_CLEAR(reinterpret_cast<Kind*>(self)->*reference);
  return 0;
}

template <typename Kind>
void end(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC)) PyObject_GC_UnTrack(self);
  clear<Kind>(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// `collected`: they may be part of a cycle. Others are many, and cost the collector nothing.
template <typename Kind>
bool add(PyObject* module, const char* full_name, PyMemberDef* members, PyMethodDef* methods,
         bool collected) {
  PyType_Slot slots[] = {{Py_tp_members, members},
                         {Py_tp_methods, methods},
                         {Py_tp_dealloc, reinterpret_cast<void*>(end<Kind>)},
                         {collected ? Py_tp_traverse : 0,  // which ends the list
                          reinterpret_cast<void*>(traverse<Kind>)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear<Kind>)},
                         {0, nullptr}};
  const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  PyType_Spec spec{full_name, sizeof(Kind), 0, flags | (collected ? Py_TPFLAGS_HAVE_GC : 0), slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  const char* name = full_name;
  for (const char* at = full_name; *at != '\0'; ++at)
    if (*at == '.') name = at + 1;
  if (PyModule_AddObject(module, name, type) == 0) return true;
  Py_DECREF(type);
  return false;
}

/// The addresses of what Python has loaded: the core's, its news, four functions; and whether they
/// wait for a GPU.
PyObject* use_core(PyObject* self, PyObject* arguments) {
  unsigned long long swap, news, save, use, drop, finished;
  int waits;
  if (PyArg_ParseTuple(arguments, "KKKKKKp", &swap, &news, &save, &use, &drop, &finished, &waits) ==
      0)
    return nullptr;
  auto& core = reinterpret_cast<Owner*>(self)->core;
  core.swap = reinterpret_cast<tierpilot_swap* const*>(swap);
  core.news = reinterpret_cast<const uint32_t*>(news);
  core.save = reinterpret_cast<decltype(core.save)>(save);
  core.use = reinterpret_cast<decltype(core.use)>(use);
  core.drop = reinterpret_cast<decltype(core.drop)>(drop);
  core.finished = reinterpret_cast<decltype(core.finished)>(finished);
  core.waits = waits != 0;
  Py_RETURN_NONE;
}

PyMemberDef owner_members[] = {{"_lock", T_OBJECT, offsetof(Owner, lock), 0, nullptr},
                               {"_ended", T_OBJECT, offsetof(Owner, ended), 0, nullptr},
                               {"_over", T_OBJECT, offsetof(Owner, over), 0, nullptr},
                               {"_live", T_OBJECT, offsetof(Owner, live), 0, nullptr},
                               {"_by_number", T_OBJECT, offsetof(Owner, by_number), 0, nullptr},
                               {"_places", T_OBJECT, offsetof(Owner, places), 0, nullptr},
                               {"_unfinished", T_OBJECT, offsetof(Owner, unfinished), 0, nullptr},
                               {"_takes", T_OBJECT, offsetof(Owner, takes), 0, nullptr},
                               {"used_handle", T_OBJECT, offsetof(Owner, used_handle), 0, nullptr},
                               {"_forked", T_BOOL, offsetof(Owner, forked), 0, nullptr},
                               {"_told", T_BOOL, offsetof(Owner, told), 0, nullptr},
                               {"_backward", T_BOOL, offsetof(Owner, backward), 0, nullptr},
                               {"_end_awaited", T_BOOL, offsetof(Owner, end_awaited), 0, nullptr},
                               {"_streams", T_BOOL, offsetof(Owner, streams), 0, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};
PyMethodDef owner_methods[] = {{"_save", save, METH_O, nullptr},
                               {"_use_core", use_core, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef stored_members[] = {{"root", T_OBJECT, offsetof(Stored, root), 0, nullptr},
                                {"witness", T_OBJECT, offsetof(Stored, witness), 0, nullptr},
                                {"key", T_OBJECT, offsetof(Stored, key), 0, nullptr},
                                {"storage", T_OBJECT, offsetof(Stored, storage), 0, nullptr},
                                {"weak", T_OBJECT, offsetof(Stored, weak), 0, nullptr},
                                {"layout", T_OBJECT, offsetof(Stored, layout), 0, nullptr},
                                {"others", T_OBJECT, offsetof(Stored, others), 0, nullptr},
                                {"version", T_LONGLONG, offsetof(Stored, version), 0, nullptr},
                                {"size", T_LONGLONG, offsetof(Stored, size), 0, nullptr},
                                {"address", T_ULONGLONG, offsetof(Stored, address), 0, nullptr},
                                {"stream", T_ULONGLONG, offsetof(Stored, stream), 0, nullptr},
                                {"handles", T_LONGLONG, offsetof(Stored, handles), 0, nullptr},
                                {"unused", T_LONGLONG, offsetof(Stored, unused), 0, nullptr},
                                {"number", T_UINT, offsetof(Stored, number), 0, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyMemberDef handle_members[] = {{"owner", T_OBJECT, offsetof(Handle, owner), 0, nullptr},
                                {"stored", T_OBJECT, offsetof(Handle, stored), 0, nullptr},
                                {"layout", T_OBJECT, offsetof(Handle, layout), 0, nullptr},
                                {"counter", T_OBJECT, offsetof(Handle, counter), 0, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyMethodDef handle_methods[] = {{"get", ask, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef untouched_members[] = {
    {"tensor", T_OBJECT, offsetof(Untouched, tensor), 0, nullptr},
    {"version", T_LONGLONG, offsetof(Untouched, version), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_fields(PyObject* module) {
  return add<Owner>(module, "tierpilot_swap_hooks.OwnerFields", owner_members, owner_methods,
                    true) &&
         add<Stored>(module, "tierpilot_swap_hooks.StoredFields", stored_members, no_methods,
                     false) &&
         add<Handle>(module, "tierpilot_swap_hooks.HandleFields", handle_members, handle_methods,
                     true) &&
         add<Untouched>(module, "tierpilot_swap_hooks.UntouchedFields", untouched_members,
                        no_methods, false);
}

}  // namespace tierpilot::swap::python
