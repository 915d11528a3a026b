// Figures, files of results, shards, reports.
#include "eval/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "eval/journal.h"
#include "eval/merge.h"
#include "eval/report_html.h"
#include "eval/report_text.h"
#include "eval/result_json.h"
#include "eval/run.h"
#include "tests/support/fake_session.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using testing::FakeSession;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Prompt;
using testing::TempDir;

ItemResult Question(uint64_t index, std::vector<double> nlls,
                    std::vector<uint32_t> chars, uint32_t label) {
  ItemResult item{.index = index};
  for (const double nll : nlls)
    item.scores.push_back({.nll = nll, .squares = nll * nll, .tokens = 1});
  item.facts = {.label = label, .choice_chars = chars, .choice_bytes = chars};
  return item;
}

double FigureOf(const std::vector<Figure>& figures, const std::string& name) {
  for (const Figure& figure : figures) {
    if (figure.name == name) return figure.value;
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(Figures, PerplexitiesArePerWordByteAndToken) {
  ItemResult a{.index = 0,
               .scores = {{.nll = 6, .squares = 20, .tokens = 2},
                          {.nll = 2, .squares = 4, .tokens = 1}},
               .facts = {.words = 4, .bytes = 16}};
  const auto figures = FiguresOf(TaskKind::kDocuments, std::span(&a, 1));
  EXPECT_DOUBLE_EQ(FigureOf(figures, "word_perplexity"), std::exp(2.0));
  EXPECT_DOUBLE_EQ(FigureOf(figures, "byte_perplexity"), std::exp(0.5));
  EXPECT_DOUBLE_EQ(FigureOf(figures, "bits_per_byte"), 0.5 / std::log(2.0));
  EXPECT_DOUBLE_EQ(FigureOf(figures, "token_perplexity"), std::exp(8.0 / 3));
}

// The likeliest choice, and the likeliest per character; the first of equals.
TEST(Figures, AccuraciesChooseTheLikeliest) {
  const std::vector<ItemResult> items = {
      Question(0, {4, 6}, {2, 6}, 0), Question(1, {4, 6}, {2, 6}, 1),
      Question(2, {5, 5}, {3, 3}, 0), Question(3, {5, 5}, {3, 3}, 1)};
  const auto figures = FiguresOf(TaskKind::kChoices, items);
  EXPECT_DOUBLE_EQ(FigureOf(figures, "acc"), 0.5);
  EXPECT_DOUBLE_EQ(FigureOf(figures, "acc_norm"), 0.5);
  EXPECT_EQ(BestChoice(items[1]), 0u);
  EXPECT_NEAR(*figures[0].standard_error, std::sqrt(0.25 / 3), 1e-12);
}

Task MakeTask() {
  Task task{
      .name = "t", .kind = TaskKind::kDocuments, .window = 8, .bos = "none"};
  for (size_t i = 0; i < 5; ++i) {
    task.items.push_back({.index = i,
                          .requests = {{.ids = Prompt(5 + i)}},
                          .facts = {.words = 3 + i, .bytes = 9}});
  }
  return task;
}

class RunTest : public ::testing::Test {
 protected:
  EvalResult Run(Shard shard, Journal* journal = nullptr) {
    const Task task = MakeTask();
    auto items =
        RunTask(*model_.session, task,
                {.shard = shard, .journal = journal, .stage = "fp"}, progress_);
    EvalResult result{
        .producer = "p", .model = "<m>", .mode = {}, .shard = shard};
    if (!items.ok()) {
      ADD_FAILURE() << items.error().message;
      return result;
    }
    TaskResult measured{.name = task.name,
                        .kind = task.kind,
                        .window = 8,
                        .bos = task.bos,
                        .items = task.items.size()};
    measured.stages.push_back({.stage = "fp",
                               .recipe = "fp32",
                               .items = *items,
                               .figures = FiguresOf(task.kind, *items)});
    result.tasks.push_back(std::move(measured));
    return result;
  }

  FakeSession model_{testing::FakeOptions()};
  NullProgress progress_;
  TempDir dir_;
};

TEST_F(RunTest, MergedShardsAreTheWholeRun) {
  const EvalResult whole = Run({});
  std::vector<ShardPart> parts;
  for (uint32_t i = 3; i >= 1; --i) {
    const Json json = ResultToJson(Run({i, 3}), WithItems::kYes);
    EXPECT_EQ(json["shard"], std::to_string(i) + "/3");
    auto part = ResultFromJson(ParseJson(DumpJson(json)).value());
    ASSERT_TRUE(part.ok()) << part.error().message;
    parts.push_back(
        {"p" + std::to_string(i) + ".json", std::move(part).value()});
  }
  const auto merged = MergeShards(parts);
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  EXPECT_EQ(DumpJson(ResultToJson(*merged, WithItems::kYes)),
            DumpJson(ResultToJson(whole, WithItems::kYes)));

  auto missing = parts;
  missing.pop_back();
  EXPECT_THAT(MergeShards(missing).status().error().message,
              HasSubstr("found none of shard 1/3"));
  auto twice = parts;
  twice.push_back(parts[0]);
  EXPECT_THAT(MergeShards(twice).status().error().message,
              HasSubstr("found shard 3/3 in p3.json as well"));
  auto other = parts;
  other[1].result.tasks[0].window = 9;
  EXPECT_THAT(
      MergeShards(other).status().error().message,
      HasSubstr("p2.json: t window: expected '8' as in p3.json, found '9'"));
  other = parts;
  other[2].result.tasks[0].digest = "1";
  EXPECT_THAT(MergeShards(other).status().error().message,
              HasSubstr("p1.json: t digest of the items"));
  other = parts;
  other[2].result.tasks[0].stages[0].digest = "1";
  EXPECT_THAT(
      MergeShards(other).status().error().message,
      HasSubstr("p1.json: t fp digest of recipe, calibration and chip"));
  other = parts;
  other[2].result.tasks[0].stages.clear();
  EXPECT_THAT(MergeShards(other).status().error().message, HasSubstr("none"));
  other = parts;
  other[0].result.tasks[0].stages[0].items.pop_back();
  EXPECT_THAT(MergeShards(other).status().error().message,
              HasSubstr("expected each of 5 items once, found 4"));
}

TEST_F(RunTest, DamagedPartsAreRefused) {
  const Json good = ResultToJson(Run({}), WithItems::kYes);
  const auto refused = [&](const char* path, Json value) {
    Json bad = good;
    bad[Json::json_pointer(path)] = std::move(value);
    const auto read = ResultFromJson(bad);
    EXPECT_TRUE(!read.ok() || !MergeShards({{"p", *read}}).ok()) << path;
  };
  refused("/version", 2);
  refused("/shard", "3/2");
  refused("/tasks/0/digest", 1);
  refused("/tasks/0/stages/0/items/0/words", 0);
  refused("/tasks/0/stages/0/items/0/bytes", 0);
  refused("/tasks/0/stages/0/items/0/scores/0/tokens", 0);
  refused("/tasks/0/stages/0/items/0/scores/0/nll", 1e308);
  refused("/tasks/0/stages/0/items/0/scores/0/squares", -1);
  refused("/tasks", 1);
  refused("/tasks/0/kind", "x");
  refused("/tasks/0/kind", "choices");
  refused("/tasks/0/items", 0);
  refused("/tasks/0/items", -1);
  refused("/tasks/0/stages/0/items", Json::array());
  refused("/tasks/0/stages/0/items/1/item", 0);
  refused("/tasks/0/stages/0/items/1/scores", Json::array());
  refused("/tasks/0/stages/0/items/1/scores/0/nll", "x");
  refused("/tasks/0/stages/0/items/1/words", nullptr);
}

TEST_F(RunTest, ResumedRunsGoOnWhereTheyWere) {
  const std::string path = dir_.File("j");
  const Json run = {{"model", "m"}};
  std::string whole;
  {
    auto journal = Journal::Open(path, run);
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    EXPECT_FALSE(Journal::Open(path, run).ok());  // in use
    whole = DumpJson(ResultToJson(Run({}, &*journal), WithItems::kYes));
  }
  // Killed while it wrote the third item; the second one's score is marked.
  std::string text = testing::ReadWholeFile(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) + 1 - at));
  ASSERT_EQ(lines.size(), 6u);
  Json marked = ParseJson(lines[2]).value();
  marked["scores"][0]["nll"] = 1234.5;
  std::ofstream(path) << lines[0] << lines[1] << DumpJson(marked) << '\n'
                      << lines[3].substr(0, 20);
  {
    auto journal = Journal::Open(path, run);
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    const EvalResult resumed = Run({}, &*journal);
    EXPECT_EQ(resumed.tasks[0].stages[0].items[1].scores[0].nll, 1234.5);
    EXPECT_NE(DumpJson(ResultToJson(resumed, WithItems::kYes)), whole);
  }
  text = testing::ReadWholeFile(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  const auto other = Journal::Open(path, {{"model", "n"}});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kUsage);
  const std::string foreign = dir_.Write("foreign", "notes");
  EXPECT_FALSE(Journal::Open(foreign, run).ok());
  EXPECT_EQ(testing::ReadWholeFile(foreign), "notes");
}

// Of as many tokens, but of other ones; of an artifact with the same name.
TEST_F(RunTest, JournalsOfOtherTextsAndArtifactsAreRefused) {
  auto journal = Journal::Open(dir_.File("j"), {{"model", "m"}});
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  Run({}, &*journal);
  { auto closed = std::move(*journal); }
  journal = Journal::Open(dir_.File("j"), {{"model", "m"}});
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  const auto status = [&](const Task& task, const Digest& identity) {
    return RunTask(*model_.session, task,
                   {.journal = &*journal, .stage = "fp", .identity = identity},
                   progress_)
        .status();
  };
  EXPECT_TRUE(status(MakeTask(), {}).ok());
  Task other = MakeTask();
  other.items[1].requests[0].ids[2] ^= 1;
  for (const Status& refused :
       {status(other, {}), status(MakeTask(), DigestOf(AsBytes("b")))}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("another --resume file"));
  }
}

TEST_F(RunTest, ReportsEscapeWhatTheyShow) {
  EvalResult result = Run({});
  result.tasks[0].name = "a<script>\"&'";
  StageComparison comparison{.stage = "qdq", .reference = "fp"};
  comparison.positions = {{.sqnr_db = 30, .kld = 0.1, .top1_flip = true}};
  comparison.layers = {{"model.layers.0", 40}, {"model.layers.1", 35}};
  comparison.scatter = {{1, 2}, {3, 3}};
  result.comparisons.push_back(comparison);
  result.recipes.push_back({"qdq", "{\"name\": \"</pre>\"}"});
  const std::string html = ResultToHtml(result);
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("a&lt;script&gt;&quot;&amp;&#39;"));
  EXPECT_THAT(html, HasSubstr("<h1>&lt;m&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("&lt;/pre&gt;"));
  EXPECT_THAT(html, HasSubstr("<polyline"));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(
      ResultToCsv(result),
      HasSubstr("<m>,,1/1,\"a<script>\"\"&'\",fp,fp32,word_perplexity,"));
  EXPECT_THAT(StageLine(result.tasks[0], 0), HasSubstr("token_perplexity"));
}

TEST(LogitsComparer, MeasuresNoiseDivergenceAndFlips) {
  LogitsComparer comparer;
  const std::vector<float> a = {1, 2, 3}, b = {1, 2, 1};
  comparer.Add(a, a);
  comparer.Add(a, b);
  const StageComparison result = std::move(comparer).Finish();
  EXPECT_DOUBLE_EQ(result.sqnr_db, 10 * std::log10(28.0 / 4));
  EXPECT_EQ(result.flips, 1u);
  EXPECT_EQ(result.positions[0].kld, 0);
  EXPECT_EQ(result.positions[0].sqnr_db, kMostDecibels);
  double kld = 0;
  const double sa = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  const double sb = std::exp(1.0) + std::exp(2.0) + std::exp(1.0);
  for (size_t i = 0; i < 3; ++i)
    kld += std::exp(a[i]) / sa *
           (static_cast<double>(a[i] - b[i]) - std::log(sa) + std::log(sb));
  EXPECT_NEAR(result.positions[1].kld, kld, 1e-6);
  EXPECT_NEAR(result.mean_kld, kld / 2, 1e-6);
}

}  // namespace
}  // namespace hexllm
