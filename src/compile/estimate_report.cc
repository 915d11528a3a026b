#include "compile/estimate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr std::string_view kWhat =
    "estimate of the QNN compiler's cost model at the highest clocks, without "
    "calls from the host: nothing was measured on a device";

double Mega(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string Head(const ModelEstimate& estimate) {
  return fmt::format("{}, recipe {}{}\n{} (QAIRT {})\n\n",
                     Printable(estimate.model), Printable(estimate.recipe),
                     estimate.calibrated ? "" : ", not calibrated", kWhat,
                     Printable(estimate.library));
}

// What a step takes on one SoC: the sums over the graphs that it runs in turn.
struct StepFigures {
  std::set<std::string> graphs;  // their names: the parts of the model
  GraphFigures sum;              // without ops
};

// SoC, kind, T and C: the same for the parts of a step.
using StepKey = std::tuple<std::string, std::string, uint32_t, uint32_t>;

StepKey KeyOf(const GraphFigures& graph) {
  return {graph.estimate.soc, graph.kind, graph.step_tokens,
          graph.context_tokens};
}

struct Steps {
  std::vector<StepFigures> list;  // in the order of their first graphs
  std::map<StepKey, size_t> index;

  // True for a graph that is not all of its step: it has no rate.
  bool IsPart(const GraphFigures& graph) const {
    return list[index.at(KeyOf(graph))].graphs.size() > 1;
  }
};

void AddFigures(const htp::GraphEstimate& part, htp::GraphEstimate& sum) {
  sum.cycles += part.cycles;
  sum.us += part.us;
  sum.ddr_read_bytes += part.ddr_read_bytes;
  sum.ddr_write_bytes += part.ddr_write_bytes;
  sum.spill_bytes += part.spill_bytes;
  sum.fill_bytes += part.fill_bytes;
}

Steps StepsOf(const ModelEstimate& estimate) {
  Steps steps;
  for (const GraphFigures& graph : estimate.graphs) {
    const auto [at, added] =
        steps.index.try_emplace(KeyOf(graph), steps.list.size());
    if (added) {
      steps.list.push_back({.graphs = {graph.name}, .sum = graph});
      steps.list.back().sum.estimate.ops.clear();
      continue;
    }
    StepFigures& step = steps.list[at->second];
    if (step.graphs.insert(graph.name).second)
      AddFigures(graph.estimate, step.sum.estimate);
  }
  return steps;
}

std::string SummaryRow(const GraphFigures& graph, const std::string& name,
                       const std::string& rate) {
  const htp::GraphEstimate& figures = graph.estimate;
  return fmt::format(
      "{:<9} {:<14} {:>4} {:>6} {:>9.3f} {:>9.3f} {:>9} {:>9.2f} {:>9.2f} "
      "{:>9.2f} {:>9.2f}\n",
      Printable(figures.soc), Printable(name), graph.step_tokens,
      graph.context_tokens, figures.us / 1e3, figures.cycles / 1e6, rate,
      Mega(figures.ddr_read_bytes), Mega(figures.ddr_write_bytes),
      Mega(figures.spill_bytes), Mega(figures.fill_bytes));
}

std::string Summary(const ModelEstimate& estimate) {
  const Steps steps = StepsOf(estimate);
  const auto rate = [](const GraphFigures& graph) {
    return fmt::format("{:.1f}", TokensPerSecond(graph));
  };
  std::string text = fmt::format(
      "{:<9} {:<14} {:>4} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
      "SoC", "graph", "T", "C", "ms", "Mcycles", "tokens/s", "MB read",
      "written", "spilled", "filled");
  for (const GraphFigures& graph : estimate.graphs) {
    text +=
        SummaryRow(graph, graph.name, steps.IsPart(graph) ? "-" : rate(graph));
  }
  for (const StepFigures& step : steps.list) {
    if (step.graphs.size() > 1)
      text += SummaryRow(step.sum, "all of " + step.sum.kind, rate(step.sum));
  }
  return text;
}

std::string BusiestOps(const GraphFigures& graph, size_t top) {
  const std::vector<htp::EstimatedOp>& ops = graph.estimate.ops;
  std::string text = fmt::format(
      "\n{} on {}: busiest (units work at the same time: lines do not add up)\n"
      "{:>12} {:<5} {:>6}  op\n",
      Printable(graph.name), Printable(graph.estimate.soc), "us", "unit",
      "times");
  for (size_t i = 0; i < std::min(top, ops.size()); ++i) {
    text += fmt::format("{:>12.1f} {:<5} {:>6}  {}\n", ops[i].busy_us,
                        ops[i].unit, ops[i].count, Printable(ops[i].name));
  }
  return text;
}

// What graphs and steps have.
Json FiguresToJson(const GraphFigures& graph) {
  const htp::GraphEstimate& figures = graph.estimate;
  return {{"soc", figures.soc},
          {"kind", graph.kind},
          {"step_tokens", graph.step_tokens},
          {"context_tokens", graph.context_tokens},
          {"cycles", static_cast<uint64_t>(figures.cycles)},
          {"core_mhz", figures.core_mhz},
          {"us", figures.us},
          {"ddr_read_bytes", figures.ddr_read_bytes},
          {"ddr_write_bytes", figures.ddr_write_bytes},
          {"spill_bytes", figures.spill_bytes},
          {"fill_bytes", figures.fill_bytes}};
}

Json GraphToJson(const GraphFigures& graph) {
  Json json = FiguresToJson(graph);
  json["name"] = graph.name;
  Json& ops = json["ops"] = Json::array();
  for (const htp::EstimatedOp& op : graph.estimate.ops) {
    ops.push_back({{"unit", op.unit},
                   {"name", op.name},
                   {"count", op.count},
                   {"busy_us", op.busy_us}});
  }
  return json;
}

Json StepToJson(const StepFigures& step) {
  Json json = FiguresToJson(step.sum);
  json["graphs"] = step.graphs.size();
  json["tokens_per_second"] = TokensPerSecond(step.sum);
  return json;
}

// What counts things and bytes.
Result<uint64_t> GetCount(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const int64_t count, GetInt(json, key));
  if (count >= 0) return static_cast<uint64_t>(count);
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected 0 or more, found {}", key, count)};
}

// What can be counted with, as in what the compiler writes (htp/estimate.cc).
Result<double> GetTime(const Json& json, std::string_view key) {
  constexpr double kMost = 1e15;
  HX_ASSIGN_OR_RETURN(const double number, GetNumber(json, key));
  if (number >= 0 && number < kMost) return number;
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected 0 or more and less than {:g}, found "
                           "{:g}",
                           key, kMost, number)};
}

Result<double> GetPositive(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const double number, GetTime(json, key));
  if (number > 0) return number;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: expected more than 0, found {:g}", key, number)};
}

Result<uint32_t> GetTokens(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const uint64_t count, GetCount(json, key));
  if (count >= 1 && count <= UINT32_MAX) return static_cast<uint32_t>(count);
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: expected a number of tokens, found {}", key, count)};
}

// The member `key`, which is an array.
Result<const Json*> GetArray(const Json& json, std::string_view key) {
  const Json* array = FindMember(json, key);
  if (array != nullptr && array->is_array()) return array;
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected an array, found {}", key,
                           array == nullptr ? "none" : JsonTypeName(*array))};
}

Result<htp::EstimatedOp> OpFromJson(const Json& json) {
  htp::EstimatedOp op;
  HX_ASSIGN_OR_RETURN(op.unit, GetString(json, "unit"));
  HX_ASSIGN_OR_RETURN(op.name, GetString(json, "name"));
  HX_ASSIGN_OR_RETURN(op.count, GetCount(json, "count"));
  HX_ASSIGN_OR_RETURN(op.busy_us, GetTime(json, "busy_us"));
  return op;
}

Result<htp::GraphEstimate> FiguresFromJson(const Json& json) {
  htp::GraphEstimate figures;
  HX_ASSIGN_OR_RETURN(figures.soc, GetString(json, "soc"));
  HX_ASSIGN_OR_RETURN(figures.cycles, GetPositive(json, "cycles"));
  HX_ASSIGN_OR_RETURN(figures.core_mhz, GetPositive(json, "core_mhz"));
  HX_ASSIGN_OR_RETURN(figures.us, GetPositive(json, "us"));
  HX_ASSIGN_OR_RETURN(figures.ddr_read_bytes, GetCount(json, "ddr_read_bytes"));
  HX_ASSIGN_OR_RETURN(figures.ddr_write_bytes,
                      GetCount(json, "ddr_write_bytes"));
  HX_ASSIGN_OR_RETURN(figures.spill_bytes, GetCount(json, "spill_bytes"));
  HX_ASSIGN_OR_RETURN(figures.fill_bytes, GetCount(json, "fill_bytes"));
  HX_ASSIGN_OR_RETURN(const Json* ops, GetArray(json, "ops"));
  for (const Json& entry : *ops) {
    HX_ASSIGN_OR_RETURN(htp::EstimatedOp op, OpFromJson(entry));
    figures.ops.push_back(std::move(op));
  }
  return figures;
}

Result<GraphFigures> GraphFromJson(const Json& json) {
  GraphFigures graph;
  HX_ASSIGN_OR_RETURN(graph.name, GetString(json, "name"));
  HX_ASSIGN_OR_RETURN(graph.kind, GetString(json, "kind"));
  HX_ASSIGN_OR_RETURN(graph.step_tokens, GetTokens(json, "step_tokens"));
  HX_ASSIGN_OR_RETURN(graph.context_tokens, GetTokens(json, "context_tokens"));
  HX_ASSIGN_OR_RETURN(graph.estimate, FiguresFromJson(json));
  return graph;
}

}  // namespace

double TokensPerSecond(const GraphFigures& graph) {
  return graph.step_tokens / (graph.estimate.us / 1e6);
}

std::string DescribeModelEstimate(const ModelEstimate& estimate, size_t top) {
  std::string text = Head(estimate) + Summary(estimate);
  if (top == 0) return text;
  for (const GraphFigures& graph : estimate.graphs)
    text += BusiestOps(graph, top);
  return text;
}

Json EstimateToJson(const ModelEstimate& estimate) {
  const Steps all = StepsOf(estimate);
  Json steps = Json::array();
  for (const StepFigures& step : all.list) steps.push_back(StepToJson(step));
  Json graphs = Json::array();
  for (const GraphFigures& graph : estimate.graphs) {
    graphs.push_back(GraphToJson(graph));
    if (!all.IsPart(graph))
      graphs.back()["tokens_per_second"] = TokensPerSecond(graph);
  }
  return {{"what", kWhat},
          {"producer", estimate.producer},
          {"library", estimate.library},
          {"model", estimate.model},
          {"recipe", estimate.recipe},
          {"calibrated", estimate.calibrated},
          {"steps", std::move(steps)},
          {"graphs", std::move(graphs)}};
}

Result<ModelEstimate> EstimateFromJson(const Json& json) {
  ModelEstimate estimate;
  HX_ASSIGN_OR_RETURN(estimate.producer, GetString(json, "producer"));
  HX_ASSIGN_OR_RETURN(estimate.library, GetString(json, "library"));
  HX_ASSIGN_OR_RETURN(estimate.model, GetString(json, "model"));
  HX_ASSIGN_OR_RETURN(estimate.recipe, GetString(json, "recipe"));
  HX_ASSIGN_OR_RETURN(estimate.calibrated, GetBool(json, "calibrated"));
  HX_ASSIGN_OR_RETURN(const Json* graphs, GetArray(json, "graphs"));
  for (const Json& entry : *graphs) {
    HX_ASSIGN_OR_RETURN(GraphFigures graph, GraphFromJson(entry));
    estimate.graphs.push_back(std::move(graph));
  }
  if (estimate.graphs.empty())
    return Error{ErrorCode::kBadInput, "graphs: expected some, found none"};
  return estimate;
}

}  // namespace hexllm
