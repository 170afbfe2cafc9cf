// A coordinator's core on a real store in a temporary directory, with a manual clock and nodes that
// only write down what they are asked.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>

#include "coordinator/core/data/dataset_admin.h"
#include "coordinator/core/gangs/gang_life.h"
#include "coordinator/core/membership/membership.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/core/queue/due_times.h"
#include "coordinator/core/queue/intake.h"
#include "tests/support/fast_folder.h"

namespace tierpilot::testing {

// Stands in for the event loop: callbacks posted by other threads run when the test says so.
class PostQueue {
 public:
  void post(std::function<void()> work) {
    std::lock_guard guard(mutex_);
    work_.push_back(std::move(work));
    wake_.notify_one();
  }
  // Runs what is posted until `done`; false when that takes longer than 20 s.
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      std::unique_lock guard(mutex_);
      if (!wake_.wait_until(guard, deadline, [this] { return !work_.empty(); })) return false;
      auto work = std::move(work_.front());
      work_.pop_front();
      guard.unlock();
      work();
    }
    return true;
  }
  // Who was to be told is gone.
  void clear() {
    std::lock_guard guard(mutex_);
    work_.clear();
  }
  // Until something is posted, which is left there; false when that takes longer than 20 s.
  bool wait() {
    std::unique_lock guard(mutex_);
    return wake_.wait_for(guard, kPatience, [this] { return !work_.empty(); });
  }

 private:
  static constexpr std::chrono::seconds kPatience{20};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
};

class FakeNode final : public NodeLink {
 public:
  void start(const Assignment& assignment, Started done) override {
    started.push_back(assignment.attempt);
    assignments.push_back(assignment);
    done(refusal ? Result<uint16_t>(tl::unexpected(*refusal)) : Result<uint16_t>(29500));
  }
  void cancel(AttemptId attempt, const std::string& reason) override {
    cancelled.emplace_back(attempt, reason);
  }
  void create_dataset(const std::string& name, const DatasetSource& source,
                      std::function<void(Result<DatasetVersion>)> done) override {
    if (std::holds_alternative<FileSource>(source))
      return done(fail(ErrorCode::kNotFound, "dataset '" + name + "': no such file"));
    if (makes_later) return makings.push_back(std::move(done));
    done(DatasetVersion{name, 1, std::get<ZeroSource>(source).bytes, made});
  }
  void drop_dataset(const std::string& name, uint64_t below) override {
    dropped.emplace_back(name, below);
  }
  void discard_version(const DatasetVersion& what) override {
    discarded.emplace_back(what.dataset, what.version);
  }
  void set_home(const DatasetVersion& what, bool home) override {
    (home ? homes : let_go).push_back(what.dataset);
  }
  void keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) override {
    keeps.emplace_back(need, std::move(done));
  }
  void verify_dataset(const DatasetVersion& what,
                      std::function<void(Result<CopyCheck>)> done) override {
    verifies.emplace_back(what, std::move(done));
  }
  // Gives at most `free_milli` thousandths of a unit.
  void set_share(AttemptId attempt, uint32_t milli_units, Shared done) override {
    shares.emplace_back(attempt, std::min(milli_units, free_milli));
    done(shares.back().second);
  }
  void tell_job(AttemptId attempt, const JobAdvice& advice) override {
    told.emplace_back(attempt, advice);
  }
  void release(AttemptId attempt) override { released.push_back(attempt); }

  std::optional<Error> refusal;  // of every start
  std::vector<AttemptId> started, released;
  std::vector<Assignment> assignments;
  std::vector<std::pair<AttemptId, std::string>> cancelled;
  std::vector<std::pair<std::string, uint64_t>> dropped, discarded;
  std::vector<std::string> homes, let_go;
  std::vector<std::pair<AttemptId, uint32_t>> shares;
  std::vector<std::pair<AttemptId, JobAdvice>> told;
  uint32_t free_milli = UINT32_MAX;
  ContentDigest made{};  // of datasets that are created here
  bool makes_later = false;
  std::vector<std::function<void(Result<DatasetVersion>)>> makings;  // then
  std::vector<std::pair<DatasetNeed, std::function<void(Status)>>> keeps;
  std::vector<std::pair<DatasetVersion, std::function<void(Result<CopyCheck>)>>> verifies;
};

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '-');  // a parameter's, or a folder around this one stayed
    directory_ = fast_folder() / ("tierpilot-core-" + std::to_string(::getpid()) + "-" + name);
    std::filesystem::remove_all(directory_);
    open();
  }
  ~CoreTest() override {
    held_ = {};  // a test that has failed may not have let go of the disk
    close();
    std::filesystem::remove_all(directory_);
  }

  // As a restart of the coordinator would.
  void open() {
    auto opened = Store::open(directory_, [this](auto work) { posts_.post(std::move(work)); });
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    state_ = std::make_unique<ClusterState>(
        ClusterState{.settings = settings_, .clock = clock_, .store = *store_});
    lifecycle_ = std::make_unique<Lifecycle>(
        *state_,
        Lifecycle::Hooks{
            [] {}, [this](uint64_t id) { ended_.push_back(id); },
            [](AttemptId, const ServedData&) {}, [](AttemptId, bool) {},
            [this](Task& rank) { gangs_->rank_started(rank); },
            [this](Task& rank, const Verdict& verdict) { gangs_->rank_over(rank, verdict); },
            [this](Task& gang, const std::string& why) { gangs_->stop(gang, why); },
            [this](const Task& task) {
              if (elastic_started_) elastic_started_(task);
            },
            [this](const Task& task, bool succeeded) {
              if (share_ended_) share_ended_(task, succeeded);
            }});
    due_times_ = std::make_unique<DueTimes>(*state_, *lifecycle_);
    gangs_ = std::make_unique<GangLife>(*state_, *lifecycle_, [this](int64_t us, auto work) {
      later_.emplace(clock_.boot_ns() + us * 1000, std::move(work));
    });
    intake_ = std::make_unique<Intake>(
        *state_, [](const auto&, const auto&) { return Status(); }, [] {});
    membership_ = std::make_unique<Membership>(*state_, *lifecycle_);
    datasets_ = std::make_unique<DatasetAdmin>(*state_, [] {});
    ASSERT_TRUE(restore(*state_));
    due_times_->begin();
    gangs_->begin();
  }
  void close() {
    datasets_.reset();
    membership_.reset();
    intake_.reset();
    later_.clear();
    gangs_.reset();
    due_times_.reset();
    lifecycle_.reset();
    state_.reset();
    store_.reset();
    posts_.clear();
  }
  void restart() {
    close();
    open();
  }

  static TaskSpec spec(const std::string& name = {}, std::vector<std::string> after = {}) {
    TaskSpec spec;
    spec.name = name;
    spec.argv = {"true"};
    spec.after = std::move(after);
    return spec;
  }

  Result<SubmitReceipt> submit(std::vector<TaskSpec> specs, const std::string& request = {}) {
    std::optional<Result<SubmitReceipt>> answer;
    intake_->submit({"tester", request.empty() ? "r" + std::to_string(++requests_) : request},
                    std::move(specs), [&](auto result) { answer = std::move(result); });
    EXPECT_TRUE(posts_.run_until([&] { return answer.has_value(); }));
    return *answer;
  }

  // Waits for all writes so far.
  void flush() {
    bool written = false;
    store_->write([](Db&) { return Status{}; }, [&](Status) { written = true; });
    ASSERT_TRUE(posts_.run_until([&] { return written; }));
  }

  // Until release_disk(), nothing is written.
  void hold_disk() {
    held_ = {};
    store_->write(
        [until = std::make_shared<std::future<void>>(held_.get_future())](Db&) -> Status {
          until->wait();
          return {};
        },
        nullptr);
  }
  void release_disk() {
    held_.set_value();
    flush();
  }

  // While it is full, nothing of tasks, nodes and settings is written.
  void set_disk_full(bool full);
  // What could not be written is tried once more, as it is every second.
  void retry() {
    state_->owed.retry();
    lifecycle_->writes().retry();
    flush();
  }

  std::shared_ptr<FakeNode> join(const std::string& name, uint64_t instance = 7,
                                 std::set<AttemptId> live = {}) {
    auto link = std::make_shared<FakeNode>();
    auto ticket = membership_->join(facts(name, instance), link, {}, live);
    EXPECT_TRUE(ticket) << ticket.error().message;
    if (ticket) tickets_[name] = *ticket;
    return link;
  }

  static NodeFacts facts(const std::string& name, uint64_t instance = 7) {
    return {name, instance, 2, 1 << 30, 64 << 20, "unix:/" + name, 1.0, {}};
  }

  void add_dataset(const std::string& name, uint64_t bytes, const std::string& node) {
    std::optional<Result<Dataset>> made;
    datasets_->add("", name, ZeroSource{bytes}, node,
                   [&](auto result) { made = std::move(result); });
    ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
    ASSERT_TRUE(*made) << made->error().message;
  }

  // What the dispatcher does once a decision is on disk.
  AttemptId assign(uint64_t id, const std::string& node) {
    auto& task = *state_->tasks.find(id);
    state_->tasks.advance(task, TaskState::kAssigned);
    ++task.attempt;
    task.node = node;
    auto& record = *state_->registry.find(node);
    state_->registry.assign(record, {id, task.attempt}, task.spec.units, task.spec.swap_room_bytes);
    state_->catalog.lock_writes(task);
    for (const auto& use : task.spec.datasets)
      task.data_versions[use.dataset] = state_->catalog.find(use.dataset)->dataset.version;
    store_->write([copy = task](Db& db) { return records_put(db, copy); }, nullptr);
    return {id, task.attempt};
  }

  Status cancel(uint64_t id) {
    std::optional<Status> durable;
    lifecycle_->cancel(id, [&](Status status) { durable = std::move(status); });
    EXPECT_TRUE(posts_.run_until([&] { return durable.has_value(); }));
    return *durable;
  }

  Status exit(const std::string& node, AttemptId attempt, TaskExit how) {
    std::optional<Status> durable;
    lifecycle_->exited(node, attempt, std::move(how), [&](Status status) { durable = status; });
    EXPECT_TRUE(posts_.run_until([&] { return durable.has_value(); }));
    return *durable;
  }

  static TaskExit success() {
    TaskExit exit;
    exit.how = TaskEnd::kExited;
    return exit;
  }
  static TaskExit failure(int code) {
    TaskExit exit;
    exit.how = TaskEnd::kExited;
    exit.code = code;
    return exit;
  }

  std::optional<Task> stored(uint64_t id);
  static Status records_put(Db& db, const Task& task);

  CoreSettings settings_;
  ManualClock clock_;
  PostQueue posts_;
  std::filesystem::path directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ClusterState> state_;
  std::unique_ptr<Lifecycle> lifecycle_;
  std::unique_ptr<DueTimes> due_times_;
  std::unique_ptr<GangLife> gangs_;
  std::multimap<int64_t, std::function<void()>> later_;  // by boot time
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<DatasetAdmin> datasets_;
  std::map<std::string, Membership::Ticket> tickets_;
  std::vector<uint64_t> ended_;
  std::function<void(const Task&)> elastic_started_;
  std::function<void(const Task&, bool)> share_ended_;
  int requests_ = 0;
  std::promise<void> held_;
};

}  // namespace tierpilot::testing
