#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "base/text/json_whole.h"
#include "coordinator/job_point.h"
#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"

namespace tierpilot {
namespace {

using nlohmann::json;

constexpr size_t kNumbers = 8;  // of a point, before its loss and its measures

// A number, or the reason why there is none.
json figure_json(const Figure& figure) {
  return figure.value ? json(*figure.value) : json(figure.unavailable);
}

Figure figure_of(const json& in) {
  if (in.is_number()) return {in.get<double>(), {}};
  return {{}, in.is_string() ? in.get<std::string>() : "no finite number was given"};
}

json point_json(const JobPoint& point) {
  auto measures = json::object();
  for (const auto& [name, figure] : point.measures) measures[name] = figure_json(figure);
  return {point.attempt, point.at_ms,       point.iteration, point.iterations,        point.samples,
          point.cpu_ns,  point.milli_units, point.waited_ns, figure_json(point.loss), measures};
}

JobPoint point_of(const json& in) {
  JobPoint point;
  point.attempt = whole_number<decltype(point.attempt)>(in.at(0));
  point.at_ms = whole_number<decltype(point.at_ms)>(in.at(1));
  point.iteration = whole_number<decltype(point.iteration)>(in.at(2));
  point.iterations = whole_number<decltype(point.iterations)>(in.at(3));
  point.samples = whole_number<decltype(point.samples)>(in.at(4));
  point.cpu_ns = whole_number<decltype(point.cpu_ns)>(in.at(5));
  point.milli_units = whole_number<decltype(point.milli_units)>(in.at(6));
  point.waited_ns = whole_number<decltype(point.waited_ns)>(in.at(7));
  point.loss = figure_of(in.at(kNumbers));
  for (const auto& [name, figure] : in.at(kNumbers + 1).items())
    point.measures.emplace_back(name, figure_of(figure));
  return point;
}

}  // namespace

std::string job_points_text(const std::vector<JobPoint>& points) {
  auto all = json::array();
  for (const auto& point : points) all.push_back(point_json(point));
  // A job names its measures with whatever bytes it likes.
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<std::vector<JobPoint>> parse_job_points(const std::string& text) {
  try {
    std::vector<JobPoint> points;
    for (const auto& point : parse_json<json>(text)) points.push_back(point_of(point));
    return points;
  } catch (const json::exception& e) {
    return fail(ErrorCode::kInvalid, std::string("store: progress of a job: ") + e.what());
  }
}

namespace records {

Status put_job_progress(Db& db, uint64_t task, const std::string& points) {
  auto query = db.query(
      "INSERT OR REPLACE INTO job_progress(task, points) "
      "SELECT ?1, ?2 WHERE EXISTS(SELECT 1 FROM tasks WHERE id = ?1)");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task);
  return query->bind_borrowed(points).run();
}

Result<std::vector<JobPoint>> job_progress(Db& db, uint64_t task) {
  auto query = db.query("SELECT points FROM job_progress WHERE task = ?");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::vector<JobPoint>();
  return parse_job_points(query->text(0));
}

Result<std::vector<std::pair<uint64_t, std::string>>> active_job_progress(Db& db) {
  auto query = db.query(
      "SELECT j.task, j.points FROM job_progress j JOIN tasks t ON t.id = j.task "
      "WHERE t.state < 4 ORDER BY j.task");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<uint64_t, std::string>;
  return read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    return Row{as_unsigned(row, 0), row.text(1)};
  });
}

}  // namespace records
}  // namespace tierpilot
