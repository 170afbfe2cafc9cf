#include "policies/sim/gang/training_comparison.h"

#include <algorithm>
#include <charconv>
#include <mutex>

namespace tierpilot::gang {
namespace {

constexpr uint64_t kRecordedWorkloads = 4;
constexpr uint32_t kOnlineScenes = 4;  // workloads between two updates

// Trained once, by whoever comes first.
class Shared {
 public:
  std::shared_ptr<const AcNet> get(const std::function<AcNet()>& train) {
    std::call_once(once_, [&] { net_ = std::make_shared<const AcNet>(train()); });
    return net_;
  }

 private:
  std::once_flag once_;
  std::shared_ptr<const AcNet> net_;
};

AcNet trained_anywhere(const AcTrainingSettings& settings, AcView view) {
  return train_ac_on(
      AcNet(settings.seed, view), settings,
      [](uint64_t seed) { return training_scene(seed, std::vector<Job>()); }, [](const auto&) {});
}

// The jobs are of other times than the one that is judged; the failures of the time before it.
AcNet trained_on_record(const GangSuite& suite, const GangCell& cell, uint64_t seed,
                        AcTrainingSettings settings) {
  settings.rounds = std::max(settings.rounds / 2, 1U);  // each row and seed has a training
  GangHistory history{.jobs = {}, .units_per_node = cell.units_per_node};
  for (uint64_t episode = 1; episode <= kRecordedWorkloads; ++episode) {
    const auto jobs = scene_of(suite, cell, seed, episode).jobs;
    history.jobs.insert(history.jobs.end(), jobs.begin(), jobs.end());
  }
  const auto judged = scene_of(suite, cell, seed);
  history.failures = judged.failures.past;
  history.hours = judged.failures.past_h;
  return train_ac(
      settings, [&](uint64_t of_scene) { return history_scene(history, suite, cell, of_scene); },
      [](const auto&) {});
}

AcNet trained_online(const GangSuite& suite, const GangCell& cell, uint64_t seed, AcNet net,
                     AcTrainingSettings settings, uint32_t workloads) {
  settings.charges_estimates = true;
  settings.scenes = kOnlineScenes;
  settings.rounds = workloads / kOnlineScenes;
  uint64_t episode = 0;
  return train_ac_on(
      std::move(net), settings, [&](uint64_t) { return scene_of(suite, cell, seed, ++episode); },
      [](const auto&) {});
}

// Of "published-K..."; other names are no such policy's.
std::optional<PublishedSettings> published_settings(const std::string& name,
                                                    PublishedSettings settings) {
  constexpr std::string_view kHead = "published-";
  if (!name.starts_with(kHead)) return {};
  const char* end = name.data() + name.size();
  const auto number = std::from_chars(name.data() + kHead.size(), end, settings.random_placements);
  const std::string_view rest(number.ptr, end);
  if (rest == "-all") settings.batch = PublishedSettings::Batch::kAll;
  if (rest == "-estimated") settings.estimated = true;
  return settings;
}

}  // namespace

GangSuite compared_suite(bool published) {
  constexpr double kStressPerH = 5e-3;
  GangSuite suite;
  for (const auto setting :
       {FailureSetting::kDiffering, FailureSetting::kClustered, FailureSetting::kDrifting})
    suite.cells.push_back({published ? 16U : 64U, 8, setting, kStressPerH});
  suite.policies = {"best-fit", "expected-time"};
  const auto& compared = published ? compared_published() : compared_ac();
  suite.policies.insert(suite.policies.end(), compared.begin(), compared.end());
  return suite;
}

const std::vector<std::string>& compared_ac() {
  static const std::vector<std::string> kWays{"ac",          "ac-rates",  "ac-histories",
                                              "ac-recorded", "ac-online", "ac-continued"};
  return kWays;
}

const std::vector<std::string>& compared_published() {
  static const std::vector<std::string> kWays{
      "published-1",      "published-10",      "published-100",         "published-1-all",
      "published-10-all", "published-100-all", "published-10-estimated"};
  return kWays;
}

PlacerMaker compared_maker(const GangSuite& suite, ComparedTraining training) {
  const auto rates = std::make_shared<Shared>(), histories = std::make_shared<Shared>();
  return [&suite, training, rates, histories](const std::string& name, const GangCell& cell,
                                              uint64_t seed) -> Result<std::unique_ptr<Placer>> {
    const auto made = [](AcNet net) {
      return make_ac_placer(std::make_shared<const AcNet>(std::move(net)));
    };
    auto settings = training.settings;
    if (name == "ac-rates")
      return make_ac_placer(rates->get([&] { return trained_anywhere(settings, AcView::kRates); }));
    if (name == "ac-histories")
      return make_ac_placer(
          histories->get([&] { return trained_anywhere(settings, AcView::kHistories); }));
    settings.seed = seed;
    if (name == "ac-recorded") return made(trained_on_record(suite, cell, seed, settings));
    if (name == "ac-online" || name == "ac-continued")
      return made(trained_online(suite, cell, seed,
                                 name == "ac-online" ? AcNet(seed) : *training.simulated, settings,
                                 training.workloads));
    if (const auto published = published_settings(name, training.published))
      return placer_maker(suite, nullptr, *published, training.workloads)(kAcPublished, cell, seed);
    return placer_maker(suite, training.simulated, training.published, training.workloads)(
        name, cell, seed);
  };
}

}  // namespace tierpilot::gang
