#include "base/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hexllm {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseJson(text);
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

// `json` must parse; what is wrong shows as a failed check.
Json Parsed(std::string_view text) { return ParseJson(text).value(); }

TEST(ParseJson, KeepsValuesAndTheOrderOfMembers) {
  const std::string text =
      R"({"z":1,"a":[true,false,null,-2,1.5,"x\u00e9"],"m":{"k":{}}})";
  EXPECT_EQ(DumpJson(Parsed(text)),
            R"({"z":1,"a":[true,false,null,-2,1.5,"xé"],"m":{"k":{}}})");
  EXPECT_EQ(DumpJson(Parsed("7")), "7");
  EXPECT_EQ(DumpJson(Parsed(" [ [ ] , { } ] ")), "[[],{}]");
}

TEST(ParseJson, KeepsBigNumbersExact) {
  const Json json = Parsed("[18446744073709551615,-9223372036854775808]");
  EXPECT_EQ(json[0].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json[1].get<int64_t>(), INT64_MIN);
}

TEST(ParseJson, SkipsAByteOrderMark) {
  EXPECT_TRUE(Parsed("\xef\xbb\xbf{}").is_object());
}

TEST(ParseJson, RefusesMalformedText) {
  for (const char* text : {"", " ", "{", "}", "[1,]", "{\"a\":}", "{\"a\" 1}",
                           "{a:1}", "nul", "01", "+1", "1 2", "{}x", "\"\t\"",
                           "\"\\x\"", "\"", "[NaN]", "// x\n1"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("malformed JSON")) << text;
  }
  EXPECT_THAT(ErrorOf("[1,\n 2,\n }"), HasSubstr("near byte 10"));
}

TEST(ParseJson, RefusesInvalidUtf8) {
  for (const char* text : {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"",
                           "\"\\ud800\"", "\"\xe2\x82\""}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("malformed JSON"));
  }
}

TEST(ParseJson, RefusesNumbersBeyondDouble) {
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf("[-1e999]"), HasSubstr("out of range"));
}

TEST(ParseJson, RefusesARepeatedKey) {
  EXPECT_THAT(ErrorOf(R"({"a":1,"b":{"a":2},"a":3})"),
              HasSubstr("key 'a' is given twice"));
  EXPECT_THAT(ErrorOf(R"([{"x":{"y":1,"y":1}}])"), HasSubstr("'y'"));
  // The key may hold anything; the message stays one line.
  EXPECT_THAT(ErrorOf(R"({"a\nb":1,"a\nb":1})"), HasSubstr("'a\\x0ab'"));
  EXPECT_TRUE(ParseJson(R"([{"a":1},{"a":1},{"b":{"a":1},"a":1}])").ok());
}

TEST(ParseJson, BoundsTheDepth) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)).ok());
  EXPECT_THAT(ErrorOf(nested(kMaxJsonDepth + 1)), HasSubstr("nesting"));
  EXPECT_THAT(ErrorOf(std::string(1'000'000, '[')), HasSubstr("nesting"));
}

// Quadratic work in the number of members would take minutes here.
TEST(ParseJson, TakesLinearTimeInTheNumberOfMembers) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i)
    text += fmt::format("\"token{}\":{},", i, i);
  text += "\"end\":0}";
  const Json json = Parsed(text);
  EXPECT_EQ(json.size(), 300'001u);
  EXPECT_EQ(json.begin().key(), "token0");
}

TEST(DumpJson, ReplacesInvalidUtf8) {
  EXPECT_EQ(DumpJson(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(FindMember, IsNullForMissingNullAndNonObjects) {
  const Json json = Parsed(R"({"a":1,"n":null})");
  ASSERT_NE(FindMember(json, "a"), nullptr);
  EXPECT_EQ(FindMember(json, "n"), nullptr);
  EXPECT_EQ(FindMember(json, "b"), nullptr);
  EXPECT_EQ(FindMember(Parsed("[1]"), "a"), nullptr);
}

TEST(GetInt, TakesWholeNumbersOnly) {
  const Json json = Parsed(
      R"({"i":-3,"f":4.0,"h":0.5,"s":"1","big":9223372036854775808,
          "max":9223372036854775807,"huge":1e300,"b":true})");
  EXPECT_EQ(*GetInt(json, "i"), -3);
  EXPECT_EQ(*GetInt(json, "f"), 4);
  EXPECT_EQ(*GetInt(json, "max"), INT64_MAX);
  for (const char* key : {"h", "s", "big", "huge", "b", "missing"}) {
    const auto value = GetInt(json, key);
    ASSERT_FALSE(value.ok()) << key;
    EXPECT_EQ(value.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(value.error().message, HasSubstr(key));
    EXPECT_THAT(value.error().message, HasSubstr("expected a whole number"));
  }
  EXPECT_THAT(GetInt(json, "s").error().message, HasSubstr("found a string"));
  EXPECT_THAT(GetInt(json, "missing").error().message,
              HasSubstr("found nothing"));
}

TEST(GetOthers, CheckTheType) {
  const Json json = Parsed(R"({"n":1.5,"i":2,"b":true,"s":"x","a":[]})");
  EXPECT_EQ(*GetNumber(json, "n"), 1.5);
  EXPECT_EQ(*GetNumber(json, "i"), 2.0);
  EXPECT_EQ(*GetBool(json, "b"), true);
  EXPECT_EQ(*GetString(json, "s"), "x");
  EXPECT_THAT(GetNumber(json, "b").error().message,
              HasSubstr("expected a number, found a boolean"));
  EXPECT_THAT(GetBool(json, "i").error().message,
              HasSubstr("expected true or false, found a whole number"));
  EXPECT_THAT(GetString(json, "a").error().message,
              HasSubstr("expected a string, found an array"));
}

TEST(GetOr, FallsBackForMissingAndNullOnly) {
  const Json json = Parsed(R"({"null":null,"wrong":{}})");
  for (const char* key : {"null", "missing"}) {
    EXPECT_EQ(*GetIntOr(json, key, 5), 5);
    EXPECT_EQ(*GetNumberOr(json, key, 0.5), 0.5);
    EXPECT_EQ(*GetBoolOr(json, key, true), true);
    EXPECT_EQ(*GetStringOr(json, key, "d"), "d");
  }
  EXPECT_FALSE(GetIntOr(json, "wrong", 5).ok());
  EXPECT_FALSE(GetNumberOr(json, "wrong", 0.5).ok());
  EXPECT_FALSE(GetBoolOr(json, "wrong", true).ok());
  EXPECT_FALSE(GetStringOr(json, "wrong", "d").ok());
}

}  // namespace
}  // namespace hexllm
