#include "daemon/agent/node/instances.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "base/log.h"

namespace tierpilot::agent {
namespace {

// Daemons that died before they could register; the first is the one that the coordinator knows.
constexpr size_t kMostIds = 200;

}  // namespace

Instances Instances::take_over(const std::filesystem::path& work_dir, uint64_t instance,
                               const std::string& boot_id) {
  Instances own;
  own.file_ = work_dir / "instances";
  own.boot_id_ = boot_id;
  own.instance_ = instance;
  std::ifstream in(own.file_);
  std::string written_in;
  if (std::getline(in, written_in) && !boot_id.empty() && written_in == boot_id)
    for (uint64_t id = 0; own.predecessors_.size() < kMostIds && in >> id;)
      own.predecessors_.push_back(id);
  auto all = own.predecessors_;
  all.push_back(instance);
  // On a disk that is full the daemon starts all the same: it is what makes room there. The next
  // one waits until this one's lease has ended.
  if (auto written = own.write(all); !written) spdlog::warn("{}", written.error().message);
  return own;
}

Status Instances::registered() {
  if (told_) return {};
  auto written = write({instance_});
  told_ = written.has_value();
  return written;
}

// Not synced: it says nothing after a reboot.
Status Instances::write(const std::vector<uint64_t>& ids) const {
  auto fresh = file_;
  fresh += ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << boot_id_ << "\n";
  for (const uint64_t id : ids) out << id << "\n";
  if (!out.flush())
    return fail(ErrorCode::kIo, fmt::format("{} cannot be written", fresh.native()));
  std::error_code error;
  std::filesystem::rename(fresh, file_, error);
  if (error) return fail_errno(error.value(), file_.native());
  return {};
}

}  // namespace tierpilot::agent
