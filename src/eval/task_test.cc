// From files of texts to tokens that run.
#include "eval/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "eval/question.h"
#include "eval/task_file.h"
#include "eval/wikitext.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

TEST(Wikitext, DocumentsStartAtLevelOneHeadings) {
  const std::string text =
      " \n = One = \n \n Text . \n = not a title = \n = = Part = = \n \n"
      " = Two = \n more";
  const std::vector<std::string> documents = {
      " = One = \n \n Text . \n = not a title = \n = = Part = = \n \n",
      " = Two = \n more"};
  EXPECT_EQ(WikitextDocuments(text), documents);
  std::string windows;
  for (const char c : text) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(WikitextDocuments(windows), documents);
  std::string mixed = text;
  mixed.replace(mixed.find('\n'), 1, "\r");
  EXPECT_EQ(WikitextDocuments(mixed), documents);
  EXPECT_TRUE(WikitextDocuments(" \n\n").empty());
}

// Made with lm-evaluation-harness 0.4.13's wikitext_detokenizer.
TEST(Wikitext, DetokenizedAsTheHarnessDoes) {
  EXPECT_EQ(
      WikitextDetokenized(" = = Life = = \n He was 1 @.@ 80 m , \" tall "
                          "\" ( or so ) ; the boys ' 20 @,@ 000 . \n"),
      " == Life ==\nHe was 1.80 m, \"tall\" (or so); the boys' 20,000.\n");
}

TEST(Wikitext, CountsWordsAsPythonSplits) {
  EXPECT_EQ(CountWords("a b\u00a0 c"), 3u);
  EXPECT_EQ(CountWords(" a "), 3u);
  EXPECT_EQ(CountWords(""), 1u);
}

TEST(TaskFile, ReadsItsKindsWithAnyLineEnds) {
  const auto read = ParseTaskLines(
      "{\"query\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": 1}\r\n\n"
      "{\"query\": \"r\", \"choices\": [\"c\", \"d\"], \"gold\": \"0\"}");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->questions.size(), 2u);
  EXPECT_EQ(read->questions[0].label, 1u);
  EXPECT_EQ(read->questions[1].choices, (std::vector<std::string>{"c", "d"}));
  const auto hella = ParseHellaswag(
      R"({"activity_label": "Golf", "ctx": "he [step] hits  it [title] now",)"
      R"( "endings": [" a", "b  c"], "label": 0})");
  ASSERT_TRUE(hella.ok()) << hella.error().message;
  EXPECT_EQ(hella->at(0).query, "Golf: he hits it. now");
  EXPECT_EQ(hella->at(0).choices, (std::vector<std::string>{"a", "b c"}));
}

TEST(TaskFile, RefusesWhatItShouldNotHold) {
  const std::string good =
      R"({"query": "q", "choices": ["a", "b"], "label": 0})"
      "\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "found no lines"},
      {good + "{", "line 2"},
      {good + "{\"text\": \"t\"}", "line 2: expected an object with 'query'"},
      {R"({"other": 1})", "line 1: expected an object with \"text\""},
      {R"({"query": "q", "choices": ["a", "b"], "label": 2})",
       "label: expected 0 to 1"},
      {R"({"query": "q", "choices": ["a", "b"], "label": -1})", "found -1"},
      {R"({"query": "q", "choices": ["a", "b"]})", "label"},
      {R"({"query": "q", "choices": ["a", "b"], "label": 0, "gold": 0})",
       R"(expected "label" or "gold", found both)"},
      {R"({"query": "q", "choices": ["a", "b"], "label": 0, "text": "t"})",
       R"(found "text" and "query")"},
      {R"({"query": "q", "choices": ["a"], "label": 0})", "two texts or more"},
      {R"({"query": "q", "choices": ["a", ""], "label": 0})", "empty one"},
      {R"({"query": "q", "choices": ["a", 1], "label": 0})",
       "found a whole number"},
      {R"({"context": "c", "continuation": ""})", "continuation"},
  };
  for (const auto& [text, part] : cases) {
    const auto read = ParseTaskLines(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(read.error().message, HasSubstr(part)) << text;
  }
}

class TaskTest : public ::testing::Test {
 protected:
  static Tokenizer MakeTokenizer() {
    auto data = ParseTokenizerJson(testing::ReadWholeFile(testing::DataPath(
        "tokenizers/tiny_bpe_smollm_granite/tokenizer.json")));
    return Tokenizer::Create(std::move(data).value()).value();
  }

  Result<Task> Load(const std::string& text, TaskOptions options) {
    return LoadTask(dir_.Write("t.jsonl", text), options, tokens_, warnings_);
  }

  struct Warnings final : ProgressSink {
    void Begin(std::string_view, std::string_view, int64_t) override {}
    void Update(int64_t) override {}
    void Warn(std::string_view message) override { text += message; }
    void Note(std::string_view) override {}
    std::string text;
  };

  TempDir dir_;
  Tokenizer tokenizer_ = MakeTokenizer();
  TaskTokens tokens_{.tokenizer = tokenizer_, .prefix = 1};
  Warnings warnings_;
};

TEST_F(TaskTest, DocumentsBecomeRollingWindows) {
  const auto task = Load("{\"text\": \"one two\"}\n{\"text\": \"\"}\n", {});
  ASSERT_TRUE(task.ok()) << task.error().message;
  ASSERT_EQ(task->items.size(), 1u);
  const auto ids = tokenizer_.Encode("one two", AddSpecial::kNo).value();
  const Request& request = task->items[0].requests.at(0);
  EXPECT_EQ(request.ids.size(), ids.size() + 1);
  EXPECT_EQ(request.ids[0], 1);
  EXPECT_EQ(request.first_counted, 1u);
  EXPECT_EQ(task->items[0].facts.words, 2u);
  EXPECT_EQ(task->items[0].facts.bytes, 7u);
  EXPECT_THAT(warnings_.text, HasSubstr("1 documents without tokens"));

  const auto cut = Load("{\"text\": \"one two\"}\n", {.window = 2});
  ASSERT_TRUE(cut.ok());
  EXPECT_GT(cut->items[0].requests.size(), 1u);
  EXPECT_FALSE(Load("{\"text\": \"\"}\n", {}).ok());
}

TEST_F(TaskTest, QuestionsShareTheirContext) {
  const std::string text =
      "{\"query\": \"a b\", \"choices\": [\"c\", \"d e h i\"], \"label\": 1}\n"
      "{\"query\": \"f\", \"choices\": [\"g\", \"h\"], \"label\": 0}\n";
  const auto task = Load(text, {.num_fewshot = 1});
  ASSERT_TRUE(task.ok()) << task.error().message;
  ASSERT_EQ(task->items.size(), 2u);
  const Request& first = task->items[0].requests.at(0);
  const auto expected =
      tokenizer_.Encode("f g\n\na b c", AddSpecial::kNo).value();
  EXPECT_EQ(first.ids, expected);
  EXPECT_EQ(first.first_counted,
            tokenizer_.Encode("f g\n\na b", AddSpecial::kNo)->size());
  EXPECT_EQ(task->items[0].facts.label, 1u);
  EXPECT_EQ(task->items[0].facts.choice_chars, (std::vector<uint32_t>{1, 7}));

  EXPECT_FALSE(Load(text, {.num_fewshot = 2}).ok());
  const auto longest = static_cast<uint32_t>(
      tokenizer_.Encode(" d e h i", AddSpecial::kNo)->size());
  const auto cut = Load(text, {.window = longest});
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  EXPECT_THAT(warnings_.text, HasSubstr("lose their beginning"));
  EXPECT_EQ(cut->items[0].requests.at(1).ids.size(), longest + 1);
  const auto too_long = Load(text, {.window = longest - 1, .limit = 1});
  ASSERT_FALSE(too_long.ok());
  EXPECT_THAT(too_long.error().message, HasSubstr("question 1: expected a"));
}

// As the harness's _encode_pair: white space moves, and an empty context is the
// prefix.
TEST_F(TaskTest, ContinuationsAreSplitAsTheHarnessDoes) {
  PairEncoder pairs(tokens_, 64);
  const auto moved = pairs.Encode("one ", "two");
  const auto plain = pairs.Encode("one", " two");
  ASSERT_TRUE(moved.ok() && plain.ok());
  EXPECT_EQ(moved->ids, plain->ids);
  EXPECT_EQ(moved->first_counted, plain->first_counted);
  const auto alone = pairs.Encode("", "two");
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->ids[0], 1);
  EXPECT_EQ(alone->first_counted, 1u);
}

TEST_F(TaskTest, NamesAndOptionsAreChecked) {
  const std::pair<std::string, TaskOptions> cases[] = {
      {"wikitext", {}},
      {"mmlu", {.data_dir = "d"}},
      {"wikitext", {.data_dir = "d", .num_fewshot = 1}},
      {"wikitext", {.data_dir = "d", .stride = 3}},
      {"wikitext-fixed", {.data_dir = "d", .window = 4, .stride = 5}},
      {"hellaswag", {.data_dir = "d", .limit = 0}},
  };
  for (const auto& [name, options] : cases) {
    const Status status = CheckTask(name, options);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  }
  EXPECT_TRUE(CheckTask("hellaswag", {.data_dir = "d"}).ok());
  std::filesystem::create_directory(dir_.File("wikitext-2"));
  dir_.Write("wikitext-2/test.txt", "One two \xff three");
  for (const char* name : {"wikitext", "wikitext-fixed"}) {
    const auto damaged = LoadTask(name, {.data_dir = dir_.path(), .window = 2},
                                  tokens_, warnings_);
    ASSERT_FALSE(damaged.ok()) << name;
    EXPECT_EQ(damaged.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(damaged.error().message,
                HasSubstr("test.txt: expected text in UTF-8, found the byte "
                          "0xff at offset 8"));
  }
  const auto missing =
      LoadTask("hellaswag", {.data_dir = dir_.path()}, tokens_, warnings_);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(missing.error().message, HasSubstr("downloads no data"));
}

}  // namespace
}  // namespace hexllm
