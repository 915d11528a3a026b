// Reading recipes: what is accepted, what is refused and how it is said.
#include "quant/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "quant/json_schema_testing.h"
#include "tests/support/temp_dir.h"

namespace hexllm::quant {
namespace {

using ::hexllm::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Json AsJson(std::string_view text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? std::move(json).value() : Json();
}

// A recipe whose members after the name are `members`.
std::string Text(const std::string& members) {
  return R"({"name": "r", )" + members + "}";
}
std::string Defaults(const std::string& settings) {
  return Text(R"("defaults": {)" + settings + "}");
}
std::string Rules(const std::string& rules) {
  return Text(R"("defaults": {"scheme": "16a4w"}, "rules": )" + rules);
}
// One rule for all layers, with `members`.
std::string OneRule(const std::string& members) {
  return Rules(R"([{"names": ["*"], )" + members + "}]");
}

Recipe Parse(const std::string& text) {
  auto recipe = ParseRecipe(AsJson(text), "r.json");
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? std::move(recipe).value() : Recipe();
}

TEST(Recipe, SettingsThatAreNotGivenHaveTheirDefaults) {
  const Recipe recipe = Parse(Defaults(R"("scheme": "16a8w")"));
  EXPECT_EQ(recipe.name, "r");
  EXPECT_EQ(recipe.description, "");
  LayerSettings expected;
  expected.scheme = FindScheme("16a8w");
  EXPECT_EQ(recipe.defaults, expected);
  EXPECT_EQ(recipe.kv_bits, 16);
  EXPECT_EQ(recipe.kv_outlier_db, 24);
  EXPECT_EQ(recipe.residual, ResidualKind::kAuto);
  EXPECT_EQ(recipe.rotations, Rotations());
  EXPECT_EQ(recipe.smooth, Smoothing());
}

TEST(Recipe, ReadsAndWritesAllFields) {
  const std::string text = R"({
  "name": "all",
  "description": "All \"fields\".",
  "defaults": {
    "scheme": "16a4w_block",
    "block": 64,
    "granularity": "per_channel",
    "weight_observer": "mse",
    "mse_candidates": 12,
    "seq_mse_candidates": 20,
    "rounding": "gptq",
    "gptq_damping": 0.05,
    "observer": "percentile",
    "percentile": 99.5,
    "momentum": 0.25,
    "symmetric_activations": true
  },
  "kv_bits": 8,
  "kv_outlier_db": 30.5,
  "residual": "float16",
  "r1": "random",
  "r2": "hadamard",
  "r3": "hadamard",
  "rotation_seed": 7,
  "smooth": 0.5,
  "rules": [
    {
      "names": [
        "*.v_proj",
        "lm_head"
      ],
      "ops": [
        "linear"
      ],
      "scheme": "16a16w",
      "granularity": "per_tensor",
      "observer": "moving_average"
    }
  ]
}
)";
  EXPECT_EQ(RecipeToJson(Parse(text)), text);
}

struct Refused {
  std::string text;
  std::string_view message;  // a part of it
};

// Wrong by the schema and by the parser alike.
std::vector<Refused> RefusedByBoth() {
  return {
      {"[]", "expected an object, found an array"},
      {"{}", "'name': expected a string, found nothing"},
      {R"({"defaults": {"scheme": "16a8w"}})", "'name'"},
      {R"({"name": 5, "defaults": {"scheme": "16a8w"}})",
       "'name': expected a string, found a whole number"},
      {R"({"name": "a b", "defaults": {"scheme": "16a8w"}})",
       "name: expected 1 to 100 letters"},
      {R"({"name": "r"})", "defaults: expected an object"},
      {Text(R"("defaults": [])"), "defaults: expected an object"},
      {Text(R"("defaults": {})"), "defaults: scheme: expected the name"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "rule": [])"),
       "unknown key 'rule'; did you mean 'rules'?"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "description": null)"),
       "description: expected a value, found null"},
      {Defaults(R"("scheme": "16a8w", "blok": 16)"),
       "defaults: unknown key 'blok'; did you mean 'block'?"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "residual": "half")"),
       "residual: unknown residual stream 'half'"},
      {Defaults(R"("scheme": 16)"),
       "defaults: scheme: expected the name of a scheme as a string, found 16"},
      {Defaults(R"("scheme": "16a4w", "block": 48)"),
       "block: expected 16, 32 or 64, found 48"},
      {Defaults(R"("scheme": "16a4w", "block": "32")"),
       "block: expected 16, 32 or 64, found '32'"},
      {Defaults(R"("scheme": "16a4w", "granularity": "per_row")"),
       "granularity: unknown granularity 'per_row'"},
      {Defaults(R"("scheme": "16a4w", "observer": "minmax")"),
       "observer: unknown observer 'minmax'; did you mean 'min_max'?"},
      {Defaults(R"("scheme": "16a4w", "weight_observer": true)"),
       "weight_observer: expected the name of a weight observer"},
      {Defaults(R"("scheme": "16a4w", "mse_candidates": 0)"),
       "mse_candidates: expected a whole number from 1 to 1000, found 0"},
      {Defaults(R"("scheme": "16a4w", "mse_candidates": 1.5)"), "found 1.5"},
      {Defaults(R"("scheme": "16a4w", "mse_candidates": 1e300)"), "1e+300"},
      {Defaults(R"("scheme": "16a4w", "percentile": 50)"),
       "percentile: expected a number above 50 and up to 100, found 50"},
      {Defaults(R"("scheme": "16a4w", "momentum": 0)"),
       "momentum: expected a number above 0 and up to 1, found 0"},
      {Defaults(R"("scheme": "16a4w", "momentum": -1)"), "found -1"},
      {Defaults(R"("scheme": "16a4w", "gptq_damping": 1.5)"),
       "gptq_damping: expected a number above 0 and up to 1, found 1.5"},
      {Defaults(R"("scheme": "16a4w", "symmetric_activations": 1)"),
       "symmetric_activations: expected true or false, found 1"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "kv_bits": 12)"),
       "kv_bits: expected 8 or 16, found 12"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "kv_outlier_db": -1)"),
       "kv_outlier_db: expected a number from 0 to 200, found -1"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "r1": true)"),
       "r1: expected the name of a rotation as a string"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "r3": "random")"),
       "r3: expected none or hadamard, found random"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "rotation_seed": -1)"),
       "rotation_seed: expected a whole number from 0 to 2147483647, found -1"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "smooth": 0)"),
       "smooth: expected none, search or a number above 0 and up to 1, found "
       "0"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "smooth": 1.5)"), "found 1.5"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "smooth": [0.5])"),
       "found an array"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "smooth": "serch")"),
       "smooth: unknown smoothing 'serch'; did you mean 'search'?"},
  };
}

std::vector<Refused> RulesRefusedByBoth() {
  return {
      {Rules("{}"), "rules: expected an array"},
      {Rules("[5]"), "rules[0]: expected an object, found a whole number"},
      {Rules(R"([{"scheme": "16a8w"}])"),
       "rules[0]: expected names or ops that say which layers"},
      {Rules(R"([{"names": [], "scheme": "16a8w"}])"),
       "rules[0]: names: expected an array of 1 to 1000 strings"},
      {Rules(R"([{"names": "*", "scheme": "16a8w"}])"), "found a string"},
      {Rules(R"([{"names": [1], "scheme": "16a8w"}])"),
       "names: expected strings, found a whole number"},
      {Rules(R"([{"names": [""], "scheme": "16a8w"}])"), "1 to 256 bytes"},
      {Rules(R"([{"names": ["a", "a"], "scheme": "16a8w"}])"),
       "names: 'a' is given twice"},
      {OneRule(R"("name": "x", "block": 16)"),
       "rules[0]: unknown key 'name'; did you mean 'names'?"},
      {OneRule(R"("block": 17)"), "rules[0]: block: expected 16, 32 or 64"},
      {OneRule(R"("ops": ["linea"], "block": 16)"),
       "ops: expected an op that layers have, found 'linea'; did you mean "
       "'linear'?"},
      {OneRule(R"("ops": ["add"], "block": 16)"),
       "found 'add'; expected one of linear"},
  };
}

// Wrong in ways that the schema cannot say.
std::vector<Refused> RefusedByParserOnly() {
  return {
      {Rules(R"([{"names": ["a["], "block": 16}])"), "without its ']'"},
      {Rules(R"([{"names": ["*"]}])"),
       "rules[0]: expected a setting such as scheme, found none"},
      {Defaults(R"("scheme": "16a16w")"),
       "defaults: granularity: expected per_tensor"},
      {Defaults(R"("scheme": "16a4w_block", "granularity": "per_tensor")"),
       "defaults: granularity: expected per_channel"},
      {Text(R"("defaults": {"scheme": "fp16"}, "kv_bits": 8)"),
       "kv_bits: 8 needs a default scheme with integer activations, found "
       "fp16"},
      {Text(R"("defaults": {"scheme": "cpu-w8a8"}, "kv_bits": 8)"), "kv_bits"},
      {Defaults(R"("scheme": "fp16", "weight_observer": "seq_mse")"),
       "defaults: weight_observer: expected min_max or mse for scheme fp16"},
      {Defaults(R"("scheme": "16a16w", "granularity": "per_tensor",
                   "rounding": "gptq")"),
       "defaults: rounding: expected nearest for scheme 16a16w"},
      {Defaults(R"("scheme": "cpu-w4a8", "rounding": "gptq")"),
       "defaults: rounding: scheme cpu-w4a8 does not use this"},
      {Text(R"("defaults": {"scheme": "fp32"}, "residual": "float16")"),
       "residual: float16 needs a default scheme with integer activations"},
      {Text(R"("defaults": {"scheme": "16a8w"}, "r3": "hadamard",
               "rotation_seed": 1)"),
       "rotation_seed: expected with r1 or r2"},
      {Text(R"("defaults": {"scheme": "cpu-w8a8"}, "r3": "hadamard")"),
       "r3: scheme cpu-w8a8 does not round queries and keys"},
      {Text(R"("defaults": {"scheme": "fp16"}, "smooth": "search")"),
       "smooth: scheme fp16 has no codes"},
      {Defaults(R"("scheme": "cpu-w4a8", "block": 64)"),
       "defaults: block: scheme cpu-w4a8 does not use this"},
      {Text(R"("defaults": {"scheme": "cpu-w8a8"},
               "rules": [{"names": ["*"], "observer": "min_max"}])"),
       "rules[0] ('*'): observer: scheme cpu-w8a8 does not use this"},
      {OneRule(R"("scheme": "cpu-w8a8")"),
       "rules[0] ('*'): scheme cpu-w8a8 cannot stand beside the defaults' "
       "16a4w"},
      {OneRule(R"("scheme": "fp32")"), "scheme fp32 cannot stand beside"},
      {Text(R"("defaults": {"scheme": "fp32"},
               "rules": [{"names": ["*"], "scheme": "16a8w"}])"),
       "scheme 16a8w cannot stand beside the defaults' fp32"},
      {Rules(R"([{"names": ["a", "b"], "scheme": "16a8w"},
                 {"names": ["c"], "scheme": "8a8w"},
                 {"names": ["b", "a"], "scheme": "8a8w"}])"),
       "rules[0] ('a', ...) and rules[2] ('b', ...) name the same layers and "
       "set scheme to \"16a8w\" and to \"8a8w\""},
  };
}

void ExpectRefused(const Refused& refused) {
  const auto recipe = ParseRecipe(AsJson(refused.text), "r.json");
  ASSERT_FALSE(recipe.ok()) << refused.text;
  EXPECT_EQ(recipe.error().code, ErrorCode::kBadInput) << refused.text;
  EXPECT_THAT(recipe.error().message,
              AllOf(StartsWith("r.json: "), HasSubstr(refused.message),
                    Not(HasSubstr("\n"))))
      << refused.text;
}

TEST(Recipe, WrongRecipesAreRefusedBySchemaAndParser) {
  const Json schema = AsJson(RecipeSchema());
  std::vector<Refused> by_both = RefusedByBoth();
  std::ranges::move(RulesRefusedByBoth(), std::back_inserter(by_both));
  for (const Refused& refused : by_both) {
    ExpectRefused(refused);
    EXPECT_NE(SchemaViolation(schema, AsJson(refused.text)), "")
        << refused.text;
  }
}

TEST(Recipe, InconsistentRecipesAreRefused) {
  const Json schema = AsJson(RecipeSchema());
  for (const Refused& refused : RefusedByParserOnly()) {
    ExpectRefused(refused);
    EXPECT_EQ(SchemaViolation(schema, AsJson(refused.text)), "")
        << refused.text;
  }
}

TEST(Recipe, UnknownSchemesAreUnsupportedAndNearOnesSuggested) {
  for (const std::string& text : {Defaults(R"("scheme": "16a4w_blocks")"),
                                  OneRule(R"("scheme": "16a4w_blocks")")}) {
    const auto recipe = ParseRecipe(AsJson(text), "r.json");
    ASSERT_FALSE(recipe.ok());
    EXPECT_EQ(recipe.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(recipe.error().message,
                HasSubstr("unknown scheme '16a4w_blocks'; did you mean "
                          "'16a4w_block'"));
  }
}

// The schema says the names once more; they must be the tables'.
TEST(Recipe, SchemaKnowsAllSchemes) {
  Json names = Json::array();
  for (const Scheme& scheme : AllSchemes()) names.push_back(scheme.name);
  EXPECT_EQ(AsJson(RecipeSchema())["$defs"]["scheme"]["enum"], names);
}

TEST(Recipe, SchemaKnowsAllSettings) {
  const Json schema = AsJson(RecipeSchema());
  const Json written =
      AsJson(RecipeToJson(Parse(Defaults(R"("scheme": "16a8w")"))));
  const Json& known = schema["properties"]["defaults"]["properties"];
  const Json& in_rules = schema["$defs"]["rule"]["properties"];
  EXPECT_EQ(known.size(), written["defaults"].size());
  for (const auto& [key, value] : written["defaults"].items()) {
    EXPECT_TRUE(known.contains(key)) << key;
    EXPECT_TRUE(in_rules.contains(key)) << key;
  }
  for (const auto& [key, value] : written.items())
    EXPECT_TRUE(schema["properties"].contains(key)) << key;
}

TEST(Recipe, TheDocumentedExampleIsValid) {
  const std::string text = ::hexllm::testing::ReadWholeFile(
      std::string(HEXLLM_SOURCE_DIR) + "/docs/recipes.md");
  const std::string open = "```json\n";
  const size_t begin = text.find(open);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = text.find("```", begin + open.size());
  const std::string example =
      text.substr(begin + open.size(), end - begin - open.size());
  EXPECT_EQ(Parse(example).rules.size(), 2);
  EXPECT_EQ(SchemaViolation(AsJson(RecipeSchema()), AsJson(example)), "");
}

TEST(Recipe, RulesThatSayTheSameOrDifferentThingsAreNoConflict) {
  Parse(Rules(R"([{"names": ["a"], "scheme": "16a8w"},
                  {"names": ["a"], "scheme": "16a8w", "block": 16},
                  {"names": ["a"], "ops": ["linear"], "scheme": "8a8w"}])"));
}

// By what it says, whatever its name.
TEST(Recipe, QuantizesWhereALayerIsRounded) {
  EXPECT_FALSE(Quantizes(Parse(Defaults(R"("scheme": "fp32")"))));
  EXPECT_TRUE(Quantizes(Parse(Defaults(R"("scheme": "fp16")"))));
  EXPECT_TRUE(Quantizes(Parse(Defaults(R"("scheme": "cpu-w8a8")"))));
  EXPECT_TRUE(Quantizes(Parse(Text(R"("defaults": {"scheme": "fp32"},
              "rules": [{"names": ["a"], "scheme": "cpu-w8a8"}])"))));
  EXPECT_FALSE(Quantizes(Parse(Text(R"("defaults": {"scheme": "fp32"},
              "rules": [{"names": ["a"], "scheme": "fp32"}])"))));
}

TEST(Recipe, PlainSchemesStandTogether) {
  const Recipe recipe = Parse(Text(R"("defaults": {"scheme": "cpu-w4a8"},
              "rules": [{"names": ["lm_head"], "scheme": "cpu-w8a8"},
                        {"names": ["*.v_proj"], "scheme": "fp32"}])"));
  EXPECT_EQ(recipe.rules.size(), 2);
}

TEST(FindRecipe, UnknownNamesGetSuggestions) {
  const auto recipe = FindRecipe("smollm2-135m");
  ASSERT_FALSE(recipe.ok());
  EXPECT_EQ(recipe.error().code, ErrorCode::kUsage);
  EXPECT_THAT(recipe.error().message,
              AllOf(HasSubstr("unknown recipe 'smollm2-135m'"),
                    HasSubstr("did you mean 'smollm2_135m'")));
}

TEST(FindRecipe, ReadsFiles) {
  const TempDir dir;
  const std::string path =
      dir.Write("mine.json", Defaults(R"("scheme": "8a8w")"));
  const auto recipe = FindRecipe(path);
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  EXPECT_EQ(recipe->defaults.scheme->name, "8a8w");
}

TEST(FindRecipe, BadFilesAreNamed) {
  const TempDir dir;
  const std::string path = dir.File("bad.json");
  EXPECT_EQ(FindRecipe(path).error().code, ErrorCode::kEnvironment);
  const auto expect = [&](const std::string& text, std::string_view message) {
    dir.Write("bad.json", text);
    const auto recipe = FindRecipe(path);
    ASSERT_FALSE(recipe.ok());
    EXPECT_EQ(recipe.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(recipe.error().message,
                AllOf(StartsWith(path), HasSubstr(message)));
  };
  expect("", "malformed JSON");
  expect(R"({"name": "a", "name": "b"})", "given twice");
  expect(std::string(100, '['), "nesting deeper");
  expect(Defaults("\"scheme\": \"\xff\""), "malformed JSON");
  expect(std::string(300 << 10, ' '), "at most 262144 bytes");
  expect("{}", "'name'");
}

// Many rules of many patterns take no quadratic time.
TEST(FindRecipe, TheLargestRecipeIsChecked) {
  std::string rules;
  for (int i = 0; i < 1000; ++i) {
    rules += (i > 0 ? "," : "") + std::string(R"({"names": ["*)") +
             std::to_string(i) + R"("], "scheme": "16a8w"})";
  }
  EXPECT_EQ(Parse(Rules("[" + rules + "]")).rules.size(), 1000);
  ExpectRefused({Rules("[" + rules + R"(, {"names": ["a"], "block": 16}])"),
                 "rules: expected an array of at most 1000, found 1001"});
}

}  // namespace
}  // namespace hexllm::quant
