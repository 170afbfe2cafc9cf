#include "daemon/probe/inventory/map_dump.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>

#include "base/unique_fd.h"

namespace tierpilot {
namespace {

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
  void operator()(btf_dump* dump) const { btf_dump__free(dump); }
};

void append_text(void* text, const char* format, va_list args) {
  char piece[512];
  const int size = std::vsnprintf(piece, sizeof piece, format, args);
  if (size > 0)
    static_cast<std::string*>(text)->append(piece, std::min<size_t>(size, sizeof piece - 1));
}

// Decodes keys and values of one map; without BTF as hex.
class Decoder {
 public:
  explicit Decoder(const bpf_map_info& info) : info_(info) {
    if (info.btf_id == 0) return;
    types_.reset(btf__load_from_kernel_by_id(info.btf_id));
    if (types_) dump_.reset(btf_dump__new(types_.get(), append_text, &text_, nullptr));
  }

  std::string key(std::span<const uint8_t> bytes) { return text(info_.btf_key_type_id, bytes); }
  std::string value(std::span<const uint8_t> bytes) { return text(info_.btf_value_type_id, bytes); }

 private:
  std::string text(uint32_t type, std::span<const uint8_t> bytes) {
    text_.clear();
    LIBBPF_OPTS(btf_dump_type_data_opts, opts);
    opts.compact = true;
    const bool decoded =
        dump_ && type != 0 &&
        btf_dump__dump_type_data(dump_.get(), type, bytes.data(), bytes.size(), &opts) >= 0;
    return decoded ? shorten_zeros(text_) : hex_text({bytes.begin(), bytes.end()});
  }

  const bpf_map_info& info_;
  std::string text_;
  std::unique_ptr<btf, FreeBtf> types_;
  std::unique_ptr<btf_dump, FreeBtf> dump_;
};

bool is_per_cpu(uint32_t type) {
  return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
         type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

bool can_be_listed(uint32_t type) {
  return is_per_cpu(type) || type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_HASH ||
         type == BPF_MAP_TYPE_LRU_HASH;
}

// The kernel pads per-CPU values to 8 bytes.
size_t slot_bytes(const bpf_map_info& info) {
  return is_per_cpu(info.type) ? (info.value_size + 7) / 8 * 8 : info.value_size;
}

std::string value_text(Decoder& decoder, const bpf_map_info& info,
                       const std::vector<uint8_t>& raw) {
  const std::span<const uint8_t> bytes(raw);
  if (!is_per_cpu(info.type)) return decoder.value(bytes);
  const size_t slot = slot_bytes(info);
  std::string text;
  for (size_t cpu = 0; (cpu + 1) * slot <= bytes.size(); ++cpu) {
    const auto part = bytes.subspan(cpu * slot, info.value_size);
    if (std::ranges::all_of(part, [](uint8_t byte) { return byte == 0; })) continue;
    text += fmt::format("{}cpu{}: {}", text.empty() ? "" : ", ", cpu, decoder.value(part));
  }
  return text;
}

Result<MapDump> dump_elements(int fd, const bpf_map_info& info, size_t limit) {
  Decoder decoder(info);
  const size_t copies = is_per_cpu(info.type) ? static_cast<size_t>(libbpf_num_possible_cpus()) : 1;
  std::vector<uint8_t> key(info.key_size), next(info.key_size), value(slot_bytes(info) * copies);
  MapDump dump;
  const void* previous = nullptr;
  while (bpf_map_get_next_key(fd, previous, next.data()) == 0) {
    key = next;
    previous = key.data();
    if (dump.elements.size() == limit) {
      dump.truncated = true;
      return dump;
    }
    // An element may vanish between the two calls.
    if (bpf_map_lookup_elem(fd, key.data(), value.data()) != 0) continue;
    dump.elements.push_back({decoder.key(key), value_text(decoder, info, value)});
  }
  return dump;
}

}  // namespace

Result<MapDump> dump_map(uint32_t id, size_t limit) {
  const UniqueFd fd(bpf_map_get_fd_by_id(id));
  if (!fd) return fail_errno(errno, fmt::format("BPF map {}", id));
  bpf_map_info info{};
  __u32 size = sizeof info;
  if (bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0)
    return fail_errno(errno, fmt::format("BPF map {}", id));
  if (!can_be_listed(info.type))
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("BPF map {} ({}) of type {} has no elements that can be listed", id, info.name,
                    libbpf_bpf_map_type_str(static_cast<bpf_map_type>(info.type))));
  return dump_elements(fd.get(), info, limit);
}

std::string shorten_zeros(const std::string& text) {
  constexpr std::string_view kZero = "0,";
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t zeros = 0;
    // But not the end of "10,".
    if (at == 0 || !std::isdigit(static_cast<unsigned char>(text[at - 1])))
      while (text.compare(at + zeros * kZero.size(), kZero.size(), kZero) == 0) ++zeros;
    if (zeros >= 4) {
      result += fmt::format("0 x{},", zeros);
      at += zeros * kZero.size();
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::string hex_text(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  return text;
}

}  // namespace tierpilot
