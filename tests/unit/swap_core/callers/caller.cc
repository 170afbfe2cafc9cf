// A library that takes and gives memory by the C library's functions, as PyTorch's does.
#include <cstdlib>

extern "C" {
void* call_take(size_t bytes) {
  void* data = nullptr;
  return posix_memalign(&data, 64, bytes) == 0 ? data : nullptr;
}
void call_give(void* data) {
  free(data);
}
// The address is what a deleter is.
void (*give_function())(void*) {
  return &free;
}
}
