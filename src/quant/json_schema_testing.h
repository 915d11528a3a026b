// A validator for the part of JSON Schema (draft 2020-12) that our schemas use.
// For tests: the product checks recipes with its own parser.
#pragma once

#include <string>

#include "base/json.h"

namespace hexllm::quant {

// Empty when `json` is valid by `schema`, else the place and the keyword that
// it breaks, e.g. "rules/0/block: enum". A keyword that the validator does not
// know is reported as such, so that a schema cannot ask for more than is
// tested.
std::string SchemaViolation(const Json& schema, const Json& json);

}  // namespace hexllm::quant
