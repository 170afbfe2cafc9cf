// Rivals of full load in time: what users ask for goes where a Scorer says, and that is all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/sharing/live/plain_policy.h"
#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

class ScoredPolicy final : public PlainPolicy {
 public:
  // `types`: of units, in the order of their bits in Request::models. Each unit is a node of its
  // own: in time hosts do not bound jobs, and parts of a job need not be on one of them.
  ScoredPolicy(std::unique_ptr<Scorer> scorer, std::vector<std::string> types)
      : scorer_(std::move(scorer)), types_(std::move(types)) {}

  // A whole unit where nothing is asked for.
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  std::string refusal(const LiveUnit& unit, const WaitingJob& job) const override;

 private:
  // What is given of one unit; its models are the types that will do.
  Request request_of(const WaitingJob& job) const;
  Node as_node(const LiveUnit& unit) const;

  std::unique_ptr<Scorer> scorer_;
  std::vector<std::string> types_;
};

}  // namespace tierpilot::sharing
