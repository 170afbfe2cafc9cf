#include "swap/python/asking.h"

#include "swap/python/known.h"
#include "swap/python/turn.h"

namespace tierpilot::swap::python {
namespace {

/// Whether it was not changed since it was saved, and its memory never left: then its witness has
/// it all.
bool is_whole(const Handle& handle, const Stored& stored) {
  if (!is_none(handle.layout) || !is_none(handle.counter) || !is_none(stored.layout)) return false;
  const Ref version = attribute(stored.witness, names.version);
  return version && PyLong_AsLongLong(version.get()) == stored.version;
}

bool in_its_stream(Owner& owner, const Stored& stored, bool& final) {
  if (!owner.streams) return true;
  const Ref stream = called_method(reinterpret_cast<PyObject*>(&owner), names.stream);
  final = !stream;
  return stream && PyLong_AsUnsignedLongLong(stream.get()) == stored.stream;
}

/// From now on its end is seen to by the next hook.
bool mark_used(Owner& owner, PyObject* handle, Stored& stored) {
  if (exactly(handle, owner.used_handle)) return true;
  if (PyObject_SetAttr(handle, names.class_of, owner.used_handle) != 0) return false;
  --stored.unused;
  return true;
}

/// None: it is not as usual. What is `final` is that with an error, too: the core was asked, or
/// code in Python has raised.
Ref usual_ask(PyObject* itself, bool& final) {
  const auto& handle = *reinterpret_cast<Handle*>(itself);
  if (is_none(handle.owner) || !exactly(handle.stored, known.stored)) return {};
  auto& owner = *reinterpret_cast<Owner*>(handle.owner);
  auto& stored = *reinterpret_cast<Stored*>(handle.stored);
  if (is_none(stored.witness) || !owner.end_awaited || !called(known.is_inference).is(Py_False))
    return {};
  Ref tensor = called_method(stored.witness, names.detach);
  if (!tensor || !in_its_stream(owner, stored, final)) return {};
  Turn turn(owner);
  if (!turn.usual() || !owner.end_awaited || !is_whole(handle, stored)) return {};
  final = true;
  if (stored.number != 0) {
    const auto where = in_core(
        owner.core, [&](tierpilot_swap* swap) { return owner.core.use(swap, stored.number); });
    if ((owner.core.told() & TIERPILOT_SWAP_NEWS_AHEAD) != 0 &&
        !called_method(handle.owner, names.prefetch))
      return {};
    if (where != TIERPILOT_SWAP_HERE) {
      const Ref number(PyLong_FromLong(where));
      return number ? called_method(handle.owner, names.returned, itself, number.get()) : Ref();
    }
  }
  if (!mark_used(owner, itself, stored) || !turn.let_go()) return {};
  return tensor;
}

}  // namespace

PyObject* ask(PyObject* self, PyObject*) {
  bool final = false;
  Ref tensor = usual_ask(self, final);
  if (tensor || final) return tensor.release();
  PyErr_Clear();
  PyObject* owner = reinterpret_cast<Handle*>(self)->owner;
  return PyObject_CallMethodObjArgs(is_none(owner) ? Py_None : owner, names.get, self, nullptr);
}

}  // namespace tierpilot::swap::python
