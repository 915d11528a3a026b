// What the parts of a decoder are built with: the graph under construction, its
// weights, and the ops that every part uses. Internal to models/decoder*.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "models/decoder.h"
#include "models/weight_binder.h"

namespace hexllm::models {

// A linear layer: its name and its width N.
struct LinearSpec {
  std::string name;
  int64_t out = 0;
  Bias bias = Bias::kNone;
  // As in WeightRequest.
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
};

// One graph. Methods append nodes and return the value that they made; weights
// that are missing or misshapen are kBadInput.
class GraphBuilder {
 public:
  // What a graph is built from; borrowed, outlives the builder.
  struct Context {
    const DecoderConfig& config;
    WeightBinder& binder;
    ir::ConstantStore& constants;
  };
  GraphBuilder(const Context& context, const GraphRequest& request);

  const DecoderConfig& config() const { return context_.config; }
  const GraphRequest& request() const { return request_; }
  ir::Graph& graph() { return graph_; }
  int64_t step_tokens() const { return request_.step_tokens; }  // T
  int64_t past_tokens() const {                                 // P
    return request_.context_tokens - request_.step_tokens;
  }
  // The layers of this graph: from first to end - 1.
  int64_t first_layer() const;
  int64_t end_layer() const;

  ir::ValueId Add(ir::OpKind op, std::vector<ir::ValueId> inputs,
                  ir::Attrs attrs, std::string name) {
    return graph_.AddNode(op, std::move(inputs), std::move(attrs),
                          std::move(name));
  }
  Result<ir::ValueId> Weight(const WeightRequest& request);
  // The first request().vocab_rows rows (0 = all) of a table, head or bias of
  // the head.
  Result<ir::ValueId> VocabWeight(const WeightRequest& request);
  // x[T,K] -> [T,N].
  Result<ir::ValueId> Linear(ir::ValueId x, const LinearSpec& spec);
  // Over the last axis, as the configuration has it.
  Result<ir::ValueId> Norm(ir::ValueId x, const std::string& name);
  // The norm of a head [T,heads,D], whose weight is in RoPE order.
  Result<ir::ValueId> HeadNorm(ir::ValueId x, const LinearSpec& spec);
  // x[T,heads,D] times the configuration's rotation of heads; x itself when
  // there is none.
  ir::ValueId RotatedHeads(ir::ValueId x, const std::string& name);
  ir::ValueId Reshape(ir::ValueId x, std::vector<int64_t> shape,
                      const std::string& name);
  // x * factor; x itself when that is 1.
  ir::ValueId Scaled(ir::ValueId x, double factor, const std::string& name);

 private:
  ir::ValueId RmsNorm(ir::ValueId x, ir::ValueId weight,
                      const std::string& name);

  Context context_;
  GraphRequest request_;
  ir::Graph graph_;
};

// "model.layers.3".
std::string LayerName(int64_t layer);

}  // namespace hexllm::models
