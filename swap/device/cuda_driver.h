// The CUDA driver, opened at run time: machines without it need nothing installed, and building
// needs no CUDA headers. Only the calls in use are declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tierpilot::swap {

// The binary interface of cuda.h; the _v2 calls are what its macros name, since CUDA 4.
struct CudaDriver {
  using Code = int;
  using Context = struct CUctx_st*;
  using Stream = struct CUstream_st*;
  using Event = struct CUevent_st*;
  using Address = unsigned long long;

  static constexpr unsigned kNonBlocking = 1;  // a stream that the default one does not hold up
  static constexpr unsigned kBlockingWithoutTime = 3;  // an event whose waiters sleep
  static constexpr unsigned kPortable = 1;             // pinned for all contexts

  Code (*init)(unsigned) = nullptr;
  Code (*error_string)(Code, const char**) = nullptr;
  Code (*device_count)(int*) = nullptr;
  Code (*device)(int*, int) = nullptr;
  Code (*retain)(Context*, int) = nullptr;
  Code (*release)(int) = nullptr;
  Code (*push)(Context) = nullptr;
  Code (*pop)(Context*) = nullptr;
  Code (*stream_create)(Stream*, unsigned) = nullptr;
  Code (*stream_destroy)(Stream) = nullptr;
  Code (*stream_synchronize)(Stream) = nullptr;
  Code (*event_create)(Event*, unsigned) = nullptr;
  Code (*event_destroy)(Event) = nullptr;
  Code (*event_record)(Event, Stream) = nullptr;
  Code (*event_synchronize)(Event) = nullptr;
  Code (*copy_out)(void*, Address, size_t, Stream) = nullptr;
  Code (*copy_in)(Address, const void*, size_t, Stream) = nullptr;
  Code (*host_register)(void*, size_t, unsigned) = nullptr;
  Code (*host_unregister)(void*) = nullptr;
  Code (*allocate)(Address*, size_t) = nullptr;
  Code (*free)(Address) = nullptr;

  // kUnavailable: there is none, or it lacks a call; it stays loaded.
  static Result<CudaDriver> open(const std::string& library);
  // kUnavailable with what was tried and what the driver says, where `code` is no success.
  Status checked(Code code, const std::string& what) const;
};

}  // namespace tierpilot::swap
