// Finds the variables that a block sets before it reads them. jinja2 makes such
// a variable local to the block from its beginning, so that reading it earlier
// (in a loop or macro inside of the block) gives an undefined value even when
// the caller passes a variable of that name:
//
//   {% for i in [1] %}{{ v }}{% endfor %}{% set v = 2 %}{{ v }}   v=1 -> "2"
//   {{ v }}{% set v = 2 %}{{ v }}                                 v=1 -> "12"
//
// Used by the parser. Source: jinja2 3.1 idtracking.
#pragma once

#include "text/jinja/ast.h"

namespace hexllm::jinja {

// Fills `unset` of `block`, the whole template, and of all blocks in it.
void FindUnsetVariables(Block& block);

}  // namespace hexllm::jinja
