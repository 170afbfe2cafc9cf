#include "coordinator/service/unit_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/core/gangs/unit_order.h"
#include "coordinator/core/sharing/shared_cores.h"
#include "coordinator/service/wire.h"
#include "model/unit_id.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostUnits = 500;
constexpr uint32_t kMostGpus = 256;  // of a node, that are looked at
constexpr const char* kOnlyGpus = "only GPUs are asked";

Figure rate_figure(double per_h) {
  return {per_h, {}};
}

// Empty: it is there.
std::string lost_because(const NodeRecord* node, const UnitName& unit) {
  if (!node || !node->can_be_asked()) return "its node is not connected";
  const auto& gpus = node->facts.gpus;
  if (unit.engine == Engine::kGpu && !node->facts.shares_gpu(unit.unit) &&
      std::find(gpus.begin(), gpus.end(), unit.unit) == gpus.end())
    return "its node does not see the device since its daemon started";
  return {};
}

// Nothing: its node has not told of it.
std::optional<wire::GpuReading::Reader> last_reading(NodeCards& cards, const UnitName& unit) {
  const auto* card = cards.find(std::string(unit.node));
  if (!card) return {};
  const auto readings = card->status->getRoot<wire::NodeStatus>().asReader().getGpus();
  for (uint32_t i = 0; i < std::min(readings.size(), kMostGpus); ++i)
    if (text(readings[i].getUuid()) == unit.unit) return readings[i];
  return {};
}

// Why it does not know is no node's to say here: its text could be of any length, and a page of
// units has to fit an answer.
void write_told(wire::Measure::Reader told, wire::Measure::Builder out) {
  const bool known = told.getUnavailable().size() == 0 && std::isfinite(told.getValue());
  write_figure(
      known ? Figure{told.getValue(), {}} : Figure{std::nullopt, "the driver does not tell"}, out);
}

void write_untold(const char* why, wire::UnitEntry::Builder out) {
  const Figure untold{std::nullopt, why};
  write_figure(untold, out.initTemperatureC());
  write_figure(untold, out.initMemoryBytes());
  write_figure(untold, out.initBusyPercent());
}

void write_reading(NodeCards& cards, const UnitName& unit, bool connected,
                   wire::UnitEntry::Builder out) {
  if (const auto reading = connected ? last_reading(cards, unit) : std::nullopt) {
    write_told(reading->getTemperatureC(), out.initTemperatureC());
    write_told(reading->getMemoryUsedBytes(), out.initMemoryBytes());
    write_told(reading->getBusyPercent(), out.initBusyPercent());
    return;
  }
  write_untold(unit.engine == Engine::kCpu
                   ? kOnlyGpus
                   : "its node has not told: the driver does not answer, or its daemon is older "
                     "or not connected",
               out);
}

void write_sharers(const ClusterState& state, const std::vector<uint64_t>& sharers,
                   wire::UnitEntry::Builder out) {
  auto shared_by = out.initSharedBy(count(sharers));
  auto shares = out.initShares(count(sharers));
  for (uint32_t i = 0; i < shares.size(); ++i) {
    shared_by.set(i, sharers[i]);
    shares[i].setTask(sharers[i]);
    const auto* task = state.tasks.find(sharers[i]);
    if (!task || !task->share) continue;
    shares[i].setMilli(task->share->milli);
    shares[i].setMemoryBytes(task->share->memory_bytes);
  }
}

void write_cores(const ClusterState& state, const ShareKeeper& shares, const SharedCores& cores,
                 wire::UnitEntry::Builder out) {
  out.setId(cores.id);
  out.setNode(cores.node->facts.name);
  out.setEngine(engine_name(Engine::kCpu).data());
  const bool is_there = cores.node->can_be_asked();
  out.setState(is_there ? "up" : "lost");
  out.setReason(is_there ? "" : "its node is not connected");
  out.setShared(true);
  out.setCores(cores.facts().cores);
  write_sharers(state, shares.sharers_of(cores.id), out);
  const Figure not_counted{std::nullopt, "failures of cores that are shared are not counted"};
  write_figure(not_counted, out.initRatePerHour());
  write_figure(not_counted, out.initRateLow());
  write_figure(not_counted, out.initRateHigh());
  write_untold(kOnlyGpus, out);
}

void write_unit(const ClusterState& state, const ShareKeeper& shares, NodeCards& cards,
                const std::string& id, wire::UnitEntry::Builder out) {
  const auto name = parse_unit_id(id).value_or(UnitName{});
  const std::string node(name.node);
  out.setId(id);
  out.setNode(node);
  out.setEngine(engine_name(name.engine).data());
  const auto* record = state.registry.find(node);
  const auto drained = state.units.told_drain(id);
  const auto unhealthy = state.units.unhealthy_because(id);
  const auto lost = lost_because(record, name);
  out.setState(!lost.empty()                    ? "lost"
               : !unhealthy.empty()             ? "unhealthy"
               : drained.empty()                ? "up"
               : state.units.is_quarantined(id) ? "quarantined"
                                                : "drained");
  out.setReason(!lost.empty() ? lost : !unhealthy.empty() ? unhealthy : drained);
  out.setTask(state.units.user_of(id));
  out.setShared(record && name.engine == Engine::kGpu && record->facts.shares_gpu(name.unit));
  write_sharers(state, shares.sharers_of(id), out);
  out.setFailures(state.units.failures(id));
  const auto& rates = state.units.rates(state.clock.wall_ms());
  const auto rate = rates.find(id);
  const Figure none{std::nullopt, "it was not in service yet"};
  const bool known = rate != rates.end();
  write_figure(known ? rate_figure(rate->second.mean) : none, out.initRatePerHour());
  write_figure(known ? rate_figure(rate->second.low) : none, out.initRateLow());
  write_figure(known ? rate_figure(rate->second.high) : none, out.initRateHigh());
  write_reading(cards, name, record && record->can_be_asked(), out);
}

void check_known(const ClusterState& state, const std::string& id) {
  if (!state.units.is_known(id))
    refuse(
        ErrorCode::kNotFound,
        fmt::format("unit '{}' does not exist: units are named NODE/cpu/NUMBER or NODE/gpu/UUID, "
                    "cores that are shared NODE/cores/NUMBER; see `tierctl unit list`",
                    id));
}

}  // namespace

kj::Promise<void> UnitService::unitList(UnitListContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  const uint32_t limit = params.getLimit() ? std::min(params.getLimit(), kMostUnits) : kMostUnits;
  const auto& core = caller_->core();
  const auto after = text(params.getAfter());
  const auto& all = core.state.units.all();
  std::vector<std::string> ids;
  if (!parse_shared_cores_id(after))
    for (auto at = all.upper_bound(after); at != all.end() && ids.size() < limit; ++at)
      ids.push_back(at->first);
  const auto cores = shared_cores_after(core.state.registry, after, limit - ids.size());
  auto units = context.getResults().initUnits(count(ids) + count(cores));
  for (uint32_t i = 0; i < ids.size(); ++i)
    write_unit(core.state, core.shares, caller_->shared().cards, ids[i], units[i]);
  for (uint32_t i = 0; i < cores.size(); ++i)
    write_cores(core.state, core.shares, cores[i], units[count(ids) + i]);
  return kj::READY_NOW;
}

kj::Promise<void> UnitService::unitShow(UnitShowContext context) {
  caller_->allow_reading();
  const auto id = text(context.getParams().getId());
  auto results = context.getResults();
  if (const auto cores = find_shared_cores(caller_->core().state.registry, id)) {
    write_cores(caller_->core().state, caller_->core().shares, *cores, results.initUnit());
    return kj::READY_NOW;
  }
  check_known(caller_->core().state, id);
  write_unit(caller_->core().state, caller_->core().shares, caller_->shared().cards, id,
             results.initUnit());
  constexpr size_t kMostNotes = 20;
  std::vector<const UnitFailure*> failures;
  const auto& all = caller_->core().state.units.all_failures();
  for (auto it = all.rbegin(); it != all.rend() && failures.size() < kMostNotes; ++it)
    if (it->unit == id) failures.push_back(&*it);
  auto notes = results.initNotes(static_cast<uint32_t>(failures.size()));
  for (uint32_t i = 0; i < notes.size(); ++i) {
    notes[i].setAtMs(failures[i]->at_ms);
    notes[i].setWhat(failures[i]->kind);
    notes[i].setWhy(failures[i]->task ? fmt::format("task {}", failures[i]->task)
                                      : "the device itself");
  }
  return kj::READY_NOW;
}

kj::Promise<void> UnitService::unitOrder(UnitOrderContext context) {
  const auto params = context.getParams();
  const auto id = text(params.getId());
  const auto order = text(params.getOrder());
  if (const auto cores = find_shared_cores(caller_->core().state.registry, id))
    refuse(ErrorCode::kInvalid,
           fmt::format("unit '{}': cores that are shared are taken out of service with their node: "
                       "`tierctl node drain {}`",
                       id, cores->node->facts.name));
  check_known(caller_->core().state, id);
  if (order != "drain" && order != "resume")
    refuse(ErrorCode::kInvalid, fmt::format("'{}' is no order: drain or resume", order));
  caller_->allow_change(Role::kOperate, fmt::format("{} unit '{}'", order, id));
  auto reason = text(params.getReason());
  if (reason.empty()) reason = fmt::format("by {}", caller_->peer().name);
  if (reason.starts_with(UnitBook::kQuarantine))
    refuse(ErrorCode::kInvalid,
           fmt::format("a reason cannot begin with '{}': a rule's do", UnitBook::kQuarantine));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  order_unit(caller_->core().state, {.unit = id, .drain = order == "drain", .reason = reason},
             [this, id, order, context, fulfiller](Status status) mutable {
               if (!status) return (*fulfiller)->reject(to_exception(status.error()));
               auto& core = caller_->core();
               const uint64_t gang = core.state.units.user_of(id);
               if (order == "drain" && gang != 0) core.checkpoints.ask(gang, "unit drained");
               if (order == "drain")
                 for (const uint64_t sharer : core.shares.sharers_of(id))
                   core.checkpoints.ask(sharer, "unit drained");
               write_unit(core.state, core.shares, caller_->shared().cards, id,
                          context.getResults().initUnit());
               (*fulfiller)->fulfill();
               core.dispatcher.pump();
             });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
