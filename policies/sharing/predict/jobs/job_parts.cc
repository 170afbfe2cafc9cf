#include "policies/sharing/predict/jobs/job_parts.h"

#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {
namespace {

using Trainings = std::vector<MeasuredTraining>;

std::string architecture_of(const MeasuredTraining& row) {
  return row.architecture;
}
std::string card_of(const MeasuredTraining& row) {
  return row.gpu->name;
}

std::set<std::string> names_of(const Trainings& rows, TrainingGroup group) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(group(row));
  return names;
}

// As leave_each_out() does.
Parts turns_of(std::string name, const Trainings& rows, TrainingGroup group) {
  Parts turns{std::move(name), {}, group};
  std::vector<std::string> groups;
  for (const auto& row : rows) groups.push_back(group(row));
  for (const auto& fold : leave_each_out({}, groups).folds) {
    Part part;
    for (const size_t row : fold.test) part.test.push_back(rows[row]);
    for (const size_t row : fold.train) part.train.push_back(rows[row]);
    turns.parts.push_back(std::move(part));
  }
  return turns;
}

struct News {
  bool architecture = false, card = false;
};

// Rows with anything new are tested; apart from them those of new architectures.
template <class NewsOf>
std::vector<Parts> parts_with_news(const std::string& name, const Trainings& rows,
                                   const Part& trained, const NewsOf& news_of) {
  Part apart = trained, other = trained;
  for (const auto& row : rows) {
    const News news = news_of(row);
    if (news.architecture) apart.test.push_back(row);
    if (news.architecture || news.card) other.test.push_back(row);
  }
  std::vector<Parts> found;
  if (other.test.empty()) return found;
  if (!apart.test.empty() && apart.test.size() < other.test.size())
    found.push_back({name + ", new architectures", {std::move(apart)}, architecture_of});
  found.push_back({name, {std::move(other)}, architecture_of});
  return found;
}

bool tells_of(const JobModel& model, const MeasuredTraining& row) {
  return row.gpu ? model.gpu && !model.gpu->architectures.empty() : !model.architectures.empty();
}

News news_to(const JobModel& model, const MeasuredTraining& row) {
  if (!tells_of(model, row)) return {};
  const auto& known = row.gpu ? model.gpu->architectures : model.architectures;
  return {!known.contains(row.architecture), row.gpu && !model.gpu->has_seen(*row.gpu)};
}

}  // namespace

const std::set<std::string>& architectures_set_aside() {
  static const std::set<std::string> kAside{"gru", "mixer", "recommender", "unet"};
  return kAside;
}

std::vector<Parts> parts_of(const Trainings& rows) {
  Part apart;
  for (const auto& row : rows)
    (architectures_set_aside().contains(row.architecture) ? apart.test : apart.train)
        .push_back(row);
  std::vector<Parts> found{turns_of("architecture", apart.train, architecture_of)};
  if (rows.front().gpu) found.push_back(turns_of("card", apart.train, card_of));
  std::erase_if(found, [](const Parts& parts) { return parts.parts.empty(); });
  if (!apart.train.empty() && !apart.test.empty())
    found.push_back({"set aside", {std::move(apart)}, architecture_of});
  return found;
}

std::vector<Parts> parts_beside(const Trainings& rows, const Trainings& train) {
  if (train.empty()) return {};
  const bool on_gpu = rows.front().gpu.has_value();
  const auto architectures = names_of(train, architecture_of);
  const auto cards = on_gpu ? names_of(train, card_of) : std::set<std::string>();
  return parts_with_news("files", rows, {train, {}}, [&](const MeasuredTraining& row) {
    return News{!architectures.contains(row.architecture), on_gpu && !cards.contains(card_of(row))};
  });
}

std::vector<Parts> parts_by(const Trainings& rows, const Installed& installed) {
  const auto& model = *installed.model;
  auto found = parts_with_news("installed", rows, {{}, {}, installed.model},
                               [&](const MeasuredTraining& row) { return news_to(model, row); });
  Part known;
  for (const auto& row : rows)
    if (is_known_to(model, row)) known.test.push_back(row);
  const auto left_out = names_of(known.test, architecture_of);
  for (const auto& row : installed.tables)
    if (row.gpu.has_value() == rows.front().gpu.has_value() && !left_out.contains(row.architecture))
      known.train.push_back(row);
  if (!known.test.empty() && names_of(known.train, architecture_of).size() >= left_out.size())
    found.push_back({"installed tables", {std::move(known)}, architecture_of});
  return found;
}

bool is_new_to(const JobModel& model, const MeasuredTraining& row) {
  const auto news = news_to(model, row);
  return news.architecture || news.card;
}

bool is_known_to(const JobModel& model, const MeasuredTraining& row) {
  return tells_of(model, row) && !is_new_to(model, row);
}

}  // namespace tierpilot::sharing
