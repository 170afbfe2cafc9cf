#include "daemon/probe/passive/kernel_btf.h"

#include <bpf/btf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace tierpilot {

void KernelBtf::Free::operator()(::btf* types) const {
  btf__free(types);
}

KernelBtf::KernelBtf(::btf* types) : types_(types) {}

Result<KernelBtf> KernelBtf::load() {
  ::btf* types = btf__load_vmlinux_btf();
  if (!types)
    return fail(ErrorCode::kUnavailable,
                fmt::format("/sys/kernel/btf/vmlinux: {}: the kernel is built without "
                            "CONFIG_DEBUG_INFO_BTF, or /sys is hidden",
                            std::strerror(errno)));
  return KernelBtf(types);
}

int KernelBtf::function_id(const std::string& name) const {
  // Structs may have the same name: bpf_iter_task_vma is both.
  return std::max(0, btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_FUNC));
}

int KernelBtf::tracepoint_id(const std::string& name) const {
  return std::max(
      0, btf__find_by_name_kind(types_.get(), ("btf_trace_" + name).c_str(), BTF_KIND_TYPEDEF));
}

std::optional<int> KernelBtf::tracepoint_args(const std::string& name) const {
  const int id = tracepoint_id(name);
  if (id == 0) return std::nullopt;
  const btf_type* type = btf__type_by_id(types_.get(), static_cast<__u32>(id));
  // typedef void (*btf_trace_x)(void *__data, ...)
  while (type && (btf_is_typedef(type) || btf_is_ptr(type)))
    type = btf__type_by_id(types_.get(), type->type);
  if (!type || !btf_is_func_proto(type) || btf_vlen(type) < 1) return std::nullopt;
  return btf_vlen(type) - 1;
}

// The kernel's NODES_SHIFT, without a file of its configuration, which may be missing: a zonelist
// has MAX_NUMNODES * MAX_NR_ZONES entries and one more.
std::optional<uint32_t> KernelBtf::node_shift() const {
  const auto struct_bytes = [&](const char* name) -> int64_t {
    const int id = btf__find_by_name_kind(types_.get(), name, BTF_KIND_STRUCT);
    return id < 0 ? -1 : btf__resolve_size(types_.get(), static_cast<__u32>(id));
  };
  const int64_t list = struct_bytes("zonelist"), entry = struct_bytes("zoneref");
  for (const auto& [zones, name] : enum_names("zone_type")) {
    if (name != "__MAX_NR_ZONES" || zones == 0 || entry <= 0 || list <= entry) continue;
    const auto nodes = static_cast<uint64_t>(list / entry - 1) / zones;
    return 64 - static_cast<uint32_t>(std::bit_width(nodes) - 1);
  }
  return std::nullopt;
}

std::map<uint32_t, std::string> KernelBtf::enum_names(const std::string& name) const {
  std::map<uint32_t, std::string> names;
  const int id = btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_ENUM);
  if (id < 0) return names;
  const btf_type* type = btf__type_by_id(types_.get(), static_cast<__u32>(id));
  const auto* values = btf_enum(type);
  for (int i = 0; i < btf_vlen(type); ++i)
    if (const char* text = btf__name_by_offset(types_.get(), values[i].name_off))
      names[static_cast<uint32_t>(values[i].val)] = text;
  return names;
}

}  // namespace tierpilot
