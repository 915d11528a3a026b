#include "runtime/session_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_session.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using testing::FakeArtifactBuilder;
using testing::FakeOptions;
using testing::FakeReference;
using testing::FakeSession;
using testing::Greedy;
using ::testing::HasSubstr;
using testing::Ids;
using testing::Prompt;
using testing::ReadWholeFile;
using testing::TempDir;

constexpr auto kPrefill = GraphKind::kPrefill;
constexpr auto kKv = GraphKind::kKv;
constexpr auto kAll = LogitsRows::kAll;

// The bytes of a saved session.
std::string Saved(Session& session) {
  const TempDir dir;
  auto file = OutputFile::Create(dir.File("s"));
  EXPECT_TRUE(file.ok());
  const Status status = session.Save(*file);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return ReadWholeFile(dir.File("s"));
}

Status Restored(Session& session, const std::string& file) {
  HX_ASSIGN_OR_RETURN(const SavedSession saved, ParseSession(AsBytes(file)));
  return session.Restore(saved);
}

FakeOptions Steps(std::vector<testing::FakeStep> steps, uint32_t context = 64) {
  FakeOptions options;
  options.steps = std::move(steps);
  options.context = context;
  return options;
}

// Whatever steps made the cache, and whatever steps go on with it.
TEST(SessionFile, GoesOnAsIfNothingHadHappened) {
  const std::vector<FakeOptions> forms = {
      Steps({{kPrefill, 7, kAll}, {kKv, 1, kAll}}), Steps({{kKv, 1, kAll}}),
      Steps({{kPrefill, 4, kAll}}, 40)};
  Ids text = Prompt(9);
  for (const int32_t id : FakeReference::Greedy(forms[0], text, 5))
    text.push_back(id);
  for (const FakeOptions& from : forms) {
    FakeSession before(from);
    before.Answer(Prompt(9), Greedy(5));
    const std::string file = Saved(*before.session);
    for (const FakeOptions& to : forms) {
      FakeSession after(to);
      after.Answer(Prompt(3), Greedy(2));  // forgotten
      ASSERT_TRUE(Restored(*after.session, file).ok());
      EXPECT_EQ(Ids(after.session->ids().begin(), after.session->ids().end()),
                text);
      EXPECT_EQ(after.Generate(Greedy(6)), FakeReference::Greedy(to, text, 6));
    }
    // And a new prompt that shares its beginning.
    FakeSession after(from);
    ASSERT_TRUE(Restored(*after.session, file).ok());
    EXPECT_EQ(after.session->ReplacePrompt(std::span(text).first(12)).value(),
              11U);
    EXPECT_EQ(after.session->statistics().turns[0].reuse_end,
              ReuseEnd::kPromptEnds);
  }
}

// Without a token that waits to be run: the last one is run again.
TEST(SessionFile, GoesOnAfterAPromptAlone) {
  const FakeOptions options;
  FakeSession before(options);
  ASSERT_TRUE(before.session->Prefill(Prompt(10)).ok());
  FakeSession after(options);
  ASSERT_TRUE(Restored(*after.session, Saved(*before.session)).ok());
  EXPECT_EQ(after.Generate(Greedy(6)),
            FakeReference::Greedy(options, Prompt(10), 6));
  const auto turns = after.session->statistics().turns;
  ASSERT_EQ(turns.size(), 1U);
  EXPECT_EQ(turns[0].new_tokens, 6U);
}

// Keys and values of another form are decoded and encoded anew.
TEST(SessionFile, EncodesForTheCacheThatTakesIt) {
  FakeSession floats{FakeOptions{}};
  floats.Answer(Prompt(4), Greedy(1));
  std::string file = Saved(*floats.session);
  auto saved = ParseSession(AsBytes(file));
  ASSERT_TRUE(saved.ok());
  ASSERT_EQ(saved->head.k[0].shape, (Shape{2, 3, 4}));
  std::vector<float> values(2 * 3 * 4);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.5f * static_cast<float>(i) - 4 + 0.1f;
  for (ByteSpan& k : saved->k) k = std::as_bytes(std::span(values));
  std::vector<float> zeros(2 * 2 * 4);
  for (ByteSpan& v : saved->v) v = std::as_bytes(std::span(zeros));
  FakeOptions options;
  options.kv_dtype = DType::kU8;  // scale 0.5, zero point 3
  FakeSession codes(options);
  ASSERT_TRUE(codes.session->Restore(*saved).ok());
  file = Saved(*codes.session);
  const auto again = ParseSession(AsBytes(file));
  ASSERT_TRUE(again.ok());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<int>(again->k[1][i]);
    EXPECT_EQ(code, std::max(0, static_cast<int>(i) - 8 + 3)) << i;
  }
  EXPECT_EQ(static_cast<int>(again->v[2][0]), 3);
}

TEST(SessionFile, RefusesWhatDoesNotFit) {
  FakeSession before{FakeOptions{}};
  const TempDir dir;
  auto nothing = OutputFile::Create(dir.File("s"));
  EXPECT_EQ(before.session->Save(*nothing).error().code, ErrorCode::kUsage);
  before.Answer(Prompt(30), Greedy(5));
  const std::string file = Saved(*before.session);
  const auto refused = [&](FakeOptions options, uint64_t model_id = 0) {
    FakeArtifactBuilder builder(std::move(options));
    builder.manifest().model_id = model_id;
    FakeSession after(builder.Build());
    const Ids answer = after.Answer(Prompt(3), Greedy(1));
    const Status status = Restored(*after.session, file);
    if (status.ok()) return Error{ErrorCode::kUsage, "it was taken"};
    EXPECT_EQ(after.session->ids().size(), 4U);  // as before
    return status.error();
  };
  EXPECT_THAT(refused({}, 7).message, HasSubstr("another model"));
  FakeOptions options;
  options.vocab = 40;
  EXPECT_EQ(refused(options).code, ErrorCode::kUnsupported);
  options = {};
  options.k_dim = 4;
  EXPECT_THAT(refused(options).message, HasSubstr("layer 0: expected keys"));
  options = Steps({{kKv, 1, kAll}}, 32);
  EXPECT_THAT(refused(options).message,
              HasSubstr("34 tokens in its cache; there is room for 31"));
}

TEST(SessionFile, DamageIsRefused) {
  FakeSession before{FakeOptions{}};
  before.Answer(Prompt(5), Greedy(2));
  const std::string file = Saved(*before.session);
  ASSERT_TRUE(ParseSession(AsBytes(file)).ok());
  for (size_t size = 0; size < file.size(); size += 7)
    EXPECT_FALSE(ParseSession(AsBytes(file.substr(0, size))).ok()) << size;
  for (size_t i = 0; i < file.size(); i += 5) {
    std::string bad = file;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    const auto parsed = ParseSession(AsBytes(bad));
    ASSERT_FALSE(parsed.ok()) << "byte " << i;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

// Fields out of range, each under a header of the right length.
TEST(SessionFile, HostileHeadersAreRefused) {
  FakeSession before{FakeOptions{}};
  before.Answer(Prompt(5), Greedy(2));
  const std::string file = Saved(*before.session);
  const auto parse = [&](std::string_view from, std::string_view to) {
    std::string bad = file;
    const size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    uint64_t length = 0;
    std::memcpy(&length, bad.data(), sizeof(length));
    length += to.size() - from.size();
    std::memcpy(bad.data(), &length, sizeof(length));
    const auto parsed = ParseUnverifiedSession(AsBytes(bad));
    return parsed.ok() ? Error{ErrorCode::kUsage, "it was taken"}
                       : parsed.error();
  };
  EXPECT_EQ(parse(R"(\"version\":1)", R"(\"version\":2)").code,
            ErrorCode::kUnsupported);
  EXPECT_THAT(parse(R"(\"tokens\":7)", R"(\"tokens\":99999999)").message,
              HasSubstr("tokens: expected 1 to"));
  EXPECT_THAT(parse(R"(cached_tokens\":6)", R"(cached_tokens\":8)").message,
              HasSubstr("cached_tokens: expected 1 to 7, found 8"));
  EXPECT_THAT(parse(R"(\"layers\":3)", R"(\"layers\":4)").message,
              HasSubstr("kv: expected an array of 4 layers"));
  EXPECT_THAT(parse(R"(\"heads\":2)", R"(\"heads\":0)").message,
              HasSubstr("layer 0: heads: expected 1"));
  EXPECT_THAT(parse(R"(\"dim\":3)", R"(\"dim\":5)").message,
              HasSubstr("bytes of data"));
  EXPECT_THAT(parse(R"(\"dtype\":\"f32\")", R"(\"dtype\":\"u8\")").message,
              HasSubstr("layer 0: "));
  EXPECT_THAT(
      parse(R"("data_offsets":[0,28])", R"("data_offsets":[0,29])").message,
      HasSubstr("contradicts itself"));
  EXPECT_THAT(parse(R"(\"id\":\"0)", R"(\"id\":\"x)").message,
              HasSubstr("16 hexadecimal digits"));
}

}  // namespace
}  // namespace hexllm
