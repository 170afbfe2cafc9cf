#include "policies/swap/optimum/program.h"

#include <coin/Cbc_C_Interface.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace tierpilot::swap {

Program::Program() : model_(Cbc_newModel()) {
  Cbc_setLogLevel(static_cast<Cbc_Model*>(model_), 0);
}

Program::~Program() {
  Cbc_deleteModel(static_cast<Cbc_Model*>(model_));
}

Program::Column Program::add(double least, double most, double cost, bool integer) {
  Cbc_addCol(static_cast<Cbc_Model*>(model_), std::to_string(columns_).c_str(), least, most, cost,
             integer, 0, nullptr, nullptr);
  return columns_++;
}

void Program::add(char sense, const Terms& terms, double bound) {
  std::vector<int> columns;
  std::vector<double> factors;
  for (const auto& [column, factor] : terms) {
    columns.push_back(column);
    factors.push_back(factor);
  }
  Cbc_addRow(static_cast<Cbc_Model*>(model_), "", static_cast<int>(terms.size()), columns.data(),
             factors.data(), sense, bound);
}

namespace {

struct Answer {
  int infeasible = 0, found = 0, proven = 0;
  double cost = 0, bound = 0;
};

bool write_all(int fd, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const auto wrote = ::write(fd, at + done, bytes - done);
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool read_all(int fd, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  for (size_t done = 0; done < bytes;) {
    const auto got = ::read(fd, at + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

void Program::solve(double seconds, int nodes, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(nowhere.get(), STDERR_FILENO);
  ::dup2(nowhere.get(), STDOUT_FILENO);
  auto* model = static_cast<Cbc_Model*>(model_);
  Cbc_setMaximumSeconds(model, seconds);
  Cbc_setMaximumNodes(model, nodes);
  Cbc_solve(model);
  const double* values = Cbc_bestSolution(model);
  const Answer answer{.infeasible = Cbc_isProvenInfeasible(model),
                      .found = values ? 1 : 0,
                      .proven = Cbc_isProvenOptimal(model),
                      .cost = Cbc_getObjValue(model),
                      .bound = Cbc_getBestPossibleObjValue(model)};
  if (write_all(to, &answer, sizeof answer) && values)
    write_all(to, values, sizeof(double) * static_cast<size_t>(columns_));
  ::_exit(0);
}

Result<Program::Solution> Program::minimise(double seconds, int nodes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "a pipe to the solver");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "a process for the solver");
  if (child == 0) solve(seconds, nodes, to.get());
  to.reset();
  Answer answer;
  Solution solution;
  bool told = read_all(from.get(), &answer, sizeof answer);
  if (told && answer.found) {
    solution = {.values = std::vector<double>(static_cast<size_t>(columns_)),
                .cost = answer.cost,
                .bound = answer.bound,
                .proven = answer.proven != 0};
    told = read_all(from.get(), solution.values.data(), sizeof(double) * solution.values.size());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!told)
    return fail(ErrorCode::kIo, fmt::format("the solver failed (signal {})", WTERMSIG(status)));
  if (answer.infeasible) return fail(ErrorCode::kNotFound, "there is none");
  if (!answer.found) return fail(ErrorCode::kTimeout, "none was found in time");
  return solution;
}

}  // namespace tierpilot::swap
