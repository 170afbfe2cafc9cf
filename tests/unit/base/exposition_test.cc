#include "base/exposition.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tierpilot {
namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

TEST(Exposition, SeriesOfOneNameShareAFamily) {
  Exposition page;
  page.gauge("nodes", "How many.", 3, {{"state", "up"}});
  page.gauge("nodes", "How many.", 1, {{"state", "lost"}});
  page.counter("ends_total", "So far.", 7);
  const auto text = page.text();
  EXPECT_TRUE(has(text, "# TYPE nodes gauge")) << text;
  EXPECT_EQ(text.find("# TYPE nodes"), text.rfind("# TYPE nodes")) << text;
  EXPECT_TRUE(has(text, "nodes{state=\"up\"} 3")) << text;
  EXPECT_TRUE(has(text, "nodes{state=\"lost\"} 1")) << text;
  EXPECT_TRUE(has(text, "# TYPE ends_total counter")) << text;
  EXPECT_TRUE(has(text, "ends_total 7")) << text;
}

TEST(Exposition, AHistogramIsCumulativeAndInSeconds) {
  Histogram ns;
  ns.add(500);
  ns.add(1024, 2);
  ns.add(5'000'000'000);  // beyond the last bound
  Exposition page;
  page.histogram("wait_seconds", "How long.", ns, 10, 12);
  const auto text = page.text();
  EXPECT_TRUE(has(text, "wait_seconds_bucket{le=\"1.024e-06\"} 1")) << text;
  EXPECT_TRUE(has(text, "wait_seconds_bucket{le=\"2.048e-06\"} 3")) << text;
  EXPECT_TRUE(has(text, "wait_seconds_bucket{le=\"4.096e-06\"} 3")) << text;
  EXPECT_TRUE(has(text, "wait_seconds_bucket{le=\"+Inf\"} 4")) << text;
  EXPECT_TRUE(has(text, "wait_seconds_count 4")) << text;
}

TEST(Exposition, LabelsAreEscaped) {
  Exposition page;
  page.gauge("a", "b", 1, {{"name", "quote\" back\\slash line\nend"}});
  EXPECT_TRUE(has(page.text(), "a{name=\"quote\\\" back\\\\slash line\\nend\"} 1")) << page.text();
}

TEST(Exposition, ANameWithTwoKindsIsABug) {
  Exposition page;
  page.gauge("a", "b", 1);
  EXPECT_THROW(page.counter("a", "b", 1), std::logic_error);
}

TEST(Exposition, TheProcessHasMemoryAndFiles) {
  Exposition page;
  page.process();
  const auto text = page.text();
  for (const char* name :
       {"process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds "})
    EXPECT_NE(text.find(name), std::string::npos) << text;
}

}  // namespace
}  // namespace tierpilot
