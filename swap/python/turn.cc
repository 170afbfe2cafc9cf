#include "swap/python/turn.h"

#include "swap/python/known.h"

namespace tierpilot::swap::python {
namespace {

void erase_if_is(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyDict_GetItemWithError(dict, key) == value) PyDict_DelItem(dict, key);
}

/// The core has it no more.
void forget(Owner& owner, Stored& stored) {
  const Ref stays = Ref::to(reinterpret_cast<PyObject*>(&stored));
  const Ref number(PyLong_FromUnsignedLong(stored.number));
  erase_if_is(owner.by_number, number.get(), stays.get());
  erase_if_is(owner.live, stored.key, stays.get());
  stored.number = 0;
}

/// Of a handle that a backward pass has used. False: it is not such a one.
bool see_to(Owner& owner, PyObject* ended) {
  if (!exactly(ended, owner.used_handle)) return false;
  PyObject* of = reinterpret_cast<Handle*>(ended)->stored;
  if (!exactly(of, known.stored)) return false;
  auto& stored = *reinterpret_cast<Stored*>(of);
  const Ref stays = Ref::to(of);
  if (PySequence_DelItem(owner.ended, 0) != 0) return false;
  if (--stored.handles > 0) return true;
  const uint32_t number = stored.number;
  if (number != 0 &&
      in_core(owner.core, [&](tierpilot_swap* swap) { return owner.core.drop(swap, number); }) == 0)
    forget(owner, stored);
  return true;
}

}  // namespace

Turn::Turn(Owner& owner)
    : owner_(owner), taken_(called_method(owner.lock, names.acquire, Py_False).is(Py_True)) {}

Turn::~Turn() {
  if (!taken_) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  called_method(owner_.lock, names.release);
  PyErr_Restore(type, value, trace);
}

bool Turn::usual() {
  if (!taken_ || owner_.forked || !owner_.told || !owner_.core.open()) return false;
  if (owner_.over != Py_None || (owner_.core.told() & TIERPILOT_SWAP_NEWS_MEMORY) != 0)
    return false;
  while (PyObject_Size(owner_.ended) > 0) {
    const Ref first(PySequence_GetItem(owner_.ended, 0));
    if (!first || !see_to(owner_, first.get())) return false;
  }
  return true;
}

bool Turn::let_go() {
  if ((owner_.core.told() & TIERPILOT_SWAP_NEWS_LEFT) == 0) return true;
  return static_cast<bool>(called_method(reinterpret_cast<PyObject*>(&owner_), names.reap));
}

}  // namespace tierpilot::swap::python
