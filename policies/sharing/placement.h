// Policies that place a request on a cluster as it is: each says how good a node would be, and the
// best is taken, of equals the first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "policies/interface/module.h"
#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

struct Offer {
  double score = 0;  // the greatest wins
  std::vector<uint32_t> units;
};

// Depends on nothing but the node and the request.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // What the node is worth as it is, whatever is asked for; handed to `offer`.
  virtual double worth(const Node&) const { return 0; }
  // The node fits.
  virtual Offer offer(const Node& node, const Request& request, double worth) const = 0;
  // What is really given for a request; whole units for who does not share.
  virtual Request given(const Request& request) const { return request; }
};

// What a policy is made for: all that usually comes, and the cluster while it is idle, where it is
// known.
struct Usual {
  std::vector<Request> requests;
  std::vector<Node> nodes;
};
using ScorerModule = PolicyModule<Scorer, Usual>;
const ModuleList<ScorerModule>& scorers();

// kNotFound names the policies.
Result<std::unique_ptr<Scorer>> make_scorer(std::string_view name, const Usual& usual);

// Remembers what nodes offered to requests of a kind while they stand still, so that of a large
// cluster only what has changed is looked at.
class Placer {
 public:
  explicit Placer(const Scorer& scorer) : scorer_(scorer) {}

  // Nothing where it fits nowhere. One cluster for a placer.
  std::optional<Placement> choose(const Cluster& cluster, const Request& request);

 private:
  struct Hash {
    size_t operator()(const Request& request) const;
  };
  struct Known {
    std::vector<uint64_t> versions;
    std::vector<double> scores;  // -infinity: does not fit
  };
  Known& known_of(const Cluster& cluster, const Request& request);
  double worth(const Cluster& cluster, uint32_t node);

  const Scorer& scorer_;
  std::unordered_map<Request, Known, Hash> known_;
  std::vector<uint64_t> worth_versions_;
  std::vector<double> worths_;
};

}  // namespace tierpilot::sharing
