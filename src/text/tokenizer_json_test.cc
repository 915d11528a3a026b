// ParseTokenizerJson: what it reads, and what it says about files that it
// cannot use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer_data.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tokenizer.json with the model `model` and further members.
std::string File(const std::string& model, const std::string& more = "") {
  return R"({"version":"1.0","truncation":null,"padding":null,"model":)" +
         model + more + "}";
}
const std::string kModel =
    R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]})";

ErrorCode CodeOf(const std::string& json) {
  const auto found = ParseTokenizerJson(json);
  EXPECT_FALSE(found.ok()) << json;
  return found.ok() ? ErrorCode::kUsage : found.error().code;
}

TEST(TokenizerJson, ReadsMergesInBothForms) {
  const auto pairs = ParseTokenizerJson(File(kModel));
  const auto lines = ParseTokenizerJson(
      File(R"({"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})"));
  ASSERT_TRUE(pairs.ok() && lines.ok());
  EXPECT_TRUE(*pairs == *lines);
  EXPECT_THAT(pairs->merges, ElementsAre(Merge{0, 1, 2}));
}

TEST(TokenizerJson, KeepsGapsInTheVocabulary) {
  const auto data = ParseTokenizerJson(
      File(R"({"type":"BPE","vocab":{"b":4,"a":1},"merges":[]})"));
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->pieces.size(), 5u);
  EXPECT_EQ(data->pieces[1], "a");
  EXPECT_EQ(data->pieces[2], "");
  EXPECT_EQ(data->pieces[4], "b");
}

TEST(TokenizerJson, ReadsAddedTokens) {
  const auto data = ParseTokenizerJson(File(kModel, R"(,"added_tokens":[
      {"id":3,"content":"<s>","single_word":false,"lstrip":true,"rstrip":false,"normalized":false,"special":true},
      {"id":4,"content":"x","single_word":true,"lstrip":false,"rstrip":true,"normalized":true,"special":false}])"));
  ASSERT_TRUE(data.ok()) << MessageOf(data);
  ASSERT_EQ(data->added_tokens.size(), 2u);
  const AddedToken& first = data->added_tokens[0];
  EXPECT_TRUE(first.special && first.lstrip && !first.rstrip &&
              !first.normalized && !first.single_word);
  const AddedToken& second = data->added_tokens[1];
  EXPECT_TRUE(!second.special && !second.lstrip && second.rstrip &&
              second.normalized && second.single_word);
}

TEST(TokenizerJson, ReducesProcessorsToIds) {
  const auto data = ParseTokenizerJson(
      File(kModel, R"(,"post_processor":{"type":"Sequence","processors":[
      {"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false},
      {"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"B","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
       "pair":[],"special_tokens":{"B":{"id":"B","ids":[1,2],"tokens":["b","ab"]}}},
      {"type":"RobertaProcessing","sep":["a",0],"cls":["b",1]}]})"));
  ASSERT_TRUE(data.ok()) << MessageOf(data);
  EXPECT_THAT(data->prefix_ids, ElementsAre(1, 1, 2));
  EXPECT_THAT(data->suffix_ids, ElementsAre(0));
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  const struct {
    std::string json;
    const char* message;
  } cases[] = {
      {File(R"({"type":"WordLevel","vocab":[["a",0.0]]})"),
       "model: type 'WordLevel'"},
      {File(R"({"type":"WordPiece","vocab":{"a":0}})"),
       "model: type 'WordPiece'"},
      {File(R"({"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]})"),
       "dropout"},
      {File(
           R"({"type":"BPE","end_of_word_suffix":"</w>","vocab":{"a":0},"merges":[]})"),
       "end_of_word_suffix '</w>'"},
      {File(kModel, R"(,"normalizer":{"type":"BertNormalizer"})"),
       "normalizer: normalizer 'BertNormalizer'"},
      {File(kModel, R"(,"pre_tokenizer":{"type":"UnicodeScripts"})"),
       "'UnicodeScripts'"},
      {File(kModel, R"(,"post_processor":{"type":"Foo"})"), "'Foo'"},
      {File(kModel, R"(,"decoder":{"type":"CTC"})"), "'CTC'"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CodeOf(c.json), ErrorCode::kUnsupported) << c.json;
    EXPECT_THAT(MessageOf(ParseTokenizerJson(c.json)), HasSubstr(c.message));
  }
}

TEST(TokenizerJson, NamesWhatIsWrong) {
  const struct {
    std::string json;
    const char* message;
  } cases[] = {
      {"{", "JSON"},
      {"{}", "'model' is missing"},
      {File("[]"), "type"},
      {File(R"({"type":"BPE","merges":[]})"), "'vocab': expected an object"},
      {File(R"({"type":"BPE","vocab":{},"merges":[]})"), "at least one token"},
      {File(R"({"type":"BPE","vocab":{"a":-1},"merges":[]})"),
       "expected an id of 0..4194303, found '-1'"},
      {File(R"({"type":"BPE","vocab":{"a":1e3},"merges":[]})"), "token 'a'"},
      {File(R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})"),
       "'a' and 'b' have the same id 0"},
      {File(R"({"type":"BPE","vocab":{"a":0}})"), "'merges': expected"},
      {File(R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})"), "entry 0"},
      {File(R"({"type":"BPE","vocab":{"a":0},"merges":["a a a"]})"), "entry 0"},
      {File(R"({"type":"BPE","vocab":{"a":0},"merges":[["a"]]})"), "entry 0"},
      {File(R"({"type":"BPE","vocab":{"a":0},"merges":["a a"]})"),
       "no piece 'aa'"},
      {File(R"({"type":"BPE","unk_token":"u","vocab":{"a":0},"merges":[]})"),
       "'unk_token': 'u' is not in the vocabulary"},
      {File(kModel, R"(,"added_tokens":{})"), "added_tokens: expected a list"},
      {File(kModel, R"(,"added_tokens":[{"id":"1","content":"x"}])"),
       "added_tokens: token 0: 'id'"},
      {File(kModel, R"(,"added_tokens":[{"id":99999999,"content":"x"}])"),
       "found 99999999"},
      {File(
           kModel,
           R"(,"pre_tokenizer":{"type":"Split","pattern":"x","behavior":"Isolated"})"),
       "'pattern'"},
      {File(
           kModel,
           R"(,"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Up"})"),
       "found 'Up'"},
      {File(kModel, R"(,"pre_tokenizer":{"type":"Sequence"})"),
       "'pretokenizers' is missing"},
      {File(kModel,
            R"(,"normalizer":{"type":"Replace","pattern":{"String":"x"}})"),
       "'content'"},
      {File(kModel,
            R"(,"decoder":{"type":"Strip","content":"ab","start":1,"stop":0})"),
       "expected one character"},
      {File(kModel,
            R"(,"decoder":{"type":"Strip","content":"a","start":-1,"stop":0})"),
       "found -1"},
      {File(
           kModel,
           R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"B"}}],"special_tokens":{}})"),
       "gives no ids"},
      {File(
           kModel,
           R"(,"post_processor":{"type":"BertProcessing","sep":["a",1e9],"cls":["b",1]})"),
       "template's id"},
  };
  for (const auto& c : cases) {
    const auto found = ParseTokenizerJson(c.json);
    ASSERT_FALSE(found.ok()) << c.json;
    EXPECT_THAT(found.error().message, HasSubstr(c.message));
    EXPECT_THAT(found.error().message, Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace hexllm
