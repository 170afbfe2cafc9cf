#include "tools/trainer/group.h"

#include <fmt/format.h>
#include <torch/types.h>

// libtorch has gloo's process group, but hides the class unless the user says that it is there. Its
// header needs gloo's, which are in a Debian package of their own: libgloo-dev.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#ifdef __SANITIZE_THREAD__
// Debian's libtorch is not built for this sanitizer, which so sees nothing of its reference counts.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtorch_cpu.so\n";
}
#endif

namespace tierpilot::trainer {
namespace {

// Only for what hangs without a word: that a rank has ended its connections tell at once.
constexpr std::chrono::minutes kLongestSum{30};

// What a torch error says first; behind it come pages of addresses.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::shared_ptr<::gloo::transport::Device> device_of(const Place& place) {
  using c10d::ProcessGroupGloo;
  if (!place.network_interface.empty())
    return ProcessGroupGloo::createDeviceForInterface(place.network_interface);
  if (place.master_host == "127.0.0.1" || place.master_host == "localhost")
    return ProcessGroupGloo::createDeviceForHostname(place.master_host);
  return ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

struct Group::Impl {
  // The store outlives the ranks that look for each other in it.
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> ranks;
};

Group::Group(Place place) : place_(std::move(place)) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

Result<Group> Group::meet(const Place& place, std::chrono::seconds patience) {
  Group group(place);
  if (place.alone()) return group;
  try {
    c10d::TCPStoreOptions where;
    where.port = place.master_port;
    where.isServer = place.rank == 0;
    where.numWorkers = place.world;
    where.timeout = patience;
    auto store = c10::make_intrusive<c10d::TCPStore>(place.master_host, where);
    auto how = c10d::ProcessGroupGloo::Options::create(patience);
    how->devices.push_back(device_of(place));
    auto ranks = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(place.rank),
                                                             static_cast<int>(place.world), how);
    group.impl_ = std::make_unique<Impl>(Impl{std::move(store), std::move(ranks)});
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUnreachable,
                fmt::format("rank {} of {} did not meet the others at {} port {}: {}; see whether "
                            "all of them run and rank 0's port is free and can be reached",
                            place.rank, place.world, place.master_host, place.master_port,
                            first_line(error)));
  }
  return group;
}

Status Group::sum(std::span<float> values) {
  if (!impl_) return {};
  try {
    std::vector<at::Tensor> tensors{
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat)};
    c10d::AllreduceOptions how;
    how.timeout = kLongestSum;
    impl_->ranks->allreduce(tensors, how)->wait();
  } catch (const std::exception& error) {
    return fail(ErrorCode::kUnreachable,
                fmt::format("rank {} of {} lost the others: {}; one of them has ended, and its own "
                            "output says why",
                            place_.rank, place_.world, first_line(error)));
  }
  return {};
}

}  // namespace tierpilot::trainer
