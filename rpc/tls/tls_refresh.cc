#include "rpc/tls/tls_refresh.h"

#include <memory>

#include "base/log.h"

namespace tierpilot {
namespace {

constexpr int64_t kLookMs = 1'000;
constexpr int kLooksToExpiry = 60;  // certificates also end without a change of any file

kj::Promise<void> look_again(EventLoop& loop, std::weak_ptr<TlsIdentity> weak, int looks) {
  return loop.after_ms(kLookMs).then([&loop, weak = std::move(weak), looks]() -> kj::Promise<void> {
    const auto tls = weak.lock();
    if (!tls) return kj::READY_NOW;
    if (tls->settled_change())
      refresh(tls);
    else if (looks % kLooksToExpiry == 0)
      tls->close_distrusted();
    return look_again(loop, weak, looks + 1);
  });
}

}  // namespace

void refresh(const Tls& tls) {
  if (!tls) return;
  if (const auto read = tls->reload(); !read)
    spdlog::error("{}; what was read before stays in use", read.error().message);
  else
    spdlog::info("TLS certificates are read again");
}

void keep_fresh(EventLoop& loop, const Tls& tls) {
  if (tls) loop.detach(look_again(loop, tls, 1), "TLS files");
}

}  // namespace tierpilot
