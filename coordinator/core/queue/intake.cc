#include "coordinator/core/queue/intake.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "coordinator/model_json.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

std::string digest_of(const std::vector<TaskSpec>& specs) {
  std::string text;
  for (const auto& spec : specs) text += spec_text(spec) + '\n';
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", hash[i]);
  return hex;
}

TaskSpec spec_of_rank(TaskSpec spec) {
  spec.name.clear();
  spec.after.clear();
  spec.gang = {};
  return spec;
}

// Waits until its gang is placed.
Task rank_of(const Task& gang, uint32_t rank, uint64_t id) {
  Task task = gang;
  task.id = id;
  task.state = TaskState::kWaiting;
  task.spec = spec_of_rank(std::move(task.spec));
  task.rank = RankOf{.gang = gang.id, .rank = rank, .cpu_units = {}, .gpus = {}};
  return task;
}

QueueLoad::Load load_of(const std::vector<TaskSpec>& specs) {
  QueueLoad::Load load{specs.size(), 0};
  for (const auto& spec : specs) {
    load.bytes += task_bytes(spec);
    if (!spec.is_gang()) continue;
    load.tasks += spec.gang.most_ranks();
    load.bytes += spec.gang.most_ranks() * task_bytes(spec_of_rank(spec));
  }
  return load;
}

tl::unexpected<Error> other_content(const std::string& request_id) {
  return fail(
      ErrorCode::kConflict,
      fmt::format("request id '{}' was used before with other tasks: draw a new one", request_id));
}

}  // namespace

void Intake::submit(const RequestKey& request, std::vector<TaskSpec> specs, Answer answer) {
  if (request.id.empty() || request.id.size() > kMaxRequestIdBytes)
    return answer(fail(ErrorCode::kInvalid,
                       fmt::format("the request id must have 1 to {} bytes", kMaxRequestIdBytes)));
  const auto digest = digest_of(specs);
  if (auto pending = pending_.find(request); pending != pending_.end()) {
    if (pending->second.digest != digest) return answer(other_content(request.id));
    pending->second.waiting.push_back(std::move(answer));
    return;
  }
  auto before = records::receipt(state_.store.reader(), request);
  if (!before) return answer(tl::unexpected(before.error()));
  if (*before) {
    if ((*before)->digest != digest) return answer(other_content(request.id));
    return answer(**before);
  }
  auto depends_on = admit(specs, state_.catalog, state_.registry, state_.leaving_nodes);
  if (!depends_on) return answer(tl::unexpected(depends_on.error()));
  const auto& limits = state_.settings.queue_limits;
  if (auto room = state_.load.room_for(limits, request.user, load_of(specs)); !room)
    return answer(tl::unexpected(room.error()));
  state_.heed_clock();
  if (auto kept = promises_(specs, coming()); !kept) return answer(tl::unexpected(kept.error()));
  const auto load = load_of(specs);  // as promised
  state_.load.add(request.user, load);

  auto tasks = number(request.user, std::move(specs), *depends_on);
  const SubmitReceipt receipt{state_.last_submission, tasks.front().id, depends_on->size(), digest};
  // A dataset or a node must not be removed between this check and the commit.
  for (const auto& task : tasks) state_.catalog.add_user(task);
  for (const auto& task : tasks)
    if (!task.spec.node.empty()) state_.coming_to.insert(task.spec.node);
  auto& pending = pending_[request] = {digest, {}, {}};
  pending.waiting.push_back(std::move(answer));
  for (const auto& task : tasks)
    if (task.spec.is_shared()) pending.shared.push_back(task.spec);
  auto shared = std::make_shared<const std::vector<Task>>(tasks);
  state_.store.write_first(
      [shared, receipt, request](Db& db) -> Status {
        for (const auto& task : *shared)
          if (auto put = records::put_task(db, task); !put) return put;
        return records::put_receipt(db, request, receipt);
      },
      [this, request, receipt, tasks = std::move(tasks),
       depends_on = std::move(*depends_on)](Status status) mutable {
        committed(request, receipt, std::move(tasks), depends_on, status);
      });
}

std::vector<const TaskSpec*> Intake::coming() const {
  std::vector<const TaskSpec*> specs;
  for (const auto& [_, pending] : pending_)
    for (const auto& spec : pending.shared) specs.push_back(&spec);
  return specs;
}

std::vector<Task> Intake::number(const std::string& user, std::vector<TaskSpec> specs,
                                 const Dependencies& depends_on) {
  const uint64_t submission = ++state_.last_submission;
  std::vector<Task> tasks;
  tasks.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    Task task;
    task.id = ++state_.last_task;
    task.submission = submission;
    task.state = depends_on[i].empty() ? TaskState::kQueued : TaskState::kWaiting;
    task.submitted_ms = state_.clock.wall_ms();
    task.user = user;
    task.spec = std::move(specs[i]);
    if (task.spec.is_due()) task.times_by = offset_of(state_.clock);
    tasks.push_back(std::move(task));
  }
  // Their ids are not told: those that are stand without a gap.
  for (size_t i = 0; i < specs.size(); ++i)
    for (uint32_t rank = 0; rank < tasks[i].spec.gang.most_ranks(); ++rank)
      tasks.push_back(rank_of(tasks[i], rank, ++state_.last_task));
  return tasks;
}

void Intake::committed(const RequestKey& request, const SubmitReceipt& receipt,
                       std::vector<Task> tasks, const Dependencies& depends_on,
                       const Status& status) {
  const auto pending = pending_.extract(request);
  const auto& waiting = pending.mapped().waiting;
  for (const auto& task : tasks) state_.coming_to.extract(task.spec.node);
  if (!status) {
    for (const auto& task : tasks) {
      state_.catalog.remove_user(task);
      state_.load.remove(task.user, {1, task_bytes(task.spec)});
    }
    for (auto& answer : waiting) answer(tl::unexpected(status.error()));
    return;
  }
  std::vector<std::vector<uint64_t>> parents(tasks.size());
  for (size_t i = 0; i < depends_on.size(); ++i)
    for (const size_t parent : depends_on[i]) parents[i].push_back(receipt.first_task + parent);
  std::vector<uint64_t> due;
  for (auto& task : tasks) {
    task.place_s = state_.place_s(task);
    if (task.times_by) due.push_back(task.id);
  }
  state_.tasks.add(std::move(tasks), parents);
  state_.heed_clock_of(due);
  for (auto& answer : waiting) answer(receipt);
  accepted_();
}

}  // namespace tierpilot
