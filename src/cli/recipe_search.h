// The best recipe under a budget. Used by cli/cmd_recipe_search, which prints
// and writes what is found. Predictions and allocations are
// quant/sensitivity.h's, measurements cli/sensitivity's and cli/held_out's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "cli/held_out.h"
#include "cli/search_base.h"
#include "compile/compiler.h"
#include "quant/recipe.h"
#include "quant/sensitivity.h"

namespace hexllm::cli {

struct SearchWish {
  std::string model;
  CompileOptions options;  // source, recipe, calibration, target, threads, C
  quant::CostKind kind = quant::CostKind::kBytes;  // of the budget
  double budget = 0;    // bytes of weights, or microseconds of a kv step
  size_t points = 6;    // of the front, beside the budget's own
  JudgedText held_out;  // what recipes are judged on
  std::string scratch;  // a folder, for estimates
};

// A recipe that was considered.
struct SearchPoint {
  std::string label;  // "base", "uniform", "front"
  quant::Recipe recipe;
  std::vector<size_t> chosen;  // way of each layer
  double bytes = 0;
  double us = 0;  // predicted, or with `estimated` of the whole graph
  bool estimated = false;
  double predicted_kld = 0;
  HeldOutFigures measured = {};
};

struct SearchResult {
  SearchBase base;
  std::vector<quant::LayerSensitivity> layers;
  std::vector<SearchPoint> points;  // by cost
  size_t best = 0;                  // of points
  double float_perplexity = 0;
  size_t held_out_tokens = 0;
};

// Measures the layers, allocates, and measures the recipes that come of it: the
// base, the best uniform one within the budget, and points of the front, one of
// them the budget's. The best is the one that measured best within the budget,
// which is checked on its graphs as they are compiled: their weights, or the
// estimate of the whole step. kUsage naming the least reachable when the budget
// is below it; errors of FindSearchBase, MeasureSensitivities, HeldOut, and for
// kMicroseconds of CheckEstimate (before any work) and EstimateGraphs.
Result<SearchResult> SearchRecipe(const SearchWish& wish,
                                  ProgressSink& progress);

// A row for each point.
std::string SearchTable(const SearchResult& result, const SearchWish& wish);
// The front above the layers' SQNR in the best recipe, as an SVG file.
std::string SearchSvg(const SearchResult& result, quant::CostKind kind);

}  // namespace hexllm::cli
