#include <array>

#include "base/random.h"
#include "policies/sim/sharing/pods.h"

namespace tierpilot::sharing {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

struct NodeKind {
  const char* model;
  uint32_t units, cores, memory_gib;
  double share;  // of the nodes
};
// As in the published cluster: most units in nodes of eight.
constexpr std::array<NodeKind, 4> kNodeKinds{{{"G2", 8, 96, 384, 0.45},
                                              {"T4", 2, 96, 512, 0.35},
                                              {"P100", 2, 64, 256, 0.1},
                                              {"V100M32", 8, 96, 736, 0.1}}};
constexpr std::array<uint32_t, 6> kCoresPerUnit{4, 6, 8, 8, 10, 12};
constexpr std::array<uint32_t, 3> kSeveralUnits{2, 4, 8};

template <class T, size_t N>
const T& drawn(const std::array<T, N>& values, SeededRandom& random) {
  return values[random.below(N)];
}

Node make_node(const NodeKind& kind, uint8_t model) {
  Node node{.cpu_milli = kind.cores * 1000,
            .memory_bytes = kind.memory_gib * kGib,
            .model = model,
            .units = {}};
  node.units.resize(kind.units);
  return node;
}

Request make_request(SeededRandom& random) {
  Request request;
  const double kind = random.unit();
  if (kind < 0.12) {  // cores only
    request.cpu_milli = 1000 * static_cast<uint32_t>(1 + random.below(16));
  } else if (kind < 0.5) {
    request.units = 1;
    request.share.milli = static_cast<uint32_t>(50 * (1 + random.below(19)));
    request.cpu_milli = 1000 * static_cast<uint32_t>(1 + random.below(10));
  } else {
    request.units = kind < 0.99 ? 1 : drawn(kSeveralUnits, random);
    request.share.milli = kWholeUnit;
    request.cpu_milli = request.units * 1000 * drawn(kCoresPerUnit, random);
  }
  request.memory_bytes = request.cpu_milli / 1000 * (2 + random.below(3)) * kGib;
  return request;
}

}  // namespace

PodTrace generate_pods(uint64_t seed, uint32_t nodes, uint32_t pods) {
  PodTrace trace;
  SeededRandom random(derived_seed(seed, "pods and nodes"));
  for (const auto& kind : kNodeKinds) trace.models.emplace_back(kind.model);
  for (uint32_t i = 0; i < nodes; ++i) {
    double at = random.unit();
    size_t kind = 0;
    while (kind + 1 < kNodeKinds.size() && at >= kNodeKinds[kind].share)
      at -= kNodeKinds[kind++].share;
    trace.nodes.push_back(make_node(kNodeKinds[kind], static_cast<uint8_t>(kind)));
  }
  double now_s = 0;
  for (uint32_t i = 0; i < pods; ++i) {
    Pod pod;
    pod.request = make_request(random);
    pod.job_class = random.chance(0.6) ? JobClass::kLatencySensitive : JobClass::kBestEffort;
    pod.created_s = now_s += random.exponential(60);
    pod.run_s = random.log_uniform(60, 12 * 3600);
    trace.pods.push_back(pod);
  }
  return trace;
}

}  // namespace tierpilot::sharing
