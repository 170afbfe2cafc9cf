#include "daemon/agent/data/data_links.h"

#include "base/clock.h"
#include "rpc/error.h"

namespace tierpilot::agent {

Error DataLink::failed(const kj::Exception& exception) {
  auto error = to_error(exception);
  if (error.code == ErrorCode::kUnreachable) broken = true;
  return error;
}

std::shared_ptr<DataLink> DataLinks::to(const std::string& address) {
  auto& link = links_[address];
  if (!link || link->broken) {
    link = std::make_shared<DataLink>();
    // The call queue of a promised client holds requests until the connection is there.
    link->source = connect(address, link);
  }
  link->used_ns = system_clock().boot_ns();
  if (!sweeping_) sweep_later();
  return link;
}

kj::Promise<wire::DataSource::Client> DataLinks::connect(const std::string& address,
                                                         std::weak_ptr<DataLink> weak) {
  const auto break_link = [weak] {
    if (const auto link = weak.lock()) link->broken = true;
  };
  auto parsed = Address::parse(address);
  if (!parsed) {
    break_link();
    return to_exception(parsed.error());
  }
  return RpcConnection::connect(loop_, *parsed, tls_)
      .then(
          [weak, break_link](kj::Own<RpcConnection> made) {
            auto source = made->bootstrap().castAs<wire::DataSource>();
            if (const auto link = weak.lock()) {
              // Not break_link itself: of what is no temporary KJ keeps only a reference.
              link->watch = made->on_disconnect()
                                .then([break_link] { break_link(); })
                                .eagerlyEvaluate(nullptr);
              link->connection = kj::mv(made);
            }
            return source;
          },
          [break_link](kj::Exception&& exception) -> wire::DataSource::Client {
            break_link();
            kj::throwFatalException(kj::mv(exception));
          });
}

void DataLinks::sweep_later() {
  sweeping_ = true;
  loop_.detach(loop_.after_ms(kSweepMs).then([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  }),
               "closing idle data connections");
}

void DataLinks::sweep() {
  const int64_t now_ns = system_clock().boot_ns();
  std::erase_if(links_, [&](const auto& item) { return now_ns - item.second->used_ns > kIdleNs; });
  sweeping_ = false;
  if (!links_.empty()) sweep_later();
}

}  // namespace tierpilot::agent
