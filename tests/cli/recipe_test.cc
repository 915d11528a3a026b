// hexllm recipe: list, show, validate, schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "tests/cli/process.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Model() { return DataPath("models/smollm2_135m"); }

void ExpectError(const Outcome& outcome, int status, const std::string& part) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(StartsWith("hexllm: error: "), HasSubstr(part)));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST(RecipeCommand, ListsSchemesAndModels) {
  const Outcome list = RunHexllm({"recipe", "list"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out,
              AllOf(HasSubstr("\n  16a4w_block  "), HasSubstr("\n  cpu-w4a8  "),
                    HasSubstr("\n  llama3_2-1b_instruct  ")));
  EXPECT_LT(list.out.find("cpu-w4a8"), list.out.find("For one model:"));
  EXPECT_GT(list.out.find("smollm2_135m"), list.out.find("For one model:"));
}

// What show prints is a recipe of the same meaning.
TEST(RecipeCommand, ShownRecipesAreValidFiles) {
  const Outcome show = RunHexllm({"recipe", "show", "phi_4_mini"});
  ASSERT_EQ(show.status, 0) << show.err;
  const TempDir dir;
  const std::string file = dir.Write("copy.json", show.out);
  const Outcome valid = RunHexllm({"recipe", "validate", file});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_EQ(valid.out, file + ": valid\n");
  EXPECT_EQ(RunHexllm({"recipe", "show", file}).out, show.out);
}

TEST(RecipeCommand, SchemaIsJson) {
  const auto schema = ParseJson(RunHexllm({"recipe", "schema"}).out);
  ASSERT_TRUE(schema.ok());
  EXPECT_TRUE(schema->contains("properties"));
}

TEST(RecipeCommand, ValidatesAgainstAModel) {
  const TempDir dir;
  const auto write = [&](const std::string& names) {
    return dir.Write("r.json", R"({"name": "r", "defaults": {"scheme": "16a4w"},
      "rules": [{"names": [")" + names +
                                   R"("], "scheme": "16a8w"}]})");
  };
  const Outcome valid =
      RunHexllm({"recipe", "validate", write("*.v_proj"), "--model", Model()});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out,
              AllOf(HasSubstr(": valid for "), HasSubstr(" layers 16a4w, "),
                    HasSubstr(" 16a8w\n")));
  const std::string file = write("*.wv");
  EXPECT_EQ(RunHexllm({"recipe", "validate", file}).status, 0);
  ExpectError(RunHexllm({"recipe", "validate", file, "--model", Model()}), 3,
              "'*.wv' matches no layer of this model");
}

TEST(RecipeCommand, ErrorsNameTheFileAndThePlace) {
  const TempDir dir;
  const auto validate = [&](const std::string& text) {
    return RunHexllm({"recipe", "validate", dir.Write("r.json", text)});
  };
  ExpectError(validate("{"), 3, "r.json: malformed JSON");
  ExpectError(
      validate(R"({"name": "r", "defaults": {"scheme": "16a4w", "bits": 4}})"),
      3, "r.json: defaults: unknown key 'bits'");
  ExpectError(validate(R"({"name": "r", "defaults": {"scheme": "16a4"}})"), 4,
              "unknown scheme '16a4'; did you mean '16a4w'");
  ExpectError(RunHexllm({"recipe", "show", "smollm2"}), 4,
              "did you mean 'smollm2_135m'");
  ExpectError(RunHexllm({"recipe", "show", dir.File("none.json")}), 5,
              "none.json");
}

TEST(RecipeCommand, UsageErrors) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"recipe"},
        {"recipe", "show"},
        {"recipe", "validate", "16a8w", "--set", "a=1"},
        {"recipe", "print"}})
    EXPECT_EQ(RunHexllm(args).status, 2);
}

}  // namespace
}  // namespace hexllm::testing
