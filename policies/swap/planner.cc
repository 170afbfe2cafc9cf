#include "policies/swap/planner.h"

#include <algorithm>

#include "base/random.h"
#include "policies/swap/bound/bound.h"
#include "policies/swap/bound/peak_plans.h"
#include "policies/swap/capuchin.h"
#include "policies/swap/cover.h"
#include "policies/swap/link/link_use.h"
#include "policies/swap/link/linked_eviction.h"
#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/recording.h"
#include "policies/swap/rival_plans.h"
#include "policies/swap/scores.h"

namespace tierpilot::swap {
namespace {

constexpr int kMostTrials = 6'000;
constexpr double kFirstShare = 0.5;  // of them, before plans of the tightest point
// Of the search's trials: what varies costs of a cover, factors on scores, and absences; over a
// link the rest changes ways.
constexpr double kPeakShare = 0.3, kCoverShare = 0.15, kScoreShare = 0.25, kLinkedShare = 0.35, kAbsenceShare = 0.25;
constexpr Position kShortGap = 8;  // operators
constexpr size_t kLate = 40;
constexpr double kReturn = 0.01;
constexpr double kPromising = 1.6;
constexpr double kQuickTie = 1.03;  // as in CoverSettings
constexpr int64_t kMostQuickLooks = 300'000;  // of one score, at candidates
constexpr int kSlowScore = 20;  // further trials that one takes which sums up what is evicted

struct Knobs {
  double slack = 0;  // share of the budget that the cover leaves free, for what is recomputed
  double shared_cost = 0.5;
  double link_price = 0.1;
  bool on_time = false;  // copies have their times on the link
};

bool better(const Outcome& a, const Outcome& b) {
  if (a.done != b.done) return a.done;
  return a.done ? a.clock_ns < b.clock_ns : false;
}

class Search {
 public:
  Search(const Graph& graph, const PlannerSettings& settings)
      : graph_(graph),
        settings_(settings),
        timetable_(graph),
        best_timetable_(timetable_),
        random_(derived_seed(settings.seed, "plan")) {}

  Planned run() {
    const bool quick = settings_.work == kQuickWork, link = settings_.limits.link.exists();
    if (quick && settings_.limits.recompute) {
      try_cover({}, {});
      if (link) sweep_link({0.3, 1.0}, true);
    } else {
      sweep();
    }
    if (settings_.limits.recompute) {
      // A replay that is behind the best is given up: the fast ones come first.
      if (quick) try_rivals();
      try_scores(quick);  // they drop
      if (!quick) try_rivals();
      if (!quick)
        try_segments();
      else if (link)
        try_link(Plan(best_.plan), Timetable(best_timetable_), {0.1, 0.3, 1.0});
    }
    if (!quick) {
      vary(kFirstShare);
      if (settings_.limits.recompute) try_peak();
      begin_walk();
      vary(1 - kFirstShare);
    }
    best_.trials = done_;
    return std::move(best_);
  }

 private:
  // By chance, around the best: `share` of the trials.
  void vary(double share) {
    const bool link = settings_.limits.link.exists();
    const auto size = std::max<size_t>(graph_.operators.size(), 1);
    const auto trials = std::min<size_t>(settings_.work / size, kMostTrials);
    const auto most = done_ + static_cast<int>(share * static_cast<double>(trials));
    while (done_ < most) {
      const double draw = random_.unit();
      if (is_promising(peaked_) && random_.chance(kPeakShare))
        vary_peak();
      else if (draw < kCoverShare)
        vary_costs();
      else if (draw < kCoverShare + kScoreShare && !link &&
               score_.score.cost == Score::Cost::kClasses)
        vary_scores();
      else if (draw < kCoverShare + kLinkedShare && is_promising(linked_))
        vary_linked();
      else if (link && settings_.limits.recompute && draw < 1 - kAbsenceShare)
        vary_ways();
      else if (settings_.limits.recompute)
        vary_absences();
      else
        vary_costs();
    }
  }

  // Whether it is the best so far. The timetable is the one that the manager goes by. A replay is
  // given up where its overhead will be so many times that of the best.
  bool attempt(Manager& manager, const Timetable& timetable, std::string_view origin,
               Outcome* seen = nullptr, double patience = 1) {
    ++done_;
    Recording recording(graph_, manager);
    auto limits = settings_.limits;
    if (best_.outcome.done) {
      const auto over_ns = best_.outcome.clock_ns - 1 - best_.outcome.base_time_ns;
      limits.give_up_ns = 1 + best_.outcome.base_time_ns +
                          static_cast<int64_t>(patience * static_cast<double>(over_ns));
    }
    const auto outcome = run_step(graph_, limits, recording);
    if (seen) *seen = outcome;
    if (done_ > 1 && !better(outcome, best_.outcome)) return false;
    best_.plan = recording.plan();
    best_.outcome = outcome;
    best_timetable_ = timetable;
    if (!origin.empty()) best_.origin = std::string(origin);
    return true;
  }

  bool try_plan(const Plan& plan, const Timetable& timetable, std::string_view origin) {
    PlannedEviction manager(graph_, timetable, plan, settings_.limits.link);
    return attempt(manager, timetable, origin);
  }

  // A change of the best one. It may count on uses that the program itself has not.
  void try_change(const Plan& plan, const Timetable& timetable) {
    for (const auto following : {Following::kMending, Following::kStrict}) {
      PlannedEviction manager(graph_, timetable, plan, settings_.limits.link, following);
      attempt(manager, timetable, {});
    }
  }

  struct Walk {
    Plan plan;
    Timetable timetable;
    Outcome outcome;
  };

  // A walk from plan to plan by changes, which may also go to a worse one: not worse than where it
  // was some changes ago (Burke and Bykov, The Late Acceptance Hill-Climbing Heuristic, 2017).
  void begin_walk() {
    walk_ = {best_.plan, best_timetable_, best_.outcome};
    late_ns_.assign(kLate, best_.outcome.clock_ns);
  }

  bool walking() const { return !late_ns_.empty(); }

  // What changes start from.
  Walk here() const { return walking() ? walk_ : Walk{best_.plan, best_timetable_, {}}; }

  void walk_to(const Plan& plan, const Timetable& timetable) {
    if (!walking()) return try_change(plan, timetable);
    auto& late_ns = late_ns_[steps_++ % kLate];
    for (const auto following : {Following::kMending, Following::kStrict}) {
      PlannedEviction manager(graph_, timetable, plan, settings_.limits.link, following);
      ++done_;
      Recording recording(graph_, manager);
      auto limits = settings_.limits;
      if (walk_.outcome.done)
        limits.give_up_ns = std::max(late_ns, walk_.outcome.clock_ns) + 1;
      const auto outcome = run_step(graph_, limits, recording);
      if (!outcome.done) continue;
      walk_ = {recording.plan(), timetable, outcome};
      if (!better(outcome, best_.outcome)) continue;
      best_.plan = walk_.plan;
      best_.outcome = outcome;
      best_timetable_ = timetable;
    }
    if (better(best_.outcome, walk_.outcome) && random_.chance(kReturn))
      walk_ = {best_.plan, best_timetable_, best_.outcome};
    late_ns = walk_.outcome.clock_ns;
  }

  bool try_cover(const Knobs& knobs, std::span<const float> bias) {
    const auto& limits = settings_.limits;
    const double budget = static_cast<double>(limits.budget_bytes) * (1 - knobs.slack);
    const auto plan = Cover(graph_, timetable_,
                            {.budget_bytes = static_cast<int64_t>(budget),
                             .shared_cost = knobs.shared_cost,
                             .link_price = knobs.link_price,
                             .on_time = knobs.on_time,
                             .link = limits.link,
                             .recompute = limits.recompute,
                             .tie = settings_.work == kQuickWork ? kQuickTie : 1.0001,
                             .bias = bias})
                          .plan();
    if (!try_plan(plan, timetable_, "cover")) return false;
    knobs_ = knobs;
    return true;
  }

  bool try_score(const NamedScore& named, const std::vector<float>* bias) {
    ScoredEviction manager(graph_, named.score, settings_.seed, near());
    if (bias) manager.set_bias(*bias);
    if (settings_.work == kQuickWork) manager.set_most_looks(kMostQuickLooks);
    if (!attempt(manager, timetable_, named.name)) return false;
    score_ = named;
    return true;
  }

  // What scores decide, and that as a plan, followed with look-ahead. Classes are the fast ones.
  void try_scores(bool quick) {
    for (const auto list : {own_scores(), rival_scores()})
      for (const auto& named : list) {
        if (named.score.random || (quick && named.score.cost != Score::Cost::kClasses)) continue;
        if (try_score(named, nullptr) && !quick) try_plan(Plan(best_.plan), timetable_, {});
      }
  }

  // As published, and mended where they do not fit.
  void follow(const Timetable& timetable, const Plan& plan, std::string_view name) {
    for (const auto following : {Following::kStrict, Following::kMending}) {
      PlannedEviction manager(graph_, timetable, plan, settings_.limits.link, following);
      attempt(manager, timetable, name);
    }
  }

  void try_segments() {
    std::vector<std::pair<Plan, Timetable>> segments;
    for (const double factor :
         {0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.2, 1.4, 1.7, 2.0, 3.0}) {
      auto timetable = timetable_;
      const auto plan = checkpoint_plan(graph_, timetable, factor);
      if (!plan) continue;
      follow(timetable, *plan, "checkpoint");
      segments.emplace_back(*plan, std::move(timetable));
    }
    if (!settings_.limits.link.exists()) return;
    try_linked();
    const auto shares = {0.02, 0.05, 0.1, 0.2, 0.4, 1.0};
    try_link(Plan(best_.plan), Timetable(best_timetable_), shares);
    for (const auto& [plan, timetable] : segments) try_link(plan, timetable, shares);
  }

  void try_rivals() {
    const auto& limits = settings_.limits;
    for (const auto* name : {"checkpoint", "swap-all"}) {
      auto timetable = timetable_;
      const auto plan = rival_plan(name, graph_, timetable, limits);
      if (plan) follow(timetable, *plan, name);
    }
    for (const auto& plan : capuchin_plans(graph_, timetable_, limits))
      follow(timetable_, plan, "capuchin");
  }

  // What is cheapest where most has to be away.
  void try_peak() {
    peak_ = tightest(graph_, timetable_, settings_.limits);
    if (peak_ == kNone) return;
    std::vector<PeakShares> shares;
    const bool link = settings_.limits.link.exists();
    for (const double carried : {1.0, 0.93, 0.8, 0.5, 0.0})
      for (const double slack : {0.0, 0.04, 0.1, 0.2, 0.4})
        if (link || carried == 0) shares.push_back({slack, carried});
    // Layers that are alike are told apart by where they stand.
    for (const double slope : {0.0, -0.03, 0.03}) {
      std::vector<float> factors(graph_.operators.size());
      for (size_t op = 0; op < factors.size(); ++op)
        factors[op] = static_cast<float>(1 + slope * static_cast<double>(op) /
                                                 static_cast<double>(factors.size()));
      peak_plans(graph_, timetable_, settings_.limits, peak_, factors, shares,
                 [&](const PeakChoice& choice, const Plan& plan, const Timetable& timetable) {
                   try_peak(choice, factors, plan, timetable);
                   try_covered(plan, timetable);
                 });
    }
  }

  // With what has to leave elsewhere.
  void try_covered(const Plan& plan, const Timetable& timetable) {
    const auto& limits = settings_.limits;
    const auto covered = Cover(graph_, timetable,
                               {.budget_bytes = limits.budget_bytes,
                                .on_time = limits.link.exists(),
                                .link = limits.link,
                                .recompute = limits.recompute})
                             .plan(plan);
    follow(timetable, covered, "peak");
  }

  struct Peaked {
    PeakChoice choice;
    std::vector<float> factors;
    Outcome outcome{};
  };

  void try_peak(const PeakChoice& choice, const std::vector<float>& factors, const Plan& plan,
                const Timetable& timetable) {
    for (const auto following : {Following::kMending, Following::kStrict}) {
      PlannedEviction manager(graph_, timetable, plan, settings_.limits.link, following);
      Outcome outcome;
      attempt(manager, timetable, "peak", &outcome, kPromising);
      if (!peaked_ || better(outcome, peaked_->outcome)) peaked_ = {choice, factors, outcome};
    }
  }

  void vary_peak() {
    auto choice = peaked_->choice;
    choice.price *= random_.log_uniform(0.8, 1.25);
    if (random_.chance(0.5))
      choice.slack = std::clamp(choice.slack + 0.1 * (random_.unit() - 0.5), -0.1, 0.6);
    auto factors = peaked_->factors;
    if (factors.empty()) factors.assign(graph_.operators.size(), 1);
    const double share = random_.log_uniform(0.005, 0.3);
    for (auto& factor : factors)
      if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.5, 2));
    peak_plan(graph_, timetable_, settings_.limits, peak_, choice, factors,
              [&](const PeakChoice&, const Plan& plan, const Timetable& timetable) {
                try_peak(choice, factors, plan, timetable);
              });
  }

  // Scores decide what is dropped, and the longest to recompute leaves over the link before.
  void try_linked() {
    Plan all{.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
      if (auto absence = long_absence(graph_, timetable_, storage)) {
        absence->action = Action::kRecompute;
        all.absences[storage].push_back(*absence);
      }
    for (const double share : {0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 1.0}) {
      auto timetable = timetable_;
      const auto plan = with_link(graph_, timetable, settings_.limits.link, all, share);
      try_linked({plan, timetable, own_scores().front()});
    }
    for (const auto& named : own_scores())
      if (!named.score.look_ahead && is_promising(linked_))
        try_linked({linked_->plan, linked_->timetable, named});
  }

  struct Linked {
    Plan plan;  // what leaves over the link, and what could
    Timetable timetable;
    NamedScore score;
    Outcome outcome{};
  };

  void try_linked(Linked linked) {
    LinkedEviction manager(graph_, linked.timetable, linked.plan, linked.score.score,
                           settings_.limits.link, settings_.seed, near());
    attempt(manager, linked.timetable, linked.score.name, &linked.outcome, kPromising);
    if (linked.score.score.cost != Score::Cost::kClasses) done_ += kSlowScore;
    if (!linked_ || better(linked.outcome, linked_->outcome)) linked_ = std::move(linked);
  }

  // Not far behind the best.
  template <class Candidate>
  bool is_promising(const std::optional<Candidate>& found) const {
    return found && found->outcome.done &&
           found->outcome.overhead() - 1 < kPromising * (best_.outcome.overhead() - 1);
  }

  void vary_linked() {
    auto linked = *linked_;
    linked.outcome = {};
    if (change_ways(linked.plan, linked.timetable)) try_linked(std::move(linked));
  }

  // With a part of it over the link.
  void try_link(const Plan& plan, const Timetable& known, std::initializer_list<double> shares) {
    for (const double share : shares) {
      auto timetable = known;
      const auto changed = with_link(graph_, timetable, settings_.limits.link, plan, share);
      try_change(changed, timetable);
    }
  }

  // One setting after the other, each from the best of those before.
  void sweep() {
    try_cover(Knobs{}, {});
    for (const double slack : {0.03, 0.07, 0.12, 0.2, 0.35}) {
      auto knobs = knobs_;
      knobs.slack = slack;
      try_cover(knobs, {});
    }
    if (settings_.limits.recompute) {
      for (const double shared : {0.0, 1.0}) {
        auto knobs = knobs_;
        knobs.shared_cost = shared;
        try_cover(knobs, {});
      }
    }
    if (!settings_.limits.link.exists()) return;
    // Where all is copied one price is as good as another.
    if (!settings_.limits.recompute) return sweep_link({0.3}, true);
    sweep_link({0.02, 0.4, 1.0, 3.0}, false);
    sweep_link({0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5}, true);
  }

  // The dearer the link's time, the fewer leave over it, those that are the longest to recompute.
  void sweep_link(std::initializer_list<double> prices, bool on_time) {
    for (const double price : prices) {
      auto knobs = knobs_;
      knobs.link_price = price;
      knobs.on_time = on_time;
      try_cover(knobs, {});
    }
  }

  // Evolution with one parent: some costs change, and stay changed where the replay got shorter.
  void vary_costs() {
    if (bias_.empty()) bias_.assign(graph_.storages.size(), 1);
    auto child = bias_;
    auto knobs = knobs_;
    if (random_.chance(0.3))
      knobs.slack = std::clamp(knobs.slack + 0.06 * (random_.unit() - 0.5), 0.0, 0.6);
    const double share = random_.log_uniform(0.01, 0.5);
    for (auto& factor : child)
      if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.5, 2));
    if (try_cover(knobs, child)) bias_ = std::move(child);
  }

  void vary_scores() {
    if (score_bias_.empty()) score_bias_.assign(graph_.storages.size(), 1);
    auto child = score_bias_;
    const double share = random_.log_uniform(0.01, 0.3);
    for (auto& factor : child)
      if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.25, 4));
    if (try_score(score_, &child)) score_bias_ = std::move(child);
  }

  const Neighbourhood& near() {
    if (!near_) near_.emplace(graph_);
    return *near_;
  }

  OperatorId maker(StorageId storage) const {
    return graph_.tensors[graph_.storages[storage].tensors.front()].maker;
  }

  // Other ways for what a few operators made, each as a whole: it is run again unless all comes
  // back. Or it stays. False: nothing is away.
  bool change_ways(Plan& plan, Timetable& timetable) {
    std::vector<OperatorId> makers;
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
      if (!plan.absences[storage].empty() && (makers.empty() || makers.back() != maker(storage)))
        makers.push_back(maker(storage));
    if (makers.empty()) return false;
    std::vector<char> drawn(graph_.operators.size());
    do drawn[makers[random_.below(makers.size())]] = true;
    while (random_.chance(0.5));
    const bool stays = walking() && random_.chance(0.3);
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      if (plan.absences[storage].empty() || !drawn[maker(storage)]) continue;
      if (stays)
        plan.absences[storage].clear();
      else
        for (auto& absence : plan.absences[storage]) change_way(storage, absence, timetable);
    }
    return true;
  }

  void vary_ways() {
    auto plan = here().plan;
    auto timetable = here().timetable;
    if (change_ways(plan, timetable)) walk_to(plan, timetable);
  }

  // What really left under the best plan, but for a few that stay and a few that leave instead.
  void vary_absences() {
    auto plan = here().plan;
    const double share = random_.log_uniform(0.002, 0.15);
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage) {
      auto& list = plan.absences[storage];
      const auto stays = [&](const Absence&) { return random_.chance(share); };
      list.erase(std::remove_if(list.begin(), list.end(), stays), list.end());
      if (list.empty() && random_.chance(share * 0.3)) add_absence(plan, storage);
    }
    walk_to(plan, Timetable(here().timetable));
  }

  void add_absence(Plan& plan, StorageId storage) {
    const auto& uses = timetable_.uses(storage);
    if (graph_.storages[storage].constant) return;
    for (size_t i = 1; i < uses.size(); ++i)
      if (uses[i] - uses[i - 1] > kShortGap)
        plan.absences[storage].push_back({uses[i - 1], uses[i], Action::kRecompute});
  }

  const Graph& graph_;
  const PlannerSettings& settings_;
  Timetable timetable_, best_timetable_;
  std::optional<Neighbourhood> near_;
  SeededRandom random_;
  Planned best_;
  Walk walk_{{}, timetable_, {}};
  std::vector<int64_t> late_ns_;
  size_t steps_ = 0;
  Knobs knobs_;
  std::vector<float> bias_;
  NamedScore score_ = own_scores().front();  // the best of them
  std::vector<float> score_bias_;
  std::optional<Linked> linked_;  // the best of them
  Position peak_ = kNone;
  std::optional<Peaked> peaked_;  // the best of them
  int done_ = 0;
};

}  // namespace

Planned plan_step(const Graph& graph, const PlannerSettings& settings) {
  return Search(graph, settings).run();
}

}  // namespace tierpilot::swap
