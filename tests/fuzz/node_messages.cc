// Frames from peers, and the messages in them that nodes and coordinators act upon.
#include <capnp/message.h>

#include <cstring>

#include "daemon/agent/link/wire.h"
#include "rpc/stream/frame.h"
#include "rpc/task_wire.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

Result<kj::Own<capnp::MessageReader>> opened(std::string_view bytes) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::memcpy(words.asBytes().begin(), bytes.data(), words.asBytes().size());
  return open_frame(kj::mv(words), {});
}

// As a server does: what cannot be read ends the call, and nothing else.
template <class Read>
void read_by(std::string_view bytes, const Read& read) {
  auto frame = opened(bytes);
  if (!frame) return;
  kj::runCatchingExceptions([&] { read(**frame); });
}

}  // namespace

FUZZ(frame) {
  if (bytes.size() < kFrameHeaderBytes) return;
  const RpcLimits limits;
  const auto words = parse_frame_header(reinterpret_cast<const kj::byte*>(bytes.data()), limits);
  if (!words) return;
  fuzz::promise(*words > 0 && *words * sizeof(capnp::word) <= limits.max_frame_bytes,
                "frames are within their limit");
  (void)opened(bytes.substr(kFrameHeaderBytes));
}

FUZZ(assignment_message) {
  read_by(bytes, [](capnp::MessageReader& frame) {
    (void)agent::read_assignment(frame.getRoot<wire::Assignment>());
  });
}

FUZZ(spec_message) {
  read_by(bytes, [](capnp::MessageReader& frame) {
    const auto spec = read_spec(frame.getRoot<wire::TaskSpec>());
    if (!spec) return;
    capnp::MallocMessageBuilder message;
    const auto root = message.initRoot<wire::TaskSpec>();
    write_spec(*spec, root);
    const auto again = read_spec(root.asReader());
    // Texts end at a NUL byte where they are written; admission refuses those that have one.
    fuzz::promise(again && again->argv.size() == spec->argv.size() &&
                      again->env.size() == spec->env.size() && again->units == spec->units,
                  "a spec that is read and written is as long");
  });
}
