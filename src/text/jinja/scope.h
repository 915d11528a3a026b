// Variables of a rendering: a chain of scopes from the innermost block to the
// globals. Used by the evaluator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace hexllm::jinja {

// The variables set in one block. A macro that is defined in a scope keeps it
// alive (see ScopeStack).
class Scope {
 public:
  explicit Scope(Scope* parent) : parent_(parent) {}

  void Set(std::string_view name, Value value) {
    const auto it = variables_.find(name);
    if (it != variables_.end()) {
      it->second = std::move(value);
    } else {
      variables_.emplace(name, std::move(value));
    }
  }

  // The value of `name` here or in the scopes around, or null.
  const Value* Find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      const auto it = scope->variables_.find(name);
      if (it != scope->variables_.end()) return &it->second;
    }
    return nullptr;
  }

  // Says that a macro refers to this scope, so that it and those around it must
  // outlive their blocks.
  void Capture() {
    for (Scope* scope = this; scope != nullptr && !scope->captured_;
         scope = scope->parent_)
      scope->captured_ = true;
  }
  bool captured() const { return captured_; }

 private:
  Scope* parent_;
  bool captured_ = false;
  std::map<std::string, Value, std::less<>> variables_;
};

// Owns the scopes that were captured, until the rendering ends.
using CapturedScopes = std::vector<std::unique_ptr<Scope>>;

// A scope for the duration of a C++ block; a captured one moves to `captured`
// at the end.
class LocalScope {
 public:
  LocalScope(Scope& parent, CapturedScopes& captured)
      : scope_(std::make_unique<Scope>(&parent)), captured_(captured) {}
  ~LocalScope() {
    if (scope_->captured()) captured_.push_back(std::move(scope_));
  }
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

  Scope& operator*() { return *scope_; }
  Scope* operator->() { return scope_.get(); }

 private:
  std::unique_ptr<Scope> scope_;
  CapturedScopes& captured_;
};

}  // namespace hexllm::jinja
