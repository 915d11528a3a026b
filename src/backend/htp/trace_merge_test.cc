#include "backend/htp/trace_merge.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/support/temp_dir.h"

namespace hexllm::htp {
namespace {

// An event, a counter, names; the process gets another name, and other sections
// are left out.
constexpr std::string_view kSchedule = R"json({"traceEvents": [
{"name":"q::\"Conv\"","ph":"X","tid":3,"pid":0,"ts":2000,"dur":500,"args":{
 "input_dims":[[1,8],[]],"flag":true,"bytes":{"dram_read": 4096}}},
{"name":"TCM usage","ph":"C","ts":7,"args":{"Bytes":0}},
{"name":"process_name","ph":"M","pid":0,"args":{"name":"NSP 0"}},
{"name":"thread_name","ph":"M","tid":3,"pid":0,"args":{"name":"HVX 1:"}}
],
"Hextimate Configuration": {"sim_core_freq":1000.0}})json";

class TraceMergeTest : public ::testing::Test {
 protected:
  // The merged file of these schedules; JSON null when that failed.
  Json Merge(const std::vector<std::string>& schedules, double core_mhz) {
    auto merger = TraceMerger::Create(dir_.File("out.json"));
    EXPECT_TRUE(merger.ok());
    for (size_t i = 0; i < schedules.size(); ++i) {
      const std::string name = "graph " + std::to_string(i);
      const Status added = merger->Add({.path = dir_.Write(name, schedules[i]),
                                        .title = name,
                                        .core_mhz = core_mhz});
      EXPECT_TRUE(added.ok()) << added.error().message;
    }
    EXPECT_TRUE(merger->Finish().ok());
    auto json = ReadJsonFile(dir_.File("out.json"));
    EXPECT_TRUE(json.ok()) << json.error().message;
    return json.ok() ? std::move(*json) : Json();
  }

  const testing::TempDir dir_;
};

TEST_F(TraceMergeTest, GraphsAreProcessesAndTimesMicroseconds) {
  const Json merged =
      Merge({std::string(kSchedule), std::string(kSchedule)}, 2000);
  const Json& events = merged["traceEvents"];
  ASSERT_EQ(events.size(), 8U);
  for (const size_t process : {size_t{1}, size_t{2}}) {
    const size_t first = (process - 1) * 4;
    EXPECT_EQ(events[first]["name"], "process_name");
    EXPECT_EQ(events[first]["args"]["name"],
              "graph " + std::to_string(process - 1));
    for (size_t i = first; i < first + 4; ++i)
      EXPECT_EQ(events[i]["pid"], process);
  }
  EXPECT_EQ(events[5],
            Json::parse(R"json({"pid":2,"name":"q::\"Conv\"","ph":"X","tid":3,
              "ts":1,"dur":0.25,"args":{"input_dims":[[1,8],[]],"flag":true,
              "bytes":{"dram_read":4096}}})json"));
  EXPECT_EQ(events[6]["ts"], 0.0035);
  EXPECT_EQ(events[7]["args"]["name"], "HVX 1:");
}

// What is no event is left out; what is left can be read.
TEST_F(TraceMergeTest, OddSchedulesGiveAFileThatCanBeRead) {
  for (const char* schedule :
       {"{}", "[]", "7", R"({"x":[{"pid":1}],"traceEvents":{}})",
        R"({"traceEvents":[]})"}) {
    EXPECT_EQ(Merge({schedule}, 1000)["traceEvents"].size(), 1U) << schedule;
  }
  const Json odd = Merge(
      {R"({"traceEvents":[7,"x",null,[{"ph":"X"}],{"pid":"p","n":[[]]},{}]})"},
      1000);
  ASSERT_EQ(odd["traceEvents"].size(), 3U);
  EXPECT_EQ(odd["traceEvents"][1], Json::parse(R"({"pid":1,"n":[[]]})"));
}

TEST_F(TraceMergeTest, DamagedSchedulesAreErrorsAndLeaveNoFile) {
  for (const std::string& text :
       {std::string(), std::string(kSchedule.substr(0, 100)),
        std::string(5000, '[')}) {
    auto merger = TraceMerger::Create(dir_.File("none.json"));
    ASSERT_TRUE(merger.ok());
    const Status added = merger->Add(
        {.path = dir_.Write("bad", text), .title = "x", .core_mhz = 1});
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code, ErrorCode::kBadInput);
  }
  EXPECT_TRUE(testing::ReadWholeFile(dir_.File("none.json")).empty());
}

}  // namespace
}  // namespace hexllm::htp
