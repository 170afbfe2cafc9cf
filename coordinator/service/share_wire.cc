#include "coordinator/service/wire.h"

namespace tierpilot {
namespace {

void write_known(std::optional<double> value, const char* why, wire::Measure::Builder to) {
  write_figure(value ? Figure{value, {}} : Figure{std::nullopt, why}, to);
}

}  // namespace

void write_share(const CoreShare& share, const std::string& allocator,
                 wire::CoreShare::Builder out) {
  out.setTask(share.task);
  out.setName(share.name);
  out.setUnits(share.units);
  out.setCores(share.cores);
  out.setSinceMs(share.since_ms);
  out.setAllocator(allocator);
  out.setReason(share.reason);
  write_known(share.loss_left, "its loss has not changed yet", out.initLossLeft());
  constexpr const char* kUnknown = "its loss cannot be foretold yet";
  write_known(share.gain, kUnknown, out.initGain());
  write_known(share.gain_of_one_more, kUnknown, out.initGainOfOneMore());
}

void write_unit_looks(const std::vector<UnitLook>& looks,
                      capnp::List<wire::UnitLook>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    const auto& from = looks[i];
    out[i].setNode(from.node);
    out[i].setUnit(from.unit);
    out[i].setGpu(from.gpu);
    out[i].setFreeMilli(from.free_milli);
    out[i].setFreeMemoryBytes(from.free_memory_bytes);
    auto tasks = out[i].initTasks(count(from.tasks));
    for (unsigned t = 0; t < tasks.size(); ++t) tasks.set(t, from.tasks[t]);
    out[i].setRefused(from.refused);
  }
}

void write_unit_share(const ShownShare& share, const std::string& policy,
                      wire::UnitShare::Builder out) {
  const auto& predicted = share.forecast.predicted;
  out.setUnit(share.given.unit);
  out.setMilli(share.given.milli);
  out.setGpu(share.given.gpu);
  out.setMemoryBytes(share.given.memory_bytes);
  out.setPredictedBy(share.forecast.by);
  out.setPredictedMilli(predicted.milli);
  write_known(predicted.run_s > 0 ? std::optional(predicted.run_s) : std::nullopt,
              "nothing tells it", out.initPredictedS());
  write_known(share.used_milli, "it has not been measured yet", out.initUsedMilli());
  write_known(share.left_s, "it cannot be told", out.initLeftS());
  write_known(share.promise_left_s,
              share.promise.empty() ? "there is no promise" : "the promise is not made",
              out.initPromiseLeftS());
  out.setPromise(share.promise);
  out.setPolicy(policy);
  auto neighbours = out.initNeighbours(count(share.neighbours));
  for (unsigned i = 0; i < neighbours.size(); ++i) neighbours.set(i, share.neighbours[i]);
  out.setPreemptions(share.given.preemptions);
  auto slow_downs = out.initSlowDowns(count(share.slow_downs));
  for (unsigned i = 0; i < slow_downs.size(); ++i) {
    const auto& from = share.slow_downs[i];
    slow_downs[i].setTask(from.neighbour);
    slow_downs[i].setName(from.name);
    slow_downs[i].setKeeps(from.kept.part());
    slow_downs[i].setKeepsAtLeast(from.kept.lower());
    slow_downs[i].setNeighbourKeeps(from.kept_by_other.part());
    slow_downs[i].setBy(share.tells_pace ? from.by
                                         : from.by + "; it tells no iterations to measure by");
  }
}

}  // namespace tierpilot
