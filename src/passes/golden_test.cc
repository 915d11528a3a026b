// Each pass on tests/golden/passes/<pass>_before.ir gives <pass>_after.ir.
// `passes_tests --update_goldens` rewrites the latter.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

int main(int argc, char** argv) {
  return hexllm::testing::RunTestsWithGoldens(argc, argv);
}

namespace hexllm {
namespace {

using testing::Goldens;

constexpr std::string_view kFolder = "passes";

ir::Module MustParse(const std::string& text) {
  auto module = ir::Parse(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  return *std::move(module);
}

// One test for all passes: a pass without golden pair, and a golden file
// without pass, fail it.
TEST(PassGoldenTest, EveryPassDoesWhatItsFilesSay) {
  Goldens& goldens = Goldens::Get();
  for (const Pass& pass : AllPasses()) {
    SCOPED_TRACE(std::string(pass.name));
    const std::string name(pass.name);
    ir::Module module = MustParse(goldens.Read(kFolder, name + "_before.ir"));
    const std::string before = ir::Print(module);
    ASSERT_TRUE(pass.run(module).ok());
    const Status status = ir::Verify(module);
    ASSERT_TRUE(status.ok()) << status.error().message;
    const std::string after = ir::Print(module);
    EXPECT_NE(after, before) << "the golden shows nothing";
    goldens.Expect(kFolder, name + "_after.ir", after);
    // What a pass leaves, it has nothing to say about.
    ASSERT_TRUE(pass.run(module).ok());
    EXPECT_EQ(ir::Print(module), after);
  }
  goldens.ExpectAllRead(kFolder);
}

}  // namespace
}  // namespace hexllm
