// Which recipe a model is quantized with for the HTP (and its qdq stage) when
// the user names none. Recipes themselves: quant/recipes/*.json.
#pragma once

#include <string>

#include "models/model_source.h"

namespace hexllm {

// The built-in recipe of --decoder-model where it names one, else that of the
// published model with the same shape, else "16a8w".
std::string DefaultStaticRecipe(const models::ModelSource& source,
                                const models::SourceOptions& options);

}  // namespace hexllm
