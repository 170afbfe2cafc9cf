#include "daemon/probe/inventory/inventory.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>

#include "base/unique_fd.h"
#include "daemon/probe/inventory/inventory_holders.h"

namespace tierpilot {
namespace {

using NextId = int (*)(__u32, __u32*);
using FdById = int (*)(__u32);

tl::unexpected<Error> denied(const char* what, int err) {
  if (err == EPERM)
    return fail(ErrorCode::kDenied,
                fmt::format("{}: {}: listing them needs CAP_SYS_ADMIN: run it as root", what,
                            std::strerror(err)));
  return fail_errno(err, what);
}

// Visits every object's information. One that vanishes meanwhile is passed over.
template <class Info>
Status for_each(const char* what, NextId next_id, FdById fd_by_id,
                const std::function<void(int fd, const Info&)>& visit) {
  for (__u32 id = 0;;) {
    if (next_id(id, &id) != 0) {
      if (errno == ENOENT) return {};
      return denied(what, errno);
    }
    const UniqueFd fd(fd_by_id(id));
    if (!fd && errno == ENOENT) continue;
    if (!fd) return denied(what, errno);
    Info info{};
    __u32 size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0) visit(fd.get(), info);
  }
}

std::string text_of(const char* name) {
  return name ? name : "unknown";
}

std::map<uint32_t, uint32_t> count_links() {
  std::map<uint32_t, uint32_t> links;
  // Without them the count stays 0; the caller's own listing says why.
  (void)for_each<bpf_link_info>("BPF links", bpf_link_get_next_id, bpf_link_get_fd_by_id,
                                [&](int, const bpf_link_info& info) { ++links[info.prog_id]; });
  return links;
}

}  // namespace

Result<std::vector<LoadedProgram>> list_programs(const Sysroot& sysroot) {
  std::vector<LoadedProgram> programs;
  const auto status = for_each<bpf_prog_info>(
      "BPF programs", bpf_prog_get_next_id, bpf_prog_get_fd_by_id,
      [&](int, const bpf_prog_info& info) {
        const std::string name(info.name, strnlen(info.name, sizeof info.name));
        if (!name.starts_with(kBpfPrefix)) return;
        programs.push_back(
            {.id = info.id,
             .name = name,
             .type = text_of(libbpf_bpf_prog_type_str(static_cast<bpf_prog_type>(info.type))),
             .run_time_ns = info.run_time_ns,
             .run_count = info.run_cnt,
             .missed_runs = info.recursion_misses});
      });
  if (!status) return tl::unexpected(status.error());
  if (programs.empty()) return programs;
  auto links = count_links();
  const auto holders = find_holders(sysroot, "prog_id");
  for (auto& program : programs) {
    program.links = links[program.id];
    if (const auto found = holders.find(program.id); found != holders.end())
      program.holder_pids = found->second;
  }
  return programs;
}

Result<std::vector<LoadedMap>> list_maps(const Sysroot& sysroot) {
  std::vector<LoadedMap> maps;
  const auto status = for_each<bpf_map_info>(
      "BPF maps", bpf_map_get_next_id, bpf_map_get_fd_by_id, [&](int, const bpf_map_info& info) {
        const std::string name(info.name, strnlen(info.name, sizeof info.name));
        if (!name.starts_with(kBpfPrefix)) return;
        maps.push_back(
            {.id = info.id,
             .name = name,
             .type = text_of(libbpf_bpf_map_type_str(static_cast<bpf_map_type>(info.type))),
             .key_bytes = info.key_size,
             .value_bytes = info.value_size,
             .max_entries = info.max_entries,
             .typed = info.btf_value_type_id != 0});
      });
  if (!status) return tl::unexpected(status.error());
  if (maps.empty()) return maps;
  const auto holders = find_holders(sysroot, "map_id");
  for (auto& map : maps)
    if (const auto found = holders.find(map.id); found != holders.end())
      map.holder_pids = found->second;
  return maps;
}

}  // namespace tierpilot
