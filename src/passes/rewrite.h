// What rewrites share: finding producers, counting and moving uses, dropping
// what became unused. Used by the passes alone. None of it checks: the verifier
// does, after each pass.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace hexllm {

// The node that makes `value`, or null for inputs and constants.
const ir::Node* Producer(const ir::Graph& graph, ir::ValueId value);
// The node that makes `value` if it is of the kind, else null.
const ir::Node* ProducerOfKind(const ir::Graph& graph, ir::ValueId value,
                               ir::OpKind kind);

// Reads of each value, by value index: node inputs and graph outputs.
std::vector<int> CountUses(const ir::Graph& graph);

// Lets everything that read `from`, graph outputs included, read `to`. Types
// must be equal.
void ReplaceUses(ir::Graph& graph, ir::ValueId from, ir::ValueId to);

// Removes a node that gives its input unchanged: readers of `node`'s output
// read `source` instead. Does nothing when that would lose something: an
// encoding, or a graph output that would be no node's output any more. Returns
// whether it did. The node itself stays, unused, for RemoveDead.
bool ForwardValue(ir::Graph& graph, const ir::Node& node, ir::ValueId source);

// True when a rewrite may swallow `value`: read once, and not through an
// encoding, whose rounding would be lost.
bool IsInner(const ir::Graph& graph, const std::vector<int>& uses,
             ir::ValueId value);

// Makes the node list anew: emit(node) appends, for each node in order, what
// stands in its place, by graph.AddNode and AppendNode.
void RebuildNodes(ir::Graph& graph, const std::function<void(ir::Node)>& emit);
// Appends a node whose output is a value that the graph has already.
void AppendNode(ir::Graph& graph, ir::Node node);

// `name` without `suffix`, or all of it when it ends otherwise.
std::string WithoutSuffix(const std::string& name, std::string_view suffix);

// Drops nodes that no output needs and constants' values that no node reads,
// and renumbers the rest in order. Graph inputs stay: they are the graph's
// signature.
void RemoveDead(ir::Graph& graph);

}  // namespace hexllm
