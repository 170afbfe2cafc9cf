#include "daemon/probe/passive/passive_probe.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {
namespace {

struct KnownSubject {
  std::string_view name;
  StartedSubject (*start)(SubjectContext&, TracepointType);
  std::string_view why_off = "";  // by default
};
constexpr std::array<KnownSubject, 7> kSubjects{
    {{"migration", start_migration},
     {"reclaim", start_reclaim},
     {"compaction", start_compaction},
     {"faults", start_faults},
     {"numa_hint", start_numa_hint},
     {"fault_time", start_fault_time, ": timing slows every page fault of the machine"},
     {"block_io", start_block_io}}};

// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;

uint32_t own_pidns_inum() {
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) != 0 || info.st_ino == kFirstPidNamespace) return 0;
  return static_cast<uint32_t>(info.st_ino);
}

// The typed form first; its refusal is the one worth telling.
StartedSubject start_subject(const KnownSubject& known, SubjectContext& context) {
  clear_libbpf_reason();
  if (!context.btf) return known.start(context, TracepointType::kRawTp);
  auto typed = known.start(context, TracepointType::kTpBtf);
  if (typed) return typed;
  auto raw = known.start(context, TracepointType::kRawTp);
  return raw ? std::move(raw) : std::move(typed);
}

SubjectState state_of(std::string_view name, const StartedSubject& subject) {
  SubjectState state{.subject = std::string(name), .on = subject.has_value()};
  if (!subject) {
    state.reason = subject.error().message;
    return state;
  }
  const Programs& programs = (*subject)->programs();
  state.reason = programs.shortfall();
  for (const ::bpf_program* program : programs.attached())
    state.programs.emplace_back(bpf_program__name(program));
  return state;
}

}  // namespace

class PassiveProbe::Impl {
 public:
  explicit Impl(const PassiveOptions& given) : options(given), context{.options = options} {}

  void start();
  void start_stats();
  void open_events();
  static int on_event(void* self, void* data, size_t size);

  const PassiveOptions options;
  SubjectContext context;
  std::vector<SubjectState> states;
  std::vector<std::unique_ptr<Subject>> subjects;
  UniqueFd stats;
  std::string no_stats_reason;
  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring{nullptr, ring_buffer__free};
  std::vector<PassiveEvent> events;
};

void PassiveProbe::Impl::start() {
  capture_libbpf_log();
  context.capabilities = Capabilities::of_self();
  context.pidns_inum = own_pidns_inum();
  auto btf = KernelBtf::load();
  if (btf) {
    context.btf = &*btf;
    context.reasons = btf->enum_names("migrate_reason");
    context.node_shift = btf->node_shift().value_or(64);
  }
  for (const auto& known : kSubjects) {
    if (std::ranges::find(options.subjects, known.name) == options.subjects.end()) {
      states.push_back({std::string(known.name),
                        false,
                        fmt::format("unavailable: turned off{}", known.why_off),
                        {}});
      continue;
    }
    auto subject = start_subject(known, context);
    states.push_back(state_of(known.name, subject));
    if (subject) subjects.push_back(std::move(*subject));
  }
  context.btf = nullptr;
}

void PassiveProbe::Impl::start_stats() {
  if (!options.run_time_stats) {
    no_stats_reason = "unavailable: run time statistics are turned off";
    return;
  }
  stats.reset(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (stats) return;
  const int err = errno;
  if (Sysroot().read_int("/proc/sys/kernel/bpf_stats_enabled").value_or(0) == 1) return;
  no_stats_reason = fmt::format(
      "unavailable: BPF_ENABLE_STATS: {}: it needs CAP_SYS_ADMIN, or an operator who "
      "sets kernel.bpf_stats_enabled to 1",
      std::strerror(err));
}

void PassiveProbe::Impl::open_events() {
  if (context.events) ring.reset(ring_buffer__new(context.events.get(), on_event, this, nullptr));
}

int PassiveProbe::Impl::on_event(void* self, void* data, size_t size) {
  auto& impl = *static_cast<Impl*>(self);
  if (auto event = decode_event(data, size, impl.context.reasons))
    impl.events.push_back(std::move(*event));
  return 0;
}

std::unique_ptr<PassiveProbe> PassiveProbe::start(const PassiveOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  impl->start();
  impl->start_stats();
  impl->open_events();
  // Kernel BTF took some 10 MiB for a moment; give them back.
  ::malloc_trim(0);
  return std::unique_ptr<PassiveProbe>(new PassiveProbe(std::move(impl)));
}

PassiveProbe::PassiveProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PassiveProbe::~PassiveProbe() = default;

const std::vector<SubjectState>& PassiveProbe::subjects() const {
  return impl_->states;
}

PassiveSample PassiveProbe::sample() {
  PassiveSample sample;
  for (const auto& subject : impl_->subjects) subject->sample(sample);
  return sample;
}

void PassiveProbe::track_group(int32_t pgid, const OwnCgroup& cgroup) {
  for (const auto& subject : impl_->subjects) subject->track(pgid, cgroup);
}

void PassiveProbe::track_cgroup(uint64_t id) {
  for (const auto& subject : impl_->subjects) subject->track_cgroup(id);
}

CgroupMemory PassiveProbe::cgroup_memory(uint64_t id) const {
  CgroupMemory cgroup;
  for (const auto& subject : impl_->subjects) subject->read_cgroup(id, cgroup);
  return cgroup;
}

void PassiveProbe::untrack_group(int32_t pgid) {
  for (const auto& subject : impl_->subjects) subject->untrack(pgid);
}

GroupIo PassiveProbe::group_io(int32_t pgid) const {
  GroupIo group;
  for (const auto& subject : impl_->subjects) subject->read_group(pgid, group);
  return group;
}

int PassiveProbe::event_fd() const {
  return impl_->ring ? ring_buffer__epoll_fd(impl_->ring.get()) : -1;
}

std::vector<PassiveEvent> PassiveProbe::drain_events() {
  if (impl_->ring) ring_buffer__consume(impl_->ring.get());
  return std::exchange(impl_->events, {});
}

std::vector<ProgCost> PassiveProbe::costs() const {
  std::vector<ProgCost> costs;
  for (const auto& subject : impl_->subjects) {
    for (const ::bpf_program* program : subject->programs().attached()) {
      bpf_prog_info info{};
      __u32 size = sizeof info;
      if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0) continue;
      costs.push_back({.name = bpf_program__name(program),
                       .id = info.id,
                       .run_time_ns = info.run_time_ns,
                       .run_count = info.run_cnt,
                       .missed_runs = info.recursion_misses});
    }
  }
  return costs;
}

const std::string& PassiveProbe::costs_unavailable() const {
  return impl_->no_stats_reason;
}

}  // namespace tierpilot
