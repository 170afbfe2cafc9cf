#include "tests/system/journal.h"

#include <fstream>
#include <sstream>

namespace tierpilot::test {
namespace {

// The lock's file stays open in all children of the shell: while any of them lives, it is held.
// One echo is one write with O_APPEND, so lines of different tasks do not mix.
constexpr const char* kScript = R"(
key=${KEY:-$TIERPILOT_TASK_ID}
say() { echo "$1 $key $TIERPILOT_ATTEMPT $TIERPILOT_NODE $$" >> "$JOURNAL/journal"; }
exec 9> "$JOURNAL/lock.$key"
flock -n 9 || { say overlap; exit 99; }
say start
)";

}  // namespace

Journal::Journal(const std::filesystem::path& folder) : folder_(folder / "journal") {
  std::filesystem::create_directories(folder_);
}

TaskPlan Journal::task(const std::string& work, const std::string& key) const {
  TaskPlan task = shell_task(kScript + work + "\nsay end\n");
  task.env = {{"JOURNAL", folder_.string()}};
  if (!key.empty()) task.env.emplace_back("KEY", key);
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
