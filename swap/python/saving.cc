#include "swap/python/saving.h"

#include "swap/python/known.h"
#include "swap/python/turn.h"

namespace tierpilot::swap::python {
namespace {

/// What a save is known by.
struct Tensor {
  PyObject* itself = nullptr;
  Ref maker, base, storage, key;
  long long size = 0, version = 0;

  [[nodiscard]] PyObject* root() const { return base.is(Py_None) ? itself : base.get(); }
};

/// Its number; -1: it has none, as nothing here has a negative one.
long long number_in(const Ref& value) {
  return value ? PyLong_AsLongLong(value.get()) : -1;
}

/// As is_plain in saved.py.
bool is_plain(PyObject* tensor) {
  if (!exactly(tensor, known.tensor) || !attribute(tensor, names.layout).is(known.strided))
    return false;
  if (!attribute(tensor, names.is_nested).is(Py_False) ||
      !called_method(tensor, names.is_neg).is(Py_False))
    return false;
  const Ref type = attribute(tensor, names.dtype);
  return type && PySet_Contains(known.types, type.get()) == 1;
}

bool is_true(PyObject* tensor, PyObject* name) {
  return attribute(tensor, name).is(Py_True);
}

/// As `Untouched(tensor)` makes it: detached, as with its grad_fn it would hold what holds it, or a
/// parameter itself.
Ref untouched(PyObject* tensor) {
  const bool itself = is_true(tensor, names.is_leaf) && is_true(tensor, names.requires_grad);
  Ref kept = itself ? Ref::to(tensor) : called_method(tensor, names.detach);
  const long long version = number_in(attribute(tensor, names.version));
  Ref made(version < 0 || !kept
               ? nullptr
               : PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(known.untouched), 0));
  if (!made) return made;
  auto& untouched = *reinterpret_cast<Untouched*>(made.get());
  untouched.version = version;
  untouched.tensor = kept.release();
  return made;
}

/// Of nothing yet: to allocate it may collect garbage, which ends what was looked at before.
Ref new_handle() {
  return Ref(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(known.handle), 0));
}

void attach(Handle& handle, Owner& owner, Stored& stored) {
  Py_INCREF(&stored);
  handle.stored = reinterpret_cast<PyObject*>(&stored);
  ++stored.handles;
  ++stored.unused;
  Py_INCREF(&owner);
  handle.owner = reinterpret_cast<PyObject*>(&owner);
}

/// Whether it lies in the storage as the first one did that was saved of it.
bool lies_alike(PyObject* tensor, PyObject* first) {
  for (PyObject* name : {names.dtype, names.shape}) {
    const Ref one = attribute(tensor, name), other = attribute(first, name);
    if (!one || !other || PyObject_RichCompareBool(one.get(), other.get(), Py_EQ) != 1)
      return false;
  }
  for (PyObject* name : {names.storage_offset, names.stride}) {
    const Ref one = called_method(tensor, name), other = called_method(first, name);
    if (!one || !other || PyObject_RichCompareBool(one.get(), other.get(), Py_EQ) != 1)
      return false;
  }
  return true;
}

/// One more handle of what was saved before, and is here with the same content. What has no
/// gradient may have been written by way of `x.data`, which nobody counts: that is saved anew.
Ref another(Owner& owner, Stored& stored, const Tensor& tensor) {
  if (tensor.maker.is(Py_None)) return {};
  if (!is_none(stored.weak) || is_none(stored.root) || is_none(stored.witness)) return {};
  if (!called(stored.root).is(tensor.root()) || stored.version != tensor.version) return {};
  if (!lies_alike(tensor.itself, stored.witness)) return {};
  Ref handle = new_handle();
  Turn turn(owner);
  // Without other handles it has ended before, and its copy is under way perhaps.
  if (!handle || !turn.usual() || stored.handles == 0 || !is_none(stored.weak) ||
      !is_none(stored.layout) ||
      PyDict_GetItemWithError(owner.live, tensor.key.get()) != reinterpret_cast<PyObject*>(&stored))
    return {};
  attach(*reinterpret_cast<Handle*>(handle.get()), owner, stored);
  return handle;
}

/// Place, kind and flags, as Places finds them; false: it has to look at the names.
bool find_place(Owner& owner, const Tensor& tensor, tierpilot_swap_storage& told) {
  const Ref layer = attribute(owner.places, names.layer),
            found_so_far = attribute(owner.places, names.known);
  const Ref shape = attribute(tensor.itself, names.shape),
            type = attribute(tensor.itself, names.dtype);
  if (!layer || !found_so_far || !shape || !type) return false;
  const Ref key(PyTuple_Pack(4, layer.get(), Py_TYPE(tensor.maker.get()), shape.get(), type.get()));
  PyObject* found = key ? PyDict_GetItemWithError(found_so_far.get(), key.get()) : nullptr;
  if (found == nullptr) return false;
  told.place = PyLong_AsUnsignedLongLong(PyTuple_GetItem(found, 0));
  told.kind = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GetItem(found, 1)));
  told.flags = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GetItem(found, 2)));
  const Ref convolved = attribute(owner.places, names.convolved);
  if (number_in(convolved) == 0) return true;
  const Ref data = called_method(tensor.itself, names.data_ptr);
  if (convolved && data && PyObject_RichCompareBool(convolved.get(), data.get(), Py_EQ) == 1)
    told.flags = TIERPILOT_SWAP_CONVOLUTION_INPUT;
  return true;
}

/// A storage that is seen for the first time, and what stands for it.
struct New {
  Ref stored, handle;
  tierpilot_swap_storage told{};
  Ref nodes;  ///< so far; none: nobody has to know
};

Ref new_stored(const Tensor& tensor) {
  Ref made(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(known.stored), 0));
  if (!made) return made;
  auto& stored = *reinterpret_cast<Stored*>(made.get());
  stored.root = called(known.weak_reference, tensor.root()).release();
  stored.witness = called_method(tensor.itself, names.detach).release();
  stored.others = PyTuple_New(0);
  stored.key = Ref::to(tensor.key.get()).release();
  stored.storage = Ref::to(tensor.storage.get()).release();
  stored.version = tensor.version;
  stored.size = tensor.size;
  return stored.root != nullptr && stored.witness != nullptr && stored.others != nullptr
             ? std::move(made)
             : Ref();
}

/// False: it is not as usual.
bool prepare(Owner& owner, const Tensor& tensor, New& made, bool& final) {
  if (!find_place(owner, tensor, made.told)) return false;
  const bool fills =
      tensor.maker.is(Py_None);  // its operator may, as operators fill nothing that has a gradient
  const Ref node = attribute(owner.unfinished, names.node);
  if (!node) return false;
  if (fills || !node.is(Py_None)) made.nodes = called(known.nodes_so_far);
  if (fills) made.told.flags |= TIERPILOT_SWAP_UNFINISHED;
  const Ref address = called_method(tensor.storage.get(), names.data_ptr);
  if (!address) return false;
  made.told.data = PyLong_AsVoidPtr(address.get());
  made.told.bytes = tensor.size;
  if (owner.streams) {
    const Ref stream = called_method(reinterpret_cast<PyObject*>(&owner), names.stream);
    if ((final = !stream)) return false;
    made.told.stream = PyLong_AsUnsignedLongLong(stream.get());
  }
  made.stored = new_stored(tensor);
  made.handle = new_handle();
  return made.stored && made.handle && PyErr_Occurred() == nullptr;
}

/// The operators that have saved before this one have returned, and this one's may be unfinished.
bool tell_finished(Owner& owner, const New& made) {
  if (!made.nodes) return true;
  const Ref node = attribute(owner.unfinished, names.node);
  if (!node) return false;
  const int same = PyObject_RichCompareBool(node.get(), made.nodes.get(), Py_EQ);
  PyObject* now = node.get();
  if (same == 0 && !node.is(Py_None)) {
    in_core(owner.core, [&](tierpilot_swap* swap) { return owner.core.finished(swap), 0; });
    now = Py_None;
  }
  if ((made.told.flags & TIERPILOT_SWAP_UNFINISHED) != 0) now = made.nodes.get();
  return same >= 0 && PyObject_SetAttr(owner.unfinished, names.node, now) == 0;
}

/// None: it is not as usual. What is `final` is that with an error, too: the core has it, or code
/// in Python has raised.
Ref first(Owner& owner, const Tensor& tensor, bool& final) {
  New made;
  if (!prepare(owner, tensor, made, final)) return {};
  Turn turn(owner);
  if (!turn.usual() || PyDict_GetItemWithError(owner.live, tensor.key.get()) != nullptr ||
      !tell_finished(owner, made))
    return {};
  auto& stored = *reinterpret_cast<Stored*>(made.stored.get());
  owner.backward = owner.end_awaited = 0;
  final = true;
  attach(*reinterpret_cast<Handle*>(made.handle.get()), owner, stored);
  stored.address = reinterpret_cast<uint64_t>(made.told.data);
  stored.number =
      in_core(owner.core, [&](tierpilot_swap* swap) { return owner.core.save(swap, &made.told); });
  if (stored.number == 0) return untouched(tensor.itself);
  const Ref number(PyLong_FromUnsignedLong(stored.number));
  if (!number || PyDict_SetItem(owner.by_number, number.get(), made.stored.get()) != 0 ||
      PyDict_SetItem(owner.live, tensor.key.get(), made.stored.get()) != 0 || !turn.let_go())
    return {};
  return std::move(made.handle);
}

bool is_taken(Owner& owner, PyObject* tensor, bool& final) {
  if (!owner.core.waits) return is_true(tensor, names.is_cpu);
  const Ref taken = called(owner.takes, tensor);
  final = !taken;
  return taken.is(Py_True);
}

/// As in saved.py.
bool swappable(const Tensor& tensor) {
  if (tensor.maker.is(Py_None) && is_true(tensor.itself, names.requires_grad)) return false;
  PyObject* base = tensor.base.get();
  return base == Py_None || !(is_true(base, names.requires_grad) && is_true(base, names.is_leaf));
}

/// Likewise.
Ref usual_save(Owner& owner, PyObject* itself, bool& final) {
  if (owner.forked || !owner.told || !owner.core.open() || !called(known.is_tracing).is(Py_False))
    return {};
  if (exactly(itself, known.parameter)) return untouched(itself);
  Tensor tensor;
  tensor.itself = itself;
  if (!is_plain(itself) || !(tensor.maker = attribute(itself, names.grad_fn)) ||
      !(tensor.base = attribute(itself, names.base)))
    return {};
  if (!swappable(tensor)) return untouched(itself);
  if (!(tensor.storage = called_method(itself, known.storage_of))) return {};
  tensor.size = number_in(called_method(tensor.storage.get(), names.nbytes));
  if (tensor.size >= 0 && tensor.size < known.least_bytes) return untouched(itself);
  tensor.key = attribute(tensor.storage.get(), names.cdata);
  tensor.version = number_in(attribute(itself, names.version));
  if (tensor.size < 0 || tensor.version < 0 || !tensor.key || !is_taken(owner, itself, final))
    return {};
  const Ref before = Ref::to(PyDict_GetItemWithError(owner.live, tensor.key.get()));
  if (!before) return first(owner, tensor, final);
  if (!exactly(before.get(), known.stored)) return {};
  return another(owner, *reinterpret_cast<Stored*>(before.get()), tensor);
}

}  // namespace

PyObject* save(PyObject* self, PyObject* tensor) {
  bool final = false;
  Ref made = usual_save(*reinterpret_cast<Owner*>(self), tensor, final);
  if (made || final) return made.release();
  PyErr_Clear();
  return PyObject_CallMethodObjArgs(self, names.pack, tensor, nullptr);
}

}  // namespace tierpilot::swap::python
