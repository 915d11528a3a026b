#include "quant/scheme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hexllm::quant {
namespace {

struct Row {
  Scheme scheme;
  SchemeFamily family = SchemeFamily::kPlain;
};

// What each name means, said a second time on purpose: names are in artifacts.
constexpr Row kRows[] = {
    {{"fp32", ActivationKind::kFloat32, 32, 0, false}, SchemeFamily::kPlain},
    {{"fp16", ActivationKind::kFloat16, 16, 0, false}, SchemeFamily::kStatic},
    {{"16a16w", ActivationKind::kStatic, 16, 16, false}, SchemeFamily::kStatic},
    {{"16a8w", ActivationKind::kStatic, 16, 8, false}, SchemeFamily::kStatic},
    {{"16a4w", ActivationKind::kStatic, 16, 4, false}, SchemeFamily::kStatic},
    {{"16a4w_block", ActivationKind::kStatic, 16, 4, true},
     SchemeFamily::kStatic},
    {{"8a8w", ActivationKind::kStatic, 8, 8, false}, SchemeFamily::kStatic},
    {{"8a4w", ActivationKind::kStatic, 8, 4, false}, SchemeFamily::kStatic},
    {{"cpu-w8a8", ActivationKind::kDynamic, 8, 8, false}, SchemeFamily::kPlain},
    {{"cpu-w4a8", ActivationKind::kDynamic, 8, 4, false}, SchemeFamily::kPlain},
};

TEST(Scheme, EveryRowMeansWhatItsNameSays) {
  // The tripwire: a scheme without a row here fails.
  ASSERT_EQ(AllSchemes().size(), std::size(kRows));
  for (const Row& row : kRows) {
    const Scheme* scheme = FindScheme(row.scheme.name);
    ASSERT_NE(scheme, nullptr) << row.scheme.name;
    EXPECT_EQ(scheme->name, row.scheme.name);
    EXPECT_EQ(scheme->activations, row.scheme.activations) << scheme->name;
    EXPECT_EQ(scheme->activation_bits, row.scheme.activation_bits)
        << scheme->name;
    EXPECT_EQ(scheme->weight_bits, row.scheme.weight_bits) << scheme->name;
    EXPECT_EQ(scheme->block, row.scheme.block) << scheme->name;
    EXPECT_EQ(FamilyOf(*scheme), row.family) << scheme->name;
  }
}

TEST(Scheme, NamesAreExact) {
  for (const std::string_view name : {"", "16a8", "16a8W", " 16a8w", "16a8w "})
    EXPECT_EQ(FindScheme(name), nullptr) << name;
}

}  // namespace
}  // namespace hexllm::quant
