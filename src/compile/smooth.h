// The channel factors of a recipe (`smooth`) on a model: what activations are
// divided by and the weights that read them are multiplied by. The model
// computes what it did. Used by compile/compiler, before anything is built and
// behind compile/rotate. The factors: quant/channel_factors.h. Places, all
// within a layer:
//
//   norm -> the linears that read it   weights (and biases) of the norm
//   v_proj -> o_proj                   rows of v_proj; query heads of one KV
//                                      head share their factors
//   up_proj -> down_proj               rows of up_proj, in gated MLPs
//
// A search leaves the products alone that are to be in float16
// (quant/residual.h): without much gain they would pass for narrow enough.
#pragma once

#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "models/model_source.h"
#include "quant/recipe.h"

namespace hexllm {

// What is to be smoothed by; borrowed.
struct SmoothJob {
  const quant::Recipe& recipe;  // Smooths()
  const TokenSequences& sequences;
  int threads = 0;  // 0 = one per physical core
  ProgressSink& progress;
  // Where factors are looked for and kept; null = nowhere.
  const FileCache* cache = nullptr;
  // The model that the factors go into; null = the one that they are of.
  const models::ModelSource* onto = nullptr;
};

// `source`, which has the recipe's rotations, with the factors in its weights:
// f32 where they changed, in a temporary file. Runs the sequences once and
// notes what changed. Errors of models::BuildDecoder, ResolveFor and
// quant::SearchFactors; kBadInput naming the value where NaN or infinity
// appears; kEnvironment where there is no room.
Result<models::ModelSource> SmoothModel(const models::ModelSource& source,
                                        const SmoothJob& job);

}  // namespace hexllm
