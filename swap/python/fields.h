// What the hooks read and write at each call. Classes of Python are made of these (fields.py),
// whose methods see to all that is unusual; their names and meanings are there.
#pragma once

#include <cstdint>

#include "swap/python/ref.h"
#include "swap/tierpilot_swap.h"

namespace tierpilot::swap::python {

/// The library's functions, as Python has loaded them.
struct Core {
  tierpilot_swap* const* swap = nullptr;  ///< null in there: it is closed
  const uint32_t* news = nullptr;
  decltype(&tierpilot_swap_save) save = nullptr;
  decltype(&tierpilot_swap_use) use = nullptr;
  decltype(&tierpilot_swap_drop) drop = nullptr;
  decltype(&tierpilot_swap_finished) finished = nullptr;
  bool waits = false;  ///< for a GPU: calls give up the interpreter's lock

  [[nodiscard]] bool open() const { return swap != nullptr && *swap != nullptr; }
  [[nodiscard]] uint32_t told() const { return __atomic_load_n(news, __ATOMIC_ACQUIRE); }
};

// Of a Swap.
struct Owner {
  PyObject base;
  PyObject* lock;
  PyObject* ended;
  PyObject* over;
  PyObject* live;
  PyObject* by_number;
  PyObject* places;
  PyObject* unfinished;
  PyObject* takes;
  PyObject* used_handle;
  char forked, told, backward, end_awaited, streams;
  Core core;
};

struct Stored {
  PyObject base;
  PyObject* root;
  PyObject* witness;
  PyObject* key;
  PyObject* storage;
  PyObject* weak;
  PyObject* layout;
  PyObject* others;
  int64_t version, size;
  uint64_t address, stream;
  int64_t handles, unused;
  uint32_t number;
};

struct Handle {
  PyObject base;
  PyObject* owner;
  PyObject* stored;
  PyObject* layout;
  PyObject* counter;
};

struct Untouched {
  PyObject base;
  PyObject* tensor;
  int64_t version;
};

/// Adds their types to the module; false: with an error set.
bool add_fields(PyObject* module);

}  // namespace tierpilot::swap::python
