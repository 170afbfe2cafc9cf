#include "tests/system/journal.h"

#include <fstream>
#include <sstream>

namespace tierpilot::test {
namespace {

// The lock's file stays open in all children of the shell: while any of them lives, it is held.
// One echo is one write with O_APPEND, so lines of different tasks do not mix.
constexpr const char* kSay = R"(
say() { echo "$1 $key $TIERPILOT_ATTEMPT $TIERPILOT_NODE $$" >> "$JOURNAL/journal"; }
)";

constexpr const char* kLock = R"(
key=${KEY:-$TIERPILOT_TASK_ID}
exec 9> "$JOURNAL/lock.$key"
flock -n 9 || { say overlap; exit 99; }
say start
)";
// Each holds a lock of its own, and looks whether one of another attempt is held: of two that
// start at the same time at least one sees the other. Looking shares locks, so that those of one
// attempt do not see each other look.
constexpr const char* kGangLock = R"(
key=$TIERPILOT_GANG.$RANK
own="$JOURNAL/lock.$TIERPILOT_GANG.$TIERPILOT_ATTEMPT"
exec 9> "$own.$RANK"
flock -n 9 || { say overlap; exit 99; }
for other in "$JOURNAL/lock.$TIERPILOT_GANG".*; do
  case "$other" in "$own".*) continue;; esac
  flock -s -n "$other" true || { say overlap; exit 99; }
done
say start
)";

}  // namespace

Journal::Journal(const std::filesystem::path& folder) : folder_(folder / "journal") {
  std::filesystem::create_directories(folder_);
}

TaskPlan Journal::task(const std::string& work, const std::string& key) const {
  TaskPlan task = shell_task(std::string(kSay) + kLock + work + "\nsay end\n");
  task.env = {{"JOURNAL", folder_.string()}};
  if (!key.empty()) task.env.emplace_back("KEY", key);
  return task;
}

TaskPlan Journal::gang(const std::string& work, uint32_t ranks) const {
  TaskPlan task = shell_task(std::string(kSay) + kGangLock + work + "\nsay end\n");
  task.env = {{"JOURNAL", folder_.string()}};
  task.ranks = ranks;
  return task;
}

Journal::Record Journal::read() const {
  Record record;
  std::ifstream file(folder_ / "journal");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, key;
    Run run;
    words >> what >> key >> run.attempt >> run.node >> run.pid;
    auto& runs = record.runs[key];
    if (what == "overlap") record.overlaps.push_back(line);
    if (what == "start") runs.push_back(run);
    if (what == "end")
      for (auto& started : runs)
        if (started.pid == run.pid && started.attempt == run.attempt) started.ended = true;
  }
  return record;
}

}  // namespace tierpilot::test
