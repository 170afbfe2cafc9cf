#include "policies/sim/gang/gang_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <queue>
#include <set>

#include "policies/sim/gang/data_places.h"
#include "policies/sim/gang/unit_knowledge.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kMaxRuns = 10'000;  // of a job: then it counts as unfinished

struct Event {
  double at_h;
  enum Kind : uint8_t { kArrival, kRunEnd, kRepaired, kNodeOut, kNodeBack } kind;
  uint32_t what;  // job, unit or node
  bool operator>(const Event& other) const {
    return std::tie(at_h, kind, what) > std::tie(other.at_h, other.kind, other.what);
  }
};

// Of a job.
struct Course {
  double left_h = 0;
  double fetched_h = 0;
  double began_h = 0;
  double stretch = 1;     // wall over work, without failures
  double interval_h = 0;  // of work, between checkpoints
  uint32_t runs = 0;
  std::vector<uint32_t> units;
  std::set<uint32_t> nodes;
  double end_h = 0;
  uint32_t failed = UINT32_MAX;  // the unit that ends this run
};

// No placement can be faster: all units busy from the first arrival on without a failure, or one
// job that begins when it arrives.
double least_makespan_h(const GangScene& scene) {
  double unit_h = 0;
  double least_h = 0;
  for (const auto& job : scene.jobs) {
    unit_h += job.work_h * job.units;
    least_h = std::max(least_h, job.arrival_h - scene.jobs.front().arrival_h + job.work_h);
  }
  return std::max(least_h, unit_h / scene.units);
}

PlacementState all_free(const GangScene& scene) {
  PlacementState state;
  state.units_per_node = scene.units_per_node;
  state.costs = scene.costs;
  state.next_failure_h = [&scene](uint32_t unit, double after_h) {
    return scene.failures.next(unit, after_h);
  };
  for (uint32_t unit = 0; unit < scene.units; ++unit)
    state.node.push_back(unit / scene.units_per_node);
  state.free.assign(scene.units, true);
  return state;
}

class Simulation {
 public:
  Simulation(const GangScene& scene, Placer& placer)
      : scene_(scene),
        placer_(placer),
        state_(all_free(scene)),
        knowledge_(scene, state_),
        data_(scene) {
    courses_.resize(scene.jobs.size());
    for (uint32_t job = 0; job < scene.jobs.size(); ++job) {
      courses_[job].left_h = scene.jobs[job].work_h;
      events_.push({scene.jobs[job].arrival_h, Event::kArrival, job});
    }
    outages_of_.resize(state_.node.back() + 1);
    for (const auto& outage : scene.outages) expect(outage);
  }

  GangResult run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      state_.now_h = event.at_h;
      happen(event);
      if (events_.empty() || events_.top().at_h > state_.now_h) serve();
    }
    return summary();
  }

 private:
  void happen(const Event& event) {
    switch (event.kind) {
      case Event::kArrival:
        return queue_.push_back(event.what);
      case Event::kRunEnd:
        return end_run(event.what);
      case Event::kRepaired:
        state_.free[event.what] = true;
        return;
      case Event::kNodeOut:
        return node_out(event.what);
      case Event::kNodeBack:
        return node_back(event.what);
    }
  }

  void expect(const Outage& outage) {
    if (outage.until_h < 0) return;
    events_.push({outage.until_h, Event::kNodeBack, outage.node});
    if (outage.from_h > 0)
      events_.push({outage.from_h, Event::kNodeOut, outage.node});
    else
      take_out(outage.node);
  }

  void take_out(uint32_t node) {
    ++outages_of_[node];
    for_units_of(node, [&](uint32_t unit) { state_.free[unit] = false; });
  }

  // Jobs that the node had have ended by now: runs end before it at the same time.
  void node_out(uint32_t node) {
    take_out(node);
    for_units_of(node, [&](uint32_t unit) { knowledge_.failed(unit); });
    knowledge_.told_until_now();
  }

  void node_back(uint32_t node) {
    if (--outages_of_[node] == 0)
      for_units_of(node, [&](uint32_t unit) { state_.free[unit] = true; });
  }

  void for_units_of(uint32_t node, const std::function<void(uint32_t)>& act) {
    const uint32_t begin = node * scene_.units_per_node;
    const uint32_t end = std::min(begin + scene_.units_per_node, scene_.units);
    for (uint32_t unit = begin; unit < end; ++unit) act(unit);
  }

  void serve() {
    auto free = static_cast<uint32_t>(std::count(state_.free.begin(), state_.free.end(), true));
    state_.waiting_units = 0;
    for (const uint32_t waiting : queue_) state_.waiting_units += scene_.jobs[waiting].units;
    for (auto at = queue_.begin(); at != queue_.end() && free > 0;) {
      const Job& job = scene_.jobs[*at];
      if (job.units > free) {
        if (state_.now_h - job.arrival_h > kPatienceH) return;
        ++at;
        continue;
      }
      state_.waiting_units -= job.units;
      Job told = job;
      told.work_h = courses_[*at].left_h * job.estimate;
      state_.fetch_h = data_.fetch_h(*at);
      start(*at, placer_.place(state_, told));
      free -= job.units;
      at = queue_.erase(at);
    }
  }

  void start(uint32_t number, std::vector<uint32_t> units) {
    const Job& job = scene_.jobs[number];
    Course& course = courses_[number];
    double rate = 0;
    std::set<uint32_t> nodes;
    for (const uint32_t unit : units) {
      knowledge_.look_again(unit, false);
      rate += state_.per_h[unit];
      nodes.insert(state_.node_of(unit));
      state_.free[unit] = false;
    }
    const double speed = speed_of(job.network, job.units, static_cast<uint32_t>(nodes.size()),
                                  scene_.units_per_node);
    const double wall_h = checkpoint_interval_h(scene_.costs, rate);
    course.interval_h = wall_h * speed;
    course.stretch = (1 + scene_.costs.checkpoint_h / wall_h) / speed;
    course.fetched_h = state_.now_h + fetch_hours(state_, units);
    course.began_h = course.fetched_h + (course.runs > 0 ? scene_.costs.restart_h : 0);
    course.end_h = course.began_h + course.left_h * course.stretch;
    course.failed = UINT32_MAX;
    for (const uint32_t unit : units)
      if (const double at_h = scene_.failures.next(unit, std::nextafter(state_.now_h, 1e300));
          at_h < course.end_h) {
        course.end_h = at_h;
        course.failed = unit;
      }
    fetch_unit_h_ += job.units * (std::min(course.fetched_h, course.end_h) - state_.now_h);
    course.nodes = std::move(nodes);
    course.units = std::move(units);
    ++course.runs;
    events_.push({course.end_h, Event::kRunEnd, number});
  }

  void end_run(uint32_t number) {
    Course& course = courses_[number];
    const Job& job = scene_.jobs[number];
    for (const uint32_t unit : course.units) {
      knowledge_.look_again(unit, true);
      state_.free[unit] = true;
    }
    double kept_h = course.left_h;
    if (course.failed != UINT32_MAX) {
      const double done_h = std::max(state_.now_h - course.began_h, 0.0) / course.stretch;
      kept_h = std::min(std::floor(done_h / course.interval_h) * course.interval_h, course.left_h);
      lost_unit_h_ +=
          job.units * (std::max(state_.now_h - course.fetched_h, 0.0) - kept_h * course.stretch);
      if (state_.now_h > course.fetched_h) data_.ran(number, course.nodes);
      fail_unit(course.failed);
    }
    useful_unit_h_ += kept_h * job.units;
    course.left_h -= kept_h;
    course.units.clear();
    if (course.failed == UINT32_MAX || course.left_h <= 0) {
      completions_.push_back({number, state_.now_h});
      return;
    }
    ++restarts_;
    if (course.runs < kMaxRuns) queue_.push_front(number);
  }

  void fail_unit(uint32_t unit) {
    if (!scene_.outages.empty()) return;  // the node's outage comes at the same time
    knowledge_.failed(unit);
    state_.free[unit] = false;
    events_.push({state_.now_h + scene_.costs.repair_h, Event::kRepaired, unit});
  }

  GangResult summary() const {
    GangResult result;
    std::vector<double> hours;
    std::map<uint32_t, std::pair<double, double>> users;  // completion over work, jobs
    for (const auto& [number, at_h] : completions_) {
      const Job& job = scene_.jobs[number];
      hours.push_back(at_h - job.arrival_h);
      result.makespan_h = std::max(result.makespan_h, at_h - scene_.jobs.front().arrival_h);
      users[job.user].first += hours.back() / job.work_h;
      users[job.user].second += 1;
    }
    result.restarts = restarts_;
    result.unfinished = scene_.jobs.size() - completions_.size();
    result.fetch_unit_h = fetch_unit_h_;
    result.lost_unit_h = lost_unit_h_;
    result.bound_h = least_makespan_h(scene_);
    if (hours.empty()) return result;
    std::sort(hours.begin(), hours.end());
    result.mean_completion_h =
        std::accumulate(hours.begin(), hours.end(), 0.0) / static_cast<double>(hours.size());
    result.p99_completion_h = hours[(hours.size() - 1) * 99 / 100];
    result.utilisation = useful_unit_h_ / (result.makespan_h * scene_.units);
    double sum = 0, squares = 0;
    for (const auto& [user, slowdown] : users) {
      sum += slowdown.first / slowdown.second;
      squares += std::pow(slowdown.first / slowdown.second, 2);
    }
    result.fairness = sum * sum / (squares * static_cast<double>(users.size()));
    return result;
  }

  const GangScene& scene_;
  Placer& placer_;
  PlacementState state_;
  UnitKnowledge knowledge_;
  DataPlaces data_;
  std::vector<uint32_t> outages_of_;  // each node: those that it is in now
  std::vector<Course> courses_;
  std::deque<uint32_t> queue_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::pair<uint32_t, double>> completions_;
  uint64_t restarts_ = 0;
  double fetch_unit_h_ = 0;
  double lost_unit_h_ = 0;
  double useful_unit_h_ = 0;
};

}  // namespace

GangResult simulate(const GangScene& scene, Placer& placer) {
  return Simulation(scene, placer).run();
}

}  // namespace tierpilot::gang
