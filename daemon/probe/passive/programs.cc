#include "daemon/probe/passive/programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sysroot.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

// "raw_tp/block_rq_issue" gives "block_rq_issue", "fentry/migrate_pages" gives "migrate_pages".
std::string target_of(const ::bpf_program* program) {
  const std::string section = bpf_program__section_name(program);
  return section.substr(section.find('/') + 1);
}

// Debian's kernels know a level 3, at which CAP_PERFMON is not enough.
std::string perf_open_step(int cpu) {
  const auto level = Sysroot().read_int("/proc/sys/kernel/perf_event_paranoid");
  return fmt::format("perf_event_open of CPU {} with kernel.perf_event_paranoid {}", cpu,
                     level ? std::to_string(*level) : "unknown");
}

}  // namespace

std::string Programs::unavailable(std::string_view what, int err) const {
  return unavailable_reason(what, err, libbpf_reason(), context_.capabilities);
}

std::string_view hook_form_name(HookForm form) {
  return form == HookForm::kFentry ? "fentry" : "kprobe";
}

Error both_refused(const Error& fentry, const Error& kprobe) {
  const std::string_view kPrefix = "unavailable: ";
  const auto bare = [&](const Error& error) {
    const std::string_view message = error.message;
    return message.starts_with(kPrefix) ? message.substr(kPrefix.size()) : message;
  };
  return {ErrorCode::kUnavailable,
          fmt::format("{}fentry: {}; kprobe: {}", kPrefix, bare(fentry), bare(kprobe))};
}

Status Programs::prepare_tracepoint(::bpf_program* program, int args) {
  if (context_.btf) {
    const auto name = target_of(program);
    const auto found = context_.btf->tracepoint_args(name);
    if (!found)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("unavailable: this kernel has no tracepoint {}", name));
    if (*found != args)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("unavailable: tracepoint {} has {} arguments here, {} were expected",
                              name, *found, args));
  }
  // The other way round, tp_btf made raw_tp, libbpf 1.1 crashes without kernel BTF.
  if (type_ == TracepointType::kTpBtf) {
    bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
    bpf_program__set_expected_attach_type(program, BPF_TRACE_RAW_TP);
    const int err = bpf_program__set_attach_target(program, 0, target_of(program).c_str());
    if (err != 0)
      return fail(ErrorCode::kUnavailable, unavailable("tracepoint " + target_of(program), -err));
  }
  return {};
}

Status Programs::want_tracepoint(::bpf_program* program, int args) {
  auto status = prepare_tracepoint(program, args);
  if (status) wanted_.push_back({program, false});
  return status;
}

void Programs::like_tracepoint(::bpf_program* program, int args) {
  if (const auto status = want_tracepoint(program, args); !status) {
    note_shortfall(status.error().message);
    skip(program);
    return;
  }
  wanted_.back().optional = true;
}

void Programs::skip(::bpf_program* program) {
  bpf_program__set_autoload(program, false);
}

void Programs::choose_form(::bpf_object* object, HookForm form) {
  ::bpf_program* program;
  bpf_object__for_each_program(program, object) {
    const std::string_view section = bpf_program__section_name(program);
    const bool typed = section.starts_with("fentry/") || section.starts_with("fexit/");
    const bool probe = section.starts_with("kprobe/") || section.starts_with("kretprobe/");
    if (!typed && !probe) continue;
    if (typed == (form == HookForm::kFentry))
      hooks_.push_back(program);
    else
      skip(program);
  }
}

Status Programs::share_map(::bpf_map* map, const ::bpf_map* loaded) {
  const int err = bpf_map__reuse_fd(map, bpf_map__fd(loaded));
  if (err == 0) return {};
  return fail(ErrorCode::kUnavailable,
              unavailable(fmt::format("sharing BPF map {}", bpf_map__name(loaded)), -err));
}

void Programs::note_shortfall(const std::string& what) {
  shortfall_ += (shortfall_.empty() ? "" : "; ") + what;
}

void Programs::add_attached(const std::vector<::bpf_program*>& programs) {
  attached_.insert(attached_.end(), programs.begin(), programs.end());
}

Status Programs::load(::bpf_object_skeleton* skeleton) {
  ::bpf_map* events = bpf_object__find_map_by_name(*skeleton->obj, "tp_events");
  if (events && context_.events) bpf_map__reuse_fd(events, context_.events.get());
  if (const int err = bpf_object__load_skeleton(skeleton); err != 0)
    return fail(ErrorCode::kUnavailable, unavailable("loading its BPF programs", -err));
  if (events && !context_.events)
    context_.events.reset(::fcntl(bpf_map__fd(events), F_DUPFD_CLOEXEC, 0));
  return {};
}

Status Programs::attach_tracepoint(::bpf_program* program) {
  const auto name = target_of(program);
  ::bpf_link* link = type_ == TracepointType::kTpBtf
                         ? bpf_program__attach_trace(program)
                         : bpf_program__attach_raw_tracepoint(program, name.c_str());
  if (!link)
    return fail(ErrorCode::kUnavailable, unavailable("attaching to tracepoint " + name, errno));
  keep(link, program);
  return {};
}

void Programs::keep(::bpf_link* link, ::bpf_program* program) {
  links_.emplace_back(link);
  if (std::ranges::find(attached_, program) == attached_.end()) attached_.push_back(program);
}

Status Programs::attach_hooks() {
  for (auto* program : hooks_) {
    ::bpf_link* link = bpf_program__attach(program);
    if (!link)
      return fail(ErrorCode::kUnavailable,
                  unavailable("attaching to function " + target_of(program), errno));
    keep(link, program);
  }
  return {};
}

Result<int> Programs::attach_iterator(::bpf_program* program) {
  ::bpf_link* link = bpf_program__attach_iter(program, nullptr);
  if (!link)
    return fail(ErrorCode::kUnavailable,
                unavailable("attaching to iterator " + target_of(program), errno));
  keep(link, program);
  return bpf_link__fd(link);
}

Status Programs::attach_tracepoints() {
  for (const auto& [program, optional] : wanted_) {
    const auto status = attach_tracepoint(program);
    if (!status && !optional) return status;
    if (!status) note_shortfall(status.error().message);
  }
  return {};
}

Status Programs::attach_software_event(::bpf_program* program, uint64_t event, uint64_t period) {
  const auto cpus = Sysroot().read_id_list("/sys/devices/system/cpu/online");
  if (!cpus) return fail(ErrorCode::kUnavailable, "unavailable: " + cpus.error().message);
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = event;
  attr.sample_period = period;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  for (const int cpu : *cpus) {
    UniqueFd fd(
        static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (const int err = errno; !fd)
      return fail(ErrorCode::kUnavailable, unavailable(perf_open_step(cpu), err));
    ::bpf_link* link = bpf_program__attach_perf_event(program, fd.get());
    if (!link)
      return fail(ErrorCode::kUnavailable,
                  unavailable(fmt::format("attaching to software events of CPU {}", cpu), errno));
    (void)fd.release();  // the link closes it
    links_.emplace_back(link);
  }
  attached_.push_back(program);
  return {};
}

}  // namespace tierpilot
