#include "base/table/csv_table.h"

#include <sys/stat.h>

#include <cstdio>

#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Csv : public TraceTest {
 protected:
  // All rows, cells joined by "|"; or the error.
  std::string rows(std::string_view text, std::vector<std::string_view> columns) {
    auto table = CsvTable::open(file(text));
    if (!table) return table.error().message;
    std::string all;
    for (;;) {
      const auto more = table->next();
      if (!more) return more.error().message;
      if (!*more) return all;
      for (const auto name : columns) (all += table->cell(table->find({name}))) += "|";
      all += "\n";
    }
  }
};

TEST_F(Csv, ColumnsAreFoundByNameInAnyOrderAndCase) {
  EXPECT_EQ(rows("b,A\n1,2\n3,4\n", {"a", "b"}), "2|1|\n4|3|\n");
}

TEST_F(Csv, LineEndsQuotesMarksAndSeparators) {
  EXPECT_EQ(rows("\xEF\xBB\xBF"
                 "a,b\r\n1,2\r\n\r\n\n3,4",
                 {"a", "b"}),
            "1|2|\n3|4|\n");
  EXPECT_EQ(rows("a,b\n\"x, \"\"y\"\"\",2\n", {"a", "b"}), "x, \"y\"|2|\n");
  EXPECT_EQ(rows("a,b\n\"two\nlines\",2\n3,4\n", {"a", "b"}), "two\nlines|2|\n3|4|\n");
  EXPECT_EQ(rows("a;b\n1;2\n", {"a", "b"}), "1|2|\n");
  EXPECT_EQ(rows("a\tb\n1\t2\n", {"a", "b"}), "1|2|\n");
  EXPECT_EQ(rows("\n\r\na;b\n1;2\n", {"a", "b"}), "1|2|\n") << "below empty lines";
}

TEST_F(Csv, ShortAndLongRowsAreRows) {
  EXPECT_EQ(rows("a,b,c\n1\n1,2,3,4\n", {"a", "c"}), "1||\n1|3|\n");
  EXPECT_EQ(rows("a,b\n1,2\n", {"a", "missing"}), "1||\n");
}

TEST_F(Csv, ARowSaysHowManyCellsItHas) {
  auto table = *CsvTable::open(file("a,b,c\n1\n1,2,3,4\n"));
  EXPECT_EQ(table.columns(), 3u);
  EXPECT_EQ(table.name(1), "b");
  EXPECT_TRUE(table.place().ends_with(":1"));
  for (const size_t cells : {1u, 4u}) {
    ASSERT_TRUE(*table.next());
    EXPECT_EQ(table.cells(), cells);
  }
}

TEST_F(Csv, PlaceIsWhereTheRowBegins) {
  auto table = *CsvTable::open(file("a,b\n\n1,2\n\"x\ny\",3\n4,5\n"));
  std::vector<std::string> places;
  while (*table.next()) places.push_back(table.place().substr(table.place().rfind(':')));
  EXPECT_EQ(places, (std::vector<std::string>{":3", ":4", ":6"}));
}

TEST_F(Csv, WhatIsNoTableIsAnErrorThatSaysSo) {
  EXPECT_THAT(rows("", {}), HasSubstr("empty"));
  EXPECT_THAT(rows(std::string(3 << 20, 'x'), {}), HasSubstr(":1: the line is longer"));
  EXPECT_THAT(rows("a,b\n" + std::string(3 << 20, ','), {}), HasSubstr(":2: the line is longer"));
  EXPECT_THAT(rows("\x1F\x8B\x08", {}), HasSubstr("gunzip"));
  std::string open_quote = "a,b\n1,\"2\n";
  for (int i = 0; i < 300'000; ++i) open_quote += "3,4,5,6\n";
  EXPECT_THAT(rows(open_quote, {}), HasSubstr(":2: ")) << "where the quote was opened";
  EXPECT_THAT(CsvTable::open("/nowhere/at/all").error().message, HasSubstr("No such file"));
  EXPECT_THAT(CsvTable::open("/tmp").error().message, HasSubstr("directory"));
  const auto pipe = testing::TempDir() + "table-pipe";
  std::remove(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(CsvTable::open(pipe).error().message, HasSubstr("nobody writes to"));
  EXPECT_THAT(CsvTable::open("/dev/zero").error().message, HasSubstr("longer"));
}

TEST_F(Csv, ErrorsCallItWhatItIs) {
  EXPECT_THAT(CsvTable::open("/nowhere/at/all").error().message, StartsWith("table /nowhere"));
  const auto empty = file("");
  EXPECT_THAT(CsvTable::open(empty, "pod list").error().message, StartsWith("pod list " + empty));
  EXPECT_THAT(CsvTable::open("/dev/zero", "trace").error().message,
              StartsWith("trace /dev/zero:1: the line is longer"));
  const auto other = file("a,b\n");
  EXPECT_THAT(CsvTable::open(other)->require({"c"}).error().message,
              StartsWith("table " + other + ":1: no column"));
}

TEST_F(Csv, AMissingColumnIsNamedBesideThoseThatAreThere) {
  auto table = *CsvTable::open(file("when,\x1b[2Jwho\n"));
  const auto column = table.require({"timestamp", "time"});
  ASSERT_FALSE(column);
  EXPECT_THAT(column.error().message, HasSubstr("'timestamp'"));
  EXPECT_THAT(column.error().message, HasSubstr("'when', '?[2Jwho'"));
}

}  // namespace
}  // namespace tierpilot::sim
