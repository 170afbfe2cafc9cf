#include "tests/chaos/writers.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/system/process.h"

namespace tierpilot::chaos {
namespace {

constexpr size_t kDatasets = 4;
constexpr uint64_t kBytes = 256 << 10;
constexpr int64_t kPatienceMs = 120'000;
constexpr const char* kLastEnd = "last-write";

// A dataset begins as zeros: no number, which counts as 0.
constexpr const char* kCount = R"(
number() {{ head -c 20 "$TIERPILOT_DATASET_{0}" | tr -d '\0' | head -n 1; }}
n=$(number)
echo $((${{n:-0}} + 1)) | dd of="$TIERPILOT_DATASET_{0}" conv=notrunc status=none || exit 1
echo "$TIERPILOT_NODE $TIERPILOT_TASK_ID" > "$JOURNAL/{1}.$$"
mv "$JOURNAL/{1}.$$" "$JOURNAL/{1}"
)";

std::string dataset_name(size_t number) {
  return fmt::format("D{}", number);
}

}  // namespace

Status Writers::make_datasets(test::Client& client) {
  for (size_t i = 0; i < kDatasets; ++i)
    if (const auto made = client.add_dataset_zeros(dataset_name(i), kBytes); !made)
      return tl::unexpected(made.error());
  return {};
}

test::TaskPlan Writers::next() {
  const auto dataset = dataset_name(made_++ % kDatasets);
  auto task = journal_.task(fmt::format(fmt::runtime(kCount), dataset, kLastEnd));
  task.datasets = {{dataset, true}};
  return task;
}

std::vector<std::string> Writers::check(test::Client& client, const std::string& address) const {
  std::vector<std::string> wrong;
  for (const auto& [dataset, count] : writes_) {
    const auto found = check_one(client, dataset);
    if (found != std::to_string(count))
      wrong.push_back(
          fmt::format("dataset {}: {} writes succeeded, it says '{}'", dataset, count, found));
    const auto verified = test::run_command({test::program("TIERPILOT_TEST_TIERCTL"), "--connect",
                                             address, "dataset", "verify", dataset});
    if (verified.code != 0)
      wrong.push_back(
          fmt::format("dataset {} is damaged: {}{}", dataset, verified.out, verified.err));
  }
  return wrong;
}

// The number in it, or why there is none.
std::string Writers::check_one(test::Client& client, const std::string& dataset) const {
  auto reader =
      test::shell_task(fmt::format("head -c 20 $TIERPILOT_DATASET_{} | head -n 1", dataset));
  reader.datasets = {{dataset, false}};
  const auto submitted = client.submit({reader});
  if (!submitted) return submitted.error().message;
  const auto ended = client.wait(submitted->tasks.at(0), kPatienceMs);
  if (!ended) return ended.error().message;
  if ((*ended)["state"] != "succeeded") return ended->dump();
  auto log = client.log(submitted->tasks[0]);
  if (!log) return log.error().message;
  std::erase_if(*log, [](char c) { return c == '\n' || c == '\0'; });
  return *log;
}

size_t Writers::written() const {
  size_t sum = 0;
  for (const auto& [dataset, count] : writes_) sum += count;
  return sum;
}

std::optional<std::string> Writers::last_end(const std::filesystem::path& journal_folder) {
  auto text = test::read_text(journal_folder / kLastEnd);
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace tierpilot::chaos
