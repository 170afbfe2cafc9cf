#include "policies/learning/training_pace.h"

#include <fmt/format.h>

#include <string>

namespace tierpilot {
namespace {

struct Place {
  ConfigSection& section;
  std::string key;
};

class Keys {
 public:
  explicit Keys(ConfigReader& reader)
      : now_(reader.section("training")), before_(reader.section("dqn")) {}

  Place of(const std::string& key) {
    const std::string before = "training_" + key;
    if (!before_.has(before)) return {now_, key};
    before_.hint(before, fmt::format("is '{}' of [training] now: move it there", key));
    return now_.has(key) ? Place{now_, key} : Place{before_, before};
  }

 private:
  ConfigSection now_;
  ConfigSection before_;
};

}  // namespace

TrainingPace read_training_pace(ConfigReader& reader) {
  TrainingPace pace;
  Keys keys(reader);
  const auto nice = keys.of("nice");
  pace.nice = static_cast<int>(nice.section.integer(nice.key, pace.nice, 0, 19));
  const auto when_idle = keys.of("when_idle");
  pace.when_idle = when_idle.section.boolean(when_idle.key, pace.when_idle);
  const auto share = keys.of("cpu_share");
  pace.cpu_share = share.section.number(share.key, pace.cpu_share, 0.01, 1);
  const auto decisions = keys.of("decisions_per_s");
  pace.decisions_per_s = decisions.section.number(decisions.key, pace.decisions_per_s, 1, 1e6);
  return pace;
}

}  // namespace tierpilot
