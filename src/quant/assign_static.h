// Encodings of one graph in static schemes and fp16. Part of quant/assign.h,
// which has the rules.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "quant/assign.h"
#include "quant/constant_encoder.h"
#include "quant/graph_facts.h"

namespace hexllm::quant {

// Ranges by name; warns once of each that clips or is nothing.
class RangeTable {
 public:
  RangeTable(const Ranges* ranges, std::vector<std::string>& warnings)
      : ranges_(ranges), warnings_(warnings) {}
  // kBadInput when there is none, or it is not finite.
  Result<Range> Find(const std::string& name);

 private:
  void WarnOf(const std::string& name, const ValueRange& found);

  const Ranges* ranges_;
  std::vector<std::string>& warnings_;
  std::set<std::string> warned_;
};

// What the graphs of a module share. Borrowed.
struct AssignShared {
  const AssignOptions& options;
  RangeTable& ranges;
  ConstantEncoder& constants;
};

class StaticAssigner {
 public:
  StaticAssigner(ir::Module& module, ir::Graph& graph, AssignShared shared);

  Status Run();

 private:
  const LayerSettings& Settings(const std::string& name) const {
    return shared_.options.recipe->For(name);
  }
  const LayerSettings& Defaults() const {
    return shared_.options.recipe->recipe.defaults;
  }

  Status EncodeInputs();
  // Rewrites constants of `node`, may insert a convert before it, and encodes
  // its output.
  Status EncodeNode(ir::Node& node);
  Status EncodeLinear(ir::Node& node);
  // The bias of a linear whose input has its encoding already.
  BiasOf BiasCodesOf(const ir::Node& linear) const;
  Status CheckTable(const ir::Node& embedding);
  Result<ir::ValueId> ConvertedInput(ir::ValueId x, const std::string& layer);
  // `x` rounded to `encoding` by a convert of that name, or by an earlier one.
  ir::ValueId Converted(ir::ValueId x, const std::string& name,
                        ir::Encoding encoding);
  // All inputs of `node` in halves: what the HTP's sums and products of halves
  // read.
  void ConvertInputs(ir::Node& node, std::string_view suffix);
  // Whether `node` adds a term in halves to the stream.
  bool AddsHalf(const ir::Node& node) const;
  // `node` with halves as its output, which a convert makes `encoding`.
  void AddInHalves(ir::Node& node, ir::Encoding encoding);
  void EncodeBias(ir::Node& node);
  void AddWeightOffset(ir::Node& norm);
  Status EncodeOtherConstants(ir::Node& node);
  Result<ir::Encoding> OutputEncoding(const ir::Node& node);
  // True when a cache has 8 bits whatever the activations have.
  bool IsNarrow(CacheUse use) const;
  Result<ir::Encoding> CacheEncoding(const ir::Node& node, CacheUse use);
  Status EncodeConcat(const ir::Node& node);
  void EncodeCacheInput(CacheUse use, const ir::Encoding& encoding);
  // Of the range observed under `name`, in the format of `settings`.
  Result<ir::Encoding> FromRange(const std::string& name,
                                 const LayerSettings& settings);
  Result<ir::Encoding> MaskedEncoding(const std::string& name);
  // True for outputs that are kF16 because the residual stream is, or a term
  // of it.
  bool IsHalfOutput(const ir::Node& node) const;
  // kF16. kBadInput when the range observed under `name` exceeds it.
  Result<ir::Encoding> HalfEncoding(const std::string& name);

  ir::Module& module_;
  ir::Graph& graph_;
  AssignShared shared_;
  GraphFacts facts_;
  std::set<ir::ValueId> half_products_;  // of AssignOptions::half_inputs
  std::vector<ir::Node> nodes_;          // the graph's, with converts, so far
  std::map<ir::ValueId, std::vector<ir::ValueId>> converts_;  // by what of
};

}  // namespace hexllm::quant
