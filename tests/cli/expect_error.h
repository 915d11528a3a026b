// What every failure of the program has in common.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace hexllm::testing {

// `outcome` failed with `status` and one line that holds all of `parts`.
inline void ExpectError(const Outcome& outcome, int status,
                        const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::StartsWith("hexllm: error: "));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << outcome.err;
  for (const std::string& part : parts)
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
}

}  // namespace hexllm::testing
